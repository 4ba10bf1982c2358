"""Trajectories: the integrator's identities, the tree's tests against their recursive meaning, known targets."""

from collections.abc import Callable

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from credo.inference.mcmc import trajectory
from credo.inference.mcmc.trajectory import Point, Transition, hmc, leapfrog, nuts, point_at
from credo.typing import Array, Key
from tests.statistical.moments import assert_moments, assert_plausible, sigmas

Step = Callable[[Key, Point], tuple[Point, Transition]]
ONE = jnp.ones(())


def normal(position: Array) -> Array:
    return -0.5 * jnp.sum(position**2)


def quartic(position: Array) -> Array:
    return -jnp.sum(position**4) / 4 - 0.5 * position[0] * position[1]


def chains(step: Step, starts: Array, num_steps: int, seed: int) -> tuple[np.ndarray, Transition]:
    """Draws (chains, steps, D), one chain after another, and what the transitions did."""

    def advance(point: Point, key: Key) -> tuple[Point, tuple[Array, Transition]]:
        point, transition = step(key, point)
        return point, (point.position, transition)

    @jax.jit
    def run(start: Point, key: Key) -> tuple[Array, Transition]:
        return jax.lax.scan(advance, start, jax.random.split(key, num_steps))[1]

    keys = jax.random.split(jax.random.key(seed), len(starts.position))
    runs = [run(jax.tree.map(lambda leaf: leaf[i], starts), key) for i, key in enumerate(keys)]  # noqa: B023
    draws, transitions = jax.tree.map(lambda *leaves: np.stack(leaves), *runs)
    return draws, transitions


def starts_at(log_density: Callable[[Array], Array], positions: np.ndarray) -> Point:
    return jax.vmap(lambda position: point_at(log_density, position))(jnp.asarray(positions, float))


def mean_differs(a: np.ndarray, b: np.ndarray) -> float:
    """The difference of two means of independent numbers, in its standard errors."""
    return abs(a.mean() - b.mean()) / np.sqrt(a.var() / a.size + b.var() / b.size + 1e-12)


@pytest.mark.quick
def test_leapfrog_is_reversible() -> None:
    value_and_grad = jax.value_and_grad(quartic)
    start, start_momentum = point_at(quartic, jnp.array([0.3, -0.7, 1.1])), jnp.array([1.0, 0.5, -0.2])
    step = jnp.array([0.1, 0.05, 0.2])
    point, momentum = start, start_momentum
    for direction in [1, -1]:
        for _ in range(20):
            point, momentum = leapfrog(point, momentum, value_and_grad, direction * step)
    np.testing.assert_allclose(point.position, start.position, atol=1e-5)
    np.testing.assert_allclose(momentum, start_momentum, atol=1e-5)


@pytest.mark.quick
def test_leapfrog_is_of_second_order() -> None:
    """Over a fixed time the error in energy falls by four when the step is halved."""
    with jax.enable_x64(True):
        value_and_grad = jax.value_and_grad(quartic)

        def error(num_steps: int) -> float:
            point, momentum = point_at(quartic, jnp.array([0.3, -0.7, 1.1])), jnp.array([1.0, 0.5, -0.2])
            before = 0.5 * momentum @ momentum - point.log_density
            for _ in range(num_steps):
                point, momentum = leapfrog(point, momentum, value_and_grad, jnp.asarray(1.0 / num_steps))
            return float(abs(0.5 * momentum @ momentum - point.log_density - before))

        errors = [error(num_steps) for num_steps in (40, 80, 160)]
    np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 4.0, rtol=0.05)


def test_subtrees_are_tested_as_by_recursion() -> None:
    """The iterative tests stop at the leaf at which the recursive definition first finds a subtree that turns."""
    rng = np.random.default_rng(0)
    num_leaves, max_depth = 64, 7
    first_turns = []
    for _ in range(30):
        # A path with inertia, so that subtrees of all sizes are the first to turn.
        momenta = np.array([1.0, 0.0]) + np.cumsum(rng.normal(size=(num_leaves + 1, 2)) * 0.15, 0)
        ends = np.stack([momenta, np.cumsum(momenta, 0)], 1).astype(np.float32)
        expected = next((leaf for leaf in range(num_leaves) if _completes_a_turn(ends, leaf)), num_leaves)
        checkpoints, found = jnp.full((max_depth, 2, 2), jnp.nan), num_leaves
        for leaf in range(num_leaves):
            checkpoints, turning = _test_subtrees(checkpoints, leaf, ends[leaf], ends[leaf + 1])
            if turning:
                found = leaf
                break
        assert found == expected
        first_turns.append(expected)
    assert len(set(first_turns)) > 5


@jax.jit
def _test_subtrees(checkpoints: Array, leaf: Array, before: Array, after: Array) -> tuple[Array, Array]:
    return trajectory._test_subtrees(checkpoints, leaf, before, lambda: after)


