"""Parallel tempering: copies of the chain at rising temperatures, which carry the coldest one from mode to mode.

A chain that follows the gradient does not cross a valley of probability e⁻⁵⁰. Where the likelihood is raised to a power
β < 1 the valley is shallower, and at β = 0 there is none: what is left is the prior.

Geyer (1991), Markov chain Monte Carlo maximum likelihood; Syed, Bouchard-Côté, Deligiannidis & Doucet (2022),
Non-reversible parallel tempering: a scalable highly parallel MCMC scheme.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo._checks import require_at_least
from credo._precision import working_precision
from credo.inference.guide import Guide, Reach
from credo.inference.mcmc import trajectory
from credo.inference.mcmc.adaptation import Adaptation, Tuning
from credo.inference.mcmc.hmc import FIRST_STEP_SIZE
from credo.inference.outcome import Outcome
from credo.inference.sampler import START_WHERE_FINITE, FlatSampler, unravel_theta
from credo.inference.sampler import flat as ravelled
from credo.models.program import Model
from credo.posterior import Draws
from credo.typing import Array, Batch, Key, Theta

# The first ladder is even in β^(1/5), and so is the interpolation between its rungs: where most of the way from the
# prior to the posterior is near β = 0, rungs must be too (Friel & Pettitt, 2008).
POWER = 5


class TemperingState(NamedTuple):
    """Where the replicas stand, the coldest first: one row each, on the flat vector of all numbers in theta."""

    step: Array
    positions: Array  # (replicas, D)
    log_joint: Array  # of the coldest
    betas: Array  # (replicas,), from 1 down
    tuning: Tuning  # a step size and a mass for every rung
    rejection: Array  # (replicas − 1,): summed over the window in which the ladder learns
    from_hottest: Array  # (replicas,): whether a replica has been the hottest since it was last the coldest
    round_trips: Array


class TemperingInfo(NamedTuple):
    """Figures of one step: those of the coldest replica's move, then those of the exchange.

    `swap_acceptance` is min(1, exp((βᵢ − βᵢ₊₁)(log p(D | thetaᵢ₊₁) − log p(D | thetaᵢ)))) for every pair of neighbours,
    of which every other is put to the test.
    """

    log_joint: Array
    acceptance: Array
    diverged: Array
    step_size: Array
    swap_acceptance: Array
    round_trips: Array


@dataclass(frozen=True, kw_only=True)
class ParallelTempering(FlatSampler):
    """Hamiltonian Monte Carlo at several temperatures that exchange their states: exact where there are several modes.

        πᵢ(theta) ∝ p(theta) p(D | theta)^βᵢ,    1 = β₁ > … > β_R = min_beta
        p(swap i, i+1) = min(1, exp((βᵢ − βᵢ₊₁)(log p(D | thetaᵢ₊₁) − log p(D | thetaᵢ))))

    A step moves every replica by one trajectory, then proposes to swap pairs of neighbours, the even and the odd ones
    in turn, so that a replica goes on in its direction until it is rejected. Warm-up tunes step size and mass of every
    rung, and puts the rungs where all swaps are rejected as often. Only draws of β = 1 are kept.

    Of the figures in `posterior.infos`, look at two. `round_trips` counts the replicas that have come all the way from
    the hottest rung to the coldest: each may bring another mode, and below some ten the modes are not weighed yet.
    `swap_acceptance_1` (the coldest pair) and so on should not be below 0.2: else take more temperatures.

    Arguments:
        num_chains: independent sets of replicas, spread over the cores.
        num_temperatures: R. Round trips are the most frequent where half of the swaps are rejected.
        num_leapfrogs: mean length of a trajectory; each is between half and one and a half of it, so that none
            resonates.
        target_acceptance: what the step sizes are tuned for.
        min_beta: the smallest β. The prior, 0, has no modes of the data's making; more is cheaper, if chains move
            freely there.

    >>> ParallelTempering(num_samples=500, num_temperatures=6).ladder().round(3).tolist()
    [1.0, 0.328, 0.078, 0.01, 0.0, 0.0]
    """

    guide: ClassVar[Guide] = Guide(
        exact="exact",
        benefits="visits several modes and weighs them against each other",
        limits="every temperature costs a chain; round trips get rare as models grow",
        use_cases="small models with several modes",
        stores="every kept draw of the coldest chain",
        costs="num_temperatures × num_leapfrogs gradients of all data per draw",
        reaches=Reach(0.1, (0.9, 1.1)),
        if_non_finite=START_WHERE_FINITE,
    )

    renamed: ClassVar[Mapping[str, str]] = {"hottest": "min_beta"}

    num_temperatures: int = 12
    num_leapfrogs: int = 16
    target_acceptance: float = 0.8
    min_beta: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(2, num_temperatures=self.num_temperatures)
        require_at_least(1, num_leapfrogs=self.num_leapfrogs)
        if not 0 < self.target_acceptance < 1:
            raise ValueError(f"target_acceptance must lie between 0 and 1, got {self.target_acceptance}")
        if not 0 <= self.min_beta < 1:
            raise ValueError(f"min_beta is at least 0 (the prior) and below 1, got {self.min_beta}")

    @property
    def adaptation(self) -> Adaptation:
        # The rungs move until the warm-up ends, and with them what there is to learn.
        return Adaptation(self.num_warmup, self.target_acceptance, is_dense=False, runs_ahead=False)

    def ladder(self) -> np.ndarray:
        """The inverse temperatures before warm-up, (replicas,)."""
        return np.linspace(1.0, self.min_beta ** (1 / POWER), self.num_temperatures) ** POWER

    def init(self, key: Key, model: Model, theta: Theta, data: Batch, held_out: Batch | None) -> TemperingState:
        flat = ravelled(theta)
        positions = jnp.tile(flat, (self.num_temperatures, 1))
        if self.start == "prior":
            others = model.sample_prior(key, self.num_temperatures - 1)
            positions = positions.at[1:].set(jax.vmap(ravelled)(others))
        rungs = jnp.arange(self.num_temperatures)
        return TemperingState(
            step=jnp.array(0),
            positions=positions,
            log_joint=model.log_joint(theta, data),
            betas=jnp.asarray(self.ladder(), flat.dtype),
            tuning=jax.vmap(lambda _: self.adaptation.init(flat.size, FIRST_STEP_SIZE))(rungs),
            rejection=jnp.zeros(self.num_temperatures - 1),
            from_hottest=jnp.zeros(self.num_temperatures, bool),
            round_trips=jnp.array(0),
        )

    def step(self, key: Key, model: Model, state: TemperingState, batch: Batch) -> tuple[TemperingState, TemperingInfo]:
        move_key, swap_key = jax.random.split(key)

        def parts(position: Array) -> tuple[Array, Array]:
            return model.log_parts(unravel_theta(model, position), batch)

        positions, transition = self.move(move_key, state, parts)
        log_prior, log_likelihood = jax.vmap(parts)(positions)
        acceptance = swap_acceptance(state.betas, log_likelihood)
        order = swaps(swap_key, state.step, self.accepted(acceptance))
        tuning = jax.vmap(self.adaptation.update)(
            state.tuning, positions, log_prior + log_likelihood, transition.acceptance
        )
        betas, rejection = self.learn_ladder(state, acceptance)
        from_hottest = state.from_hottest[order].at[-1].set(True)
        new = TemperingState(
            step=state.step + 1,
            positions=positions[order],
            log_joint=(log_prior + log_likelihood)[order[0]],
            betas=betas,
            tuning=tuning,
            rejection=rejection,
            from_hottest=from_hottest.at[0].set(False),
            round_trips=jnp.where(state.step < self.num_warmup, 0, state.round_trips + from_hottest[0]),
        )
        info = TemperingInfo(
            log_joint=new.log_joint,
            acceptance=transition.acceptance[0],
            diverged=transition.diverged[0],
            step_size=state.tuning.step_size[0],
            swap_acceptance=acceptance,
            round_trips=new.round_trips,
        )
        return new, info

    def move(
        self, key: Key, state: TemperingState, parts: Callable[[Array], tuple[Array, Array]]
    ) -> tuple[Array, trajectory.Transition]:
        """One trajectory for every replica, at its own temperature."""
        length_key, move_key = jax.random.split(key)
        # One length for all: replicas side by side would wait for the longest.
        bounds = (self.num_leapfrogs + 1) // 2, 3 * self.num_leapfrogs // 2 + 1
        num_leapfrogs = jax.random.randint(length_key, (), *bounds)

        def one(key: Key, position: Array, beta: Array, tuning: Tuning) -> tuple[Array, trajectory.Transition]:
            def log_density(position: Array) -> Array:
                log_prior, log_likelihood = parts(position)
                return log_prior + beta * log_likelihood

            point = trajectory.point_at(log_density, position)
            point, transition = trajectory.hmc(
                key, point, log_density, tuning.step_size, tuning.inverse_mass, num_leapfrogs
            )
            return point.position, transition

        keys = jax.random.split(move_key, self.num_temperatures)
        return jax.vmap(one)(keys, state.positions, state.betas, state.tuning)

    def accepted(self, acceptance: Array) -> Array:
        """The probability with which a swap is made: that which leaves every πᵢ as it is."""
        return acceptance

    def learn_ladder(self, state: TemperingState, acceptance: Array) -> tuple[Array, Array]:
        """The ladder, and the rejections of its window so far.

        Windows close after …, 1/8, 1/4 and 1/2 of the warm-up: the second half is for step sizes and masses.
        """
        rejection = state.rejection + 1 - acceptance
        ends = [self.num_warmup >> halvings for halvings in range(1, self.num_warmup.bit_length())]
        if not ends:
            return state.betas, rejection
        closes = jnp.any(state.step + 1 == jnp.array(ends))
        return jax.lax.cond(
            closes,
            lambda: (evened_out(state.betas, rejection), jnp.zeros_like(rejection)),
            lambda: (state.betas, rejection),
        )

    def draw(self, model: Model, state: TemperingState) -> Array:
        return state.positions[0]

    def status_line(self, infos: TemperingInfo) -> str:
        lowest = infos.swap_acceptance.mean(axis=0).min()
        return (
            f"acceptance {infos.acceptance.mean():.2f}, lowest swap rate {lowest:.2f}, "
            f"{infos.round_trips[-1]} round trips"
        )

    @property
    def networks_per_step(self) -> int:
        return self.num_temperatures

    def extra_bytes(self, num_parameters: int) -> int:
        # Of each replica: the position, the inverse mass and its running estimate.
        return 5 * working_precision().itemsize * num_parameters * self.num_temperatures * self.num_chains

    def posterior(self, model: Model, outcome: Outcome) -> Draws:
        draws = super().posterior(model, outcome)
        return replace(draws, infos=_a_figure_per_pair(draws.infos), trace=_a_figure_per_pair(draws.trace))


def swap_acceptance(betas: Array, log_likelihood: Array) -> Array:
    """min(1, exp((βᵢ − βᵢ₊₁)(log p(D | thetaᵢ₊₁) − log p(D | thetaᵢ)))) of all neighbours, (replicas − 1,).

    >>> swap_acceptance(jnp.array([1.0, 0.5]), jnp.log(jnp.array([4.0, 1.0])))
    Array([0.5], dtype=float32)
    """
    log_ratio = (betas[:-1] - betas[1:]) * (log_likelihood[1:] - log_likelihood[:-1])
    # Two likelihoods of zero leave no number: such a pair stays as it is.
    return jnp.exp(jnp.minimum(jnp.where(jnp.isnan(log_ratio), -jnp.inf, log_ratio), 0.0))


def swaps(key: Key, step: Array, acceptance: Array) -> Array:
    """Which replica goes to each rung: pairs (0, 1), (2, 3), … at even steps, (1, 2), (3, 4), … at odd ones.

    >>> swaps(jax.random.key(0), jnp.array(1), jnp.ones(4)).tolist()
    [0, 2, 1, 4, 3]
    """
    pairs = jnp.arange(acceptance.size)
    made = (jax.random.uniform(key, acceptance.shape) < acceptance) & (pairs % 2 == step % 2)
    # A rung takes from its hotter neighbour, from its colder one, or keeps what it has.
    return jnp.arange(acceptance.size + 1) + jnp.append(made, False) - jnp.append(False, made)


def evened_out(betas: Array, rejection: Array) -> Array:
    """The ladder on which every pair is rejected as often: even steps of the communication barrier.

        Λ(β) = Σ of the rejection rates from 1 down to β,    Λ(βᵢ) = Λ(hottest) · i/(R − 1)

    Syed et al. (2022), section 5.1, with Λ linear in β^(1/5) between rungs.

    >>> evened_out(jnp.array([1.0, 0.5**5, 0.0]), jnp.array([0.75, 0.25]))
    Array([1.        , 0.13146801, 0.        ], dtype=float32)
    """
    # No pair counts for nothing: where all swaps are accepted, the barrier must still rise.
    barrier = jnp.append(0.0, jnp.cumsum(rejection + 1e-3 * jnp.sum(rejection) + 1e-6))
    even = jnp.linspace(0.0, barrier[-1], betas.size)
    between = jnp.interp(even[1:-1], barrier, betas ** (1 / POWER)) ** POWER
    return jnp.concatenate([betas[:1], between, betas[-1:]])


def _a_figure_per_pair(figures: dict[str, np.ndarray] | None) -> dict[str, np.ndarray]:
    """`swap_acceptance` (chains, draws, pairs) as one figure (chains, draws) per pair, from the coldest on."""
    figures = dict(figures or {})
    rates = figures.pop("swap_acceptance", np.zeros((0, 0, 0)))
    return figures | {f"swap_acceptance_{pair + 1}": rates[..., pair].copy() for pair in range(rates.shape[-1])}
