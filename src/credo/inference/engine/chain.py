"""Running chains: one by itself, or a group that advances in lock-step."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo._mesh import Lane
from credo.typing import Array, Batch, Key, Tree


@dataclass(eq=False)
class Chain:
    """One chain: its current state, and the records of each chunk so far."""

    index: int
    key: Key | None
    state: Tree
    data: Batch
    rows: Array | None = None
    lane: Lane = field(default_factory=Lane)
    step: int = 0
    num_kept: int = 0
    records_per_chunk: int = 1
    draws: list[Tree] = field(default_factory=list)
    infos: list[Any] = field(default_factory=list)
    warmup_infos: list[Any] = field(default_factory=list)
    failed_at: int | None = None
    finished: bool = False


class Result(NamedTuple):
    """The result of a chunk for one chain."""

    state: Tree
    draws: Tree
    infos: Any


@dataclass(eq=False)
class Group:
    """Chains that advance in lock-step, as one axis of one program: leaves of key, state and rows begin with it.

    Groups are filled up to one size by repeating the last chain, so that they share one program: no worker waits for
    the copies longer than for the other groups.
    """

    chains: list[Chain]
    key: Key | None
    state: Tree
    rows: Array | None

    @classmethod
    def of(cls, chains: list[Chain], size: int) -> "Group":
        """Chains at step 0 as a group of a size, in the lane of the first."""
        if not chains[0].lane.is_mine:
            return cls(chains, None, None, None)
        filled = [*chains, *[chains[-1]] * (size - len(chains))]
        keys: list[Any] = [chain.key for chain in filled]
        key = jnp.stack(keys)
        state, rows = side_by_side([(chain.state, chain.rows) for chain in filled])
        return cls(chains, *chains[0].lane.whole((key, state, rows)))

    @property
    def data(self) -> Batch:
        return self.chains[0].data

    @property
    def lane(self) -> Lane:
        return self.chains[0].lane


def side_by_side(trees: list[Tree]) -> Tree:
    """Trees of one structure with a leading axis more."""
    return jax.tree.map(lambda *leaves: np.stack(jax.device_get(leaves)), *trees)
