"""The outcome of a run of the engine, and how it becomes a posterior."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import jax
import numpy as np

from credo.models.program import Model
from credo.posterior import Draws, Posterior, Provenance
from credo.typing import Batch, Theta, Tree

P = TypeVar("P", bound=Posterior)


class NonFiniteError(ArithmeticError):
    """A run went non-finite: at which step, what to do, and a posterior from the last good state if there is one.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.3)
    >>> try:
    ...     credo.fit(model, credo.datasets.gap(20), credo.SGLD(step_size=1e6, num_samples=5, num_warmup=5))
    ... except credo.NonFiniteError as error:
    ...     print(error.step >= 1)
    True
    """

    def __init__(self, message: str, step: int, posterior: Any = None) -> None:
        super().__init__(message)
        self.step = step
        self.posterior = posterior


class Stages(Protocol):
    """The stages of a fit: runs of the engine, and what is concluded from them.

    Each is done once, however often the fit is resumed.
    """

    def run(self, method: Any, model: Model, data: Batch, **options: Any) -> "Outcome":
        """A run of the engine."""

    def shared(self, data: Batch) -> Batch:
        """Data for sums over all rows: each device has a share of them."""

    def conclude(self, name: str, model: Model, make: Callable[["Stages"], P]) -> P:
        """A posterior that takes long to compute; what is run on the way is run by the stages that `make` is given."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """Final states, kept draws and infos of every chain.

    Leaves of `draws` and `infos` have axes (chains, records, …), those of `warmup_infos` (chains, steps), those of
    `states`, the last ones, (chains, …). `stages` is None where nothing more is to be computed.
    """

    states: Tree
    draws: Tree
    infos: Any
    warmup_infos: Any
    data: Batch
    seconds: float
    seed: int
    interrupted: bool = False
    stages: Stages | None = None

    @property
    def num_chains(self) -> int:
        return len(jax.tree.leaves(self.states)[0])

    def part(self, index: int) -> "Outcome":
        """One chain: still with an axis of chains, of length one."""
        parts = (self.states, self.draws, self.infos, self.warmup_infos)
        states, draws, infos, warmup_infos = jax.tree.map(lambda leaf: leaf[index : index + 1], parts)
        return replace(self, states=states, draws=draws, infos=infos, warmup_infos=warmup_infos)

    @property
    def state(self) -> Any:
        """The last state of the only chain."""
        return jax.tree.map(lambda leaf: np.asarray(leaf[0]), self.states)

    def trace(self, num_steps: int | None = None) -> dict[str, np.ndarray]:
        """The figures of the steps after warm-up by name, each (chains, steps)."""
        return {name: values[:, :num_steps] for name, values in as_dict(self.infos).items()}

    def provenance(self, config: dict[str, Any]) -> Provenance:
        """How a posterior of this run came about, by a method of that configuration."""
        return Provenance(config, self.seed, self.seconds, 0, self.interrupted)

    def to_draws(self, config: dict[str, Any], model: Model, theta: Theta) -> Draws:
        """Kept draws, (chains, draws, …), with the figures of each."""
        leaves = {name: np.asarray(leaf) for name, leaf in theta.items()}
        infos, trace = as_dict(self.infos), as_dict(self.warmup_infos)
        return Draws(model, leaves, self.provenance(config), infos=infos, trace=trace)

    def concluded(self, name: str, posterior: Any, better: Callable[[Stages], Any]) -> Any:
        """The posterior after a last stage of that name, whose time is part of the fit.

        Arguments:
            posterior: what there is without the last stage.
            better: computes what there is with it.
        """
        if self.stages is None:
            return posterior

        def make(stages: Stages) -> Any:
            began = time.perf_counter()
            found = better(stages)
            seconds = found.provenance.seconds + time.perf_counter() - began
            return replace(found, provenance=replace(found.provenance, seconds=seconds))

        return self.stages.conclude(name, posterior.model, make)


def as_dict(infos: Any) -> dict[str, np.ndarray]:
    """The fields of infos by name."""
    return {} if infos is None else {name: np.asarray(value) for name, value in infos._asdict().items()}
