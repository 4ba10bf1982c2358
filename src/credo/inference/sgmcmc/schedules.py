"""Step-size schedules of stochastic-gradient MCMC: functions of the number of the step within its cycle.

Paper, "MCMC algorithms based on the SGD dynamic": εₜ falls towards zero, or stops falling somewhere, or starts large
again and again (warm restarts). Any function of the step number will do in place of these, an optax schedule too.
`Settling` is for climbs (MAP, variational inference): a sampler whose steps fall to zero would stop on its way.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo._checks import require_at_least, require_positive
from credo._precision import working_precision
from credo.inference.settling import Schedule, Settling
from credo.typing import Array

__all__ = ["Constant", "Cosine", "Polynomial", "Schedule", "Settling", "check"]

# A cosine in single precision may end in a few steps of zero: this share of a cycle is forgiven.
MAX_SHARE_AT_REST = 0.01


@dataclass(frozen=True)
class Constant:
    """The same size at every step: the draws are never quite from the posterior, and never slow down.

    >>> round(float(Constant(0.1)(5000)), 6)
    0.1
    """

    size: float

    def __post_init__(self) -> None:
        require_positive(size=self.size)

    def __call__(self, step: Any) -> Array:
        return jnp.asarray(self.size, working_precision())


@dataclass(frozen=True)
class Polynomial:
    """εₜ = first·(1 + t/delay)^−power: from about `delay` steps on, the size falls as a power of the step number.

    Averages over the draws, weighted by εₜ, converge to those of the posterior for any power up to 1, and fastest for
    1/3 (Teh, Thiery & Vollmer, "Consistency and fluctuations for stochastic gradient Langevin dynamics", 2016).

    Arguments:
        first: size at step 0.
        delay: steps until the size has fallen by 2^−power.
        power: above 0, at most 1: beyond that the chain would stop at a finite distance.

    >>> round(float(Polynomial(0.1, delay=100, power=0.5)(300)), 6)
    0.05
    """

    first: float
    delay: float = 1000.0
    power: float = 1 / 3

    def __post_init__(self) -> None:
        require_positive(first=self.first, delay=self.delay, power=self.power)
        if self.power > 1:
            raise ValueError(f"power must be at most 1, or the chain stops at a finite distance; got {self.power}")

    def __call__(self, step: Any) -> Array:
        return self.first * (1 + jnp.asarray(step, working_precision()) / self.delay) ** -self.power


@dataclass(frozen=True)
class Cosine:
    """εₜ = first/2·(1 + cos(πt/num_steps)): large steps find a mode, small ones sample it.

    Zhang et al., "Cyclical stochastic gradient MCMC for Bayesian deep learning" (2020).

    Arguments:
        first: size at the beginning of a cycle.
        num_steps: length of a cycle; the size would be zero one step after it.

    >>> round(float(Cosine(0.1, num_steps=200)(100)), 6)
    0.05
    """

    first: float
    num_steps: int

    def __post_init__(self) -> None:
        require_positive(first=self.first)
        require_at_least(1, num_steps=self.num_steps)

    def __call__(self, step: Any) -> Array:
        left = 1 - jnp.asarray(step, working_precision()) / self.num_steps
        # The same as the cosine, without its loss of digits towards the end.
        return self.first * jnp.sin(jnp.pi / 2 * jnp.clip(left, 0, 1)) ** 2


def check(schedule: Schedule, num_steps: int) -> None:
    """Refuse a schedule that does not give a positive size at every step of a cycle.

    >>> from credo import schedules
    >>> schedules.check(lambda step: 0.01 / (1 + step), num_steps=100)
    >>> try:
    ...     schedules.check(lambda step: 0.01 - step, num_steps=100)
    ... except ValueError as error:
    ...     print(error)
    step_size must be positive at every step, got -0.99 at step 1
    """
    sizes = np.asarray(jax.vmap(lambda step: jnp.asarray(schedule(step), working_precision()))(jnp.arange(num_steps)))
    if sizes.shape != (num_steps,):
        raise ValueError(f"step_size must give one number per step, got an array of shape {sizes.shape[1:]}")
    bad = ~(np.isfinite(sizes) & (sizes >= 0))
    if np.any(bad):
        raise ValueError(f"step_size must be positive at every step, got {sizes[bad][0]:.3g} at step {np.argmax(bad)}")
    moving = np.flatnonzero(sizes)
    if num_steps - len(moving) > MAX_SHARE_AT_REST * num_steps + 1:
        raise ValueError(
            f"step_size is a schedule shorter than one cycle: a cycle has {num_steps:,} steps (num_warmup + draws per "
            f"cycle × thin), and all but {len(moving):,} of them have size zero; make the schedule {num_steps:,} steps "
            "long, or the cycle shorter"
        )
