"""Tables in CSV, Parquet and NPZ files, read in batches of rows. The whole table is never held as text.

A CSV file is read in blocks of bytes that end where a row ends, and its cells are text: the type of a column is known
only once all of it has been seen. The other formats have types.
"""

import codecs
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from credo.tables.arrays import read_columns
from credo.tables.lines import QUOTED, blocks, chunks, end_of_first_row, without_blank_lines

# A block of text and its batch take about ten times this: little compared with the packages themselves.
BLOCK_BYTES = 2**21
BATCH_ROWS = 2**15
# A batch costs some work for each column, however few its rows: a block of a wide table is larger.
BYTES_PER_COLUMN = 2**10
# A longer name is text in a quote that was not closed.
MAX_NAME = 10_000
# What people write into a cell without a value.
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "?", "-")
SUFFIXES = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".parquet": "", ".npz": ""}


@dataclass(frozen=True)
class Table(ABC):
    """A file with named columns that can be read again and again."""

    path: Path
    columns: tuple[str, ...]

    @property
    @abstractmethod
    def max_rows(self) -> int:
        """The number of rows, or an upper bound: how much memory to reserve."""

    @abstractmethod
    def batches(self) -> Iterator[pl.DataFrame]:
        """The rows in order, some at a time."""


def open_table(path: str | Path) -> Table:
    """A table in a file, by its suffix: .csv, .csv.gz, .tsv, .parquet or .npz.

    Arguments:
        path: of the file. A CSV has names in its first row; `;` and tabs also count as separators. An NPZ holds x
            (rows, columns) and, where known, y (rows,), or one array for each column.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "rooms.csv"
    ...     _ = path.write_text("city,price\\nBern,3\\nRome,4\\n")
    ...     open_table(path).columns
    ('city', 'price')
    """
    source = Path(path)
    suffix = next((suffix for suffix in SUFFIXES if source.name.lower().endswith(suffix)), None)
    if source.is_dir():
        raise ValueError(f"{source} is a folder; name a file that ends in {', '.join(SUFFIXES)}")
    if suffix is None:
        raise ValueError(f"{source} has an unknown suffix; name a file that ends in {', '.join(SUFFIXES)}")
    if not source.exists():
        raise FileNotFoundError(f"{source} does not exist; check the name and the folder")
    if source.stat().st_size == 0:
        raise ValueError(f"{source} is empty; a table has names in its first row and values below")
    if suffix == ".parquet":
        return ParquetTable.open(source)
    if suffix == ".npz":
        return ArrayTable.open(source)
    return TextTable.open(source, SUFFIXES[suffix])


@dataclass(frozen=True)
class TextTable(Table):
    """A CSV file: all columns are text, and empty cells are null.

    A blank line is not a row, except in a table of one column, where it is a missing value. A row with too few cells
    misses the last ones.
    """

    separator: str

    @classmethod
    def open(cls, path: Path, separator: str) -> "TextTable":
        names = _names(path)
        if not names.strip():
            raise ValueError(f"{path} is empty; a table has names in its first row and values below")
        bare = QUOTED.sub(b"", names).decode()
        # In many countries spreadsheets use semicolons.
        separator = separator if separator in bare else next((mark for mark in ";\t" if mark in bare), separator)
        columns = _columns(path, names, separator)
        _require_distinct(path, columns)
        return cls(path, columns, separator)

    @property
    def max_rows(self) -> int:
        """The number of lines."""
        return sum(chunk.count(b"\n") for chunk in chunks(self.path, BLOCK_BYTES))

    def batches(self) -> Iterator[pl.DataFrame]:
        """The rows in order, as text."""
        is_below_names = False
        for block in blocks(self.path, max(BLOCK_BYTES, BYTES_PER_COLUMN * len(self.columns))):
            rows = block if is_below_names else _from_names_on(block)
            if rows and not is_below_names:
                rows, is_below_names = rows[end_of_first_row(rows) :], True
            if len(self.columns) > 1:
                rows = without_blank_lines(rows)
            if rows:
                yield self._parsed(rows)

    def _parsed(self, rows: bytes) -> pl.DataFrame:
        # A row of empty cells before them says how many there are: polars counts those of the first row.
        empty = self.separator.encode() * (len(self.columns) - 1) + b"\n"
        try:
            frame = pl.read_csv(
                empty + rows,
                has_header=False,
                new_columns=list(self.columns),
                schema=dict.fromkeys(self.columns, pl.String),
                separator=self.separator,
                null_values=list(MISSING),
            )
        except pl.exceptions.PolarsError as error:
            raise ValueError(
                f"{self.path} cannot be read as a table of {len(self.columns)} columns separated by "
                f"{self.separator!r}: {str(error).splitlines()[0]}; every row must have as many cells as the first, "
                "and quotes go around whole cells"
            ) from error
        return frame[1:]


