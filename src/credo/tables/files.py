"""Tables in CSV, Excel, Parquet and NPZ files, read in batches of rows. The whole table is never held as text.

A CSV file is read in blocks of bytes that end where a row ends, and its cells are text: the type of a column is known
only once all of it has been seen. The other formats have types.
"""

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from credo._files import checksum, checksum_of
from credo.data.unpacked import FOLDER_PATTERNS, files_of, scanned, schema_of
from credo.tables.arrays import read_columns
from credo.tables.image_folder import ImageTable
from credo.tables.lines import blocks, chunks, end_of_first_row, without_blank_lines
from credo.tables.separators import separator_of
from credo.tables.source import Source
from credo.tables.spreadsheets import SheetTable
from credo.tables.table import BATCH_ROWS, Table, named

# A block of text and its batch take about ten times this: little compared with the packages themselves.
BLOCK_BYTES = 2**21
# A batch costs some work for each column, however few its rows: a block of a wide table is larger.
BYTES_PER_COLUMN = 2**10
# What people write into a cell without a value.
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "?", "-")
SUFFIXES = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".xlsx": "", ".parquet": "", ".npz": ""}


def open_table(file: str | Path | Source) -> Table:
    """A table in a file, by its suffix: .csv, .csv.gz, .tsv, .xlsx, .parquet or .npz; or a folder, of Parquet
    files that are one table, or of pictures.

    Arguments:
        file: its path, or a `Source`, which also says how it is written. A CSV has names in its first row; its
            separator, of `,`, `;`, `|` and tabs, is found. An NPZ holds x (rows, columns) and, where known, y (rows,),
            or one array for each column.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "rooms.csv"
    ...     _ = path.write_text("city,price\\nBern,3\\nRome,4\\n")
    ...     open_table(path).columns
    ('city', 'price')
    """
    how = Source.of(file)
    source = Path(how.path)
    suffix = next((suffix for suffix in SUFFIXES if source.name.lower().endswith(suffix)), None)
    if source.is_dir() and any(any(source.glob(pattern)) for pattern in FOLDER_PATTERNS):
        return ParquetTable.open(source, decimal=how.decimal)
    if source.is_dir():
        return ImageTable.open(source)
    if suffix is None:
        raise ValueError(f"{source} has an unknown suffix; name a file that ends in {', '.join(SUFFIXES)}")
    if not source.exists():
        raise FileNotFoundError(f"{source} does not exist; check the name and the folder")
    if source.stat().st_size == 0:
        raise ValueError(f"{source} is empty; a table has names in its first row and values below")
    if suffix == ".parquet":
        return ParquetTable.open(source, decimal=how.decimal)
    if suffix == ".npz":
        return ArrayTable.open(source, decimal=how.decimal)
    if suffix == ".xlsx":
        return SheetTable.open(source, how.sheet, decimal=how.decimal)
    return TextTable.open(how, SUFFIXES[suffix])


@dataclass(frozen=True)
class TextTable(Table):
    """A CSV file: all columns are text, and empty cells are null.

    A blank line is not a row, except in a table of one column, where it is a missing value. A row with too few cells
    misses the last ones.
    """

    separator: str
    encoding: str

    @classmethod
    def open(cls, source: Source, separator: str) -> "TextTable":
        path = Path(source.path)
        start = _start(path, source.codec)
        names = start[: end_of_first_row(start)]
        if not names.strip():
            raise ValueError(f"{path} is empty; a table has names in its first row and values below")
        separator = separator_of(path, start, separator, source.sep)
        known: Any = named(path, _cells(path, names, separator))
        return cls(path, separator=separator, encoding=source.codec, decimal=source.decimal, **known)

    @property
    def max_rows(self) -> int:
        """The number of lines."""
        return sum(chunk.count(b"\n") for chunk in chunks(self.path, BLOCK_BYTES, self.encoding))

    def batches(self) -> Iterator[pl.DataFrame]:
        """The rows in order, as text."""
        is_below_names = False
        size = max(BLOCK_BYTES, BYTES_PER_COLUMN * len(self.columns))
        for block in blocks(self.path, size, self.encoding):
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


def _start(path: Path, encoding: str) -> bytes:
    """A CSV file from the row of names on: two rows at least, if it has them."""
    start = b""
    for block in blocks(path, BLOCK_BYTES, encoding):
        start += block if start else _from_names_on(block)
        if end_of_first_row(start) < len(start):
            break
    return start


def _from_names_on(block: bytes) -> bytes:
    """Without a byte order mark and blank lines, which may stand before the names."""
    return block.removeprefix(codecs.BOM_UTF8).lstrip(b"\r\n ")


def _cells(path: Path, names: bytes, separator: str) -> tuple[str | None, ...]:
    try:
        return pl.read_csv(names, has_header=False, infer_schema=False, separator=separator).row(0)
    except pl.exceptions.PolarsError as error:
        raise ValueError(
            f"{path} has no names in its first row: {str(error).splitlines()[0]}; are all quotes closed?"
        ) from error


@dataclass(frozen=True)
class ParquetTable(Table):
    """A Parquet file, or a folder of Parquet or Arrow files with the same columns: columns have types."""

    @classmethod
    def open(cls, path: Path, decimal: str) -> "ParquetTable":
        with _damage_told(path):
            return cls(path, tuple(schema_of(files_of(path))), decimal=decimal)

    @property
    def checksum(self) -> str:
        """Of the file, or of all in the folder."""
        if not self.path.is_dir():
            return checksum(self.path)
        return checksum_of("".join(map(checksum, files_of(self.path))).encode())

    @property
    def max_rows(self) -> int:
        """The number of rows."""
        with _damage_told(self.path):
            return sum(int(scanned(one).select(pl.len()).collect().item()) for one in files_of(self.path))

    def batches(self) -> Iterator[pl.DataFrame]:
        """The rows in order."""
        with _damage_told(self.path):
            for one in files_of(self.path):
                yield from scanned(one).collect_batches(chunk_size=BATCH_ROWS, lazy=True)


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
    def open(cls, path: Path, decimal: str) -> "ArrayTable":
        return cls(path, tuple(read_columns(path)), decimal=decimal)

    @property
    def max_rows(self) -> int:
        """The number of rows."""
        return len(next(iter(read_columns(self.path).values())))

    def batches(self) -> Iterator[pl.DataFrame]:
        """The rows in order."""
        arrays = read_columns(self.path)
        for first in range(0, len(next(iter(arrays.values()))), BATCH_ROWS):
            yield pl.DataFrame({name: array[first : first + BATCH_ROWS] for name, array in arrays.items()})
