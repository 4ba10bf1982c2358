"""Local latents in predictions: what is noise is aleatoric, what is the hypothesis is epistemic, row by row."""

from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

import credo
from credo import random
from credo.models import Model, activations, regression
from credo.networks import MLP
from credo.posterior.architectures import MODEL, Architectures
from credo.predictive import predictive
from credo.predictive.mixed import NUM_LOCAL_DRAWS, Mixed
from tests.models.test_local import NOISE, SCALE, V, program
from tests.statistical.moments import assert_mean

RNG = np.random.default_rng(1)
ROWS = 1500
X = RNG.normal(size=(40, 2)).astype(np.float32)
DRAWS = {"w": RNG.normal(size=(20, 3)).astype(np.float32)}
W = DRAWS["w"].astype(np.float64)
LOCAL_VARIANCE = SCALE**2 * np.mean(np.sum(W**2, axis=1))


def rows_of(seed, num=ROWS):
    """The noise depends on what the rows hold: other rows, other noise."""
    return np.random.default_rng(seed).normal(size=(num, 2)).astype(np.float32)


def marginal(local, x):
    bound = Model(program, local=local).bind((x[:2], np.zeros(2)))
    return predictive(bound, {**DRAWS, **bound.local_noise(len(W))}, x)


@pytest.fixture(scope="module")
def split(seed):
    """Both predictions, and E[y | x, theta] of each draw without the noise, (draws, rows)."""
    x = rows_of(seed)
    said = np.einsum("nd,dk,sk->sn", x, V, W)
    return SimpleNamespace(aleatoric=marginal("aleatoric", x), epistemic=marginal("epistemic", x), said=said)


def test_noise_is_aleatoric(split):
    assert split.aleatoric.num_draws == 20
    # Every row has noise of its own, so that rows are independent estimates.
    assert_mean(split.aleatoric.aleatoric, NOISE**2 + LOCAL_VARIANCE)
    # The mean of K draws of the noise, e·w, adds Var_theta(e·w) to the spread of the functions.
    left = SCALE**2 / NUM_LOCAL_DRAWS * np.trace(np.cov(W.T))
    assert_mean(split.aleatoric.epistemic - split.said.var(0, ddof=1), left)
    assert left < 0.04 * LOCAL_VARIANCE
    assert_mean(split.aleatoric.mean - split.said.mean(0), 0.0)


def test_the_hypothesis_is_epistemic_and_the_total_is_the_same(split):
    np.testing.assert_allclose(split.epistemic.aleatoric, NOISE**2, rtol=1e-5)
    assert_mean(split.epistemic.epistemic - split.said.var(0, ddof=1), LOCAL_VARIANCE)
    left = SCALE**2 / NUM_LOCAL_DRAWS * np.trace(np.cov(W.T))
    assert_mean(split.epistemic.variance - split.aleatoric.variance, -left)


def test_densities_and_quantiles_are_those_of_the_average(split):
    rows = slice(0, 40)
    few, said = split.aleatoric[rows], split.said[:, rows]
    sd = np.sqrt(NOISE**2 + SCALE**2 * np.sum(W**2, axis=1))[:, None]
    y = said.mean(0) + 1.0
    # The share of a density or a level that 32 draws of the noise get wrong, taken from the rows themselves.
    assert_mean(np.exp(few.log_prob(y)) - stats.norm.pdf(y, said, sd).mean(0), 0.0)
    assert_mean(few.cdf(y) - stats.norm.cdf(y, said, sd).mean(0), 0.0)
    low, high = few.interval(0.8)
    np.testing.assert_allclose([few.cdf(low), few.cdf(high)], [np.full(40, 0.1), np.full(40, 0.9)], atol=1e-5)


def test_samples_have_the_moments_of_the_average(split, seed):
    few = split.aleatoric[:4]
    drawn = few.samples(random.key(seed), 4000)
    # Sampling picks among the draws themselves, of theta and of the noise: their spread has no n/(n − 1).
    parts = jax.jit(jax.vmap(lambda w: part_means(few, w)))(DRAWS["w"])
    assert_mean(drawn, few.mean)
    assert_mean((drawn - few.mean) ** 2, np.var(parts, axis=(0, 1)) + NOISE**2)


def part_means(prediction, w):
    """E[y | x, l, theta] of one theta, (K, rows)."""
    conditional = prediction.conditional_of({"w": w}, prediction.x)
    assert isinstance(conditional, Mixed)
    return conditional.of_parts(lambda part: part.mean)


# -- row by row --------------------------------------------------------------------------------------------------


