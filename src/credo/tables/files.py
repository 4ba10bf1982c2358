"""Tables in CSV, Parquet and NPZ files, read in batches of rows. The whole table is never held as text.

A CSV file is read in blocks of bytes that end where a row ends, and its cells are text: the type of a column is known
only once all of it has been seen. The other formats have types.
"""

import csv
import gzip
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np
import polars as pl

# A block of text and its batch take about ten times this: little compared with the packages themselves.
BLOCK_BYTES = 2**21
BATCH_ROWS = 2**15
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
    if suffix is None:
        raise ValueError(f"{source} has an unknown suffix; name a file that ends in {', '.join(SUFFIXES)}")
    if source.is_dir():
        raise ValueError(f"{source} is a folder; name a file that ends in {', '.join(SUFFIXES)}")
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
    """A CSV file: all columns are text, and empty cells are null."""

    separator: str

    @classmethod
    def open(cls, path: Path, separator: str) -> "TextTable":
        with _opened(path) as file:
            block = next(_blocks(file, path))
        first = _text(path, block[: _end_of_row(block)]).lstrip("\ufeff")
        # In many countries spreadsheets use semicolons.
        separator = separator if separator in first else next((mark for mark in ";\t" if mark in first), separator)
        names = [name.strip() for name in next(csv.reader([first], delimiter=separator), [])]
        columns = tuple(name or f"column_{place}" for place, name in enumerate(names, start=1))
        _require_distinct(path, columns)
        return cls(path, columns, separator)

    @property
    def max_rows(self) -> int:
        """The number of lines."""
        with _opened(self.path) as file:
            return sum(block.count(b"\n") for block in iter(partial(file.read, BLOCK_BYTES), b""))

    def batches(self) -> Iterator[pl.DataFrame]:
        """The rows in order, as text."""
        with _opened(self.path) as file:
            for number, block in enumerate(_blocks(file, self.path)):
                rows = block[_end_of_row(block) :] if number == 0 else block
                if rows.strip():
                    yield self._parsed(rows)

    def _parsed(self, rows: bytes) -> pl.DataFrame:
        _text(self.path, rows)
        try:
            frame = pl.read_csv(
                rows,
                has_header=False,
                new_columns=list(self.columns),
                schema=dict.fromkeys(self.columns, pl.String),
                separator=self.separator,
                null_values=list(MISSING),
            )
        except pl.exceptions.PolarsError as error:
            raise ValueError(
                f"{self.path} cannot be read as a table of {len(self.columns)} columns separated by "
                f"{self.separator!r}: {str(error).splitlines()[0]}; every row must have as many cells as the first"
            ) from error
        # An empty line is not a row, except in a table of one column, where it is a missing value.
        return frame if len(self.columns) == 1 else frame.filter(~pl.all_horizontal(pl.all().is_null()))


@dataclass(frozen=True)
class ParquetTable(Table):
    """A Parquet file: columns have types."""

    @classmethod
    def open(cls, path: Path) -> "ParquetTable":
        try:
            return cls(path, tuple(pl.scan_parquet(path).collect_schema().names()))
        except pl.exceptions.PolarsError as error:
            raise ValueError(f"{path} is not a Parquet file, or it is damaged; get it again") from error

    @property
    def max_rows(self) -> int:
        """The number of rows."""
        return int(pl.scan_parquet(self.path).select(pl.len()).collect().item())

    def batches(self) -> Iterator[pl.DataFrame]:
        """The rows in order."""
        try:
            yield from pl.scan_parquet(self.path, low_memory=True).collect_batches(chunk_size=BATCH_ROWS, lazy=True)
        except pl.exceptions.PolarsError as error:
            raise ValueError(f"{self.path} is damaged: {str(error).splitlines()[0]}; get it again") from error


@dataclass(frozen=True)
class ArrayTable(Table):
    """An NPZ file: matrices such as x of shape (rows, columns), and one array for each other column, such as y."""

    @classmethod
    def open(cls, path: Path) -> "ArrayTable":
        arrays = _arrays(path)
        sizes = {name: array.shape for name, array in arrays.items()}
        if not sizes or any(len(shape) != 1 for shape in sizes.values()) or len(set(sizes.values())) > 1:
            raise ValueError(
                f"{path} holds arrays of shapes {sizes}; store x of shape (rows, columns) and y of shape (rows,), "
                "or one array of shape (rows,) for each column"
            )
        return cls(path, tuple(arrays))

    @property
    def max_rows(self) -> int:
        """The number of rows."""
        return len(next(iter(_arrays(self.path).values())))

    def batches(self) -> Iterator[pl.DataFrame]:
        """The rows in order."""
        arrays = _arrays(self.path)
        for first in range(0, len(next(iter(arrays.values()))), BATCH_ROWS):
            yield pl.DataFrame({name: array[first : first + BATCH_ROWS] for name, array in arrays.items()})


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """The columns of an NPZ file by name; those of a matrix x are x1, x2, … (an embedding, say)."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except Exception as error:  # a damaged archive can raise anything
        raise ValueError(f"{path} is not an NPZ file of plain arrays, or it is damaged: {error}") from error
    columns: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        if array.ndim == 2:
            columns |= {f"{name}{place}": column for place, column in enumerate(array.T, start=1)}
        else:
            columns[name] = array
    return columns


def _opened(path: Path) -> IO[bytes]:
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rb")  # type: ignore[return-value]
    return path.open("rb")


def _blocks(file: IO[bytes], path: Path) -> Iterator[bytes]:
    """The file in blocks that end where a row does: at a newline with an even number of quotes before it."""
    rest = b""
    for chunk in iter(partial(file.read, BLOCK_BYTES), b""):
        block = rest + chunk
        cut = block.rfind(b"\n") + 1
        while cut and block.count(b'"', 0, cut) % 2:
            cut = block.rfind(b"\n", 0, cut - 1) + 1
        rest = block[cut:]
        if len(rest) > 20 * BLOCK_BYTES:
            raise ValueError(
                f"{path} has a row of more than {len(rest) // 10**6} MB; is it a table, and are all quotes closed?"
            )
        if cut:
            yield block[:cut]
    if rest:
        yield rest


def _end_of_row(block: bytes) -> int:
    """Where the first row ends."""
    end = block.find(b"\n") + 1
    while end and block.count(b'"', 0, end) % 2:
        end = block.find(b"\n", end) + 1
    return end or len(block)


def _text(path: Path, block: bytes) -> str:
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not text in UTF-8 ({error.reason} at byte {error.start}); is it a table? Save it as CSV, UTF-8"
        ) from error
    if "\0" in text:
        raise ValueError(f"{path} is a binary file, not CSV, despite its name; save the table as CSV, UTF-8")
    return text


def _require_distinct(path: Path, columns: tuple[str, ...]) -> None:
    twice = [name for name in dict.fromkeys(columns) if columns.count(name) > 1]
    if twice:
        raise ValueError(f"{path} has several columns named {', '.join(map(repr, twice))}; give each its own name")
