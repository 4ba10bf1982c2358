"""The warm-up: windows, and a step size whose acceptance is the one that was asked for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from blackjax.adaptation.step_size import dual_averaging_adaptation

import credo
from credo.covariance import Diagonal
from credo.inference.mcmc.adaptation import KNOWN_ACCEPTANCE, Adaptation, Tuning, windows
from credo.inference.mcmc.alike import alike
from credo.posterior.belief import Belief
from credo.posterior.believed import Believed
from tests.statistical import targets
from tests.statistical.moments import assert_mean

TARGET = 0.8
# What a rule may be off by for good: the issue of every sampler that is asked for an acceptance.
BIAS = 0.02
# The step size at which acceptance is 0.8, where it is not: acceptance is 2Φ(−ε²/2) (normals in many dimensions).
FIRST, RIGHT = 0.1, np.sqrt(0.5067)
NUM_WARMUP, NUM_RUNS = 1000, 200


@pytest.mark.parametrize("num_warmup", [0, 1, 7, 30, 200, 500, 1000, 5000])
def test_windows(num_warmup: int) -> None:
    is_slow, closes, first, last, averaged_from = windows(num_warmup)
    assert is_slow.shape == closes.shape == (num_warmup,)
    assert first <= last <= averaged_from <= num_warmup
    # The mass is that of whole windows, each longer than the last, and is left alone where the step size settles.
    assert np.abs(np.diff(is_slow.astype(int))).sum() in (0, 2)
    ends = np.flatnonzero(closes)
    assert np.all(np.diff(ends, 2) > 0)
    assert np.all(ends < last)
    assert not closes.any() or is_slow[ends].all()


def test_short_warmups_leave_the_mass_alone() -> None:
    assert not windows(50).is_slow.any()
    assert windows(100).closes.sum() == 1


def _mean_acceptance(log_step_size: jax.Array) -> jax.Array:
    return 2 * jax.scipy.stats.norm.cdf(-0.5 * jnp.exp(log_step_size) ** 2)


def _acceptance(key: jax.Array, log_step_size: jax.Array) -> jax.Array:
    """Of one trajectory: in [0, 1], as spread out as those of networks (sd 0.2 at a mean of 0.8)."""
    mean = _mean_acceptance(log_step_size)
    return jax.random.beta(key, 3 * mean + 1e-3, 3 * (1 - mean) + 1e-3)


def _by_our_rule(key: jax.Array) -> jax.Array:
    """The acceptance that a warm-up ends with, when that of a trajectory depends on its step size alone."""
    adaptation = Adaptation(NUM_WARMUP, TARGET, is_dense=False)

    def step(number: jax.Array, tuning):
        acceptance = _acceptance(jax.random.fold_in(key, number), jnp.log(tuning.step_size))
        return adaptation.update(tuning, jnp.zeros(1), jnp.zeros(()), acceptance)

    return _mean_acceptance(jnp.log(jax.lax.fori_loop(0, NUM_WARMUP, step, adaptation.init(1, FIRST)).step_size))


def _by_dual_averaging(key: jax.Array) -> jax.Array:
    """The same by dual averaging over a last window of fifty steps, as Stan has it."""
    start, update, settle = dual_averaging_adaptation(TARGET)

    def step(number: jax.Array, state):
        return update(state, _acceptance(jax.random.fold_in(key, number), state.log_step_size))

    return _mean_acceptance(jnp.log(settle(jax.lax.fori_loop(0, 50, step, start(RIGHT)))))


def _each(rule, seed: int) -> np.ndarray:
    keys = jax.random.split(jax.random.key(seed, impl="threefry2x32"), NUM_RUNS)
    return np.asarray(jax.jit(jax.vmap(rule))(keys))


def test_the_step_size_ends_where_acceptance_is_as_asked(seed: int) -> None:
    found = _each(_by_our_rule, seed)
    assert_mean(found, TARGET, slack=BIAS / 4)
    # One chain alone: so many steps are averaged that its acceptance is known this well.
    assert found.std() < 2 * KNOWN_ACCEPTANCE


def test_dual_averaging_ends_with_shorter_steps(seed: int) -> None:
    with pytest.raises(AssertionError):
        assert_mean(_each(_by_dual_averaging, seed), TARGET, slack=BIAS)


def _warm_up(adaptation: Adaptation, num: int, level: float, scales: np.ndarray) -> Tuning:
    """After so many steps on independent normals, whose log density rises by `level` at each."""
    rng = np.random.default_rng(0)
    positions = jnp.asarray(rng.normal(size=(num, len(scales))) * scales, jnp.float32)
    noise = jnp.asarray(rng.normal(size=num), jnp.float32)

    def step(number: jax.Array, tuning: Tuning) -> Tuning:
        return adaptation.update(tuning, positions[number], noise[number] + level * number, jnp.array(TARGET))

    first = adaptation.init(len(scales), FIRST)
    return jax.jit(lambda: jax.lax.fori_loop(0, num, step, first))()


def test_the_clock_runs_ahead_when_nothing_more_is_to_be_learned() -> None:
    adaptation, scales = Adaptation(NUM_WARMUP, TARGET, is_dense=False), np.full(200, 3.0)
    # Windows of 25 and 50 draws tell the mass; then 25 steps settle the step size, and 25 are averaged.
    own = windows(NUM_WARMUP)
    num = int(np.flatnonzero(own.closes)[1]) + 1 + 2 * 25
    assert _warm_up(adaptation, num - 1, 0.0, scales).clock < NUM_WARMUP
    assert bool(adaptation.is_over(_warm_up(adaptation, num, 0.0, scales)))


def test_the_clock_waits_while_the_log_density_rises() -> None:
    adaptation = Adaptation(NUM_WARMUP, TARGET, is_dense=False)
    assert int(_warm_up(adaptation, 300, 1.0, np.ones(200)).clock) == 300


def test_parameters_that_are_alike_have_one_mass() -> None:
    numbers = np.array([0, 0, 1, 2, 1])
    tuning = _warm_up(Adaptation(200, TARGET, is_dense=False, alike=numbers), 100, 0.0, np.array([1.0, 3, 1, 2, 2]))
    mass = np.asarray(tuning.inverse_mass)
    assert mass[0] == mass[1]
    assert mass[2] == mass[4]
    np.testing.assert_allclose(mass[[0, 2, 3]], [5, 2.5, 4], rtol=0.5)


def test_hidden_units_are_alike_and_beliefs_tell_them_apart() -> None:
    data = credo.datasets.gap()
    model = credo.models.regression(credo.networks.MLP([4], out=1), noise=0.1).bind(data)
    # The bias and the kernel of the last layer, then those of the hidden one.
    np.testing.assert_array_equal(alike(model), [0, *[1] * 4, *[2] * 4, *[3] * 4])
    scales = {name: jnp.ones(leaf.shape) for name, leaf in model.template.items()}
    assert alike(Believed.of(model, Belief(scales, Diagonal(scales)))) is None


TARGETS = {
    "regression": targets.linear_regression,
    "correlated": targets.correlated_normal,
    "skewed": targets.skewed,
}


@pytest.mark.parametrize("name", TARGETS)
def test_samplers_accept_what_they_were_asked_for(name: str, seed: int) -> None:
    target = TARGETS[name]()
    posterior = credo.fit(target.model, target.data, credo.NUTS(num_samples=500, num_warmup=500), seed=seed)
    acceptance = np.asarray(posterior.infos["acceptance"])
    # Four chains have tuned themselves by some 160 steps each: 0.25/√(4 · 160) is the sd of their mean.
    assert abs(acceptance.mean() - TARGET) < BIAS + 3.9 * 0.25 / np.sqrt(4 * 160)
