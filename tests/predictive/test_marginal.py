"""Marginals of numbers against direct numpy computations over the draws, in the user's units, for any block size."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq
from scipy.special import logsumexp

from credo import random
from credo.data import Data
from credo.predictive import RegressionPredictive, predictive, rows, streaming
from credo.predictive import marginal as module
from credo.predictive.conditional import Conditional
from tests.predictive.cases import (
    CORRELATION,
    DRAWS,
    MODELS,
    NOISE,
    OUT,
    ROWS,
    SCALING,
    THETA,
    WEIGHTS,
    X,
    functions_at,
)
from tests.statistical.moments import assert_mean


@pytest.fixture(scope="module")
def correlated():
    return predictive(MODELS["correlated"], THETA, X, weights=WEIGHTS, scaling=SCALING)


@pytest.fixture(scope="module")
def one():
    return predictive(MODELS["one"], THETA, X)


def test_moments_of_weighted_correlated_outputs_in_the_users_units(correlated):
    said = functions_at(scaling=SCALING)
    mean = np.average(said, axis=0, weights=WEIGHTS)
    spread = np.array([np.cov(said[:, n].T, aweights=WEIGHTS) for n in range(ROWS)])
    noise = np.average(NOISE**2, weights=WEIGHTS) * CORRELATION * np.outer(SCALING.y_scale, SCALING.y_scale)
    diagonal = np.diagonal(spread, axis1=1, axis2=2)
    np.testing.assert_allclose(correlated.functions, said, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(correlated.mean, mean, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(correlated.epistemic, diagonal, rtol=1e-4)
    np.testing.assert_allclose(correlated.aleatoric, np.tile(np.diag(noise), (ROWS, 1)), rtol=1e-5)
    np.testing.assert_allclose(correlated.std**2, diagonal + np.diag(noise), rtol=1e-4)
    np.testing.assert_allclose(correlated.covariance, spread + noise, rtol=1e-4, atol=1e-5)
    between = np.array([np.cov(said[:, :, o].T, aweights=WEIGHTS) for o in range(OUT)])
    np.testing.assert_allclose(correlated.input_covariance, np.moveaxis(between, 0, -1), rtol=1e-4, atol=1e-4)
    assert correlated.input_covariance.shape == (ROWS, ROWS, OUT)


class Triangle(NamedTuple):
    """A law of y that NumPyro does not have, with what `Conditional` asks: triangular on centre ± 1, scalar."""

    centre: jax.Array

    @property
    def mean(self):
        return self.centre

    @property
    def variance(self):
        return jnp.full(self.centre.shape, 1 / 6)

    def shape(self):
        return self.centre.shape

    def log_prob(self, value):
        return jnp.log(jnp.maximum(1 - jnp.abs(value - self.centre), 0.0))

    def sample(self, key):
        return self.centre + jax.random.triangular(key, -1.0, 0.0, 1.0, self.centre.shape)


class Triangles:
    def predictive(self, theta, x) -> Conditional:
        return Triangle(x @ theta["w"][:, 0])


def test_any_conditional_will_do():
    given, said = predictive(Triangles(), THETA, X, weights=WEIGHTS), functions_at()[..., 0]
    mean = np.average(said, axis=0, weights=WEIGHTS)
    np.testing.assert_allclose(given.mean, mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(given.aleatoric, 1 / 6, rtol=1e-5)
    np.testing.assert_allclose(given.covariance[:, 0, 0], given.variance, rtol=1e-5)
    density = stats.triang.pdf(mean[None], 0.5, said - 1, 2)
    np.testing.assert_allclose(given.log_prob(mean), np.log(WEIGHTS @ density), rtol=1e-4)
    assert given.samples(random.key(0), 3).shape == (3, ROWS)


def test_moments_of_one_output_with_equal_weights(one):
    said = functions_at()[..., 0]
    assert isinstance(one, RegressionPredictive)
    assert one.functions.shape == (DRAWS, ROWS) == (one.num_draws, len(one))
    np.testing.assert_allclose(one.mean, said.mean(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(one.epistemic, said.var(0, ddof=1), rtol=1e-4)
    np.testing.assert_allclose(one.variance, one.epistemic + np.mean(NOISE**2), rtol=1e-5)
    np.testing.assert_allclose(one.covariance[:, 0, 0], one.variance, rtol=1e-5)


@pytest.mark.parametrize("weights", [[1.0], [0.0, 1.0]])
def test_a_single_function_has_no_epistemic_uncertainty(weights):
    draws = {name: leaf[: len(weights)] for name, leaf in THETA.items()}
    single = predictive(MODELS["one"], draws, X, weights=np.array(weights))
    np.testing.assert_allclose(single.epistemic, 0.0, atol=1e-6)
    np.testing.assert_allclose(single.aleatoric, NOISE[len(weights) - 1] ** 2, rtol=1e-5)


def test_quantiles_are_those_of_the_mixture(correlated):
    levels = np.array([0.01, 0.5, 0.9])
    said = functions_at(scaling=SCALING)
    found = correlated.quantile(levels)
    assert found.shape == (3, ROWS, OUT)
    for n, o in [(0, 0), (3, 1), (6, 2)]:
        components = stats.norm(said[:, n, o], NOISE * SCALING.y_scale[o])
        exact = [brentq(lambda v, q=q, c=components: WEIGHTS @ c.cdf(v) - q, -200, 200, xtol=1e-10) for q in levels]
        np.testing.assert_allclose(found[:, n, o], exact, rtol=1e-4, atol=1e-4)
    assert correlated.quantile(0.5).shape == (ROWS, OUT)
    np.testing.assert_allclose(correlated.quantile(0.5), found[1], rtol=1e-6)


def test_an_interval_holds_its_probability(one):
    lower, upper = one.interval(0.8)
    said = functions_at()[..., 0]
    below = [stats.norm.cdf(bound, said, NOISE[:, None]).mean(0) for bound in (lower, upper)]
    np.testing.assert_allclose(below, [np.full(ROWS, 0.1), np.full(ROWS, 0.9)], atol=1e-5)


def test_log_prob_is_the_log_mean_exp_in_the_users_units(correlated):
    y = functions_at(scaling=SCALING)[1] + np.random.default_rng(1).normal(size=(ROWS, OUT))
    said, root = functions_at(scaling=SCALING), np.diag(SCALING.y_scale) @ CORRELATION @ np.diag(SCALING.y_scale)
    rows = np.array(
        [[stats.multivariate_normal(said[s, n], NOISE[s] ** 2 * root).logpdf(y[n]) for n in range(ROWS)]
         for s in range(DRAWS)]
    )  # fmt: skip
    np.testing.assert_allclose(correlated.log_prob(y), logsumexp(rows, axis=0, b=WEIGHTS[:, None]), rtol=1e-3)


def test_the_density_under_standardised_data_integrates_to_one():
    scaling = Data(X, 100 + 20 * X[:, 0], standardise=True).scaling
    grid = np.linspace(-400, 600, 4001)
    marginal = predictive(MODELS["one"], THETA, np.repeat(X[:1], len(grid), 0), scaling=scaling)
    np.testing.assert_allclose(np.trapezoid(np.exp(marginal.log_prob(grid)), grid), 1.0, rtol=1e-4)
    np.testing.assert_array_equal(marginal.log_prob(grid[:, None]), marginal.log_prob(grid))


def test_samples_have_the_moments_of_the_marginal(correlated, seed):
    draws = correlated.samples(random.key(seed), 4000)
    assert draws.shape == (4000, ROWS, OUT)
    # Sampling picks among the draws themselves: their spread has no n/(n − 1).
    exact = correlated.epistemic * (1 - np.sum(WEIGHTS**2)) + correlated.aleatoric
    assert_mean(draws, correlated.mean)
    assert_mean((draws - correlated.mean) ** 2, exact)
    np.testing.assert_array_equal(draws[:5, 0], correlated.samples(random.key(seed), 4000)[:5, 0])


@pytest.mark.parametrize("max_rows", [1, 2])
def test_answers_do_not_depend_on_the_blocks(monkeypatch, correlated, max_rows):
    monkeypatch.setattr(rows, "MAX_ROWS_PER_BLOCK", max_rows)
    y = functions_at(scaling=SCALING)[0]
    blocks = predictive(MODELS["correlated"], THETA, X, weights=WEIGHTS, scaling=SCALING)
    for name in ("mean", "epistemic", "functions", "covariance"):
        np.testing.assert_allclose(getattr(blocks, name), getattr(correlated, name), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(blocks.quantile(0.3), correlated.quantile(0.3), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(blocks.log_prob(y), correlated.log_prob(y), rtol=1e-5)


def test_numbers_of_rows_share_programs_and_bits():
    rows = np.resize(X, (64, *X.shape[1:]))
    whole = predictive(MODELS["one"], THETA, rows).mean
    num_programs = streaming.fold._cache_size()
    for num in (49, 57):
        np.testing.assert_array_equal(predictive(MODELS["one"], THETA, rows[:num]).mean, whole[:num])
    assert streaming.fold._cache_size() == num_programs


def test_bad_questions_are_refused(correlated, one):
    for ask, message in [
        (lambda: one.quantile(0.0), "must lie between 0 and 1, got 0.0"),
        (lambda: one.quantile([0.5, 1.0]), "must lie between 0 and 1"),
        (lambda: one.interval(1.0), "level must lie between 0 and 1, got 1.0"),
        (lambda: one.interval("a"), "level must lie between 0 and 1, got 'a'"),
        (lambda: one.quantile("x"), "level must lie between 0 and 1, got 'x'"),
        (lambda: one.quantile([0.5, np.nan]), "level must lie between 0 and 1"),
        (lambda: one.samples(random.key(0), "many"), "num must be a whole number"),
        (lambda: one.samples(random.key(0), 0), "num must be a whole number of at least 1, got 0"),
        (lambda: one.log_prob(np.zeros(ROWS + 1)), r"y has shape \(8,\), but the prediction is of shape \(7,\)"),
        (lambda: one.log_prob(np.zeros((ROWS, 3))), r"y has shape \(7, 3\), but"),
        # A second column says which targets are only lower bounds, and nothing else.
        (lambda: one.log_prob(np.full((ROWS, 2), 0.5)), "censored holds 0.5 in row 0"),
        (lambda: correlated.log_prob(np.zeros(ROWS)), r"y has shape \(7,\), but the prediction is of shape \(7, 3\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            ask()


def test_arrays_that_would_not_fit_are_refused_outputs_counted(monkeypatch):
    # Four bytes for each draw, row and output: one byte less than they take.
    monkeypatch.setattr(module, "MAX_RESULT_BYTES", 4 * DRAWS * ROWS * OUT - 1)
    for name in ("correlated", "categorical"):
        with pytest.raises(ValueError, match=r"functions of 5 draws × 7 rows would take .* GiB; predict fewer rows"):
            _ = predictive(MODELS[name], THETA, X).functions
    with pytest.raises(ValueError, match="samples of 5 draws"):
        predictive(MODELS["independent"], THETA, X).samples(jax.random.key(0), 5)
    with pytest.raises(ValueError, match="a covariance between inputs of 7 draws"):
        _ = predictive(MODELS["independent"], THETA, X).input_covariance
