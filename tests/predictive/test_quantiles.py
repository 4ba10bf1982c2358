"""Quantiles and distribution functions of mixtures over draws, for laws with an inverse, a formula, or samples only."""

import doctest
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats
from scipy.optimize import brentq

from credo import evaluation, random
from credo.data import Scaling
from credo.predictive import laws, predictive
from credo.predictive.conditional import Conditional, each_output
from tests.predictive.cases import DRAWS, OUT, ROWS, THETA, WEIGHTS, X, functions_at, program_of
from tests.statistical.moments import sigmas

LEVELS = np.array([0.025, 0.5, 0.975])
F = functions_at()
FIRST = F[..., 0]
SHARES = np.array([0.3, 0.7])
MIXING = dist.Categorical(probs=jnp.asarray(SHARES))


def prediction(likelihood, scaling=None):
    return predictive(program_of(lambda f, noise: likelihood(f)), THETA, X, weights=WEIGHTS, scaling=scaling)


def mixture_of(law, parts=((1.0, 0.0),)):
    """F of one output, (points, rows): Σᵢ wᵢ Σₖ pₖ Fₖ, with component k shifted."""

    def cdf(value):
        return sum(p * np.einsum("s,sn->n", WEIGHTS, law(shift).cdf(value)) for p, shift in parts)

    return cdf


def exact_quantiles(cdf, low=-1e6, high=1e6):
    """(levels, rows)."""

    def solve(level, row):
        return brentq(lambda value: cdf(np.full(ROWS, value))[row] - level, low, high, xtol=1e-12, rtol=1e-12)

    return np.array([[solve(level, row) for row in range(ROWS)] for level in LEVELS])


TWO_NORMALS = ((0.3, 0.0), (0.7, 3.0))
# A law as NumPyro has it, as scipy has it, and its components.
CASES = {
    "mixture": (
        lambda f: dist.MixtureSameFamily(MIXING, dist.Normal(f[:, :1] + jnp.array([0.0, 3.0]), 0.2)),
        mixture_of(lambda shift: stats.norm(FIRST + shift, 0.2), TWO_NORMALS),
    ),
    "different_families": (
        lambda f: dist.MixtureGeneral(MIXING, [dist.Normal(f[:, 0], 0.2), dist.Laplace(f[:, 0] + 3.0, 0.2)]),
        lambda value: (
            0.3 * WEIGHTS @ stats.norm(FIRST, 0.2).cdf(value) + 0.7 * WEIGHTS @ stats.laplace(FIRST + 3, 0.2).cdf(value)
        ),
    ),
    "finite_variance": (
        lambda f: dist.StudentT(4.0, f[:, 0], 0.3),
        mixture_of(lambda _: stats.t(4, FIRST, 0.3)),
    ),
    "infinite_variance": (
        lambda f: dist.StudentT(1.5, f[:, 0], 0.3),
        mixture_of(lambda _: stats.t(1.5, FIRST, 0.3)),
    ),
    "no_mean": (
        lambda f: dist.StudentT(1.0, f[:, 0] + 10, 0.3),
        mixture_of(lambda _: stats.cauchy(FIRST + 10, 0.3)),
    ),
    "cauchy": (lambda f: dist.Cauchy(f[:, 0], 0.3), mixture_of(lambda _: stats.cauchy(FIRST, 0.3))),
    "positive": (
        lambda f: dist.Gamma(2.0, jnp.exp(f[:, 0])),
        mixture_of(lambda _: stats.gamma(2, scale=np.exp(-FIRST))),
    ),
    # A square is right for both signs: beyond its bound, the formula of the law is no distribution function.
    "positive_square": (
        lambda f: dist.Weibull(jnp.exp(f[:, 0]), 2.0),
        mixture_of(lambda _: stats.weibull_min(2, scale=np.exp(FIRST))),
    ),
    "interval": (
        lambda f: dist.Beta(2.0, 1 + jnp.exp(f[:, 0])),
        mixture_of(lambda _: stats.beta(2, 1 + np.exp(FIRST))),
    ),
    "truncated": (
        lambda f: dist.TruncatedNormal(f[:, 0], 1.0, low=-0.5, high=1.0),
        mixture_of(lambda _: stats.truncnorm(-0.5 - FIRST, 1 - FIRST, FIRST, 1.0)),
    ),
    "the_same_for_all_rows": (lambda f: dist.Normal(1.0, 2.0), mixture_of(lambda _: stats.norm(1 + 0 * FIRST, 2.0))),
}


# The others are as quick, but each is compiled.
HEAVY = {"different_families", "finite_variance", "low_rank", "mixture_of_correlated", "poissons"}


def each(cases):
    return [pytest.param(name, marks=pytest.mark.full if name in HEAVY else ()) for name in cases]


