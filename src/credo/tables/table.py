"""What all tables are, whatever file they are in: named columns that can be read again and again."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from credo._files import checksum

BATCH_ROWS = 2**15
# A longer name is text in a quote that was not closed.
MAX_NAME = 10_000
# What pandas calls a column without a name, and polars.
UNNAMED = ("Unnamed: 0", "")


@dataclass(frozen=True)
class Table(ABC):
    """A file with named columns that can be read again and again.

    Arguments:
        path: of the file.
        columns: their names.
        decimal: the decimal mark of numbers in texts, "" where each column tells.
        is_first_unnamed: whether the first column has no name in the file.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import credo
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "rooms.csv"
    ...     _ = path.write_text("city,price\\nBern,3\\nRome,4\\n")
    ...     credo.tables.open_table(path).columns
    ('city', 'price')
    """

    path: Path
    columns: tuple[str, ...]
    _: KW_ONLY
    decimal: str = ""
    is_first_unnamed: bool = False

    @property
    @abstractmethod
    def max_rows(self) -> int:
        """The number of rows, or an upper bound: how much memory to reserve."""

    @property
    def checksum(self) -> str:
        """Of what it holds."""
        return checksum(self.path)

    @abstractmethod
    def batches(self) -> Iterator[pl.DataFrame]:
        """The rows in order, some at a time."""

    @property
    def unnamed(self) -> str | None:
        """The first column, if nobody gave it a name: it may be the numbers of the rows."""
        return self.columns[0] if self.is_first_unnamed or self.columns[0] in UNNAMED else None


@dataclass(frozen=True, eq=False)
class HeldTable(Table):
    """A table that is in memory already."""

    frame: pl.DataFrame

    @property
    def max_rows(self) -> int:
        """The number of rows."""
        return len(self.frame)

    def batches(self) -> Iterator[pl.DataFrame]:
        """The rows in order."""
        yield from self.frame.iter_slices(BATCH_ROWS)


def named(path: Path, cells: Sequence[Any]) -> dict[str, Any]:
    """What a table is told of its columns by the row of names: one without a name is called by its place."""
    found = tuple((cell or "").strip() or f"column_{place}" for place, cell in enumerate(cells, start=1))
    if (longest := max(map(len, found))) > MAX_NAME:
        raise ValueError(
            f"{path} has a column name of {longest:,} characters; give it at most {MAX_NAME:,}, and close all quotes"
        )
    twice = [name for name, number in Counter(found).items() if number > 1]
    if twice:
        raise ValueError(f"{path} has several columns named {', '.join(map(repr, twice))}; give each its own name")
    return {"columns": found, "is_first_unnamed": not (cells[0] or "").strip()}
