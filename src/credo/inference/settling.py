"""The learning rate of climbs: constant at first, then falling to zero by the end of the run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp

from credo._checks import require_positive
from credo._precision import working_precision
from credo.typing import Array

Schedule = Callable[[Any], Any]


@dataclass(frozen=True)
class Settling:
    """A rate for a climb that stays, and then falls to zero by the end of the run, however long that is.

        αₜ = first · min(1, (1 − t/num_steps)/share)

    A constant rate leaves the noise of the last steps in what is learned; that of a falling one averages out.

    Arguments:
        first: size at the beginning.
        share: of the steps, the last ones, over which it falls.

    >>> round(float(Settling(0.1, share=0.5).over(200)(150)), 6)
    0.05
    """

    first: float
    share: float = 0.5

    def __post_init__(self) -> None:
        require_positive(first=self.first, share=self.share)
        if self.share > 1:
            raise ValueError(f"share is that of the steps over which the rate falls, at most 1; got {self.share}")

    def over(self, num_steps: int) -> Schedule:
        """The rate as a function of the number of the step, in a run of so many."""

        def rate(step: Any) -> Array:
            left = 1 - jnp.asarray(step, working_precision()) / num_steps
            return self.first * jnp.clip(left / self.share, 0, 1)

        return rate
