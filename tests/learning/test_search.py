"""Scores of sampled functions against integrals, and the climb to the best point."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from scipy.integrate import quad
from scipy.stats import norm

import credo
from credo.learning.search import (
    NUM_CANDIDATES,
    Functions,
    best_points,
    candidates,
    expected_improvement,
    log_improvement,
)
from credo.learning.space import Space


def test_expected_improvement_is_the_integral(seed):
    """Five standard errors of the mean of 200,000 draws, whose sd is below one."""
    rng, num = np.random.default_rng(seed), 200_000
    for mean, sd, best in ((0.0, 1.0, 0.5), (-1.0, 0.5, 0.0), (1.0, 0.2, 0.0)):
        draws = mean + sd * rng.standard_normal((num, 1))
        found = float(expected_improvement(jnp.asarray(draws), jnp.full(num, best))[0])
        integral = quad(lambda f, m=mean, s=sd, b=best: (f - b) * norm.pdf(f, m, s), best, mean + 10 * sd)[0]
        assert abs(found - integral) < 5 / np.sqrt(num)


def test_the_best_of_each_draw_is_its_own():
    """A draw that is high everywhere promises nothing: what counts is how far it rises above its own best."""
    values = jnp.array([[10.0, 11.0], [0.0, 0.0]])
    np.testing.assert_allclose(expected_improvement(values, jnp.array([10.0, 0.0])), [0.0, 0.5])


def test_the_logarithm_has_a_slope_where_nothing_improves():
    values, best = jnp.array([[-1.0, -2.0]]), jnp.array([0.0])
    near, far = log_improvement(values, best)
    assert np.isfinite(far)
    assert near > far
    large = jnp.array([[1.0, 2.0]])
    np.testing.assert_allclose(log_improvement(large, best), np.log([1.0, 2.0]), atol=1e-6)


def program(x, y=None):
    peak = numpyro.sample("peak", dist.Normal(0, 1).expand([2]).to_event(1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(-jnp.sum((x - peak) ** 2, axis=1), 0.1), obs=y)


def test_the_climb_ends_at_the_top():
    """One draw is one function: −|x − peak|², with its top where it says, or at the border."""
    model = credo.Model(program).bind((np.zeros((5, 2)), np.zeros(5)))
    space, rng = Space.of([(-1, 1), (-1, 1)]), np.random.default_rng(0)
    tried = candidates(space, np.zeros((1, 2)), rng)
    assert tried.shape == (NUM_CANDIDATES, 2)
    for peak, top in (([0.31, -0.62], [0.31, -0.62]), ([2.0, 0.0], [1.0, 0.0])):
        functions = Functions(model, {"peak": np.array([peak])}, {}, 1.0)
        first = best_points(lambda values, best: values[0], functions, np.zeros((1, 2)), tried, space.continuous)[0]
        np.testing.assert_allclose(first, top, atol=2e-3)


def test_candidates_are_points():
    space = Space.of({"a": (0.0, 1.0), "b": (1, 4, "integer"), "c": ["x", "y"]})
    tried = candidates(space, space.encode([{"a": 0.5, "b": 2, "c": "x"}]), np.random.default_rng(0))
    np.testing.assert_allclose(space.snapped(tried), tried, atol=1e-12)
    around = space.decode(tried[NUM_CANDIDATES // 2 :])
    assert {point["c"] for point in around} == {"x", "y"}
    assert {point["b"] for point in around} == {1, 2, 3, 4}
