"""Discrete latents of the rows, summed out: against brute force, in densities, predictions and graphs."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from jax.scipy.stats import norm

import credo
from credo.models import Model
from credo.predictive.conditional import covariance_of
from credo.predictive.mixed import Mixed
from credo.typing import Batch

RNG = np.random.default_rng(0)
NUM = 8
X = RNG.normal(size=(NUM, 2)).astype(np.float32)
LABELS = RNG.integers(0, 3, NUM).astype(np.int32)
NUMBERS = RNG.normal(size=NUM).astype(np.float32)
W = jnp.asarray(RNG.normal(size=(2, 3)), jnp.float32)
CONFUSION = jnp.array([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.02, 0.08, 0.9]])


def noisy(x, y=None):
    """A true class, and the label that somebody gave."""
    w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([2, 3]).to_event(2))
    with numpyro.plate("data", x.shape[0]):
        clean = numpyro.sample("clean", dist.Categorical(logits=x @ w))
        numpyro.sample("y", dist.Categorical(probs=CONFUSION[clean]), obs=y)


def noisy_rows(theta):
    return jnp.log(jax.nn.softmax(X @ theta["w"]) @ CONFUSION)[jnp.arange(NUM), LABELS]


def outliers(x, y=None):
    """Whether a row is an outlier, at a rate that is a latent itself."""
    w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
    rate = numpyro.sample("rate", dist.Beta(1.0, 4.0))
    with numpyro.plate("data", x.shape[0]):
        bad = numpyro.sample("bad", dist.Bernoulli(rate))
        numpyro.sample("y", dist.Normal(x @ w, jnp.where(bad, 3.0, 0.5)), obs=y)


def outliers_rows(theta):
    good, bad = (norm.pdf(NUMBERS, X @ theta["w"], scale) for scale in (0.5, 3.0))
    rate = jax.nn.sigmoid(theta["rate"])
    return jnp.log((1 - rate) * good + rate * bad)


def two(x, y=None):
    """Two latents, the second dependent on the first, and a factor that looks at it."""
    w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([2, 3]).to_event(2))
    with numpyro.plate("data", x.shape[0]):
        first = numpyro.sample("first", dist.Categorical(logits=x @ w))
        second = numpyro.sample("second", dist.Bernoulli(0.2 + 0.2 * first))
        numpyro.factor("weight", -0.1 * x[:, 0] * second)
        numpyro.sample("y", dist.Normal(first - 2.0 * second, 0.7), obs=y)


def two_rows(theta):
    chances = jax.nn.softmax(X @ theta["w"])
    total = 0.0
    for first, second in itertools.product(range(3), range(2)):
        switch = 0.2 + 0.2 * first if second else 0.8 - 0.2 * first
        seen = norm.pdf(NUMBERS, first - 2.0 * second, 0.7)
        total += chances[:, first] * switch * jnp.exp(-0.1 * X[:, 0] * second) * seen
    return jnp.log(total)


CASES = {
    "categorical": (noisy, LABELS, {"w": W}, noisy_rows),
    "bernoulli": (outliers, NUMBERS, {"w": W[:, 0], "rate": jnp.array(-1.0)}, outliers_rows),
    "two": (two, NUMBERS, {"w": W}, two_rows),
}


# -- densities -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_the_likelihood_and_its_gradient_are_those_of_brute_force(case):
    program, y, theta, rows = CASES[case]
    model = Model(program).bind((X, y))
    assert set(model.template) == set(theta)
    full = Batch(jnp.asarray(X), jnp.asarray(y), NUM)
    found = jax.jit(jax.value_and_grad(model.log_likelihood))(theta, full)
    expected = jax.jit(jax.value_and_grad(lambda theta: jnp.sum(rows(theta))))(theta)
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5), found, expected)
    # N/n of a part of the rows: the mean over the parts is the whole, and the prior counts once.
    joint = jax.jit(model.log_joint)
    halves = [joint(theta, Batch(full.x[half], full.y[half], NUM)) for half in (slice(4), slice(4, 8))]
    np.testing.assert_allclose(np.mean(halves), joint(theta, full), rtol=1e-5)
    np.testing.assert_allclose(joint(theta, full) - found[0], model.log_prior(theta), rtol=1e-4)


def test_what_has_no_probability_has_a_gradient():
    """A label that nobody can give: −∞ is in the sum, and must not become NaN in the gradient."""

    def program(x, y=None):
        w = numpyro.sample("w", dist.Normal(0.0, 1.0))
        with numpyro.plate("data", x.shape[0]):
            clean = numpyro.sample("clean", dist.Bernoulli(logits=w * x[:, 0]))
            numpyro.sample("y", dist.Normal(2.0 * clean, 0.01), obs=y)

    model = Model(program).bind((X, np.full(NUM, 2.0, np.float32)))
    batch = Batch(jnp.asarray(X), jnp.full(NUM, 2.0), NUM)
    gradient = jax.jit(jax.grad(model.log_likelihood))({"w": jnp.array(0.3)}, batch)["w"]
    expected = jnp.sum(X[:, 0] * jax.nn.sigmoid(-0.3 * X[:, 0]))
    np.testing.assert_allclose(gradient, expected, rtol=1e-4)


# -- predictions ---------------------------------------------------------------------------------------------


def probs_of(model, theta):
    return jax.jit(lambda theta: model.predictive(theta, X).probs)(theta)


def test_what_is_predicted_is_the_clean_label_or_what_was_seen():
    model = Model(noisy, predicts="clean", labels=True).bind((X, LABELS))
    clean, seen = np.asarray(jax.nn.softmax(X @ W)), model.predicting("y")
    np.testing.assert_allclose(probs_of(model, {"w": W}), clean, rtol=1e-5)
    np.testing.assert_allclose(probs_of(seen, {"w": W}), clean @ CONFUSION, rtol=1e-5)
    assert seen.predicting("clean") == model == model.predicting(None)


def test_the_prediction_of_numbers_is_the_mixture_with_all_its_moments():
    rate, theta = 0.3, {"w": W[:, 0], "rate": jnp.log(jnp.array(0.3 / 0.7))}
    model = Model(outliers).bind((X, NUMBERS))

    @jax.jit
    def answers(theta):
        law = model.predictive(theta, X)
        return law.mean, law.variance, law.log_prob(NUMBERS), law.cdf(NUMBERS)

    centred = NUMBERS - X @ W[:, 0]
    expected = (
        X @ W[:, 0],
        np.full(NUM, (1 - rate) * 0.5**2 + rate * 3.0**2),
        outliers_rows(theta),
        (1 - rate) * norm.cdf(centred / 0.5) + rate * norm.cdf(centred / 3.0),
    )
    for found, value in zip(answers(theta), expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-6)


def test_the_moments_of_a_mixture_of_normals_are_exact():
    weights, means = np.array([[0.2, 0.5], [0.8, 0.5]]), RNG.normal(size=(2, 2, 3))
    roots = np.tril(RNG.normal(size=(2, 2, 3, 3))) + 2 * np.eye(3)
    parts = jax.vmap(lambda mean, root: dist.MultivariateNormal(mean, scale_tril=root))(means, roots)
    mixture = Mixed(parts, jnp.log(weights))
    mean = np.einsum("kn,knd->nd", weights, means)
    away = means - mean
    covariance = np.einsum("kn,knde->nde", weights, roots @ np.swapaxes(roots, -1, -2))
    covariance += np.einsum("kn,knd,kne->nde", weights, away, away)
    np.testing.assert_allclose(mixture.mean, mean, rtol=1e-5)
    np.testing.assert_allclose(covariance_of(mixture), covariance, rtol=1e-4)
    np.testing.assert_allclose(mixture.variance, np.diagonal(covariance, axis1=1, axis2=2), rtol=1e-5)


# -- fits ----------------------------------------------------------------------------------------------------

SMALL = [
    credo.BayesByBackprop(num_steps=5, batch_size=4, estimator="local"),
    pytest.param(credo.NUTS(num_samples=4, num_warmup=4, num_chains=1), marks=pytest.mark.full),
    pytest.param(
        credo.Laplace("full", curvature="hessian", prediction="draws", training=credo.MAP(num_steps=5)),
        marks=pytest.mark.full,
    ),
]


@pytest.mark.parametrize("method", SMALL, ids=lambda method: type(method).__name__)
def test_every_kind_of_method_takes_it(method):
    posterior = credo.fit(Model(noisy, predicts="clean", labels=True), (X, LABELS), method)
    clean, seen = posterior.predict(X, num_draws=4), posterior.predict(X, num_draws=4, of="y")
    np.testing.assert_allclose(seen.probs, clean.probs @ CONFUSION, rtol=1e-4)
    assert posterior.about("y").model.predicts == "y"
    with pytest.raises(ValueError, match="of is 'cleen'; did you mean 'clean'"):
        posterior.predict(X, of="cleen")


# -- refusals and graphs -------------------------------------------------------------------------------------


def program_of(draw, *, outside=False):
    """A program whose discrete latent is drawn by a function, in the plate or outside it."""

    def program(x, y=None):
        w = numpyro.sample("w", dist.Normal(0.0, 1.0))
        z = draw(x) if outside else 0.0
        with numpyro.plate("data", x.shape[0]):
            z = z if outside else draw(x)
            numpyro.sample("y", dist.Normal(w + z, 1.0), obs=y)

    return program


def many(x):
    return sum(numpyro.sample(f"z{place}", dist.Categorical(probs=jnp.full(11, 1 / 11))) for place in range(3))


def depends(x, y=None):
    w = numpyro.sample("w", dist.Normal(0.0, 1.0))
    with numpyro.plate("data", x.shape[0]):
        clean = numpyro.sample("clean", dist.Normal(w, 1.0), infer={"marginalised": True})
        numpyro.sample("y", dist.Normal(2 * clean, 1.0), obs=y)


def counted(x, y=None):
    w = numpyro.sample("w", dist.Normal(0.0, 1.0))
    with numpyro.plate("data", x.shape[0]):
        z = numpyro.sample("z", dist.Bernoulli(0.5))
        numpyro.sample("y", dist.Normal(w + z, 1.0), obs=y)
    numpyro.factor("few", -jnp.sum(z))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            Model(program_of(lambda x: numpyro.sample("z", dist.Poisson(2.0)))),
            "'z' is discrete and has infinitely many",
        ),
        (
            Model(program_of(lambda x: numpyro.sample("z", dist.Bernoulli(0.5)), outside=True)),
            "'z' is discrete and is outside the plate 'data'",
        ),
        (
            Model(program_of(lambda x: numpyro.sample("z", dist.Bernoulli(0.5).expand([2]).to_event(1)).sum(-1))),
            "'z' is discrete and has several values in each row",
        ),
        (Model(program_of(many)), "z0, z1, z2 have 1,331 values together"),
        (Model(noisy, predicts="cleen"), "predicts is 'cleen'; did you mean 'clean'"),
        (Model(noisy, predicts="w"), "predicts is 'w'.*clean, y to predict"),
        (Model(depends, predicts="clean"), "'y' depends on the value of 'clean', which is marginalised"),
        (Model(counted), "'few' is outside the plate 'data'.*depends on 'z'"),
    ],
    ids=["infinite", "outside", "several", "many", "unknown", "latent", "marginalised", "prior"],
)
def test_what_cannot_be_summed_or_predicted_is_refused(model, message):
    with pytest.raises(ValueError, match=message):
        model.bind((X, LABELS if "noisy" in str(model.program) else NUMBERS))


def test_a_marginalised_site_has_a_law_and_no_density():
    def program(x, y=None):
        w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([2, 3]).to_event(2))
        matrix = numpyro.sample("matrix", dist.Dirichlet(jnp.ones(3)).expand([3]).to_event(1))
        with numpyro.plate("data", x.shape[0]):
            law = dist.Categorical(logits=x @ w)
            numpyro.sample("clean", law, infer={"marginalised": True})
            numpyro.sample("y", dist.Categorical(probs=law.probs @ matrix), obs=y)

    model = Model(program, predicts="clean", labels=True).bind((X, LABELS))
    assert list(model.template) == ["w", "matrix"]
    theta = {"w": W, "matrix": jnp.zeros((3, 2))}
    clean = np.asarray(jax.nn.softmax(X @ W))
    np.testing.assert_allclose(probs_of(model, theta), clean, rtol=1e-5)
    matrix = jax.jit(model.constrain)(theta)["matrix"]
    value = jax.jit(model.log_likelihood)(theta, Batch(X, LABELS, NUM))
    np.testing.assert_allclose(value, np.log(clean @ matrix)[np.arange(NUM), LABELS].sum(), rtol=1e-4)
    assert set(model.graph().edges) == {("w", "clean"), ("x", "clean"), ("matrix", "y"), ("clean", "y")}


def test_summed_sites_are_latents_of_the_graph_and_said_to_be_summed_out():
    model = Model(noisy).bind((X, LABELS))
    graph = model.graph()
    assert set(graph.edges) == {("w", "clean"), ("x", "clean"), ("clean", "y")}
    assert {node.name: node.kind for node in graph.nodes}["clean"] == "latent"
    assert graph.plates == {"data": ("x", "clean", "y")}
    assert "summed out" in str(model.describe())
