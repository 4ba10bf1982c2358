"""Data in files that need not fit into memory: read by blocks, in order or shuffled."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from credo._precision import for_threads, working_precision
from credo.data.data import Data
from credo.data.moments import survey
from credo.data.scaling import Scaling
from credo.data.shuffled import BYTES_PER_BLOCK, BYTES_PER_WINDOW, Batches, Order
from credo.data.stored import StoredArray, StoredRows
from credo.data.unpacked import SUFFIXES, unpacked
from credo.typing import Batch

# Rows that stand for all of them where only shapes and ranges matter, and those of a block of `blocks()`.
NUM_SAMPLED, ROWS_PER_BLOCK = 256, 2**16
# Of which a shuffled part is made, so that it is like all rows also where neighbours are alike.
LEAST_BLOCKS = 16


@dataclass(frozen=True, eq=False)
class FileInputs:
    """The inputs of rows in files: what predictions need of an array, of which slices are read when they are asked for.

    Arguments:
        order: of the columns, where it is another than that of the files.
        scaling: to other units than the user's.
    """

    data: "FileData"
    order: tuple[int, ...] | None = None
    scaling: Scaling | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.data.size, *self.data.rows.x_shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self[:1].dtype

    def __len__(self) -> int:
        return self.data.size

    def __getitem__(self, rows: Any) -> np.ndarray:
        if not isinstance(rows, slice) or rows.step not in (None, 1):
            raise ValueError(
                "this looks at single rows of a prediction, whose rows are in files; predict some of them, "
                "posterior.predict(data.read(0, 10_000))"
            )
        first, last, _ = rows.indices(self.data.size)
        found = self.data.read(first, last).x
        found = found if self.order is None else found[:, list(self.order)]
        return found if self.scaling is None else self.scaling.inputs(found)


@dataclass(frozen=True, eq=False)
class FileData:
    """N rows of inputs x and targets y in files: what `credo.Data.open` gives.

    Memory holds a few blocks of rows at a time. `credo.fit` takes it with methods that see minibatches,
    `posterior.predict` and `credo.evaluate` go over it block by block, and `blocks()` gives the rows as `credo.Data`.

    The minibatches of a fit come in an order of their own law: see `credo.data.shuffled`.

    Arguments:
        rows: where they are.
        span: of which rows this is about: the share of one process; all by default.
        total: the rows of all processes: the N of the likelihood.
        checksum: of all rows.

    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> import credo
    >>> with TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.arange(12.0).reshape(6, 2))
    ...     np.save(f"{folder}/y.npy", np.arange(6.0))
    ...     rows = credo.Data.open((f"{folder}/x.npy", f"{folder}/y.npy"))
    ...     rows.size, type(rows).__name__
    (6, 'FileData')
    """

    rows: StoredRows
    span: range
    total: int
    scaling: Scaling
    standardise: bool
    checksum: str
    sample: Data = field(repr=False)
    names: tuple[str, ...] | None = None
    target: str | None = None
    unit: str | None = None
    classes: tuple[str, ...] | None = None
    held: Any = field(default=None, repr=False)

    @classmethod
    def open(
        cls,
        source: str | Path | tuple[str | Path, str | Path],
        *,
        target: str | int | None = None,
        standardise: bool = True,
        drop: Sequence[str] = (),
        names: Sequence[str] | None = None,
        unit: str | None = None,
        classes: Sequence[str] | None = None,
        share: tuple[int, int] = (0, 1),
        scratch: str | Path | None = None,
    ) -> Self:
        """Open rows in files. One pass over them finds their scaling, and refuses what is missing or not finite.

        Arguments:
            source: a `.parquet` or Arrow file (`.arrow`, `.feather`, `.ipc`), a folder of such files, a pair of `.npy`
                files (x, y), or one `.npy` of which a column is the target. Parquet and Arrow are unpacked once, into
                four bytes for each cell; a `.npy` file is read where it is.
            target: the column to predict: its name, or its number in a single `.npy` file (−1, the last, by default).
            standardise: whether the network sees columns of mean 0 and standard deviation 1, those of all rows.
            drop: columns not to use.
            names, unit, classes: as for `credo.Data`; tables bring their names.
            share: (index, count) of a process: it reads rows of its own, beside each other, one of `count` shares.
            scratch: the folder to unpack into, if not that of temporary files.
        """
        folder = None
        if isinstance(source, tuple):
            x, y = source
            rows = StoredRows(StoredArray.open(x), StoredArray.open(y))
        elif Path(source).suffix == ".npy":
            if isinstance(target, str):
                raise ValueError(f"target is {target!r}, and the columns of {source} have no names; pass a number")
            rows = StoredRows(StoredArray.open(source), target=-1 if target is None else target)
        elif Path(source).suffix in SUFFIXES or Path(source).is_dir():
            if not isinstance(target, str):
                raise ValueError(f"target is {target!r}; name the column of {source} to predict, target='price'")
            found = unpacked(Path(source), target, drop, scratch)
            rows, names, folder = found.rows, found.names, found.folder
        else:
            raise ValueError(
                f"{source} cannot be read by blocks; pass a {', '.join(SUFFIXES)} or .npy file, a folder of Parquet or "
                "Arrow files, or a pair (x.npy, y.npy)"
            )
        if drop and folder is None:
            raise ValueError(f"drop is {list(drop)}, and the columns of .npy files have no names; leave it out")
        more = {"unit": unit, "classes": classes, "target": target if isinstance(target, str) else None}
        return cls.of(rows, names=names, standardise=standardise, share=share, held=folder, **more)

    @classmethod
    def of(
        cls,
        rows: StoredRows,
        *,
        names: Sequence[str] | None = None,
        standardise: bool = True,
        share: tuple[int, int] = (0, 1),
        held: Any = None,
        **more: Any,
    ) -> Self:
        """Rows that are stored already; `held` is what must not go before them, and `more` is as for `Data`."""
        num, own = len(rows.x), None if names is None else tuple(names)
        index, count = share
        if not (0 <= index < count <= num):
            raise ValueError(f"share is {share}; pass (index, count) with 0 ≤ index < count, and at most {num} of them")
        found = survey(rows, own)
        span = range(num * index // count, num * (index + 1) // count)
        sampled = np.linspace(span.start, span.stop - 1, min(NUM_SAMPLED, len(span))).round().astype(int)
        # The extremes of all targets: what checks their range needs no others.
        chosen = [*dict.fromkeys([*sampled.tolist(), *found.extremes])]
        x, y = (np.concatenate(parts) for parts in zip(*(rows.read(row, row + 1) for row in chosen), strict=True))
        scaling = found.scaling if standardise else Scaling()
        sample = Data(x, y, names=own, **more).with_scaling(scaling)
        kept = {name: getattr(sample, name) for name in ("names", "target", "unit", "classes")}
        return cls(rows, span, num, scaling, standardise, found.checksum, sample, held=held, **kept)

    @property
    def size(self) -> int:
        """The number of rows; of a share, of those of this process."""
        return len(self.span)

    @property
    def num_labelled(self) -> int:
        """How many rows have a target: all that there are, of all processes."""
        return self.total

    @property
    def bytes_per_row(self) -> int:
        """What a row takes in the working precision."""
        return working_precision().itemsize * (int(np.prod(self.rows.x_shape)) + self.sample.y[0].size)

    @property
    def bytes_held(self) -> int:
        """What a fit holds of them: two windows, and as much again as the next one is put together."""
        return min(4 * BYTES_PER_WINDOW, 4 * self.size * self.bytes_per_row)

    def probes(self, num: int) -> np.ndarray:
        """A few inputs, in the user's units."""
        return self.sample.probes(num)

    def read(self, first: int, last: int) -> Data:
        """Rows first to last − 1 as `Data` in memory, under the scaling of all."""
        if not 0 <= first < last <= self.size:
            raise ValueError(f"rows {first} to {last} were asked for, and there are 0 to {self.size}")
        x, y = self.rows.read(self.span.start + first, self.span.start + last)
        return self.sample._changed(x=x, y=y)

    def shuffled(self, num_rows: int, seed: int = 0) -> Iterator[Data]:
        """All rows, each once, in parts of about `num_rows`: each part is made of blocks from anywhere."""
        per_block = int(np.clip(BYTES_PER_BLOCK // self.bytes_per_row, 1, max(1, num_rows // LEAST_BLOCKS)))
        num_parts = max(1, round(self.size / num_rows))
        order = Order(self.size, per_block, -(-self.size // (per_block * num_parts)), (seed % 2**63,))
        for window in range(order.num_windows):
            parts = [self.read(block.start, block.stop) for block in order.blocks(0, window)]
            first, *others = parts
            yield first.followed_by(*others)

    def blocks(self, num_rows: int = ROWS_PER_BLOCK) -> Iterator[Data]:
        """All rows in order, so many at a time, as `Data`.

        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     np.save(Path(folder) / "rows.npy", np.arange(10.0).reshape(5, 2))
        ...     [block.size for block in Data.open(Path(folder) / "rows.npy").blocks(2)]
        [2, 2, 1]
        """
        for first in range(0, self.size, num_rows):
            yield self.read(first, min(first + num_rows, self.size))

    def batch(self) -> Batch:
        """Some of the rows as a batch that says how many there are: what a method may look at before it starts."""
        return self.sample.batch()._replace(total=self.total)

    def batches(self, size: int, key: tuple[int, ...], pool: Executor, num_readers: int = 1) -> Batches:
        """Minibatches in standardised units, in an order that the key sets.

        Arguments:
            num_readers: that share what windows may take in memory.
        """

        def scaled(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
            x, y = self.rows.read(self.span.start + first, self.span.start + last)
            return self.scaling.inputs(x), self.scaling.targets(y)

        per_block = int(np.clip(BYTES_PER_BLOCK // self.bytes_per_row, 1, self.size))
        room = max(BYTES_PER_WINDOW // num_readers, 2 * BYTES_PER_BLOCK)
        order = Order(self.size, per_block, max(1, room // (per_block * self.bytes_per_row)), key)
        return Batches(order, for_threads(scaled), size, pool)

    def __repr__(self) -> str:
        shared = f" of {self.total:,}" if self.size < self.total else ""
        rest = repr(self.sample).partition("; ")[2]
        return f"FileData({self.size:,} rows{shared}; {rest}"