def images(x, y=None):
    """Noise of every pixel, and classes."""
    w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([4, 3]).to_event(2))
    with numpyro.plate("data", x.shape[0]):
        clean = numpyro.sample("clean", dist.Normal(x, 0.5).to_event(3))
        numpyro.sample("y", dist.Categorical(logits=clean.reshape(x.shape[0], 4) @ w), obs=y)


def nested(x, y=None):
    """The plate `data` is not the innermost one."""
    with numpyro.plate("units", 3):
        w = numpyro.sample("w", dist.Normal(0.0, 1.0))
    with numpyro.plate("data", x.shape[0], dim=-2), numpyro.plate("units", 3, dim=-1):
        layer = numpyro.sample("l", dist.Normal(x[:, :1], 0.5))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(layer @ w, 0.3), obs=y)


CASES = {
    "noise": (Model(program), X[:6]),
    "hypothesis": (Model(program, local="epistemic"), X[:6]),
    "images": (Model(images), X[:12].reshape(6, 2, 2, 1)),
    "image_hypothesis": (Model(images, local="epistemic"), X[:12].reshape(6, 2, 2, 1)),
    "nested": (Model(nested), X[:6]),
    "two_outputs": (activations([4], 2, noise=[[0.5, 0.2], [0.2, 0.3]]), X[:6]),
}
FULL = {"hypothesis", "images"}


def answers(prediction):
    """By what was asked, rows last but for the outputs: (rows, …) or (many, rows, …)."""
    found = {"functions": prediction.functions, "samples": prediction.samples(random.key(3), 5)}
    if hasattr(prediction, "probs"):
        zeros = np.zeros(len(prediction), int)
        return found, {"probs": prediction.probs, "split": prediction.aleatoric, "log": prediction.log_prob(zeros)}
    found["quantiles"] = prediction.quantile([0.1, 0.7])
    return found, {"mean": prediction.mean, "split": prediction.aleatoric, "log": prediction.log_prob(prediction.mean)}


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.full] * (name in FULL)) for name in CASES])
def test_a_rows_answers_do_not_depend_on_its_neighbours(name):
    model, x = CASES[name]
    prediction = model.prior_predict(x, num_draws=3)
    of_many, of_rows = answers(prediction)
    for rows in ([0], [4, 2]):
        some_of_many, some_of_rows = answers(prediction[rows])
        for question, answer in of_many.items():
            np.testing.assert_allclose(some_of_many[question], answer[:, rows], rtol=1e-4, atol=1e-5, err_msg=question)
        for question, answer in of_rows.items():
            if question != "log":  # which looks at its own mean
                np.testing.assert_allclose(some_of_rows[question], answer[rows], rtol=1e-4, atol=1e-5, err_msg=question)


def test_nor_on_how_many_there_are(split):
    for prediction in (split.aleatoric, split.epistemic):
        np.testing.assert_allclose(prediction[700:710].mean, prediction.mean[700:710], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(prediction[700:710].variance, prediction.variance[700:710], rtol=1e-4)


def test_equal_rows_have_equal_functions_and_samples_of_their_own():
    model = Model(program, local="epistemic")
    prediction = model.prior_predict(np.ones((3, 2)), num_draws=5)
    np.testing.assert_allclose(prediction.functions[:, 0], prediction.functions[:, 1], rtol=1e-6)
    drawn = prediction.samples(random.key(0), 4)
    assert not np.any(np.isclose(drawn[:, 0], drawn[:, 1]) | np.isclose(drawn[:, 0], drawn[:, 2]))
    np.testing.assert_allclose(prediction[:2].samples(random.key(0), 4), drawn[:, :2], rtol=1e-5)


# -- classes, several outputs ------------------------------------------------------------------------------------


def coin(x, y=None):
    """P(y = 1 | l) = sigmoid(theta + l), l ~ N(0, 1); x matters to the noise alone."""
    theta = numpyro.sample("theta", dist.Normal(0.0, 1.0))
    with numpyro.plate("data", x.shape[0]):
        noise = numpyro.sample("l", dist.Normal(jnp.zeros(x.shape[0]), 1.0))
        numpyro.sample("y", dist.Bernoulli(logits=theta + noise), obs=y)


def test_for_classes_the_entropy_splits_the_same_way(seed):
    x = rows_of(seed, 500)
    theta = np.array([-1.0, 2.0], np.float32)
    model = Model(coin).bind((X[:2], np.array([0, 1])))
    noise = predictive(model, {"theta": theta}, x)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    exact = (1 / (1 + np.exp(-(theta[:, None] + nodes)))) @ weights / weights.sum()
    assert_mean(noise.functions[..., 1].T, exact)
    # The entropy of a mean of K has a bias of the order 1/K, at most ½ Var(p)/(K p(1 − p)) < 1/(2K) nats.
    expected = np.mean(stats.entropy([exact, 1 - exact]))
    assert_mean(noise.aleatoric, expected, slack=0.5 / NUM_LOCAL_DRAWS)
    # The hypothesis: twenty seeds for each theta. The total is the same, but less of it is noise.
    draws = {"theta": np.repeat(theta, 20), "local_noise": np.arange(40, dtype=np.int32)}
    hypothesis = predictive(replace(model, local="epistemic"), draws, x)
    assert_mean(hypothesis.entropy - noise.entropy, 0.0, slack=1 / 20)
    assert np.mean(hypothesis.mutual_information) > np.mean(noise.mutual_information) + 0.05


def pairs(x, y=None):
    """y = W l + noise, two outputs with a noise of their own: Cov[y] = scale² W Wᵀ + noise²."""
    w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([3, 2]).to_event(2))
    with numpyro.plate("data", x.shape[0]):
        layer = numpyro.sample("l", dist.Normal(x @ jnp.asarray(V, jnp.float32), SCALE).to_event(1))
        numpyro.sample("y", dist.Normal(layer @ w, NOISE).to_event(1), obs=y)


