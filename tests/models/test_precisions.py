"""Rows measured more precisely than others, noise of variance σ²/w, against formulas; and what counts are instead."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import credo
from credo import models, networks
from credo.data import Data

RNG = np.random.default_rng(0)
X, W = RNG.normal(size=(20, 2)), RNG.uniform(0.2, 5, 20)
Y = X @ [1.0, -2.0] + 0.3 + 0.5 * RNG.normal(size=20) / np.sqrt(W)
LINE, WIDE = networks.MLP([], out=1), networks.MLP([], out=2)
SHORT = credo.MAP(num_steps=20)
DESIGN = np.column_stack([np.ones(20), X])


def weighted_line(precisions, noise):
    """Mean and covariance of a line's weights under N(0, 1): (I + Σ w a aᵀ/σ²)⁻¹, and that times Σ w a y/σ²."""
    share = precisions[:, None] / noise**2
    covariance = np.linalg.inv(np.eye(3) + DESIGN.T @ (share * DESIGN))
    return covariance @ DESIGN.T @ (share[:, 0] * Y), covariance


@pytest.mark.parametrize("method", [credo.ClosedForm(), credo.Laplace(structure="full")])
def test_a_line_is_the_weighted_one(method):
    data = Data(X, Y, precisions=W)
    posterior = credo.fit(models.regression(LINE, noise=0.5), data, method)
    mean, covariance = weighted_line(W, 0.5)
    found = np.append(posterior.mean["head.bias"], posterior.mean["head.kernel"])
    np.testing.assert_allclose(found, mean, rtol=2e-3)
    prediction = posterior.predict(X)
    # A variance from n draws is off by √(2/n) of it: five of these, of the 1,000 that there are at least.
    np.testing.assert_allclose(prediction.epistemic, np.sum(DESIGN @ covariance * DESIGN, axis=1), rtol=0.23)
    np.testing.assert_allclose(prediction.with_precisions(W).aleatoric, 0.25 / W, rtol=1e-4)


def test_the_evidence_is_that_of_the_weighted_line():
    posterior = credo.fit(models.regression(LINE, noise=0.5), Data(X, Y, precisions=W), credo.ClosedForm())
    law = stats.multivariate_normal(np.zeros(20), DESIGN @ DESIGN.T + np.diag(0.25 / W))
    assert posterior.evidence.log_evidence == pytest.approx(law.logpdf(Y), abs=1e-3)


def test_noise_that_is_learned_is_that_of_precision_one():
    many = np.random.default_rng(1)
    x, w = many.normal(size=(2000, 1)), many.choice([0.1, 10.0], 2000)
    y = x[:, 0] + 0.3 * many.normal(size=2000) / np.sqrt(w)
    posterior = credo.fit(models.regression(LINE, noise="tuned"), Data(x, y, precisions=w), credo.ClosedForm())
    aleatoric = posterior.predict(x[:1]).aleatoric
    # The sd of a variance from n normal numbers is √(2/n) of it: five of these.
    np.testing.assert_allclose(aleatoric, 0.09, rtol=5 * np.sqrt(2 / 2000))


def log_likelihood(model, data):
    """Σ log p(y | x, theta) at weights of zero, and at whatever the noise is there."""
    bound = model.bind(data)
    theta = {name: jnp.zeros(leaf.shape) for name, leaf in bound.template.items()}
    return float(bound.log_likelihood(theta, bound.suited(data).batch()))


def root(scale):
    return scale / np.sqrt(W)


TWO = np.column_stack([Y, Y + 1])
SIGMA = np.array([[0.5, 0.2], [0.2, 0.4]])
OF_TWO = sum(stats.multivariate_normal(np.zeros(2), SIGMA / w).logpdf(row) for w, row in zip(W, TWO, strict=True))
LAWS = {
    "normal": (models.regression(LINE, noise=0.5), Y, stats.norm(0, root(0.5)).logpdf(Y).sum()),
    "whole": (models.regression(LINE, noise=0.5), np.arange(20), stats.norm(0, root(0.5)).logpdf(np.arange(20)).sum()),
    "of x": (
        models.regression(WIDE, noise="heteroscedastic"),
        Y,
        stats.norm(0, root(1e-3 + np.log(2))).logpdf(Y).sum(),
    ),
    "student": (
        models.regression(WIDE, noise="heavy_tailed"),
        Y,
        stats.t(4, 0, root(np.hypot(1, 1e-3))).logpdf(Y).sum(),
    ),
    "positive": (models.positive(LINE, noise=0.5), np.exp(Y), stats.lognorm(root(0.5)).logpdf(np.exp(Y)).sum()),
    "two": (
        models.regression(WIDE, noise=0.5),
        TWO,
        stats.norm(0, root(0.5)).logpdf(TWO.T).sum(),
    ),
    "correlated": (models.regression(WIDE, noise=SIGMA), TWO, OF_TWO),
}


