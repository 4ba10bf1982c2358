"""Rows in blocks of a few sizes: bounded memory and few compiled programs, however many rows there are."""

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import jax
import numpy as np

from credo._concurrency import require_own_jax
from credo._machine import memory_told
from credo._precision import for_threads
from credo._progress import tracked
from credo.typing import Tree

# A processor handles rows in packets: in a full one, a row's result has the same bits wherever the row is, and whatever
# is beside it. Rows with many inputs are images: there a packet would mean sixteen times the work for a single row.
ROWS_PER_PACKET = 16
MAX_INPUTS_PER_PACKET = 2**14
# What is computed of arrays on the host, for each row, goes by slices of this many numbers: 2 MiB in double precision.
NUMBERS_PER_SLICE = 2**18


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


@memory_told("predicting", "ask for fewer rows at once, or take a smaller network")
def by_block(
    function: Callable[..., Tree],
    arrays: Sequence[np.ndarray],
    size: int,
    num_workers: int = 1,
    what: str = "Predicting",
) -> Tree:
    """function(*arrays), block of rows by block of rows, spread over threads; rows are the first axis of its leaves.

    Where this process has several devices, they take turns: a row's result has the same bits on each.
    """
    require_own_jax()
    devices = jax.local_devices()

    def one(first: int) -> Tree:
        block = [array[first : first + size] for array in arrays]
        num_rows = len(block[0])
        # The last block is filled up by repeating its last row: one shape, one compilation.
        whole = [np.concatenate([rows, rows[-1:].repeat(size - num_rows, 0)]) for rows in block]
        device = devices[first // size % len(devices)] if len(devices) > 1 else None
        with jax.default_device(device) if device is not None else nullcontext():
            return jax.tree.map(lambda leaf: leaf[:num_rows], jax.device_get(function(*whole)))

    num_rows = len(arrays[0])
    starts = range(0, num_rows, size)
    if len(starts) == 1:
        return _whole(num_rows, zip(starts, [one(0)], strict=True))
    with ThreadPoolExecutor(num_workers) as pool:
        blocks = tracked(pool.map(for_threads(one), starts), len(starts), what)
        return _whole(num_rows, zip(starts, blocks, strict=True))


def _whole(num_rows: int, blocks: Iterator[tuple[int, Tree]]) -> Tree:
    """The leaves of all blocks, one after another: each is forgotten as soon as it is copied to its place."""
    whole = None
    for first, block in blocks:
        if whole is None:
            whole = jax.tree.map(lambda leaf: np.empty((num_rows, *leaf.shape[1:]), leaf.dtype), block)
        for rows, leaf in zip(jax.tree.leaves(whole), jax.tree.leaves(block), strict=True):
            rows[first : first + len(leaf)] = leaf
    return whole


def row_slices(array: np.ndarray) -> Iterator[slice]:
    """Slices of rows that cover an array, each of few numbers."""
    size = max(1, NUMBERS_PER_SLICE // max(math.prod(array.shape[1:]), 1))
    return (slice(first, first + size) for first in range(0, max(len(array), 1), size))


def each_row(function: Callable[..., np.ndarray], *arrays: np.ndarray) -> np.ndarray:
    """function(*arrays) of many rows, slice by slice: what it computes on the way takes little memory.

    >>> each_row(lambda rows: rows.sum(1), np.ones((3, 2)))
    array([2., 2., 2.])
    """
    return np.concatenate([function(*(array[rows] for array in arrays)) for rows in row_slices(arrays[0])])
