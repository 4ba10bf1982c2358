"""Hamiltonian Monte Carlo with trajectories of jittered length, and what it shares with the No-U-Turn sampler.

Paper, "Markov Chain Monte Carlo", the Hamiltonian Monte Carlo algorithm (Neal, 2011). A fixed length can resonate with
a period of the posterior and return to where it started at every step, at any acceptance rate; the jitter prevents it.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp

from credo._checks import require_at_least, require_one_of
from credo._precision import working_precision
from credo.inference.guide import Guide, Reach
from credo.inference.mcmc import trajectory
from credo.inference.mcmc.adaptation import Adaptation, Tuning
from credo.inference.mcmc.alike import alike
from credo.inference.sampler import START_WHERE_FINITE, FlatSampler, flat, log_density
from credo.models.program import Model
from credo.typing import Array, Batch, Key, Theta

# Dual averaging starts here and explores upwards from it first.
FIRST_STEP_SIZE = 0.1


class HamiltonianState(NamedTuple):
    """Where the chain stands, on the flat vector of all numbers in theta (cheaper per leapfrog than the tree)."""

    step: Array
    point: trajectory.Point
    tuning: Tuning


class HamiltonianInfo(NamedTuple):
    log_joint: Array
    acceptance: Array
    num_leapfrogs: Array
    diverged: Array
    energy: Array
    step_size: Array


@dataclass(frozen=True, kw_only=True)
class Hamiltonian(FlatSampler):
    """What HMC and NUTS share: the warm-up, and the figures of a step.

    Arguments:
        target_acceptance: what the step size is tuned for; raise it where trajectories diverge.
        mass: "diagonal", or "full" for one that knows correlations.
    """

    target_acceptance: float = 0.8
    mass: Literal["diagonal", "full"] = "diagonal"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.target_acceptance < 1:
            raise ValueError(f"target_acceptance must lie between 0 and 1, got {self.target_acceptance}")
        if self.mass == "dense":
            raise ValueError("mass='dense' is called mass='full' now")
        require_one_of(("diagonal", "full"), mass=self.mass)

    def adaptation(self, model: Model) -> Adaptation:
        if self.mass == "full":
            return Adaptation(self.num_warmup, self.target_acceptance, is_dense=True, runs_ahead=False)
        return Adaptation(self.num_warmup, self.target_acceptance, is_dense=False, alike=alike(model))

    def init(self, key: Key, model: Model, theta: Theta, data: Batch, held_out: Batch | None) -> HamiltonianState:
        point = trajectory.point_at(log_density(model, data), flat(theta))
        return HamiltonianState(jnp.array(0), point, self.adaptation(model).init(point.position.size, FIRST_STEP_SIZE))

    def step(
        self, key: Key, model: Model, state: HamiltonianState, batch: Batch
    ) -> tuple[HamiltonianState, HamiltonianInfo]:
        adaptation = self.adaptation(model)
        # A warm-up that has nothing more to learn is over: what is left of its steps goes nowhere.
        is_resting = (state.step < self.num_warmup) & adaptation.is_over(state.tuning)
        point, transition = jax.lax.cond(
            is_resting,
            lambda: trajectory.no_move(state.point),
            lambda: self.transition(key, state, log_density(model, batch)),
        )
        tuning = adaptation.update(state.tuning, point.position, point.log_density, transition.acceptance)
        info = HamiltonianInfo(log_joint=point.log_density, **transition._asdict(), step_size=state.tuning.step_size)
        return HamiltonianState(state.step + 1, point, tuning), info

    @abstractmethod
    def transition(
        self, key: Key, state: HamiltonianState, log_density: trajectory.LogDensity
    ) -> tuple[trajectory.Point, trajectory.Transition]:
        """From one point of the chain to the next."""

    def draw(self, model: Model, state: HamiltonianState) -> Array:
        return state.point.position

    def status_line(self, infos: HamiltonianInfo) -> str:
        return (
            f"acceptance {infos.acceptance.mean():.2f}, step {infos.step_size[-1]:.3g}, "
            f"{infos.num_leapfrogs.mean():.0f} leapfrogs, {infos.diverged.sum()} divergent"
        )

    def extra_bytes(self, num_parameters: int) -> int:
        # The inverse mass, its root, and the running estimate.
        return 3 * working_precision().itemsize * num_parameters**2 * self.num_chains if self.mass == "full" else 0


@dataclass(frozen=True, kw_only=True)
class HMC(Hamiltonian):
    """Hamiltonian Monte Carlo: exact, and as good as its trajectory length; `NUTS` finds that by itself.

    Arguments:
        path_length: mean length of a trajectory, in standard deviations once the mass is tuned. A quarter of a period,
            π/2, makes the draws of a normal posterior independent (Izmailov et al., 2021, take it too).
        max_leapfrogs: no trajectory is longer.

    >>> HMC(num_samples=500, mass="full").plan().num_steps
    1500
    """

    guide: ClassVar[Guide] = Guide(
        exact="exact",
        benefits="far moves, nearly independent draws",
        limits="the length of its trajectories is yours to set; all data in every gradient",
        use_cases="small models whose trajectory length is known",
        stores="every kept draw of theta",
        costs="as many gradients of all data per draw as a trajectory is long, tens to hundreds",
        reaches=Reach(0.1, (0.9, 1.1)),
        if_non_finite=START_WHERE_FINITE,
    )

    path_length: float = 1.5708
    max_leapfrogs: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(1, max_leapfrogs=self.max_leapfrogs)
        if self.path_length <= 0:
            raise ValueError(f"path_length must be positive, got {self.path_length}")

    def transition(
        self, key: Key, state: HamiltonianState, log_density: trajectory.LogDensity
    ) -> tuple[trajectory.Point, trajectory.Transition]:
        length_key, move_key = jax.random.split(key)
        tuning = state.tuning
        # The length does not depend on the state, so the transition stays reversible.
        length = self.path_length * jax.random.uniform(length_key, minval=0.5, maxval=1.5)
        num_leapfrogs = jnp.clip(jnp.ceil(length / tuning.step_size), 1, self.max_leapfrogs).astype(jnp.int32)
        return trajectory.hmc(move_key, state.point, log_density, tuning.step_size, tuning.inverse_mass, num_leapfrogs)