@pytest.mark.parametrize("name", each(CASES))
def test_one_output(name):
    likelihood, cdf = CASES[name]
    found = prediction(likelihood)
    quantiles = found.quantile(LEVELS)
    # Where the density is f, an error of 1e-6 in a level in single precision is one of 1e-6/f in the quantile.
    np.testing.assert_allclose([cdf(row) for row in quantiles], np.tile(LEVELS[:, None], ROWS), atol=5e-6)
    np.testing.assert_allclose(quantiles, exact_quantiles(cdf), rtol=2e-3, atol=1e-4)
    y = quantiles[1] + 0.1
    np.testing.assert_allclose(found.cdf(y), cdf(y), atol=1e-5)


def test_beyond_its_bounds_y_has_probability_zero():
    beta = prediction(CASES["interval"][0])
    np.testing.assert_array_equal(beta.cdf(np.full(ROWS, -0.5)), 0.0)
    np.testing.assert_allclose(beta.cdf(np.full(ROWS, 1.5)), 1.0, rtol=1e-6)
    extreme = beta.quantile([1e-6, 1 - 1e-5])
    assert extreme.min() >= 0
    assert extreme.max() <= 1


OUTPUTS = {
    "mixture": (
        lambda f: dist.MixtureSameFamily(MIXING, dist.Normal(jnp.stack([f, f + 3], 1), 0.2).to_event(1)),
        lambda f, value: 0.3 * stats.norm.cdf(value, f, 0.2) + 0.7 * stats.norm.cdf(value, f + 3, 0.2),
    ),
    "mixture_of_correlated": (
        lambda f: dist.MixtureSameFamily(
            MIXING, dist.MultivariateNormal(jnp.stack([f, f + 3], 1), covariance_matrix=jnp.eye(OUT) + 0.5)
        ),
        lambda f, value: (
            0.3 * stats.norm.cdf(value, f, np.sqrt(1.5)) + 0.7 * stats.norm.cdf(value, f + 3, np.sqrt(1.5))
        ),
    ),
    "student": (
        lambda f: dist.MultivariateStudentT(3.0, f, jnp.tril(jnp.ones((OUT, OUT)))),
        lambda f, value: stats.t.cdf(value, 3, f, np.sqrt([1.0, 2.0, 3.0])),
    ),
    "low_rank": (
        lambda f: dist.LowRankMultivariateNormal(f, jnp.ones((OUT, 1)), jnp.arange(1.0, OUT + 1)),
        lambda f, value: stats.norm.cdf(value, f, np.sqrt([2.0, 3.0, 4.0])),
    ),
}


@pytest.mark.parametrize("name", each(OUTPUTS))
def test_each_of_several_outputs_alone_in_the_users_units(name):
    likelihood, cdf = OUTPUTS[name]
    scaling = Scaling(y_mean=np.array([10.0, -5.0, 0.0]), y_scale=np.array([3.0, 0.5, 1.0]))
    found = prediction(likelihood, scaling)
    quantiles = found.quantile(LEVELS)
    assert quantiles.shape == (3, ROWS, OUT)
    for level, row in zip(LEVELS, quantiles, strict=True):
        value = (row - scaling.y_mean) / scaling.y_scale
        np.testing.assert_allclose(np.einsum("s,sno->no", WEIGHTS, cdf(F, value)), level, atol=5e-6)
        np.testing.assert_allclose(found.cdf(row), level, atol=5e-6)


RATES = np.exp(FIRST + 1)
COUNTS = {
    "poisson": (lambda f: dist.Poisson(jnp.exp(f[:, 0] + 1)), lambda value: stats.poisson.cdf(value, RATES)),
    # NumPyro's distribution function of this one rises between the whole numbers.
    "negative_binomial": (
        lambda f: dist.NegativeBinomial2(jnp.exp(f[:, 0] + 1), 3.0),
        lambda value: stats.nbinom.cdf(value, 3, 3 / (3 + RATES)),
    ),
    "poissons": (
        lambda f: dist.MixtureSameFamily(MIXING, dist.Poisson(jnp.exp(f[:, :2] + 1))),
        lambda value: 0.3 * stats.poisson.cdf(value, RATES) + 0.7 * stats.poisson.cdf(value, np.exp(F[..., 1] + 1)),
    ),
}


@pytest.mark.parametrize("name", each(COUNTS))
def test_a_count_is_the_least_that_reaches_the_level(name):
    likelihood, cdf = COUNTS[name]
    found = prediction(likelihood)
    quantiles = found.quantile(LEVELS)
    np.testing.assert_array_equal(quantiles, np.round(quantiles))
    for level, counts in zip(LEVELS, quantiles, strict=True):
        assert np.all(WEIGHTS @ cdf(counts) >= level - 1e-6)
        assert np.all(WEIGHTS @ cdf(counts - 1) < level + 1e-6)
        np.testing.assert_allclose(found.cdf(counts), WEIGHTS @ cdf(counts), atol=1e-5)
    np.testing.assert_array_equal(found.cdf(np.full(ROWS, -1)), 0.0)