@pytest.mark.parametrize("law", LAWS)
def test_log_likelihoods_are_those_of_the_formulas(law):
    model, y, expected = LAWS[law]
    assert log_likelihood(model, Data(X, y, precisions=W)) == pytest.approx(expected, rel=1e-4)


def test_of_what_is_missing_or_only_a_bound_the_rest_counts_with_its_own_noise():
    gaps = np.where([[True, False]] * 3 + [[True, True]] * 17, TWO, np.nan)
    expected = np.nansum(stats.norm(0, root(0.5)).logpdf(gaps.T))
    assert log_likelihood(models.regression(WIDE, noise=0.5), Data(X, gaps, precisions=W)) == pytest.approx(
        expected, rel=1e-4
    )
    is_bound, law = np.arange(20) % 3 == 0, stats.norm(0, root(0.5))
    expected = np.where(is_bound, law.logsf(Y), law.logpdf(Y)).sum()
    data = Data(X, Y, precisions=W, censored=is_bound)
    assert log_likelihood(models.regression(LINE, noise=0.5), data) == pytest.approx(expected, rel=1e-4)


def test_two_rows_are_not_one_of_half_the_variance():
    """A count of 2 is the row twice; a precision of 2 is the row once, under noise of half the variance."""
    model, twos = models.regression(LINE, noise=0.5), np.full(20, 2.0)
    once, counted, precise = (
        log_likelihood(model, Data(X, Y, **what)) for what in ({}, {"counts": twos}, {"precisions": twos})
    )
    twice = log_likelihood(model, Data(np.repeat(X, 2, 0), np.repeat(Y, 2)))
    sharper = log_likelihood(models.regression(LINE, noise=0.5 / np.sqrt(2)), Data(X, Y))
    assert counted == pytest.approx(twice, rel=1e-5)
    assert precise == pytest.approx(sharper, rel=1e-5)
    assert abs(counted - precise) > 1
    # Where the noise is known both find the same weights; what was seen twice says twice as much of the noise.
    means = [
        credo.fit(model, Data(X, Y, **what), credo.ClosedForm()).mean["head.kernel"]
        for what in ({"counts": twos}, {"precisions": twos})
    ]
    np.testing.assert_allclose(means[0], means[1], rtol=1e-5)
    assert once != counted


def test_minibatches_and_growing_data_carry_the_precisions_along():
    data = Data(X, Y, precisions=W)
    model = models.regression(LINE, noise=0.5).bind(data)
    theta = {name: jnp.zeros(leaf.shape) for name, leaf in model.template.items()}
    batch = data.batch()
    parts = [model.log_likelihood(theta, batch.taken(jnp.arange(first, first + 5))) for first in range(0, 20, 5)]
    assert float(sum(parts)) == pytest.approx(float(model.log_likelihood(theta, batch)), rel=1e-5)
    padded = model.log_likelihood(theta, data.padded(32).batch())
    assert float(padded) == pytest.approx(float(model.log_likelihood(theta, batch)), rel=1e-5)
    part = data.select([3, 4]).followed_by(Data(X[:1], Y[:1]))
    assert part.precisions.tolist() == [*W[3:5], 1.0]


MORE = pytest.mark.full
OF_TWO_MEMBERS = credo.DeepEnsemble(credo.Laplace(training=SHORT), members=2)


