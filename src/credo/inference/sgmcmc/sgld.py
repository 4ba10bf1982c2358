"""Stochastic gradient Langevin dynamics: gradient ascent with noise, on minibatches, that samples the posterior.

Paper, "MCMC algorithms based on the SGD dynamic", Algorithm SGLD, in its correct form: it ascends the log joint (it is
printed with a minus), and the prior counts once (the update equation has it twice).

Welling & Teh, "Bayesian learning via stochastic gradient Langevin dynamics" (2011).
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from credo import random
from credo._checks import require_at_least, require_one_of, require_positive
from credo.inference.guide import Guide
from credo.inference.method import Method
from credo.inference.plan import Plan
from credo.inference.run import Run
from credo.inference.sgmcmc import schedules
from credo.inference.sgmcmc.schedules import Schedule
from credo.models.program import Model
from credo.posterior import Draws
from credo.typing import Array, Batch, Key, Theta

# Li et al. (2016): the memory of the mean square of the gradient, and the least root of it.
MEMORY, DAMPING = 0.99, 1e-5


class LangevinState(NamedTuple):
    """Where the chain stands. `velocity` and `mean_square` (of the gradient per data point) are empty if not in use."""

    step: Array
    theta: Theta
    velocity: Theta
    mean_square: Theta


class LangevinInfo(NamedTuple):
    """log_joint = log_prior + log_likelihood, for the whole data set, estimated on the batch; the step made from it."""

    log_joint: Array
    log_prior: Array
    log_likelihood: Array
    step_size: Array


@dataclass(frozen=True)
class SGLD(Method):
    """Stochastic gradient Langevin dynamics: an SGD step and noise of matching size.

        theta ← theta + ε/2 · ∇log p(theta, D) + √ε · η,    η ~ N(0, I),    ε = step_size/N

    There is no accept step. With a constant ε the draws are from the posterior up to a bias of order ε (a normal
    posterior of precision λ is sampled with variance 1/(λ(1 − ελ/4))), plus that of the minibatches' gradient noise;
    `credo.evaluation.discretisation_bias` estimates it. With a decreasing ε the bias vanishes in time; the draws are
    then weighted by their step sizes, as in Welling & Teh (2011). In cycles (Zhang et al., 2020) all draws weigh alike.

    Memory is bounded by `num_samples`: of all steps after the warm-up, one in `thin` is kept.

    Arguments:
        num_samples: draws kept per chain, over all cycles.
        num_warmup: steps dropped at the beginning; in cycles, the exploration at the beginning of each.
        num_chains: independent chains.
        thin: steps per kept draw.
        step_size: per data point: the ε of the equation times N, so that a size suits data sets of any size, like the
            learning rate of `MAP`. A number, or any function of the number of the step within its cycle, such as
            `schedules.Polynomial`. With several cycles a number is where the `schedules.Cosine` of each starts.
        batch_size: rows per step; None takes all of them. The batches of an epoch are disjoint, so that much of their
            gradient noise cancels.
        start: "network" for the network's own values, "prior" for a draw, or a method to run first.
        preconditioner: None, or "rmsprop" for a step of its own for each weight: ε·G with G = 1/(10⁻⁵ + √V), V the mean
            square of its gradient per data point (Li et al., 2016). V is learned during the warm-up of each cycle and
            fixed afterwards, so that the draws are from the posterior without the correction term Γ.
        num_cycles: cycles of warm-up and sampling, each with the whole schedule of step sizes.
        restart: "none", or "prior" to begin each new cycle at a new draw from the prior (warm restarts).

    >>> SGLD(num_samples=500, num_warmup=1000, thin=10, batch_size=32).plan().num_steps
    6000
    >>> SGLD(num_samples=40, num_warmup=1000, thin=10, num_cycles=4, restart="prior").plan().num_kept
    10
    """

    guide: ClassVar[Guide] = Guide(
        exact="up to its step size",
        benefits="a Markov chain from minibatches, at the price of SGD",
        limits="biased by step size and gradient noise; stays around one mode unless it restarts",
        use_cases="sampling with data too large for full gradients",
        stores="every kept draw of theta",
        costs="one gradient of a minibatch per step, and noise for every weight",
    )

    num_samples: int = 1000
    num_warmup: int = 5000
    num_chains: int = 4
    thin: int = 10
    # For networks of 50 and of 50-50 hidden units on standardised regression with 100 to 10,000 rows, ten times as much
    # is plainly biased, and a tenth has not arrived after the warm-up.
    step_size: float | Schedule = 1e-2
    batch_size: int | None = None
    start: str | Method = "network"
    preconditioner: str | None = None
    num_cycles: int = 1
    restart: str = "none"

    def __post_init__(self) -> None:
        counts = {"num_samples": self.num_samples, "num_chains": self.num_chains, "thin": self.thin}
        require_at_least(1, **counts, num_cycles=self.num_cycles)
        require_at_least(0, num_warmup=self.num_warmup)
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
        return Plan(
            num_kept=self.num_samples // self.num_cycles,
            num_warmup=self.num_warmup,
            thin=self.thin,
            num_chains=self.num_chains,
            batch_size=self.batch_size,
            num_cycles=self.num_cycles,
        )

    def halved(self) -> Self:
        """Half the step, twice as many of them: the same simulated time, and the same number of draws."""
        if not isinstance(self.schedule, schedules.Constant):
            raise ValueError(f"only a constant step can be halved, but step_size follows {self.schedule}")
        return replace(self, step_size=self.schedule.size / 2, num_warmup=2 * self.num_warmup, thin=2 * self.thin)

    @property
    def advice(self) -> str:
        return (
            f"take a smaller step_size (a tenth of {self.step_size}), start near a mode (start=credo.MAP()), or "
            "standardise the data"
        )

    def figure(self, infos: LangevinInfo) -> str:
        return f"log joint {float(infos.log_joint[-1]):.5g}, step {float(infos.step_size[-1]):.2g}"

    def init(self, key: Key, model: Model, theta: Theta, data: Batch, held_out: Batch | None) -> LangevinState:
        theta = {name: theta[name] for name in model.template}
        mean_square = jax.tree.map(jnp.zeros_like, theta) if self.preconditioner else {}
        return LangevinState(jnp.array(0), theta, self.initial_velocity(theta), mean_square)

    def step(self, key: Key, model: Model, state: LangevinState, batch: Batch) -> tuple[LangevinState, LangevinInfo]:
        restart_key, noise_key = jax.random.split(key)
        place = state.step % self.plan().steps_per_cycle
        state = self._restarted(restart_key, model, state, place)
        gradient_of = jax.grad(lambda theta: _with_parts(model.log_parts(theta, batch)), has_aux=True)
        gradient, (log_prior, log_likelihood) = gradient_of(state.theta)
        step_size = jnp.asarray(self.schedule(place), jnp.float32)
        epsilon = step_size / batch.total
        mean_square = self._learned(state.mean_square, gradient, batch.total, place)
        theta, velocity = {}, {}
        keys = jax.random.split(noise_key, len(state.theta))
        for own_key, (name, value) in zip(keys, state.theta.items(), strict=True):
            # G is a number where there is no preconditioner, and costs nothing.
            metric = 1 / (DAMPING + jnp.sqrt(mean_square[name])) if self.preconditioner else 1.0
            drift = 0.5 * epsilon * metric * gradient[name]
            noise = jnp.sqrt(epsilon * metric) * random.normal(own_key, value.shape)
            velocity[name] = self.velocity(state.velocity.get(name, 0.0), drift, noise)
            theta[name] = value + velocity[name]
        kept = velocity if state.velocity else {}
        info = LangevinInfo(log_prior + log_likelihood, log_prior, log_likelihood, step_size)
        return LangevinState(state.step + 1, theta, kept, mean_square), info

    def initial_velocity(self, theta: Theta) -> Theta:
        """No velocity outlasts its step."""
        return {}

    def velocity(self, last: Array | float, drift: Array, noise: Array) -> Array:
        """The move of one array: ε/2·G∇log p(theta, D), and noise of variance ε·G."""
        return drift + noise

    def _restarted(self, key: Key, model: Model, state: LangevinState, place: Array) -> LangevinState:
        """At the start of each cycle but the first: a new draw from the prior, if asked for."""
        if self.restart == "none":
            return state

        def anew() -> LangevinState:
            drawn = model.sample_prior(key, 1)
            theta = {name: drawn[name][0] for name in state.theta}
            return state._replace(theta=theta, velocity=jax.tree.map(jnp.zeros_like, state.velocity))

        return jax.lax.cond((place == 0) & (state.step > 0), anew, lambda: state)

    def _learned(self, mean_square: Theta, gradient: Theta, num_data: Any, place: Array) -> Theta:
        """V ← βV + (1 − β)(∇/N)², its start at zero divided out; anew in each cycle, and fixed after its warm-up."""
        count = place + 1.0
        decay = MEMORY * (1 - MEMORY ** (count - 1)) / (1 - MEMORY**count)
        keep = jnp.where(place < self.num_warmup, decay, 1.0)
        return {
            name: keep * value + (1 - keep) * (gradient[name] / num_data) ** 2 for name, value in mean_square.items()
        }

    def draw(self, model: Model, state: LangevinState) -> Theta:
        return state.theta

    def healthy(self, state: LangevinState) -> Array | bool:
        # The log joint of a step is that of the theta before its update.
        return all(np.isfinite(leaf).all() for leaf in state.theta.values())

    def posterior(self, model: Model, run: "Run") -> "Draws":
        draws = run.to_draws(self.to_config(), model, run.draws)
        sizes = np.asarray(run.infos.step_size, np.float64)
        if self.num_cycles > 1 or np.all(sizes == sizes[0, 0]):
            return draws
        return replace(draws, weights=sizes / sizes.sum())


def _with_parts(parts: tuple[Array, Array]) -> tuple[Array, tuple[Array, Array]]:
    """The log joint, and its two parts."""
    return parts[0] + parts[1], parts
