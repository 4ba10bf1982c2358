"""Parallel tempering: exact where there are several modes, and where there is one."""

from dataclasses import dataclass, replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import credo
from credo import random
from credo.inference.mcmc.tempering import ParallelTempering, evened_out, swap_acceptance, swaps
from tests.statistical.moments import assert_moments, ess, passes, sigmas
from tests.statistical.targets import Target, correlated_normal, linear_regression, skewed

MASSES = np.array([0.3, 0.7])
CENTRE, WIDTH, PRIOR = 4.0, 0.3, 5.0
METHOD = ParallelTempering(num_samples=3000, num_warmup=600, num_temperatures=6, num_leapfrogs=8)


@cache
def two_modes() -> Target:
    """w ~ N(0, 5²I) in the plane, and a likelihood with modes at (−4, −4) and (4, 4), of masses 0.3 and 0.7.

    The prior weighs both alike, so that the posterior is 0.3 N(−m, s²I) + 0.7 N(m, s²I) with the m and s of a normal
    likelihood under a normal prior.
    """

    def program(x: np.ndarray, y: np.ndarray | None = None) -> None:
        w = numpyro.sample("w", dist.Normal(0.0, PRIOR).expand([2]).to_event(1))
        centres = w + CENTRE * jnp.array([[1.0], [-1.0]])
        parts = dist.Normal(centres, WIDTH).to_event(1)
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.MixtureSameFamily(dist.Categorical(probs=MASSES), parts), obs=y)

    variance = 1 / (PRIOR**-2 + WIDTH**-2)
    centre = CENTRE * variance / WIDTH**2
    lead = MASSES[1] - MASSES[0]
    sd = np.sqrt(variance + centre**2 * (1 - lead**2))
    # E[(d + ε)⁴] = d⁴ + 6 d² s² + 3 s⁴ for each mode, at a distance d from the mean.
    squares = (centre * np.array([1 + lead, 1 - lead])) ** 2
    kurtosis = MASSES @ (squares**2 + 6 * squares * variance + 3 * variance**2) / sd**4
    data = credo.Data(np.zeros((1, 1)), np.zeros((1, 2)))
    return Target(credo.Model(program), data, np.full(2, centre * lead), np.full(2, sd), kurtosis)


@pytest.fixture(scope="module")
def bimodal(seed: int) -> tuple[Target, credo.Draws]:
    target = two_modes()
    return target, credo.fit(target.model, target.data, METHOD, seed=seed)


@pytest.mark.quick
def test_two_modes_have_their_masses(bimodal: tuple[Target, credo.Draws]) -> None:
    target, posterior = bimodal
    draws = target.draws(posterior)
    assert_moments(draws, target.mean, target.sd, kurtosis=target.kurtosis)
    # Of 0s and 1s the mean says it all.
    right = (draws[..., :1] > 0).astype(float)
    error = np.sqrt(MASSES.prod() / ess(right))
    assert np.abs(right.mean() - MASSES[1]) < sigmas() * error
    assert posterior.infos["round_trips"][:, -1].min() > 50


def test_a_chain_of_nuts_never_leaves_its_mode(seed: int) -> None:
    target = two_modes()
    posterior = credo.fit(target.model, target.data, credo.NUTS(num_samples=1000, num_warmup=300), seed=seed)
    is_right = target.draws(posterior)[..., 0] > 0
    assert (is_right.all(axis=1) | (~is_right).all(axis=1)).all()


@pytest.mark.parametrize("target", [linear_regression(), correlated_normal(), skewed()], ids=["linear", "corr", "skew"])
def test_known_posteriors(target: Target, seed: int) -> None:
    method = replace(METHOD, num_samples=4000, num_leapfrogs=16, num_temperatures=4, min_beta=0.01)
    posterior = credo.fit(target.model, target.data, method, seed=seed)
    assert_moments(target.draws(posterior), target.mean, target.sd, kurtosis=target.kurtosis)


@dataclass(frozen=True)
class AlwaysSwaps(ParallelTempering):
    """Every proposed swap is made, whatever the likelihoods."""

    def accepted(self, acceptance: jax.Array) -> jax.Array:
        return jnp.ones_like(acceptance)


@pytest.mark.parametrize("target", [two_modes(), linear_regression()], ids=["two modes", "linear"])
def test_swaps_that_are_always_accepted_fail(target: Target, seed: int) -> None:
    settings = {name: getattr(METHOD, name) for name in ("num_samples", "num_warmup", "num_temperatures")}
    posterior = credo.fit(target.model, target.data, AlwaysSwaps(**settings), seed=seed)
    assert not passes(target.draws(posterior), target.mean, target.sd)


def test_figures_are_one_per_pair_of_neighbours(bimodal: tuple[Target, credo.Draws]) -> None:
    _, posterior = bimodal
    pairs = [f"swap_acceptance_{pair}" for pair in range(1, 6)]
    assert [name for name in posterior.infos if name.startswith("swap")] == pairs
    assert all(figure.shape == (4, 3000) for figure in posterior.infos.values())
    assert (np.diff(posterior.infos["round_trips"], axis=1) >= 0).all()


@pytest.mark.full
def test_warmup_evens_out_the_rejections(seed: int) -> None:
    target = linear_regression()
    method = replace(METHOD, num_samples=500, num_temperatures=8)
    posterior = credo.fit(target.model, target.data, method, seed=seed)
    rates = np.array([posterior.infos[f"swap_acceptance_{pair}"].mean() for pair in range(1, 8)])
    assert np.ptp(rates) < 0.2
    first = posterior.trace["swap_acceptance_1"][:, 300:].mean()
    assert rates[0] == pytest.approx(first, abs=0.05)


def test_ladder_keeps_its_ends_and_moves_rungs_to_the_barrier() -> None:
    betas = jnp.linspace(1.0, 0.2, 5) ** 5
    ladder = evened_out(betas, jnp.array([0.1, 0.1, 0.1, 2.0]))
    assert ladder[0] == betas[0]
    assert ladder[-1] == betas[-1]
    assert (np.diff(ladder) < 0).all()
    assert (ladder[1:-1] < betas[3] + 1e-6).all()
    np.testing.assert_allclose(evened_out(betas, jnp.zeros(4)), betas, rtol=1e-4)


@pytest.mark.parametrize("step", [0, 1])
def test_swaps_exchange_disjoint_neighbours(step: int) -> None:
    order = swaps(random.key(0), jnp.array(step), jnp.ones(6))
    assert sorted(order.tolist()) == list(range(7))
    np.testing.assert_array_equal(order[order], np.arange(7))
    assert (np.abs(order - np.arange(7)) <= 1).all()
    np.testing.assert_array_equal(swaps(random.key(0), jnp.array(step), jnp.zeros(6)), np.arange(7))


def test_swap_of_two_impossible_states_is_refused() -> None:
    assert swap_acceptance(jnp.array([1.0, 0.0]), jnp.array([-jnp.inf, -jnp.inf])).tolist() == [0.0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_temperatures": 1}, "num_temperatures"),
        ({"min_beta": 1.0}, "min_beta"),
        ({"num_leapfrogs": 0}, "leapfrogs"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ParallelTempering(**settings)
