"""Floor 3: deliberately broken samplers fail the tests that the real ones pass."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo import random
from credo.inference.mcmc import trajectory
from credo.inference.mcmc.hmc import HamiltonianState
from credo.inference.mcmc.metropolis import MetropolisState
from tests.statistical.moments import passes
from tests.statistical.targets import linear_regression, skewed
from tests.statistical.test_known_posteriors import DRIFTING


@dataclass(frozen=True)
class UpsideDown(credo.MetropolisHastings):
    """The acceptance ratio as the paper prints it: Q(theta′ | theta)/Q(theta | theta′)."""

    def propose(self, key: jax.Array, state: MetropolisState) -> tuple[credo.typing.Theta, jax.Array]:
        proposed, log_correction = super().propose(key, state)
        return proposed, -log_correction


@dataclass(frozen=True)
class Uncorrected(credo.HMC):
    """Hamiltonian Monte Carlo that accepts the end of every trajectory, whatever its error in energy."""

    def transition(
        self, key: jax.Array, state: HamiltonianState, log_density: trajectory.LogDensity
    ) -> tuple[trajectory.Point, trajectory.Transition]:
        value_and_grad = jax.value_and_grad(log_density)
        point, momentum = state.point, jax.random.normal(key, state.point.position.shape)
        for _ in range(5):
            point, momentum = trajectory.leapfrog(point, momentum, value_and_grad, jnp.array(0.08))
        info = trajectory.Transition(jnp.ones(()), jnp.array(5), jnp.array(False), point.log_density)
        return point, info


def test_ratio_upside_down_fails(seed: int) -> None:
    target = skewed()
    method = UpsideDown(DRIFTING, num_samples=2000, thin=30, num_warmup=500)
    posterior = credo.fit(target.model, target.data, method, seed=seed)
    assert not passes(target.draws(posterior), target.mean, target.sd, kurtosis=target.kurtosis)


def test_dropping_rejected_states_fails(seed: int) -> None:
    """As the paper prints it: n advances, and a state is stored, only on acceptance."""
    target = linear_regression()
    posterior = credo.fit(
        target.model, target.data, credo.Metropolis(num_samples=100_000, thin=1, scale=0.5), seed=seed
    )
    draws, accepted = target.draws(posterior), posterior.infos["accepted"]
    fewest = accepted.sum(axis=1).min()
    moved = np.stack([chain[flags][:fewest] for chain, flags in zip(draws, accepted, strict=True)])
    assert passes(draws[:, ::20], target.mean, target.sd)
    assert not passes(moved[:, ::5], target.mean, target.sd)


def test_hmc_without_the_accept_step_fails(seed: int) -> None:
    target = linear_regression()
    posterior = credo.fit(target.model, target.data, Uncorrected(num_samples=12_000, num_warmup=100), seed=seed)
    assert not passes(target.draws(posterior), target.mean, target.sd)


def test_resonant_length_fails_at_a_perfect_acceptance_rate(seed: int) -> None:
    """Without jitter, half a period on a normal maps q to −q each time: accepted always, and never mixing."""

    def log_density(position: jax.Array) -> jax.Array:
        return -0.5 * jnp.sum(position**2)

    def step(point: trajectory.Point, key: jax.Array) -> tuple[trajectory.Point, tuple[jax.Array, jax.Array]]:
        point, info = trajectory.hmc(key, point, log_density, jnp.array(np.pi / 64), jnp.ones(2), jnp.array(64))
        return point, (point.position, info.acceptance)

    start = trajectory.point_at(log_density, jnp.array([1.0, -0.5]))
    _, (draws, acceptance) = jax.lax.scan(step, start, jax.random.split(random.key(seed), 4000))
    assert acceptance.mean() > 0.98
    assert not passes(np.asarray(draws)[None], np.zeros(2), np.ones(2))
