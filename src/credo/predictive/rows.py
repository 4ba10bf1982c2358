"""Rows through a network, block by block."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from credo import _activations
from credo._blocks import block_size, by_block
from credo._machine import available_cores
from credo.predictive.conditional import ConditionalOf, mean_of
from credo.typing import Tree

# Activations of a block of rows should stay in a core's cache: 4,096 rows of 50 units are 0.8 MB.
MAX_ROWS_PER_BLOCK = 4096
MAX_INPUTS_PER_BLOCK = 2**20
# Fewer passes of a row through the network are done before threads have started.
PASSES_WORTH_THREADS = 4096


def usual_rows(row: tuple[int, ...]) -> int:
    """How many rows of a shape are in a block, unless a network is wide."""
    return min(MAX_ROWS_PER_BLOCK, max(1, MAX_INPUTS_PER_BLOCK // max(math.prod(row), 1)))


def rows_by_block(
    function: Callable[..., Tree], arrays: Sequence[np.ndarray], num_passes: int, *, max_rows: int | None = None
) -> Tree:
    """function(*arrays) on blocks of rows of one size, spread over the cores where that is worth it.

    Arguments:
        arrays: the first of them are the inputs of a network.
        num_passes: of each row through the network.
    """
    x = arrays[0]
    inputs_per_row = max(math.prod(x.shape[1:]), 1)
    limit = max_rows or usual_rows(x.shape[1:])
    num_workers = available_cores() if len(x) * num_passes >= PASSES_WORTH_THREADS else 1
    return by_block(function, arrays, block_size(len(x), inputs_per_row, limit, num_workers), num_workers)


# A network is traced for this once, and not in each prediction with it.
@lru_cache(maxsize=16)
def activation_bytes_per_row(
    conditional_of: ConditionalOf, theta: tuple[Any, ...], row: tuple[int, ...], precision: np.dtype
) -> int:
    draw = {name: jax.ShapeDtypeStruct(shape, dtype) for name, shape, dtype in theta}
    rows = jax.ShapeDtypeStruct((_activations.NUM_ROWS, *row), precision)
    return _activations.bytes_per_row(lambda theta, x: mean_of(conditional_of(theta, x)), draw, rows)


def index_of(rows: Any) -> Any:
    """A slice, an index or a mask as what keeps the axis of rows."""
    return rows if isinstance(rows, slice) else np.atleast_1d(rows)
