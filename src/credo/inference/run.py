"""The outcome of a run of the engine, and how it becomes a posterior."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from credo.models.program import Model
from credo.posterior import Draws, Provenance
from credo.typing import Theta, Tree


class NonFiniteError(ArithmeticError):
    """A run went non-finite: at which step, what to do, and a posterior from the last good state if there is one."""

    def __init__(self, message: str, step: int, posterior: Any = None) -> None:
        super().__init__(message)
        self.step = step
        self.posterior = posterior


@dataclass(frozen=True, eq=False)
class Run:
    """Final states, kept draws and infos of every chain.

    Leaves of `draws` and `infos` have axes (chains, kept draws, …), those of `warmup_infos` (chains, steps),
    those of `states`, the last ones, (chains, …).
    """

    states: Tree
    draws: Tree
    infos: Any
    warmup_infos: Any
    seconds: float
    seed: int
    interrupted: bool = False

    def provenance(self, config: dict[str, Any]) -> Provenance:
        """How a posterior of this run came about, by a method of that configuration."""
        return Provenance(config, self.seed, self.seconds, 0, self.interrupted)

    def to_draws(self, config: dict[str, Any], model: Model, theta: Theta) -> Draws:
        """The posterior of a run. What belongs to single draws goes to `infos`, the rest to `trace`."""
        leaves = {name: np.asarray(leaf) for name, leaf in theta.items()}
        num_draws = next(iter(leaves.values())).shape[1]
        kept = as_dict(self.infos)
        per_draw = bool(kept) and next(iter(kept.values())).shape[1] == num_draws
        trace = as_dict(self.warmup_infos) if per_draw else kept
        return Draws(model, leaves, self.provenance(config), infos=kept if per_draw else {}, trace=trace)


def as_dict(infos: Any) -> dict[str, np.ndarray]:
    """The fields of infos by name."""
    return {} if infos is None else {name: np.asarray(value) for name, value in infos._asdict().items()}
