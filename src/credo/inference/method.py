"""What a method is: hyper-parameters in a frozen dataclass, and four pure functions for the engine to run."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import jax
import numpy as np

from credo import random
from credo.inference.guide import Guide
from credo.inference.needs import Needs
from credo.inference.plan import Plan
from credo.inference.run import Run
from credo.models.program import Model
from credo.posterior import Posterior
from credo.typing import Array, Batch, Key, Theta, Tree

# What to try when a sampler goes non-finite.
START_WHERE_FINITE = "start where the density is finite: start=credo.MAP(), or a narrower prior"


@dataclass(frozen=True)
class Method:
    """An inference method. `init` and `step` are pure; `draw` says what to keep; `posterior` makes the result.

    Every `Info` that `step` returns has a field `log_joint`, the value at the state it leaves: the engine stops a
    run in which it is not finite. A method of the registry has a `guide`: what it is good for.
    """

    guide: ClassVar[Guide]

    @property
    def start(self) -> "str | Method":
        """Where chains start: "prior" (a draw), "network" (its own values), or a method to run first."""
        return "prior"

    def plan(self) -> Plan:
        raise TypeError(f"{type(self).__name__} has no plan")

    @property
    def lockstep(self) -> bool:
        """Whether all steps cost the same, so that chains may run as one axis of one program."""
        return False

    def rows(self, key: Key, num_rows: int) -> Array | None:
        """The rows of the data that a chain sees, by number; then its batches know theirs. None: all rows."""
        return None

    def init(self, key: Key, model: Model, theta: Theta, data: Batch, held_out: Batch | None) -> Tree:
        """The state at step 0, from a starting point."""
        raise TypeError(f"{type(self).__name__} has no init")

    def step(self, key: Key, model: Model, state: Tree, batch: Batch) -> tuple[Tree, Any]:
        """One transition. The batch is always there: the full data are one batch."""
        raise TypeError(f"{type(self).__name__} has no step")

    def draw(self, model: Model, state: Tree) -> Tree:
        """What to keep of a state: nothing, unless a method says otherwise."""
        return ()

    def posterior(self, model: Model, run: Run) -> Posterior:
        raise TypeError(f"{type(self).__name__} has no posterior")

    def judged(self, posterior: Posterior, data: Batch) -> Posterior:
        """The posterior with what the whole data say about it: nothing, unless a method says otherwise."""
        return posterior

    def finished(self, state: Tree) -> Array | bool:
        """Whether the run may end before its plan does."""
        return False

    def healthy(self, state: Tree) -> Array | bool:
        """Whether a state is good to go on from, where the log joint of the steps before does not tell."""
        return True

    def figure(self, infos: Any) -> str:
        """The figure that matters, from the newest infos (leaves of shape (records,)), for the progress bar."""
        return f"log joint {float(infos.log_joint[-1]):.4g}"

    @property
    def uses_held_out(self) -> bool:
        """Whether the method can use held-out data to stop early."""
        return False

    @property
    def learns_xi(self) -> bool:
        """Whether the method learns the parameters xi of a prior (`param` sites) itself."""
        return False

    @property
    def advice(self) -> str:
        """What to try when a run goes non-finite."""
        return "check the scale of the data (standardise them) and the prior"

    @property
    def smaller(self) -> str:
        """What to do where a run would not fit into memory."""
        return "keep fewer draws, thin more, or choose a method that stores less (credo.MAP)"

    def describe(self, model: Model, data: Any) -> Needs:
        """What a run of this method will hold in memory."""
        bound = model if model.rows is not None else model.bind(data)
        plan = self.plan()
        draw = jax.eval_shape(
            lambda theta: self.draw(bound, self.init(random.key(0), bound, theta, bound.example(), None)),
            bound.template,
        )
        per_draw = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(draw))
        num_draws = plan.num_chains * plan.num_draws if per_draw else plan.num_chains
        num_bytes = num_draws * max(per_draw, 4 * bound.num_parameters) + self.extra_bytes(bound.num_parameters)
        return Needs(bound.num_parameters, f"{num_draws:,} draw{'s' if num_draws != 1 else ''}", num_bytes)

    def extra_bytes(self, num_parameters: int) -> int:
        """Memory beside the draws: a dense mass matrix, a covariance."""
        return 0

    def to_config(self) -> dict[str, Any]:
        """Name and hyper-parameters, JSON-able; what JSON cannot hold is given in words."""
        return {
            "name": type(self).__name__,
            **{item.name: _jsonable(getattr(self, item.name)) for item in fields(self)},
        }


def _jsonable(value: Any) -> Any:
    if isinstance(value, Method):
        return value.to_config()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):
        return [_jsonable(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else repr(value)
