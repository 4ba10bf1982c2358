"""Minibatches of rows in files, in an order that is random and yet is read in large pieces.

The law: rows lie in blocks, one after another. Each epoch visits the blocks in a new random order; so many blocks as
memory has room for make a window, whose rows are shuffled; batches are cut from one window after another. So each row
comes once an epoch (but those of a last batch that would be short, which are others in each epoch), and which rows
meet in a batch is random within a window, not over all rows: where neighbours in the files are alike, the windows must
hold many blocks. The order is a function of the key and the number of the step alone, so any step can be read without
the steps before it: a run that is resumed sees the same batches.

The next window is read, scaled and shuffled on a thread while the batches of this one are computed with.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

# Neighbouring rows that are read together, and what a window holds, in the working precision: at least a hundred
# blocks of rows of up to 1 kB.
BYTES_PER_BLOCK, BYTES_PER_WINDOW = 2**18, 2**25

# x and y of rows first to last − 1, in the units of the model.
Read = Callable[[int, int], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Order:
    """In which order an epoch visits rows 0 … num_rows − 1.

    Arguments:
        rows_per_block: that lie beside each other and are read together.
        blocks_per_window: whose rows are shuffled together.
        key: whole numbers from zero on, such as a seed and the number of a chain.

    >>> order = Order(num_rows=10, rows_per_block=2, blocks_per_window=3, key=(0, 0))
    >>> sorted(np.concatenate([order.rows(0, window) for window in range(order.num_windows)]).tolist())
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    num_rows: int
    rows_per_block: int
    blocks_per_window: int
    key: tuple[int, ...]

    @property
    def num_windows(self) -> int:
        return -(-self._num_blocks // self.blocks_per_window)

    @property
    def _num_blocks(self) -> int:
        return -(-self.num_rows // self.rows_per_block)

    def blocks(self, epoch: int, window: int) -> list[range]:
        """The rows of each block of a window, in the order in which it is visited."""
        place = self.blocks_per_window * window
        firsts = self.rows_per_block * _permutation(self._num_blocks, (*self.key, epoch))
        chosen = firsts[place : place + self.blocks_per_window].tolist()
        return [range(first, min(first + self.rows_per_block, self.num_rows)) for first in chosen]

    def begins(self, epoch: int) -> np.ndarray:
        """How many rows of an epoch come before each window, and in all: (windows + 1,)."""
        blocks = _permutation(self._num_blocks, (*self.key, epoch))
        sizes = np.full(self._num_blocks, self.rows_per_block)
        sizes[blocks == self._num_blocks - 1] -= self._num_blocks * self.rows_per_block - self.num_rows
        ends = np.cumsum(sizes)[self.blocks_per_window - 1 :: self.blocks_per_window]
        found = [0, *ends.tolist()]
        return np.asarray(found if found[-1] == self.num_rows else [*found, self.num_rows])

    def shuffle(self, epoch: int, window: int, num: int) -> np.ndarray:
        """The order of the rows of a window, of which there are so many."""
        return np.random.default_rng((*self.key, epoch, 1 + window)).permutation(num)

    def rows(self, epoch: int, window: int) -> np.ndarray:
        """The numbers of the rows of a window, in the order in which they are visited."""
        whole = np.concatenate([np.asarray(block) for block in self.blocks(epoch, window)])
        return whole[self.shuffle(epoch, window, len(whole))]


@lru_cache(maxsize=64)
def _permutation(num: int, key: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng((*key, 0)).permutation(num)


class Batches:
    """The batches of one chain, by the number of the step.

    Arguments:
        read: rows of the files, by number.
        size: rows per batch.
        pool: whose threads read ahead.
    """

    def __init__(self, order: Order, read: Read, size: int, pool: Executor) -> None:
        self.order, self.size = order, min(size, order.num_rows)
        self._read, self._pool = read, pool
        self._held: tuple[tuple[int, int], Future[tuple[np.ndarray, np.ndarray]]] | None = None
        # While the steps are compiled.
        self._ahead = self._asked((0, 0))

    @property
    def per_epoch(self) -> int:
        return self.order.num_rows // self.size

    def fill(self, first: int, num: int, x: np.ndarray, y: np.ndarray) -> None:
        """Write batches first to first + num − 1 into the beginning of x and y, (steps, size, …)."""
        flat_x, flat_y = x.reshape(-1, *x.shape[2:]), y.reshape(-1, *y.shape[2:])
        done = 0
        for epoch, window, rows in self._pieces(first, num):
            own_x, own_y = self._window(epoch, window)
            place = slice(done, done + len(rows))
            flat_x[place], flat_y[place] = own_x[rows.start : rows.stop], own_y[rows.start : rows.stop]
            done += len(rows)

    def _pieces(self, first: int, num: int) -> Iterator[tuple[int, int, range]]:
        """Of which windows, and of which of their rows, some batches are made."""
        while num:
            epoch, position = divmod(first, self.per_epoch)
            here = min(num, self.per_epoch - position)
            begins = self.order.begins(epoch)
            begin, end = position * self.size, (position + here) * self.size
            window = int(np.searchsorted(begins, begin, side="right")) - 1
            while begin < end:
                stop = min(end, int(begins[window + 1]))
                yield epoch, window, range(begin - int(begins[window]), stop - int(begins[window]))
                begin, window = stop, window + 1
            first, num = first + here, num - here

    def _window(self, epoch: int, window: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows of a window, shuffled; from now on the next one is read."""
        place = (epoch, window)
        if self._held is None or self._held[0] != place:
            self._held = self._ahead if self._ahead[0] == place else self._asked(place)
            after = (epoch, window + 1) if window + 1 < self.order.num_windows else (epoch + 1, 0)
            self._ahead = self._asked(after)
        return self._held[1].result()

    def _asked(self, place: tuple[int, int]) -> tuple[tuple[int, int], Future[tuple[np.ndarray, np.ndarray]]]:
        return place, self._pool.submit(self._shuffled, *place)

    def _shuffled(self, epoch: int, window: int) -> tuple[np.ndarray, np.ndarray]:
        parts = [self._read(block.start, block.stop) for block in self.order.blocks(epoch, window)]
        order = self.order.shuffle(epoch, window, sum(len(y) for _, y in parts))
        x, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return x.take(order, axis=0), y.take(order, axis=0)
