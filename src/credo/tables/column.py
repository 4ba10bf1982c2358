"""What all kinds of columns share: names, limits, words, and how missing cells are filled in."""

import math
import warnings
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl

from credo.tables.cells import clean

Unknown = Literal["error", "missing"]
RowNumbers = range | np.ndarray
ALL_ROWS = range(1, 2**62)
ANYWHERE = (-math.inf, math.inf)


@dataclass(frozen=True)
class Column(ABC):
    """A column of the table, and how it becomes numbers.

    Arguments:
        name: in the table.
        num_missing: cells that were missing at fit; if there were any, a further number says which.

    >>> import polars as pl
    >>> import credo
    >>> size = credo.tables.Numeric("size", num_missing=1, fill=3.0, low=1.0, high=5.0)
    >>> isinstance(size, credo.tables.Column), size.encode(pl.Series(["2", None])).tolist()
    (True, [[2.0, 0.0], [3.0, 1.0]])
    """

    kind: ClassVar[str]
    name: str
    num_missing: int = 0

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The names of its numbers."""

    @property
    def is_used(self) -> bool:
        """Whether the network learns anything from it."""
        return bool(self.names)

    @property
    def ordered_by(self) -> str:
        """The name of the number that orders its cells, "" if there is none: a function may rise or fall in it."""
        return ""

    @property
    def limits(self) -> tuple[tuple[float, float], ...]:
        """The least and the greatest value at fit of each of its numbers; infinite where any value is as good."""
        return (ANYWHERE,) * len(self.names)

    @property
    @abstractmethod
    def says(self) -> str:
        """What was done with it, in words."""

    @abstractmethod
    def encode(self, cells: pl.Series, *, unknown: Unknown = "error", rows: RowNumbers = ALL_ROWS) -> np.ndarray:
        """Cells as numbers, (rows, len(names)).

        Arguments:
            cells: of any type; text is parsed.
            unknown: "error" refuses a cell that the column has no rule for (a new category, text among numbers);
                "missing" treats it as missing.
            rows: their numbers in the file, for error messages.
        """

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"kind": self.kind} | asdict(self)


@dataclass(frozen=True)
class Filled(Column):
    """A column whose missing cells are filled in."""

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.values_names, f"{self.name} is missing") if self.num_missing else self.values_names

    @property
    def values_names(self) -> tuple[str, ...]:
        """The names of its numbers, without the one for missing cells."""
        return (self.name,)

    @property
    @abstractmethod
    def filling(self) -> str:
        """What replaces a missing cell, in words."""

    @abstractmethod
    def read(self, cells: pl.Series) -> pl.Series:
        """Clean cells as values of this kind; null where a cell is missing or of another kind."""

    @abstractmethod
    def numbers_of(self, values: pl.Series) -> np.ndarray:
        """The values of `read` as numbers (rows, len(values_names)), with nulls filled in."""

    def encode(self, cells: pl.Series, *, unknown: Unknown = "error", rows: RowNumbers = ALL_ROWS) -> np.ndarray:
        cleaned = clean(cells)
        values = self.read(cleaned)
        if unknown == "error" and values.null_count() > cleaned.null_count():
            strange = (values.is_null() & cleaned.is_not_null()).arg_true()[0]
            raise ValueError(self._refusal(str(cleaned[strange]), int(rows[strange])))
        found = self.numbers_of(values)
        if self.num_missing:
            return np.column_stack([found, values.is_null().to_numpy()])
        if values.null_count():
            tell(f"column {self.name!r} has missing cells, and had none at fit: they become {self.filling}")
        return found

    def _refusal(self, cell: str, row: int) -> str:
        return (
            f"column {self.name!r} is {self.kind}, and holds {cell!r} in row {row}{self._hint(cell)}; correct the "
            "file, or pass unknown='missing' to treat such cells as missing"
        )

    def _hint(self, cell: str) -> str:
        return ""

    def _and_missing(self) -> str:
        return f"; {self.num_missing:,} missing: {self.filling}, and a column that says so" if self.num_missing else ""


def tell(message: str) -> None:
    """A warning to whoever called the public function."""
    warnings.warn(message, stacklevel=4)
