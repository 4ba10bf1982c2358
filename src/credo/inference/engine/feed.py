"""Minibatches of rows in files: read ahead of a chunk on the host, and handed to its compiled steps as one array."""

from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, NamedTuple, Self

import jax
import numpy as np

from credo.data import FileData
from credo.data.scaling import aligned
from credo.inference.engine.chain import Chain, Group
from credo.inference.plan import Plan
from credo.typing import Array

# A chunk's batches: long enough that its own cost is nothing beside that of its steps, and little memory.
BYTES_AHEAD = 2**24


class Ahead(NamedTuple):
    """The batches of the steps of a chunk, ([chains,] steps, rows, …)."""

    x: Array
    y: Array


class Feed:
    """Reads the batches of all chains of a run. The threads that read ahead last as long as the context."""

    def __init__(self, data: FileData, plan: Plan, seed: int) -> None:
        num_readers = plan.num_chains
        self._pool = ThreadPoolExecutor(min(2, num_readers), thread_name_prefix="credo-rows")
        # Whatever the seed is, a key has whole numbers from zero on.
        keys = [(seed % 2**63, index) for index in range(num_readers)]
        size = plan.batch_size or data.size
        self._batches = [data.batches(size, key, self._pool, num_readers) for key in keys]
        rows = self._batches[0].size
        affordable = BYTES_AHEAD // (rows * data.bytes_per_row * num_readers)
        self.num_steps = min(max(affordable, plan.thin), plan.num_steps)
        example = data.sample.batch()
        self._shapes = [((rows, *one.shape[1:]), np.dtype(one.dtype)) for one in (example.x, example.y)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

    def ahead(self, unit: Chain | Group, num: int) -> Ahead:
        """The next `num` batches; the room is always that of `num_steps`, so that all chunks are one program."""
        if isinstance(unit, Group):
            # The last chain stands in where a group is not full, as it does for the states.
            keys: Any = unit.key
            chains = unit.chains + unit.chains[-1:] * (len(keys) - len(unit.chains))
        else:
            chains = [unit]
        x, y = (aligned((len(chains), self.num_steps, *shape), dtype) for shape, dtype in self._shapes)
        for chain, *own in zip(chains, x, y, strict=True):
            self._batches[chain.index].fill(chain.step, num, *own)
        if not isinstance(unit, Group):
            x, y = x[0], y[0]
        # Nobody else writes to them: they need not be copied.
        return Ahead(*(jax.device_put(one, may_alias=True) for one in (x, y)))


def require_by_batch(name: str, plan: Plan) -> None:
    """Refuse a method that looks at more than minibatches, which is all that rows in files are given in."""
    others = (
        "credo.SGLD, SGHMC, BayesByBackprop, IVON, SWAG, MAP, MCDropout, each with batch_size=256, and "
        "credo.DeepEnsemble of those"
    )
    if plan.sees_all_rows or plan.batch_size is None:
        what = "looks at all rows at once" if plan.sees_all_rows else "takes all rows in each step"
        raise ValueError(
            f"{name} {what}, and the data are rows in files; take one of {others}; or fit some of the rows"
        )
    if plan.rows != "all":
        raise ValueError(
            f"{name} gives each chain rows of its own (bagging, anchored), and the data are rows in files; leave that "
            f"out, or take one of {others}"
        )
    if plan.independent_batches:
        raise ValueError(f"{name} takes rows with replacement, and rows in files come by epochs; take one of {others}")