@pytest.mark.parametrize(
    ("model", "y", "method"),
    [
        (models.regression(LINE), Y, SHORT),
        (models.regression(LINE), Y, credo.Laplace(training=SHORT)),
        pytest.param(models.regression(WIDE, noise="heteroscedastic"), Y, credo.Laplace(training=SHORT), marks=MORE),
        pytest.param(models.regression(WIDE), TWO, credo.Laplace(training=SHORT), marks=MORE),
        pytest.param(models.regression(LINE), Y, OF_TWO_MEMBERS, marks=MORE),
        pytest.param(models.regression(LINE), Y, credo.DeepEnsemble(SHORT, members=2, anchored=True), marks=MORE),
    ],
    ids=["map", "laplace", "heteroscedastic", "two", "mixture", "anchored"],
)
def test_a_prediction_is_of_precision_one_unless_told(model, y, method, tmp_path):
    posterior = credo.fit(model, Data(X, y, precisions=W, standardise=True), method)
    plain = posterior.predict(X)
    told = plain.with_precisions(W)
    wide = W.reshape(-1, *[1] * (plain.mean.ndim - 1))
    np.testing.assert_allclose(told.mean, plain.mean, rtol=1e-5)
    np.testing.assert_allclose(told.epistemic, plain.epistemic, rtol=1e-4)
    np.testing.assert_allclose(told.aleatoric, plain.aleatoric / wide, rtol=1e-4)
    np.testing.assert_allclose(told[3:5].aleatoric, told.aleatoric[3:5], rtol=1e-5)
    assert np.all(np.diff(told.interval(0.9), axis=0) > 0)
    noises = [np.einsum("nkk->nk", (one.covariance - one.epistemic_covariance)) for one in (told, plain)]
    np.testing.assert_allclose(noises[0], noises[1] / W[:, None], rtol=1e-3)
    same = plain.with_precisions(np.ones(20))
    np.testing.assert_allclose(same.log_prob(y), plain.log_prob(y), rtol=1e-4, atol=1e-5)
    posterior.save(tmp_path / "run")
    kept = credo.load(tmp_path / "run").predict(X).with_precisions(W)
    np.testing.assert_allclose(kept.std, told.std, rtol=1e-5)


def test_scores_are_those_of_each_rows_own_noise():
    data = Data(X, Y, precisions=W)
    posterior = credo.fit(models.regression(LINE, noise=0.5), data, credo.ClosedForm())
    found = credo.evaluate(posterior, data, num_resamples=0)
    mean, covariance = weighted_line(W, 0.5)
    sd = np.sqrt(np.sum(DESIGN @ covariance * DESIGN, axis=1) + 0.25 / W)
    assert found["lpd"].value == pytest.approx(stats.norm(DESIGN @ mean, sd).logpdf(Y).mean(), abs=0.02)
    for refuses in (credo.recalibrate, credo.conformal):
        with pytest.raises(ValueError, match="takes all rows to be measured alike"):
            refuses(posterior, data)
    with pytest.raises(ValueError, match=r"credo\.online takes all rows to be measured alike"):
        credo.online(models.regression(LINE, noise=0.5), credo.Laplace()).update(data)


@pytest.mark.parametrize(
    ("model", "y", "words"),
    [
        (models.classification(LINE), np.arange(20) % 2, "y holds class labels.* pass how many as counts"),
        (models.counts(LINE, "poisson"), np.arange(20), "y is drawn from Poisson.* pass how many as counts"),
        (models.shares(LINE), np.linspace(0.1, 0.9, 20), "y is drawn from Beta"),
        (models.ordinal(LINE, 3), np.arange(20) % 3, "y is drawn from|y holds class labels"),
        (models.outliers(LINE), Y, "the likelihood of the model is a mixture"),
    ],
    ids=["classes", "counts", "shares", "ordinal", "outliers"],
)
def test_what_has_no_noise_to_scale_is_refused(model, y, words):
    with pytest.raises(ValueError, match=words):
        model.bind(model.suited(Data(X, y, precisions=W)))


@pytest.mark.parametrize(
    ("precisions", "words"),
    [
        ([1.0] * 19 + [-2.0], "precisions is -2 in row 19"),
        ([1.0] * 19 + [0], "precisions is 0 in row 19; pass w of the variance σ²/w of its noise, a number above zero"),
        ([1.0] * 3 + [np.nan] * 17, "precisions is nan in row 3"),
        ([1.0] * 3 + [None] * 17, "precisions is None in row 3"),
        ([1.0] * 3 + ["high"] * 17, "precisions is 'high' in row 3"),
        ([1.0], r"precisions has shape \(1,\), and there are 20 rows"),
    ],
)
def test_what_is_no_precision_is_refused_with_its_row(precisions, words):
    with pytest.raises(ValueError, match=words):
        Data(X, Y, precisions=precisions)


def test_a_prediction_without_a_noise_of_its_own_refuses_precisions():
    classes = credo.fit(models.classification(LINE), (X, np.arange(20) % 2), credo.MAP(num_steps=5)).predict(X)
    with pytest.raises(AttributeError, match="has no 'with_precisions'"):
        classes.with_precisions(W)
    counts = credo.fit(models.counts(LINE, "poisson"), (X, np.arange(20)), credo.MAP(num_steps=5)).predict(X)
    with pytest.raises(ValueError, match="y is drawn from Poisson"):
        counts.with_precisions(W)
