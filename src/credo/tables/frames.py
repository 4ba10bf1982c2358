"""Data frames of pandas and polars as tables: the same columns as from a file."""

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from credo.data.missing import is_nothing
from credo.tables.files import open_table
from credo.tables.image_folder import ImageTable
from credo.tables.source import Source
from credo.tables.table import HeldTable, Table

IN_MEMORY = Path("the data frame")
# What holds a table: a path, a path that says how the file is written, the table itself, or a data frame.
TableFile: TypeAlias = str | Path | Source | Table | Any


class FrameTable(HeldTable):
    """A data frame in memory.

    >>> import polars as pl
    >>> import credo
    >>> credo.tables.FrameTable.of(pl.DataFrame({"size": [3, 4], "price": [9.5, 8.0]})).columns
    ('size', 'price')
    """

    @classmethod
    def of(cls, frame: Any) -> "FrameTable":
        """Of a frame of polars, or of pandas without its index."""
        if isinstance(frame, pl.LazyFrame):
            frame = frame.collect()
        if not isinstance(frame, pl.DataFrame):
            names = [str(name) for name in frame.columns]
            if twice := sorted({name for name in names if names.count(name) > 1}):
                raise ValueError(f"{IN_MEMORY} has several columns named {twice[0]!r}; give each its own name")
            frame = pl.DataFrame([series_of(name, frame.iloc[:, place]) for place, name in enumerate(names)])
        if not frame.columns:
            raise ValueError(f"{IN_MEMORY} has no columns; pass one with at least two")
        return cls(IN_MEMORY, tuple(frame.columns), frame)


def is_frame(values: Any) -> bool:
    """Whether these are columns with names: a data frame of pandas or polars.

    >>> is_frame(pl.DataFrame({"a": [1]})), is_frame(np.ones((2, 2)))
    (True, False)
    """
    return isinstance(values, pl.LazyFrame) or (hasattr(values, "columns") and hasattr(values, "shape"))


def as_table(source: TableFile) -> Table:
    """The table in a file, the pictures in a folder, the columns of a data frame, or the table itself."""
    if isinstance(source, Table):
        return source
    if isinstance(source, str | Path) and Path(source).is_dir():
        return ImageTable.open(Path(source))
    return FrameTable.of(source) if is_frame(source) else open_table(source)


def series_of(name: str, cells: Any) -> pl.Series:
    """A column of pandas, or an array, as polars has it: missing cells are null, whatever stands for them.

    >>> series_of("a", np.array(["x", None, 1.5], object)).to_list()
    ['x', None, '1.5']
    """
    values = cells if isinstance(cells, np.ndarray) else _of_pandas(cells)
    if values.dtype.kind == "M":
        return pl.Series(name, values.astype("datetime64[us]"))
    if values.dtype.kind == "m":
        return pl.Series(name, values.astype("timedelta64[us]"))
    if values.dtype.kind != "O":
        return pl.Series(name, values)
    known = [None if is_nothing(value) else _plain(value) for value in values]
    kinds = {type(value) for value in known if value is not None}
    if len(kinds) > 1 and not kinds <= {int, float}:
        return pl.Series(name, [None if value is None else str(value) for value in known], dtype=pl.String)
    found = pl.Series(name, known, strict=False)
    return found.cast(pl.String) if found.dtype == pl.Object else found


def _of_pandas(cells: Any) -> np.ndarray:
    """A column as an array; times are local, as they are of a file, and whole numbers with gaps stay whole."""
    if getattr(cells.dtype, "tz", None) is not None:
        cells = cells.dt.tz_localize(None)
    return np.asarray(cells if isinstance(cells.dtype, np.dtype) else cells.astype(object))


def _plain(value: Any) -> Any:
    """A value of Python's own, where NumPy has one of its own kind."""
    return value.item() if isinstance(value, np.generic) else value
