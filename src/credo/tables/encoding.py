"""From a table to the numbers a network takes, in the same way at fit and at prediction.

The file is read twice: once to learn what its columns are, once to fill an array of the right size.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from credo._files import LoadError, parsed, put_bytes, read_bytes, require_unaltered, signed
from credo._schema import Count, checked
from credo._text import in_one_line, nearest
from credo.data import Data, is_observed
from credo.tables.columns import ALL_ROWS, Column, Dropped, Numeric, RowNumbers, Task, Unknown, column_from_dict
from credo.tables.files import Table, open_table
from credo.tables.learning import MAX_LEVELS, MAX_TASKS, Summary
from credo.tables.target import Target

FORMAT, FORMAT_VERSION = "credo-columns", 1
# Larger tables are held in single precision: this many numbers take 80 MB in double precision.
MAX_DOUBLES = 10_000_000
# So many columns of numbers side by side are one thing, and nobody reads a line about each.
MANY_ALIKE = 20


class StoredEncoding(msgspec.Struct, forbid_unknown_fields=True):
    """An encoding as JSON has it."""

    columns: list[dict[str, Any]]
    target: dict[str, Any]
    num_rows: Count
    num_without_target: Count


@dataclass(frozen=True)
class Encoding:
    """What was learned about a table: its columns, its target, and how they become numbers.

    Arguments:
        columns: in the order of the table, without the target; a column that says which task a row is of comes last.
        target: what to predict.
        num_rows: rows with a target.
        num_without_target: unlabelled rows: their inputs tell what the columns are, the likelihood leaves them out.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "rooms.csv"
    ...     _ = path.write_text("city,size,price\\nBern,3,9.5\\nRome,,8\\nRome,5,11\\n")
    ...     Encoding.learn(path, "price").data(path)
    Data(3 rows; x: city=Rome, size, size is missing; y: price float; standardised)
    """

    columns: tuple[Column, ...]
    target: Target
    num_rows: int
    num_without_target: int = 0

    @classmethod
    def learn(
        cls,
        file: str | Path | Table,
        target: str | None,
        *,
        task: str | None = None,
        drop: Sequence[str] = (),
        task_column: str = "",
    ) -> "Encoding":
        """Read a table once and learn what its columns are.

        Arguments:
            file: a path, or a table from `open_table`.
            target: the column to predict; not needed for an NPZ with x and y.
            task: "regression", "binary" or "multi-class"; by default found from the target.
            drop: columns not to use.
            task_column: the column whose levels are tasks, if there is one.
        """
        table = as_table(file)
        name = _target_name(table, target)
        if task_column:
            _require_column(table, task_column, "the tasks")
        for column in drop:
            _require_column(table, column, "to drop")
            if column in (name, task_column):
                what = "the target" if column == name else "the column of the tasks"
                raise ValueError(f"{column!r} is {what}, and cannot be left out; take it out of drop=…")
        seen = summaries(table, but=drop, limits={task_column: MAX_TASKS})
        num_rows = seen[name].num_rows
        if num_rows == 0:
            raise ValueError(f"{table.path} has names and no rows; add at least two rows")
        if seen[name].num_known < 2:
            raise ValueError(
                f"{table.path} has {seen[name].num_known} rows with a target {name!r}, but a fit needs at least 2"
            )
        columns = tuple(
            Dropped(column, reason="as requested") if column in drop else seen[column].column()
            for column in table.columns
            if column not in (name, task_column)
        )
        if not any(column.is_used for column in columns):
            said = in_one_line("; ".join(f"{column.name}: {column.says}" for column in columns), 1_000)
            raise ValueError(
                f"{table.path} has no column to predict {name!r} from ({said or 'it has no other column'})"
            )
        if task_column:
            columns = (*columns, seen[task_column].task())
        return cls(columns, Target.learn(seen[name], task), seen[name].num_known, num_rows - seen[name].num_known)

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
    def says(self) -> tuple[tuple[str, str], ...]:
        """What was done with each column, in words: (name, what)."""
        gaps = f"; {self.num_without_target:,} rows without it are unlabelled" if self.num_without_target else ""
        return (
            *((column.name, column.says) for column in self.columns),
            (self.target.name, f"target: {self.target.says}{gaps}"),
        )

    @property
    def says_in_short(self) -> tuple[tuple[str, str], ...]:
        """The same, with one line for many numbers side by side, such as those of an embedding."""
        words, found = dict(self.says), list[tuple[str, str]]()
        for is_plain, group in groupby(self.columns, lambda one: isinstance(one, Numeric) and not one.num_missing):
            columns: list[Any] = list(group)
            if is_plain and len(columns) >= MANY_ALIKE:
                low, high = min(one.low for one in columns), max(one.high for one in columns)
                name = f"{columns[0].name} … {columns[-1].name}"
                found.append((name, f"{len(columns):,} columns of numbers, {low:g} to {high:g}"))
            else:
                found += [(one.name, words[one.name]) for one in columns]
        return (*found, (self.target.name, words[self.target.name]))

    def data(self, file: str | Path | Table, *, unknown: Unknown = "error") -> Data:
        """A table with its targets as `credo.Data`; rows without a target are unlabelled."""
        table = as_table(file)
        _require_column(table, self.target.name, "the target, which an evaluation needs")
        self._require_columns(table)
        # Memory that is allocated but never written to costs nothing.
        shape = (table.max_rows, len(self.names))
        x = np.empty(shape, np.float64 if shape[0] * shape[1] <= MAX_DOUBLES else np.float32)
        y = np.empty(shape[0], np.int32 if self.target.is_classes else np.float64)
        read = num_known = 0
        for batch in table.batches():
            place = slice(read, read + len(batch))
            rows = range(read + 1, place.stop + 1)
            self.encode(batch, out=x[place], unknown=unknown, rows=rows)
            y[place] = self.target.encode(batch[self.target.name], rows=rows)
            read, num_known = place.stop, num_known + int(is_observed(y[place]).sum())
        if num_known == 0:
            raise ValueError(f"{table.path} has no row with a target {self.target.name!r}")
        classes = self.target.labels or None
        return Data(
            x[:read],
            y[:read],
            standardise=True,
            names=self.names,
            target=self.target.name,
            classes=classes,
            tasks=self.tasks,
        )

    def new_classes(self, file: str | Path | Table) -> tuple[str, ...]:
        """Classes of a table that are not among those of the target, in the order in which they come."""
        table = as_table(file)
        _require_column(table, self.target.name, "the target")
        if not self.target.is_classes:
            return ()
        found = (label for batch in table.batches() for label in self.target.new_classes(batch[self.target.name]))
        return tuple(dict.fromkeys(found))

    def inputs(
        self, file: str | Path | Table, *, unknown: Unknown = "error"
    ) -> Iterator[tuple[pl.DataFrame, np.ndarray]]:
        """A table in batches: the rows as they are, and their x. No target is needed."""
        table, read = as_table(file), 0
        self._require_columns(table)
        for batch in table.batches():
            yield batch, self.encode(batch, unknown=unknown, rows=range(read + 1, read + 1 + len(batch)))
            read += len(batch)
        if read == 0:
            raise ValueError(f"{table.path} has names and no rows; add at least one row")

    def _require_columns(self, table: Table) -> None:
        """Refuse a table without a column that the network was fitted with; others may be absent."""
        there = set(table.columns)
        for column in self.columns:
            if column.is_used and column.name not in there:
                _require_column(table, column.name, "the network was fitted with it")

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

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "columns": [column.to_dict() for column in self.columns],
            "target": self.target.to_dict(),
            "num_rows": self.num_rows,
            "num_without_target": self.num_without_target,
        }

    @classmethod
    def from_dict(cls, stored: dict[str, Any], source: Any = "columns") -> "Encoding":
        """The inverse of `to_dict`; `source` is where it was read."""
        own = checked(source, stored, StoredEncoding)
        columns = tuple(column_from_dict(column, source) for column in own.columns)
        return cls(columns, checked(source, own.target, Target), own.num_rows, own.num_without_target)

    def to_json(self) -> bytes:
        """As JSON, with a checksum."""
        return signed({"format": FORMAT, "format_version": FORMAT_VERSION} | self.to_dict())

    @classmethod
    def from_json(cls, content: bytes, source: Path) -> "Encoding":
        """The inverse of `to_json`, of a file."""
        stored = parsed(source, content)
        if stored.get("format") != FORMAT:
            raise LoadError(f"{source} was not written by credo, or it is damaged; get it again, or fit again")
        if stored.get("format_version") != FORMAT_VERSION:
            raise LoadError(f"{source} has format version {stored.get('format_version')}; install a newer credo")
        own = require_unaltered(source, stored)
        return cls.from_dict({name: own[name] for name in own if name not in ("format", "format_version")}, source)

    def save(self, path: str | Path) -> None:
        """Write it as JSON, with a checksum."""
        put_bytes(Path(path), self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> "Encoding":
        """Read what `save` wrote."""
        return cls.from_json(read_bytes(Path(path)), Path(path))


def read(path: str | Path, *, target: str | None = None, task: str | None = None, drop: Sequence[str] = ()) -> Data:
    """A table from a file as standardised `credo.Data`: categories, dates and missing cells become numbers.

    Arguments:
        path: a .csv, .parquet or .npz file.
        target: the column to predict.
        task: "regression", "binary" or "multi-class"; by default found from the target.
        drop: columns not to use.

    To read other files in the same way, keep the `Encoding`: `Encoding.learn(path, target).data(other)`.
    """
    return Encoding.learn(path, target, task=task, drop=drop).data(path)


def summaries(table: Table, *, but: Sequence[str] = (), limits: Mapping[str, int] | None = None) -> dict[str, Summary]:
    """What is seen of each column when a table is read once.

    Arguments:
        but: columns not to look at.
        limits: how many levels a column may have, where that is not `MAX_LEVELS`.
    """
    seen = {column: Summary(column, max_levels=(limits or {}).get(column, MAX_LEVELS)) for column in table.columns}
    for batch in table.batches():
        for cells in batch.get_columns():
            if cells.name not in but:
                seen[cells.name].see(cells)
    return seen


def as_table(file: str | Path | Table) -> Table:
    """The table in a file, or the table itself."""
    return open_table(file) if isinstance(file, str | Path) else file


def _target_name(table: Table, target: str | None) -> str:
    if target is None:
        if table.path.suffix == ".npz" and "y" in table.columns:
            return "y"
        raise ValueError(f"pass target=… to name the column to predict; {table.path} has {_listed(table.columns)}")
    _require_column(table, target, "the target")
    return target


def _require_column(table: Table, name: str, why: str) -> None:
    if name not in table.columns:
        hint = nearest(name, table.columns)
        raise ValueError(f"{table.path} has no column {name!r} ({why}); it has {_listed(table.columns)}{hint}")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(in_one_line(name, 60) for name in names[:12]) + (
        f", … ({len(names)} in all)" if len(names) > 12 else ""
    )
