"""Rows in NumPy's own files, read piece by piece: what is read is held, and nothing is mapped."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np


@dataclass(frozen=True)
class StoredArray:
    """An array in a `.npy` file. Mapped pages would count as memory of the process, so its rows are read.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "y.npy", np.arange(5))
    ...     StoredArray.open(Path(folder) / "y.npy").read(1, 3).tolist()
    [1, 2]
    """

    path: Path
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    begin: int

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Look at the head of a file."""
        place = Path(path)
        if not place.exists():
            raise FileNotFoundError(f"{place} does not exist; check the name and the folder")
        try:
            mapped = np.lib.format.open_memmap(place, mode="r")
        except (ValueError, OSError) as error:
            raise ValueError(f"{place} is not a NumPy file, or it is cut short: {error}; save it by np.save") from error
        if mapped.dtype.kind not in "biuf":
            raise ValueError(f"{place} has dtype {mapped.dtype}; save real numbers, .astype(float)")
        if mapped.ndim == 0 or mapped.size == 0:
            raise ValueError(f"{place} has shape {mapped.shape}; save an array with at least one row")
        if mapped.ndim > 1 and not mapped.flags.c_contiguous:
            raise ValueError(
                f"{place} holds its columns one after another (Fortran order), so that no row can be read by itself; "
                "save np.ascontiguousarray(array)"
            )
        return cls(place, mapped.shape, mapped.dtype, mapped.offset)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def bytes_per_row(self) -> int:
        return self.dtype.itemsize * int(np.prod(self.shape[1:]))

    def read(self, first: int, last: int) -> np.ndarray:
        """Rows first to last − 1."""
        count = (last - first) * int(np.prod(self.shape[1:]))
        found = np.fromfile(self.path, self.dtype, count, offset=self.begin + first * self.bytes_per_row)
        if len(found) < count:
            raise OSError(f"{self.path} has become shorter since it was opened; open it again")
        return found.reshape(last - first, *self.shape[1:])


@dataclass(frozen=True)
class StoredRows:
    """Rows of x and y: two files, or one whose column number `target` is y.

    Arguments:
        y: None where y is a column of x.
    """

    x: StoredArray
    y: StoredArray | None = None
    target: int = -1

    def __post_init__(self) -> None:
        if self.y is not None:
            if len(self.y) != len(self.x):
                raise ValueError(
                    f"{self.x.path} has {len(self.x):,} rows and {self.y.path} {len(self.y):,}; one of each per "
                    "observation"
                )
        elif len(self.x.shape) != 2 or self.x.shape[1] < 2 or not -self.x.shape[1] <= self.target < self.x.shape[1]:
            raise ValueError(
                f"{self.x.path} has shape {self.x.shape}, and column {self.target} of it is to be the target; pass "
                "the number of a column, target=…, of at least two, or two files (x.npy, y.npy)"
            )

    @property
    def x_shape(self) -> tuple[int, ...]:
        """The shape of one row of x."""
        if self.y is None:
            return (self.x.shape[1] - 1,)
        return self.x.shape[1:] or (1,)

    def read(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """x and y of rows first to last − 1, as floats and as floats or labels."""
        x = self.x.read(first, last)
        if self.y is None:
            x, y = np.delete(x, self.target, axis=1), x[:, self.target]
        else:
            x, y = x.reshape(last - first, *self.x_shape), self.y.read(first, last)
            y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        x = x.astype(np.result_type(x.dtype, np.float32), copy=False)
        return x, y.astype(np.result_type(y.dtype, np.float32) if y.dtype.kind == "f" else np.int32, copy=False)
