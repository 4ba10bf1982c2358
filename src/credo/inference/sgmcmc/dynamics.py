"""The scaffold of stochastic-gradient MCMC: everything but how theta moves.

Paper, "MCMC algorithms based on the SGD dynamic". A step draws a minibatch's gradient and standard normal noise; which
dynamics they drive is a method's own business (`Dynamics.move`): Langevin (`SGLD`), with momentum (`SGHMC`), with a
thermostat (`SGNHT`).
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from credo import random
from credo._checks import require_at_least, require_one_of, require_positive
from credo._precision import working_precision
from credo.inference.method import Method, all_finite
from credo.inference.outcome import Outcome
from credo.inference.plan import Plan
from credo.inference.sampler import Sampler
from credo.inference.sgmcmc import schedules
from credo.inference.sgmcmc.schedules import Schedule
from credo.models.program import Model
from credo.posterior import Draws
from credo.typing import Array, Batch, Key, Theta, Tree

# Li et al. (2016): the memory of the mean square of the gradient, and the least root of it.
MEMORY, DAMPING = 0.99, 1e-5
SMALLER_STEPS = "take a smaller step_size (a tenth), start near a mode (start=credo.MAP()), or standardise the data"


class DynamicsState(NamedTuple):
    """Where the chain stands, what its dynamics remember (`aux`), and the mean square of the gradient per data point.

    The last is empty without a preconditioner.
    """

    step: Array
    theta: Theta
    aux: Tree
    mean_square: Theta


class DynamicsInfo(NamedTuple):
    """log_joint = log_prior + log_likelihood, for the whole data set, estimated on the batch; the step made from it."""

    log_joint: Array
    log_prior: Array
    log_likelihood: Array
    step_size: Array


@dataclass(frozen=True, kw_only=True)
class Dynamics(Sampler):
    """A chain driven by the gradients of minibatches and by noise, without an accept step.

    Memory is bounded by `num_samples`: of all steps after the warm-up, one in `thin` is kept.

    Arguments:
        num_samples: draws kept per chain, over all cycles.
        num_warmup: steps dropped at the beginning; in cycles, the exploration at the beginning of each.
        step_size: per data point: the ε of the equation times N, so that a size suits data sets of any size, like the
            learning rate of `MAP`. A number, or any function of the number of the step within its cycle, such as
            `schedules.Polynomial`. With several cycles a number is where the `schedules.Cosine` of each starts.
        batch_size: rows per step; None takes all of them. The batches of an epoch are disjoint, so that much of their
            gradient noise cancels.
        preconditioner: None, or "rmsprop" for a step of its own for each weight: ε·G with G = 1/(10⁻⁵ + √V), V the mean
            square of its gradient per data point (Li et al., 2016). V is learned during the warm-up of each cycle and
            fixed afterwards, so that the draws are from the posterior without the correction term Γ.
        num_cycles: cycles of warm-up and sampling, each with the whole schedule of step sizes.
        restart: "none", or "prior" to begin each new cycle at a new draw from the prior (warm restarts).
    """

    num_warmup: int = 5000
    thin: int = 10
    start: str | Method = "network"
    step_size: float | Schedule = 1e-2
    batch_size: int | None = None
    preconditioner: str | None = None
    num_cycles: int = 1
    restart: str = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(1, num_cycles=self.num_cycles)
        if self.batch_size is not None:
            require_at_least(1, batch_size=self.batch_size)
        if self.num_samples % self.num_cycles:
            raise ValueError(
                f"num_samples is over all cycles: {self.num_samples} cannot be shared evenly by {self.num_cycles} "
                f"cycles; keep {self.num_cycles * (self.num_samples // self.num_cycles + 1)}"
            )
        require_one_of(("none", "prior"), restart=self.restart)
        if self.restart == "prior" and self.num_cycles == 1:
            raise ValueError("restart='prior' begins each new cycle anew, but num_cycles is 1; ask for more cycles")
        require_one_of((None, "rmsprop"), preconditioner=self.preconditioner)
        if self.preconditioner and self.num_warmup == 0:
            raise ValueError("preconditioner is learned during the warm-up, but num_warmup is 0")
        if callable(self.step_size):
            schedules.check(self.step_size, self.plan().steps_per_cycle)
        elif isinstance(self.step_size, str):
            raise ValueError(
                f"step_size must be a positive number, or a schedule such as Polynomial(0.01), got {self.step_size!r}"
            )
        else:
            require_positive(step_size=self.step_size)

    @property
    def schedule(self) -> Schedule:
        """The step size per data point, as a function of the number of the step within its cycle."""
        if callable(self.step_size):
            return self.step_size
        if self.num_cycles > 1:
            return schedules.Cosine(self.step_size, self.plan().steps_per_cycle)
        return schedules.Constant(self.step_size)

    def plan(self) -> Plan:
        return replace(
            super().plan(),
            num_records=self.num_samples // self.num_cycles,
            batch_size=self.batch_size,
            num_cycles=self.num_cycles,
            fixed_density=False,
        )

    def halved(self) -> Self:
        """Half the step, twice as many of them: the same simulated time, and the same number of draws."""
        if not isinstance(self.schedule, schedules.Constant):
            raise ValueError(f"only a constant step can be halved, but step_size follows {self.schedule}")
        return replace(self, step_size=self.schedule.size / 2, num_warmup=2 * self.num_warmup, thin=2 * self.thin)

    # -- the dynamics --------------------------------------------------------------------------------------

    def auxiliary(self, theta: Theta) -> Tree:
        """What the dynamics remember beside theta, at the start: nothing, unless they say otherwise."""
        return ()

    @abstractmethod
    def move(self, theta: Theta, drift: Theta, scale: Theta, noise: Theta, aux: Any) -> tuple[Theta, Any]:
        """theta and aux after one step.

        Arguments:
            drift: ε/2·G∇log p(theta, D).
            scale: √(εG), a number for each array, or one for each of its entries.
            noise: standard normal, in the shape of theta.
        """

    # -- the engine's functions ----------------------------------------------------------------------------

    def init(self, key: Key, model: Model, theta: Theta, data: Batch, held_out: Batch | None) -> DynamicsState:
        theta = {name: theta[name] for name in model.template}
        mean_square = jax.tree.map(jnp.zeros_like, theta) if self.preconditioner else {}
        return DynamicsState(jnp.array(0), theta, self.auxiliary(theta), mean_square)

    def step(self, key: Key, model: Model, state: DynamicsState, batch: Batch) -> tuple[DynamicsState, DynamicsInfo]:
        restart_key, noise_key = jax.random.split(key)
        place = state.step % self.plan().steps_per_cycle
        state = self._restarted(restart_key, model, state, place)
        gradient_of = jax.grad(lambda theta: _with_parts(model.log_parts(theta, batch)), has_aux=True)
        gradient, (log_prior, log_likelihood) = gradient_of(state.theta)
        step_size = jnp.asarray(self.schedule(place), working_precision())
        epsilon = step_size / batch.total
        mean_square = self._learned(state.mean_square, gradient, batch.total, place)
        # G is a number where there is no preconditioner, and costs nothing.
        metric = {name: 1 / (DAMPING + jnp.sqrt(mean_square[name])) if mean_square else 1.0 for name in state.theta}
        drift = {name: 0.5 * epsilon * metric[name] * slope for name, slope in gradient.items()}
        scale = {name: jnp.sqrt(epsilon * own) for name, own in metric.items()}
        keys = jax.random.split(noise_key, len(state.theta))
        noise = {
            name: random.normal(own, leaf.shape) for own, (name, leaf) in zip(keys, state.theta.items(), strict=True)
        }
        theta, aux = self.move(state.theta, drift, scale, noise, state.aux)
        info = DynamicsInfo(log_prior + log_likelihood, log_prior, log_likelihood, step_size)
        return DynamicsState(state.step + 1, theta, aux, mean_square), info

    def _restarted(self, key: Key, model: Model, state: DynamicsState, place: Array) -> DynamicsState:
        """At the start of each cycle but the first: a new draw from the prior, if asked for."""
        if self.restart == "none":
            return state

        def anew() -> DynamicsState:
            drawn = model.sample_prior(key, 1)
            theta = {name: drawn[name][0] for name in state.theta}
            return state._replace(theta=theta, aux=self.auxiliary(theta))

        return jax.lax.cond((place == 0) & (state.step > 0), anew, lambda: state)

    def _learned(self, mean_square: Theta, gradient: Theta, num_data: Any, place: Array) -> Theta:
        """V ← βV + (1 − β)(∇/N)², its start at zero divided out; anew in each cycle, and fixed after its warm-up."""
        count = place + 1.0
        decay = MEMORY * (1 - MEMORY ** (count - 1)) / (1 - MEMORY**count)
        keep = jnp.where(place < self.num_warmup, decay, 1.0)
        return {
            name: keep * value + (1 - keep) * (gradient[name] / num_data) ** 2 for name, value in mean_square.items()
        }

    def draw(self, model: Model, state: DynamicsState) -> Theta:
        return state.theta

    def healthy(self, state: DynamicsState) -> Array | bool:
        # The log joint of a step is that of the theta before its update.
        return all_finite(state.theta)

    def status_line(self, infos: DynamicsInfo) -> str:
        return f"log joint {float(infos.log_joint[-1]):.5g}, step {float(infos.step_size[-1]):.2g}"

    def posterior(self, model: Model, outcome: Outcome) -> Draws:
        draws = super().posterior(model, outcome)
        sizes = np.asarray(outcome.infos.step_size, np.float64)
        if self.num_cycles > 1 or np.all(sizes == sizes[0, 0]):
            return draws
        return replace(draws, weights=sizes / sizes.sum())


def _with_parts(parts: tuple[Array, Array]) -> tuple[Array, tuple[Array, Array]]:
    """The log joint, and its two parts."""
    return parts[0] + parts[1], parts
