"""The columns of a table as the numbers a network takes, whatever is to be predicted from them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import polars as pl

from credo._text import in_one_line, nearest
from credo.tables.column import ALL_ROWS, Column, RowNumbers, Unknown
from credo.tables.columns import Numeric, Task
from credo.tables.frames import TableFile, as_table
from credo.tables.images import Images
from credo.tables.table import Table


@dataclass(frozen=True)
class Inputs:
    """What was learned about the columns of a table.

    Arguments:
        columns: in the order of the table; a column that says which task a row is of comes last.
    """

    columns: tuple[Column, ...]

    @property
    def num_inputs(self) -> int:
        """How many numbers the network sees of a row: the task is none of them."""
        return len(self.names) - (self.tasks is not None)

    @property
    def tasks(self) -> tuple[str, ...] | None:
        """The names of the tasks, where a column says which one a row is of."""
        return self.columns[-1].levels if self.columns and isinstance(self.columns[-1], Task) else None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the numbers, one for each column of x."""
        return tuple(name for column in self.columns for name in column.names)

    @property
    def row(self) -> tuple[int, ...]:
        """The shape of a row of x: (height, width, channels) of a picture, else (len(names),)."""
        only = self.columns[0] if len(self.columns) == 1 else None
        return only.shape if isinstance(only, Images) else (len(self.names),)

    def outside(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How far each row lies outside the training rows, and the place of the input that is furthest.

        The largest distance of an input from its training range, in widths of that range: 0 inside. Missing cells and
        categories are inside; that no row was like this one in several inputs together, it does not see.

        Arguments:
            x: rows as `encode` gives them.
        """
        x = x.reshape(len(x), -1)
        low, high = np.array([pair for column in self.columns for pair in column.limits]).T
        width = np.where((high > low) & np.isfinite(high), high - low, np.inf)
        with np.errstate(invalid="ignore"):  # infinite less infinite, where there is no range
            beyond = np.maximum(np.maximum(low - x, x - high), 0.0) / width
        beyond = np.nan_to_num(beyond)
        return beyond.max(axis=1, initial=0.0), beyond.argmax(axis=1)

    def inputs(self, file: TableFile, *, unknown: Unknown = "error") -> Iterator[tuple[pl.DataFrame, np.ndarray]]:
        """A table in batches: the rows as they are, and their x. No target is needed."""
        table, read = as_table(file), 0
        own = self.as_told(table.decimal)
        self.require_columns(table)
        for batch in table.batches():
            x = own.encode(batch, unknown=unknown, rows=range(read + 1, read + 1 + len(batch)))
            yield batch, x.reshape(-1, *self.row)
            read += len(batch)
        if read == 0:
            raise ValueError(f"{table.path} has names and no rows; add at least one row")

    def as_told(self, decimal: str) -> Self:
        """The same for a table of which the decimal mark of numbers in texts is known."""
        if not decimal:
            return self
        columns = (
            replace(column, form=column.form.told(decimal)) if isinstance(column, Numeric) else column
            for column in self.columns
        )
        return replace(self, columns=tuple(columns))

    def require_columns(self, table: Table) -> None:
        """Refuse a table without a column that the network was fitted with; others may be absent."""
        there = set(table.columns)
        for column in self.columns:
            if column.is_used and column.name not in there:
                require_column(table, column.name, "the network was fitted with it")

    def encode(
        self,
        batch: pl.DataFrame,
        *,
        out: np.ndarray | None = None,
        unknown: Unknown = "error",
        rows: RowNumbers = ALL_ROWS,
    ) -> np.ndarray:
        """Some rows as numbers, (rows, len(names)), written into `out` if given."""
        if unknown not in ("error", "missing"):
            raise ValueError(
                f"unknown is {unknown!r}; it is 'error' or 'missing'{nearest(unknown, ['error', 'missing'])}"
            )
        x = np.empty((len(batch), len(self.names))) if out is None else out
        there, place = {cells.name: cells for cells in batch.get_columns()}, 0
        for column in self.columns:
            after = place + len(column.names)
            # An unused column may be absent.
            cells = there[column.name] if column.name in there else pl.Series([None] * len(batch))
            x[:, place:after] = column.encode(cells, unknown=unknown, rows=rows)
            place = after
        return x


def require_column(table: Table, name: str, why: str) -> None:
    if name not in table.columns:
        hint = nearest(name, table.columns)
        raise ValueError(f"{table.path} has no column {name!r} ({why}); it has {listed(table.columns)}{hint}")


def listed(names: Sequence[str]) -> str:
    return ", ".join(in_one_line(name, 60) for name in names[:12]) + (
        f", … ({len(names)} in all)" if len(names) > 12 else ""
    )