def test_the_covariance_of_outputs_has_that_of_the_noise(seed):
    w = RNG.normal(size=(1, 3, 2)).astype(np.float32)
    single = predictive(Model(pairs), {"w": w}, rows_of(seed, 800))
    expected = SCALE**2 * w[0].T @ w[0] + NOISE**2 * np.eye(2)
    assert_mean(single.covariance, expected)
    np.testing.assert_allclose(np.diagonal(single.covariance, axis1=1, axis2=2), single.variance, rtol=1e-4)
    assert single.quantile(0.5).shape == single.samples(random.key(0), 1)[0].shape == (800, 2)


# -- through the house --------------------------------------------------------------------------------------------


def only_noise(x, y=None):
    """Nothing but params and noise: theta is empty."""
    slope = numpyro.param("slope", 1.0)
    with numpyro.plate("data", x.shape[0]):
        clean = numpyro.sample("clean", dist.Normal(x[:, 0], 0.2))
        numpyro.sample("y", dist.Normal(slope * clean, 0.1), obs=y)


def test_a_fit_predicts_evaluates_saves_and_loads(tmp_path):
    y = X @ V @ [0.5, -1.0, 0.4]
    for model in (Model(program), Model(only_noise)):
        posterior = credo.fit(model, (X, y), credo.BayesByBackprop(num_steps=20), seed=1)
        prediction = posterior.predict(X[:5])
        assert "local_noise" not in prediction.draws
        assert np.all(prediction.aleatoric > 0.01)
        posterior.save(tmp_path / model.program.__name__)
        again = credo.load(tmp_path / model.program.__name__, model=model)
        np.testing.assert_array_equal(again.predict(X[:5]).mean, prediction.mean)
    assert np.isfinite(credo.evaluate(posterior, (X, y), num_resamples=10)["crps"].value)
    assert prediction.num_draws == 1
    np.testing.assert_array_equal(prediction.epistemic, 0.0)


def test_models_of_different_kinds_average_together():
    data = (X[:4], np.zeros(4))
    noise, plain = Model(program).bind(data), regression(MLP([2], 1), noise=0.1).bind(data)
    hypothesis = Model(program, local="epistemic").bind(data)
    models = Architectures((noise, plain, hypothesis))
    theta = {f"0.{name}": jnp.ones(leaf.shape) for name, leaf in noise.template.items()}
    theta |= {f"1.{name}": jnp.ones(leaf.shape) for name, leaf in plain.template.items()}
    theta |= {f"2.{name}": jnp.ones(leaf.shape) for name, leaf in hypothesis.template.items()}
    theta["local_noise"] = jnp.asarray(7)
    for index, model in enumerate((noise, plain, hypothesis)):
        own = {name.removeprefix(f"{index}."): leaf for name, leaf in theta.items() if name.startswith(f"{index}.")}
        own |= {"local_noise": theta["local_noise"]} if model is hypothesis else {}
        found = models.predictive(theta | {MODEL: jnp.asarray(index)}, jnp.asarray(X[:4]))
        expected = model.predictive(own, jnp.asarray(X[:4]))
        for moment in ("mean", "variance"):
            np.testing.assert_allclose(getattr(found, moment), getattr(expected, moment), rtol=1e-4, atol=1e-6)


def test_what_local_latents_are_is_one_of_two_words():
    with pytest.raises(ValueError, match="local must be 'aleatoric' or 'epistemic', got 'epistemc'"):
        Model(program, local="epistemc")
    assert activations([3], 1).local == "epistemic"
    assert Model(program).bind((X[:2], np.zeros(2))).local_noise(3) == {}
