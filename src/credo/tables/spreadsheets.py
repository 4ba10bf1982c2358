"""A sheet of an Excel file."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from credo._machine import memory_limit
from credo._text import nearest, size_in_words
from credo.tables.table import HeldTable, named


class _Refused(Exception):
    """What is whole, and cannot be read here."""


class SheetTable(HeldTable):
    """A sheet of an Excel file: columns have types where all their cells are of one."""

    @classmethod
    def open(cls, path: Path, sheet: str, decimal: str) -> "SheetTable":
        with _damage_told(path):
            book = _book(path)
            names = list(book.sheet_names)
        chosen = _chosen(path, names, sheet)
        with _damage_told(path):
            top = book.load_sheet(chosen, header_row=None, n_rows=1, dtypes="string").to_polars()
        if not top.width or not len(top):
            raise ValueError(f"the sheet {chosen!r} of {path} is empty; a table has names in its first row")
        known: Any = named(path, top.row(0))
        with _damage_told(path):
            # All rows tell the type of a column.
            every = book.load_sheet(chosen, skip_whitespace_tail_rows=True, schema_sample_rows=None).to_polars()
        return cls(path, frame=pl.DataFrame(every.get_columns(), known["columns"]), decimal=decimal, **known)


def _book(path: Path) -> Any:
    """The workbook, unpacked only where there is memory for it."""
    try:
        import fastexcel
    except ModuleNotFoundError as error:
        raise _Refused(
            f"{path} is an Excel file, and fastexcel, which reads them, is not installed; pip install 'credo[excel]', "
            "or save the sheet as CSV"
        ) from error
    with zipfile.ZipFile(path) as archive:
        num_bytes, limit = sum(entry.file_size for entry in archive.infolist()), memory_limit()
    if num_bytes > limit.num_bytes:
        raise _Refused(f"{path} unpacks to {size_in_words(num_bytes)}, and there are {limit}")
    return fastexcel.read_excel(path)


def _chosen(path: Path, names: list[str], sheet: str) -> str:
    if not names:
        raise ValueError(f"{path} has no sheets; save it again")
    if sheet and sheet not in names:
        raise ValueError(f"{path} has no sheet {sheet!r}; it has {', '.join(names)}{nearest(sheet, names)}")
    if not sheet and len(names) != 1:
        raise ValueError(f"{path} has {len(names)} sheets ({', '.join(names)}); choose one with sheet={names[0]!r}")
    return sheet or names[0]


@contextmanager
def _damage_told(path: Path) -> Iterator[None]:
    try:
        yield
    except MemoryError:
        raise
    except _Refused as error:
        raise ValueError(str(error)) from error.__cause__
    except Exception as error:  # a damaged archive can raise anything
        said = next(iter(str(error).splitlines()), type(error).__name__)
        raise ValueError(f"{path} is not an Excel file (.xlsx), or it is damaged: {said}; save it again") from error
