"""Censored targets in data and models: how they travel, what they add to the likelihood, and who refuses them."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import credo
from credo import random
from credo.evaluation.calibration import calibration_curve
from credo.networks import MLP

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
TIMES = np.exp(1 + 0.7 * X[:, 0] + 0.4 * RNG.normal(size=60))
ENDED = RNG.exponential(4.0, 60)
Y, CENSORED = np.minimum(TIMES, ENDED), TIMES > ENDED
DATA = credo.Data(X, Y, censored=CENSORED, standardise=True)
LINE = MLP([], out=1)
METHOD = credo.MAP(num_steps=200)


# -- data --------------------------------------------------------------------------------------------------


def test_data_keep_what_is_censored():
    assert f"{CENSORED.sum()} censored" in repr(DATA)
    np.testing.assert_array_equal(DATA.outcomes, np.column_stack([Y, CENSORED]))
    np.testing.assert_array_equal(DATA.select([3, 1]).censored, CENSORED[[3, 1]])
    train, test = DATA.split(0.25)
    np.testing.assert_array_equal(np.sort(np.concatenate([train.y, test.y])), np.sort(Y))
    assert train.censored.sum() + test.censored.sum() == CENSORED.sum()
    assert DATA.batch().y.shape == (60, 2)
    assert DATA.padded(70).batch().y.shape == (70, 2)


def test_rows_without_a_target_are_not_censored():
    data = credo.Data(X[:3], [1, 2, 3], unlabelled=X[3:5], censored=[True, False, True])
    assert data.y.dtype.kind == "f"
    assert data.censored.tolist() == [True, False, True, False, False]
    assert np.isnan(data.outcomes[3:]).all()
    assert data.with_targets(np.ones(5)).censored is None


@pytest.mark.parametrize(
    ("y", "censored", "message"),
    [
        (Y, CENSORED[:3], r"censored has shape \(3,\) and y \(60,\)"),
        (Y, np.where(CENSORED, 2, 0), r"censored holds 2 in row"),
        (Y, np.where(CENSORED, "yes", "no"), r"censored holds '(yes|no)' in row 0"),
        (np.ones((60, 2)), CENSORED, "censored is for one target"),
    ],
)
def test_what_says_nothing_is_refused(y, censored, message):
    with pytest.raises(ValueError, match=message):
        credo.Data(X, y, censored=censored)


# -- models ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["learned", "heavy_tailed"])
def test_the_likelihood_of_a_regression(noise):
    """In standardised units, against scipy."""
    net = LINE if noise == "learned" else MLP([], out=2)
    model = credo.models.regression(net, noise=noise).bind(DATA)
    theta = model.initial_theta(random.key(0))
    batch = DATA.batch()
    law = model.predictive(theta, batch.x)
    y = (Y - DATA.scaling.y_mean) / DATA.scaling.y_scale
    loc, scale = np.asarray(law.loc), np.asarray(law.scale)
    same = stats.norm(loc, scale) if noise == "learned" else stats.t(np.asarray(law.df), loc, scale)
    expected = np.where(CENSORED, same.logsf(y), same.logpdf(y)).sum()
    np.testing.assert_allclose(model.log_likelihood(theta, batch), expected, rtol=1e-4)


def test_minibatches_and_a_program_of_ones_own():
    """The program sees y alone, whatever is censored."""
    import numpyro
    import numpyro.distributions as dist

    def program(x, y=None):
        assert y is None or y.ndim == 1
        w = numpyro.sample("w", dist.Normal(0, 1).expand([2]).to_event(1))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Weibull(jnp.exp(x @ w), 1.3), obs=y)

    data = credo.Data(X, Y, censored=CENSORED)
    model = credo.Model(program).bind(data)
    theta = {"w": np.array([0.7, 0.1])}
    law = stats.weibull_min(1.3, scale=np.exp(X @ theta["w"]))
    terms = np.where(CENSORED, law.logsf(Y), law.logpdf(Y))
    whole = data.batch()
    np.testing.assert_allclose(model.log_likelihood(theta, whole), terms.sum(), rtol=1e-5)
    some = whole._replace(x=whole.x[:20], y=whole.y[:20])
    np.testing.assert_allclose(model.log_parts(theta, some)[1], 3 * terms[:20].sum(), rtol=1e-5)


def test_a_posterior_of_durations(tmp_path):
    model = credo.models.table(DATA, "linear", likelihood="positive")
    posterior = credo.fit(model, DATA, METHOD, seed=0)
    prediction = posterior.predict(X)
    naive = credo.fit(model, credo.Data(X, Y, standardise=True), METHOD, seed=0)
    # The law of what would have been seen, had everything ended.
    assert np.median(prediction.quantile(0.5) / naive.predict(X).quantile(0.5)) > 1.2
    assert prediction.interval(0.9)[0].min() > 0
    scores = credo.evaluate(posterior, DATA, num_resamples=2)
    assert scores.num_censored == CENSORED.sum()
    assert f"{CENSORED.sum()} of them censored" in str(scores)
    assert set(scores.curves) == {"quantile", "interval"}
    np.testing.assert_allclose(scores["lpd"].value, prediction.log_prob(DATA.outcomes).mean(), rtol=1e-5)
    posterior.save(tmp_path / "run")
    np.testing.assert_array_equal(
        credo.load(tmp_path / "run").predict(X).log_prob(DATA.outcomes), prediction.log_prob(DATA.outcomes)
    )


def test_the_verdict_of_a_fit_with_rows_that_are_certain():
    """A row that was censored at once is as good as certain under all draws, and can be left out all the same."""
    early = credo.Data(X, np.where(CENSORED, 1e-6, Y), censored=CENSORED, standardise=True)
    model = credo.models.positive(LINE)
    posterior = credo.fit(model, early, credo.NUTS(num_samples=60, num_warmup=100, num_chains=2), seed=0)
    assert credo.check(posterior, early).calibration is not None


@pytest.mark.parametrize("kind", ["counts", "shares"])
def test_laws_without_lower_bounds_refuse_them(kind):
    model = credo.models.counts(LINE) if kind == "counts" else credo.models.shares(LINE)
    with pytest.raises(
        ValueError, match=rf"credo.models.{kind} needs the targets themselves, and {CENSORED.sum()} of 60"
    ):
        model.bind(credo.Data(X, np.round(Y), censored=CENSORED))


@pytest.mark.parametrize("method", [credo.ClosedForm(), credo.Laplace(training=credo.MAP(num_steps=2))])
def test_methods_that_need_the_whole_target_say_so(method):
    with pytest.raises(ValueError, match="some targets are censored"):
        credo.fit(credo.models.regression(LINE, noise=0.5), DATA, method)


def test_what_compares_targets_with_predictions_says_so():
    posterior = credo.fit(credo.models.regression(LINE), DATA, METHOD, seed=0)
    for ask in (credo.recalibrate, credo.conformal):
        with pytest.raises(ValueError, match="needs the targets themselves"):
            ask(posterior, DATA)
    with pytest.raises(ValueError, match="there is no residual"):
        calibration_curve(posterior.predict(X), DATA.outcomes, of="nssr")