def _completes_a_turn(ends: np.ndarray, leaf: int) -> bool:
    sizes = [2**level for level in range(1, 7) if (leaf + 1) % 2**level == 0]
    pairs = [(ends[leaf + 1 - size], ends[leaf + 1]) for size in sizes]
    return any(min(a[0] @ (b[1] - a[1]), b[0] @ (b[1] - a[1])) <= 0 for a, b in pairs)


def test_hashed_uniforms_are_uniform_and_independent(seed: int) -> None:
    """Chi-square of successive pairs, within a transition and across seeds, in 16 × 16 cells."""
    seeds = jax.random.bits(jax.random.key(seed), (1000,))
    uniforms = np.asarray(jax.vmap(lambda seed: trajectory._uniform(seed, jnp.arange(256)))(seeds))
    assert uniforms.min() > 0
    assert uniforms.max() < 1
    pairs = [(uniforms[:, ::2], uniforms[:, 1::2]), (uniforms[::2], uniforms[1::2])]
    counts = [np.histogram2d(a.ravel(), b.ravel(), bins=16, range=[[0, 1], [0, 1]])[0].ravel() for a, b in pairs]
    assert_plausible(*(stats.chisquare(count).pvalue for count in counts))


def nuts_step(log_density: Callable[[Array], Array], step_size: float, inverse_mass: Array) -> Step:
    return lambda key, point: nuts(key, point, log_density, step_size * ONE, inverse_mass, 10)


def hmc_step(log_density: Callable[[Array], Array], step_size: float, inverse_mass: Array, longest: int) -> Step:
    def step(key: Key, point: Point) -> tuple[Point, Transition]:
        length_key, key = jax.random.split(key)
        num_leapfrogs = jax.random.randint(length_key, (), 1, longest + 1)
        return hmc(key, point, log_density, step_size * ONE, inverse_mass, num_leapfrogs)

    return step


@pytest.mark.parametrize("step_size", [0.42, 0.7])
def test_nuts_on_independent_normals(step_size: float, seed: int) -> None:
    starts = starts_at(normal, np.random.default_rng(0).normal(size=(4, 10)))
    draws, _ = chains(nuts_step(normal, step_size, jnp.ones(10)), starts, 3000, seed)
    assert_moments(draws, np.zeros(10), np.ones(10))


def test_hmc_on_independent_normals(seed: int) -> None:
    starts = starts_at(normal, np.random.default_rng(0).normal(size=(4, 10)))
    draws, _ = chains(hmc_step(normal, 0.5, jnp.ones(10), 6), starts, 3000, seed)
    assert_moments(draws, np.zeros(10), np.ones(10))


@pytest.mark.parametrize("mass", ["unit", "dense"])
@pytest.mark.parametrize("sampler", ["hmc", "nuts"])
def test_correlated_normal(sampler: str, mass: str, seed: int) -> None:
    """Condition number 1,000."""
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    covariance = turn @ np.diag([1.0, 0.03, 1e-3]) @ turn.T
    mean, precision = np.array([1.0, -2.0, 0.5]), np.linalg.inv(covariance)

    def log_density(position: Array) -> Array:
        return -0.5 * (position - mean) @ precision @ (position - mean)

    inverse_mass, step_size = (jnp.asarray(covariance), 0.5) if mass == "dense" else (jnp.ones(3), 0.04)
    longest = 6 if mass == "dense" else 80
    step = nuts_step(log_density, step_size, inverse_mass)
    if sampler == "hmc":
        step = hmc_step(log_density, step_size, inverse_mass, longest)
    positions = np.random.default_rng(0).multivariate_normal(mean, covariance, size=4)
    draws, _ = chains(step, starts_at(log_density, positions), 6000, seed)
    assert_moments(draws, mean, np.sqrt(np.diag(covariance)))


@pytest.mark.parametrize("sampler", ["hmc", "nuts"])
def test_skewed_target(sampler: str, seed: int) -> None:
    """w = exp(q) is Gamma(2, 1): log p(q) = 2q − exp(q)."""

    def log_density(position: Array) -> Array:
        return jnp.sum(2 * position - jnp.exp(position))

    step = nuts_step(log_density, 0.5, jnp.ones(1))
    if sampler == "hmc":
        step = hmc_step(log_density, 0.5, jnp.ones(1), 5)
    draws, _ = chains(step, starts_at(log_density, np.log([[1.0], [2.0], [0.5], [3.0]])), 5000, seed)
    assert_moments(np.exp(draws), np.array([2.0]), np.array([np.sqrt(2.0)]), kurtosis=6.0)