def _names(path: Path) -> bytes:
    """The row of names in a CSV file."""
    for block in blocks(path, BLOCK_BYTES):
        if start := _from_names_on(block):
            return start[: end_of_first_row(start)]
    return b""


def _from_names_on(block: bytes) -> bytes:
    """Without a byte order mark and blank lines, which may stand before the names."""
    return block.removeprefix(codecs.BOM_UTF8).lstrip(b"\r\n ")


def _columns(path: Path, names: bytes, separator: str) -> tuple[str, ...]:
    try:
        cells = pl.read_csv(names, has_header=False, infer_schema=False, separator=separator).row(0)
    except pl.exceptions.PolarsError as error:
        raise ValueError(
            f"{path} has no names in its first row: {str(error).splitlines()[0]}; are all quotes closed?"
        ) from error
    found = tuple((cell or "").strip() or f"column_{place}" for place, cell in enumerate(cells, start=1))
    if (longest := max(map(len, found))) > MAX_NAME:
        raise ValueError(
            f"{path} has a column name of {longest:,} characters; give it at most {MAX_NAME:,}, and close all quotes"
        )
    return found


@dataclass(frozen=True)
class ParquetTable(Table):
    """A Parquet file: columns have types."""

    @classmethod
    def open(cls, path: Path) -> "ParquetTable":
        with _damage_told(path):
            return cls(path, tuple(pl.scan_parquet(path).collect_schema().names()))

    @property
    def max_rows(self) -> int:
        """The number of rows."""
        with _damage_told(self.path):
            return int(pl.scan_parquet(self.path).select(pl.len()).collect().item())

    def batches(self) -> Iterator[pl.DataFrame]:
        """The rows in order."""
        with _damage_told(self.path):
            yield from pl.scan_parquet(self.path, low_memory=True).collect_batches(chunk_size=BATCH_ROWS, lazy=True)


@contextmanager
def _damage_told(path: Path) -> Iterator[None]:
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        said = next(iter(str(error).splitlines()), type(error).__name__)
        raise ValueError(f"{path} is not a Parquet file, or it is damaged: {said}; get it again") from error


@dataclass(frozen=True)
class ArrayTable(Table):
    """An NPZ file: matrices such as x of shape (rows, columns), and one array for each other column, such as y."""

    @classmethod
    def open(cls, path: Path) -> "ArrayTable":
        return cls(path, tuple(read_columns(path)))

    @property
    def max_rows(self) -> int:
        """The number of rows."""
        return len(next(iter(read_columns(self.path).values())))

    def batches(self) -> Iterator[pl.DataFrame]:
        """The rows in order."""
        arrays = read_columns(self.path)
        for first in range(0, len(next(iter(arrays.values()))), BATCH_ROWS):
            yield pl.DataFrame({name: array[first : first + BATCH_ROWS] for name, array in arrays.items()})


def _require_distinct(path: Path, columns: tuple[str, ...]) -> None:
    twice = [name for name, number in Counter(columns).items() if number > 1]
    if twice:
        raise ValueError(f"{path} has several columns named {', '.join(map(repr, twice))}; give each its own name")
