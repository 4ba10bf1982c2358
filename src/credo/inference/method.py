"""What a method is: hyper-parameters in a frozen dataclass, and pure functions for the engine to run."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import jax
import numpy as np

from credo import random
from credo._machine import available_cores
from credo._precision import working_precision
from credo._text import nearest
from credo.data import FileData
from credo.inference.guide import Guide
from credo.inference.needs import Needs
from credo.inference.outcome import Outcome
from credo.inference.plan import Plan
from credo.models.program import Model
from credo.posterior import Posterior
from credo.typing import Array, Batch, Key, Theta, Tree


@dataclass(frozen=True)
class Method(ABC):
    """An inference method. `init` and `step` are pure; `draw` says what to keep; `posterior` makes the result.

    Every `Info` that `step` returns has a field `log_joint`, the value at the state it leaves: the engine stops a
    run in which it is not finite. A method of the registry has a `guide`: what it is good for, and what to try when it
    fails. `renamed` has the settings that were once called otherwise.
    """

    guide: ClassVar[Guide]
    renamed: ClassVar[Mapping[str, str]] = {}

    def __new__(cls, *_: Any, **settings: Any) -> Self:
        cls.refuse_renamed(*settings)
        return super().__new__(cls)

    @classmethod
    def refuse_renamed(cls, *settings: str) -> None:
        """Refuse settings by an old name, with the new one."""
        for name in settings:
            if name in cls.renamed:
                raise ValueError(f"{cls.__name__} has no setting {name!r}: it is called {cls.renamed[name]!r} now")

    @abstractmethod
    def plan(self) -> Plan:
        """Counts and flags: how long a run is, and what it needs."""

    @abstractmethod
    def init(self, key: Key, model: Model, theta: Theta, data: Batch, held_out: Batch | None) -> Tree:
        """The state at step 0, from a starting point."""

    @abstractmethod
    def step(self, key: Key, model: Model, state: Tree, batch: Batch) -> tuple[Tree, Any]:
        """One transition. The batch is always there: the full data are one batch."""

    def draw(self, model: Model, state: Tree) -> Tree:
        """What to keep of a state: nothing, unless a method says otherwise."""
        return ()

    @abstractmethod
    def posterior(self, model: Model, outcome: Outcome) -> Posterior:
        """From the outcome of a run to the posterior; what takes long goes through `outcome.concluded`."""

    def leaves(self, model: Model, data: Any) -> Model:
        """The model that the posterior is of: the one that was fitted, unless a method says otherwise."""
        return model

    def finished(self, state: Tree) -> Array | bool:
        """Whether the run may end before its plan does."""
        return False

    def healthy(self, state: Tree) -> Array | bool:
        """Whether a state is good to go on from, where the log joint of the steps before does not tell."""
        return True

    def status_line(self, infos: Any) -> str:
        """The figures that matter, from the newest infos (leaves of shape (records,)), for the progress bar."""
        return f"log joint {float(infos.log_joint[-1]):.4g}"

    @property
    def words(self) -> Guide:
        """The guide of this method with its settings: that of its class, unless it wraps another."""
        return self.guide

    def describe(self, model: Model, data: Any) -> Needs:
        """What a run of this method will hold in memory; of a bound model without data, what it stores."""
        bound = model if model.rows is not None else model.bind(data)
        stored = self.stores(bound)
        if data is None:
            return stored
        seen, plan = data if isinstance(data, FileData) else bound.suited(data), self.plan()
        num_rows = min(plan.batch_size or seen.size, seen.size)
        at_once = plan.chains_at_once(bound.num_parameters, available_cores()) * self.networks_per_step
        activations = at_once * bound.activation_bytes(num_rows)
        held = (
            seen.bytes_held
            if isinstance(seen, FileData)
            else working_precision().itemsize * (seen.x.size + seen.y.size)
        )
        return replace(stored, data_bytes=held, activation_bytes=activations)

    def stores(self, model: Model) -> Needs:
        """What is stored of a run on a bound model: draws, unless a method says otherwise."""
        plan = self.plan()
        draw = jax.eval_shape(
            lambda theta: self.draw(model, self.init(random.key(0), model, theta, model.example(), None)),
            model.template,
        )
        per_draw = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(draw))
        num_draws = plan.num_chains * plan.num_records_in_all if per_draw else plan.num_chains
        least = working_precision().itemsize * model.num_parameters
        num_bytes = num_draws * max(per_draw, least) + self.extra_bytes(model.num_parameters)
        return Needs(model.num_parameters, f"{num_draws:,} draw{'s' if num_draws != 1 else ''}", num_bytes)

    @property
    def networks_per_step(self) -> int:
        """How many networks a step of one chain runs side by side."""
        return 1

    def extra_bytes(self, num_parameters: int) -> int:
        """Memory beside the draws: a dense mass matrix, a covariance."""
        return 0

    def to_config(self) -> dict[str, Any]:
        """Name and hyper-parameters, JSON-able; what JSON cannot hold is given in words."""
        return {
            "name": type(self).__name__,
            **{item.name: _jsonable(getattr(self, item.name)) for item in fields(self)},
        }


class Wrapper(Method):
    """A method around another, `inner`: it forwards what it does not change."""

    @property
    @abstractmethod
    def inner(self) -> Method:
        """What is wrapped."""

    def plan(self) -> Plan:
        return self.inner.plan()

    def init(self, key: Key, model: Model, theta: Theta, data: Batch, held_out: Batch | None) -> Tree:
        return self.inner.init(key, model, theta, data, held_out)

    def step(self, key: Key, model: Model, state: Tree, batch: Batch) -> tuple[Tree, Any]:
        return self.inner.step(key, model, state, batch)

    def draw(self, model: Model, state: Tree) -> Tree:
        return self.inner.draw(model, state)

    def posterior(self, model: Model, outcome: Outcome) -> Posterior:
        return self.inner.posterior(model, outcome)

    def finished(self, state: Tree) -> Array | bool:
        return self.inner.finished(state)

    def healthy(self, state: Tree) -> Array | bool:
        return self.inner.healthy(state)

    def status_line(self, infos: Any) -> str:
        return self.inner.status_line(infos)

    @property
    def words(self) -> Guide:
        return self.inner.words

    @property
    def networks_per_step(self) -> int:
        return self.inner.networks_per_step


def require_start(start: Any) -> None:
    """Refuse a start that is neither a known name nor a method that leaves draws to start from."""
    if isinstance(start, Method):
        if not start.plan().leaves_draws:
            raise ValueError(f"start: {type(start).__name__} leaves no draws to start from; use credo.MAP()")
    elif start not in ("prior", "network"):
        hint = nearest(str(start), ("prior", "network"))
        raise ValueError(f"start must be 'prior', 'network' or a method such as credo.MAP(), got {start!r}{hint}")


def all_finite(tree: Tree) -> bool:
    """Whether all numbers of a tree are finite."""
    return all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(tree))


def _jsonable(value: Any) -> Any:
    if isinstance(value, Method):
        return value.to_config()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):
        return [_jsonable(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else repr(value)