@pytest.mark.parametrize("outside", [jnp.nan, -jnp.inf])
@pytest.mark.parametrize("sampler", ["hmc", "nuts"])
def test_never_goes_where_the_density_is_not_finite(sampler: str, outside: float, seed: int) -> None:
    """A half normal: draws stay inside, and their moments are those of |N(0, 1)|."""

    def log_density(position: Array) -> Array:
        return jnp.where(position[0] > 0, normal(position), outside)

    step = nuts_step(log_density, 0.3, jnp.ones(2))
    if sampler == "hmc":
        step = hmc_step(log_density, 0.3, jnp.ones(2), 6)
    draws, transitions = chains(step, starts_at(log_density, np.ones((4, 2))), 6000, seed)
    assert draws[..., 0].min() > 0
    assert np.isfinite(transitions.acceptance).all()
    assert transitions.diverged.any()
    half_normal = np.array([np.sqrt(2 / np.pi), 0.0]), np.array([np.sqrt(1 - 2 / np.pi), 1.0])
    assert_moments(draws, *half_normal, kurtosis=np.array([3.87, 3.0]))


def test_agrees_with_blackjax(seed: int) -> None:
    """Trees, acceptance and jumps have the same distribution, where the two U-turn tests have the same result.

    Independent normals turn together, after a time π: the tree of N leaves is found to turn if Nε > π here, and if
    (N − 1)ε > π there. With 0.55 these are 2.2 and 1.65 for four leaves, 4.4 and 3.85 for eight; in 200 dimensions
    the turn varies by less than the distance to π.
    """
    num_dimensions, step_size = 200, 0.55
    kernel = blackjax.nuts.build_kernel()

    def ours(key: Key, position: Array) -> tuple[Array, Array, Array]:
        moved, transition = nuts(key, point_at(normal, position), normal, step_size * ONE, jnp.ones(num_dimensions), 10)
        return transition.num_leapfrogs, transition.acceptance, jnp.sum((moved.position - position) ** 2)

    def theirs(key: Key, position: Array) -> tuple[Array, Array, Array]:
        state = blackjax.nuts.init(position, normal)
        moved, info = kernel(key, state, normal, step_size, jnp.ones(num_dimensions))
        return info.num_integration_steps, info.acceptance_rate, jnp.sum((moved.position - position) ** 2)

    def run(step: Callable[[Key, Array], tuple[Array, ...]], key: Key) -> list[np.ndarray]:
        first, second = jax.random.split(key)
        starts = jax.random.split(first, 4000), jax.random.normal(second, (4000, num_dimensions))
        results = jax.jit(lambda starts: jax.lax.map(lambda pair: step(*pair), starts))(starts)
        return [np.asarray(result, np.float64) for result in results]

    our_key, their_key = jax.random.split(jax.random.key(seed))
    for our, their in zip(run(ours, our_key), run(theirs, their_key), strict=True):
        assert mean_differs(our, their) < sigmas(3)


def test_does_not_go_round_in_circles(seed: int) -> None:
    """At this step eight leaves span just more than half a turn of all normals: one more doubling is a full one."""
    starts = starts_at(normal, np.random.default_rng(0).normal(size=(1, 100)))
    _, transitions = chains(nuts_step(normal, 0.42, jnp.ones(100)), starts, 200, seed)
    assert transitions.num_leapfrogs.mean() < 8


def test_divergence_is_reported_in_the_neck_of_a_funnel(seed: int) -> None:
    def funnel(position: Array) -> Array:
        return -(position[0] ** 2) / 18 - 0.5 * jnp.sum(position[1:] ** 2) * jnp.exp(-position[0]) - 4.5 * position[0]

    starts = starts_at(funnel, np.concatenate([np.full((1, 1), -6.0), np.full((1, 9), 0.05)], 1))
    draws, transitions = chains(nuts_step(funnel, 1.0, jnp.ones(10)), starts, 20, seed)
    assert transitions.diverged.any()
    assert np.isfinite(draws).all()


def test_same_key_same_bits_and_a_vectorised_chain_is_the_same_chain() -> None:
    starts = starts_at(normal, np.random.default_rng(0).normal(size=(3, 5)))
    keys = jax.random.split(jax.random.key(0), 3)
    step = nuts_step(normal, 0.3, jnp.ones(5))
    one_by_one = [jax.jit(step)(key, jax.tree.map(lambda leaf: leaf[i], starts)) for i, key in enumerate(keys)]  # noqa: B023
    again = jax.jit(step)(keys[0], jax.tree.map(lambda leaf: leaf[0], starts))
    assert all(np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, (one_by_one[0], again)), strict=True))
    together = jax.jit(jax.vmap(step))(keys, starts)
    apart = jax.tree.map(lambda *leaves: np.stack(leaves), *one_by_one)
    np.testing.assert_array_equal(together[1].num_leapfrogs, apart[1].num_leapfrogs)
    np.testing.assert_allclose(together[0].position, apart[0].position, atol=1e-5)


@pytest.mark.parametrize("max_depth", [1, 3])
def test_max_depth_limits_the_trajectory(max_depth: int) -> None:
    start = point_at(normal, jnp.zeros(4))
    _, transition = nuts(jax.random.key(0), start, normal, 1e-4 * ONE, jnp.ones(4), max_depth)
    assert transition.num_leapfrogs == 2**max_depth - 1
