"""Rows in blocks of a few sizes: bounded memory and few compiled programs, however many rows there are."""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np

from credo._concurrency import require_own_jax
from credo._precision import for_threads
from credo._progress import tracked
from credo.typing import Tree

# A processor handles rows in packets: in a full one, a row's result has the same bits wherever the row is, and whatever
# is beside it. Rows with many inputs are images: there a packet would mean sixteen times the work for a single row.
ROWS_PER_PACKET = 16
MAX_INPUTS_PER_PACKET = 2**14


def block_size(num_rows: int, inputs_per_row: int, limit: int, num_workers: int = 1) -> int:
    """Rows per block, about equal for all workers: a number of packets with three significant binary digits.

    Arguments:
        limit: the most rows that a block may have.

    >>> [block_size(num, 8, limit=4096) for num in (1, 100, 1000, 1020, 10_000)]
    [16, 112, 1024, 1024, 3584]
    """
    num_rounds = math.ceil(num_rows / (limit * num_workers))
    packet = ROWS_PER_PACKET if ROWS_PER_PACKET * inputs_per_row <= MAX_INPUTS_PER_PACKET else 1
    num_packets = math.ceil(num_rows / (num_rounds * num_workers * packet))
    unit = 2 ** max(num_packets.bit_length() - 3, 0)
    return min(packet * unit * math.ceil(num_packets / unit), limit)


def by_block(
    function: Callable[..., Tree],
    arrays: Sequence[np.ndarray],
    size: int,
    num_workers: int = 1,
    what: str = "Predicting",
) -> list[Tree]:
    """function(*arrays) on each block of rows, spread over threads; rows are the first axis of what it returns."""
    require_own_jax()

    def one(first: int) -> Tree:
        block = [array[first : first + size] for array in arrays]
        num_rows = len(block[0])
        # The last block is filled up by repeating its last row: one shape, one compilation.
        whole = [np.concatenate([rows, rows[-1:].repeat(size - num_rows, 0)]) for rows in block]
        return jax.tree.map(lambda leaf: leaf[:num_rows], jax.device_get(function(*whole)))

    starts = range(0, len(arrays[0]), size)
    if len(starts) == 1:
        return [one(0)]
    with ThreadPoolExecutor(num_workers) as pool:
        return list(tracked(pool.map(for_threads(one), starts), len(starts), what))


def joined(blocks: Sequence[Tree]) -> Tree:
    """The leaves of all blocks, one after another."""
    return jax.tree.map(lambda *parts: np.concatenate(parts), *blocks)