def test_counts_can_be_drawn_and_scored_with_any_key():
    poisson = prediction(COUNTS["poisson"][0])
    drawn = poisson.samples(random.key(0), 3)
    np.testing.assert_array_equal(drawn, np.round(drawn))
    assert evaluation.crps(poisson, np.ones(ROWS), num_samples=20) > 0


# -- samples where there is no distribution function -----------------------------------------------------------

SAMPLED = {
    "angles": (lambda f: dist.VonMises(f[:, 0], 3.0), lambda value: WEIGHTS @ _von_mises(value)),
    "counts": (
        lambda f: dist.Binomial(10, logits=f[:, 0]),
        lambda value: WEIGHTS @ stats.binom.cdf(value, 10, 1 / (1 + np.exp(-FIRST))),
    ),
}


def _von_mises(value):
    """On the circle cut at ±π, where NumPyro's values are."""
    law = stats.vonmises(3.0, FIRST)
    return law.cdf(value) - law.cdf(-np.pi)


@pytest.fixture(params=SAMPLED)
def sampled(request):
    likelihood, cdf = SAMPLED[request.param]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = prediction(likelihood)
        return found, found.quantile(LEVELS), cdf, request.param == "counts"


def test_quantiles_from_samples_are_within_their_error(sampled):
    found, quantiles, cdf, discrete = sampled
    # The standard error of a level, at most that of 4,000 independent samples.
    for level, values in zip(LEVELS, quantiles, strict=True):
        error = sigmas(len(LEVELS) * ROWS) * np.sqrt(level * (1 - level) / laws.NUM_SAMPLES)
        if discrete:
            np.testing.assert_array_equal(values, np.round(values))
            assert np.all(cdf(values) > level - error)
            assert np.all(cdf(values - 1) < level + error)
        else:
            np.testing.assert_allclose(cdf(values), level, atol=error)
    np.testing.assert_allclose(found.cdf(quantiles[1]), cdf(quantiles[1]), atol=sigmas(ROWS) / 2 / 4000**0.5)


def test_it_says_so_once_and_has_the_same_bits_for_any_rows(sampled):
    found, quantiles, _, discrete = sampled
    name = "BinomialLogits" if discrete else "VonMises"
    again = found[2:5]
    with pytest.warns(UserWarning, match=f"from samples, since {name} has no distribution function.*±0.008"):
        np.testing.assert_allclose(again.quantile(LEVELS), quantiles[:, 2:5], rtol=1e-5, atol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again.interval(0.9)


class Wave:
    """A law of y without a distribution function, which is not NumPyro's."""

    def __init__(self, centre):
        self.centre = centre

    mean = property(lambda self: self.centre)
    variance = property(lambda self: jnp.full(self.centre.shape, 0.5))

    def shape(self):
        return self.centre.shape

    def log_prob(self, value):
        return jnp.zeros(value.shape)

    def sample(self, key):
        return self.centre + jnp.sin(2 * jnp.pi * jax.random.uniform(key, self.centre.shape))


class Waves:
    def predictive(self, theta, x) -> Conditional:
        return Wave(x @ theta["w"][:, 0])


def test_any_conditional_has_an_interval():
    found = predictive(Waves(), THETA, X, weights=WEIGHTS)
    with pytest.warns(UserWarning, match="since Wave has no distribution function"):
        low, high = found.interval(0.9)
    law = stats.arcsine(FIRST - 1, 2)
    error = sigmas(2 * ROWS) * np.sqrt(0.05 * 0.95 / laws.NUM_SAMPLES)
    np.testing.assert_allclose(WEIGHTS @ law.cdf(low), 0.05, atol=error)
    np.testing.assert_allclose(WEIGHTS @ law.cdf(high), 0.95, atol=error)


def test_one_heavy_draw_gets_as_many_samples_as_all(monkeypatch):
    monkeypatch.setattr(laws, "NUM_SAMPLES", 100)
    with pytest.warns(UserWarning, match="±0.05"):
        single, _ = laws.by_samples(lambda theta, x: None, THETA, np.eye(DRAWS)[0], "it")
    with pytest.warns(UserWarning, match="±0.05"):
        equal, draws = laws.by_samples(lambda theta, x: None, THETA, np.full(DRAWS, 1 / DRAWS), "it")
    assert (single.num, equal.num) == (100, 20)
    np.testing.assert_array_equal(draws[laws.NUMBER], np.arange(DRAWS))


def test_normals_keep_their_inverse():
    normal = dist.Normal(jnp.zeros(3), 1.0)
    assert laws.has_icdf(normal)
    assert laws.has_icdf(dist.MultivariateNormal(jnp.zeros((2, 3)), jnp.eye(3)))
    assert not laws.has_icdf(dist.Poisson(jnp.ones(3)))
    assert isinstance(each_output(normal.to_event(1)), dist.Normal)


def test_examples_in_docstrings_run():
    assert doctest.testmod(laws).failed == 0
