"""Censored targets: log P(Y ≥ y) of each law, and what a prediction makes of targets of which some are lower bounds."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import integrate, stats

from credo import from_normal
from credo.evaluation import coverage, lpd, rmse
from credo.evaluation.coverage import levels_of
from credo.predictive.censored import Censored, log_survival
from credo.predictive.mixed import Mixed

LAWS = {
    "normal": (dist.Normal(1.0, 2.0), stats.norm(1, 2)),
    "log-normal": (dist.LogNormal(0.5, 0.8), stats.lognorm(0.8, scale=np.exp(0.5))),
    "exponential": (dist.Exponential(0.4), stats.expon(scale=2.5)),
    "Weibull": (dist.Weibull(2.0, 1.5), stats.weibull_min(1.5, scale=2.0)),
    "Student 3": (dist.StudentT(3.0, 1.0, 2.0), stats.t(3, 1, 2)),
    "Student 23.7": (dist.StudentT(23.7, 1.0, 2.0), stats.t(23.7, 1, 2)),
    "Student 120": (dist.StudentT(120.0, 1.0, 2.0), stats.t(120, 1, 2)),
    "gamma, by its distribution function": (dist.Gamma(2.0, 0.5), stats.gamma(2, scale=2)),
}


@pytest.mark.parametrize("name", LAWS)
def test_survival_is_that_of_scipy(name):
    """To the digits that single precision has of a logarithm of up to −16."""
    law, expected = LAWS[name]
    bounds = np.array([0.1, 0.9, 1.0, 3.0, 7.0, 11.0])
    np.testing.assert_allclose(log_survival(law, jnp.asarray(bounds)), expected.logsf(bounds), rtol=2e-4, atol=2e-6)


def test_survival_of_student_in_its_tails_and_its_slope_in_the_degrees_of_freedom():
    bounds, df = jnp.array([-30.0, -2.0, 0.0, 2.0, 30.0]), 5.0
    np.testing.assert_allclose(log_survival(dist.StudentT(df), bounds), stats.t(df).logsf(bounds), rtol=2e-4, atol=1e-6)
    slope = jax.jacobian(lambda df: log_survival(dist.StudentT(df), bounds))(df)
    expected = (stats.t(df + 1e-4).logsf(bounds) - stats.t(df - 1e-4).logsf(bounds)) / 2e-4
    np.testing.assert_allclose(slope, expected, rtol=1e-3, atol=1e-6)


def test_survival_is_the_integral_of_the_density():
    law = dist.StudentT(4.2, 0.3, 1.7)
    whole = integrate.quad(stats.t(4.2, 0.3, 1.7).pdf, 2.0, np.inf)[0]
    np.testing.assert_allclose(float(log_survival(law, jnp.array(2.0))), np.log(whole), rtol=1e-4)


def test_whole_numbers_survive_at_their_bound():
    """P(Y ≥ 3), not P(Y > 3)."""
    found = log_survival(dist.Poisson(2.0), jnp.array(3.0))
    np.testing.assert_allclose(float(found), stats.poisson(2).logsf(2), rtol=1e-5)


def test_survival_of_a_mixture_is_the_average():
    mixed = Mixed(dist.Normal(jnp.array([[0.0], [4.0]]), jnp.ones((2, 1))))
    expected = np.log((stats.norm(0).sf(2) + stats.norm(4).sf(2)) / 2)
    np.testing.assert_allclose(log_survival(mixed, jnp.array([2.0])), expected, rtol=1e-5)


def test_a_law_without_a_distribution_function_is_refused():
    with pytest.raises(ValueError, match="VonMises, which has no distribution function"):
        log_survival(dist.VonMises(0.0, 1.0), jnp.array(1.0))


def test_rows_that_are_not_censored_have_their_density():
    law = Censored(dist.Normal(jnp.zeros(2), 1.0), jnp.array([False, True]))
    expected = [stats.norm.logpdf(0.7), stats.norm.logsf(0.7)]
    np.testing.assert_allclose(law.log_prob(jnp.full(2, 0.7)), expected, rtol=1e-6)


# -- predictions and their metrics -------------------------------------------------------------------------

PREDICTION = from_normal([0.0, 1.0, 2.0], 1.5)
OUTCOMES = np.array([[0.5, 0.0], [3.0, 1.0], [1.0, 0.0]])


def test_log_prob_of_a_prediction():
    expected = [stats.norm(0, 1.5).logpdf(0.5), stats.norm(1, 1.5).logsf(3), stats.norm(2, 1.5).logpdf(1)]
    np.testing.assert_allclose(PREDICTION.log_prob(OUTCOMES), expected, rtol=1e-5)
    np.testing.assert_allclose(lpd(PREDICTION, OUTCOMES), np.mean(expected), rtol=1e-5)
    np.testing.assert_allclose(PREDICTION.log_prob_by_draw(OUTCOMES)[0], expected, rtol=1e-5)


def test_errors_leave_censored_rows_out():
    assert rmse(PREDICTION, OUTCOMES) == pytest.approx(np.sqrt((0.5**2 + 1) / 2))
    with pytest.raises(ValueError, match="all targets are censored"):
        rmse(PREDICTION, np.array([[0.5, 1.0], [3.0, 1.0], [1.0, 1.0]]))


def test_a_censored_target_lies_anywhere_above_its_bound():
    levels, bounds = levels_of(PREDICTION, OUTCOMES), PREDICTION.cdf(OUTCOMES)
    np.testing.assert_array_equal(levels[[0, 2]], bounds[[0, 2]])
    assert bounds[1] < levels[1] < 1


def test_coverage_is_as_due_where_many_are_censored():
    """10,000 rows: four binomial errors of 90% are 1.2%."""
    rng = np.random.default_rng(0)
    mean = rng.normal(size=10_000)
    y, bound = mean + rng.normal(size=10_000), rng.normal(size=10_000)
    outcomes = np.column_stack([np.minimum(y, bound), y > bound])
    assert abs(coverage(from_normal(mean, 1.0), outcomes, 0.9) - 0.9) < 0.012


def test_a_second_column_that_says_something_else_is_refused():
    with pytest.raises(ValueError, match=r"censored holds 0.4 in row 1"):
        PREDICTION.log_prob([[1.0, 0.0], [2.0, 0.4], [1.0, 1.0]])
