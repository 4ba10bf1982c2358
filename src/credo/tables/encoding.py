"""From a table to the numbers a network takes, in the same way at fit and at prediction.

The file is read twice: once to learn what its columns are, once to fill an array of the right size.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np

from credo._files import LoadError, parsed, put_bytes, read_bytes, require_unaltered, signed
from credo._schema import Count, checked
from credo._text import in_one_line
from credo.data import Data, has_target
from credo.tables import effects
from credo.tables.column import Unknown
from credo.tables.columns import Numeric
from credo.tables.cross_fitting import averaged, outputs_of
from credo.tables.frames import TableFile, as_table
from credo.tables.giveaways import point_out
from credo.tables.image_folder import CLASS, ImageTable
from credo.tables.inputs import Inputs, listed, require_column
from credo.tables.kinds import column_from_dict
from credo.tables.learning import MAX_TASKS
from credo.tables.looks import columns_of, summaries
from credo.tables.many_levels import MAX_COUNTED
from credo.tables.roles import Role, roles_of
from credo.tables.table import Table
from credo.tables.target import Target

FORMAT, FORMAT_VERSION = "credo-columns", 2
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
class Encoding(Inputs):
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

    target: Target
    num_rows: int
    num_without_target: int = 0

    @classmethod
    def learn(
        cls,
        file: TableFile,
        target: str | None,
        *,
        task: str | None = None,
        drop: Sequence[str] = (),
        task_column: str = "",
        censored: str = "",
        roles: Mapping[str, str] | None = None,
    ) -> "Encoding":
        """Read a table once and learn what its columns are.

        Arguments:
            file: a path, a `Source` that says how it is written, a data frame, or a table from `open_table`.
            target: the column to predict, or several of numbers, "height,weight"; not needed for an NPZ with x and y.
            task: "regression", "binary" or "multi-class"; by default found from the target.
            drop: columns not to use.
            task_column: the column whose levels are tasks, if there is one.
            censored: the column that says yes where the target is only a lower bound, if there is one.
            roles: columns that are no inputs, by what they say of the rows: {"group": "patient"} for rows that no split
                separates, {"time": "date"} for splits that hold out the latest rows, {"counts": "n"} for how often each
                row was seen, {"precisions": "w"} for the variance σ²/w of its noise.
        """
        table, roles = as_table(file), dict(roles or {})
        targets = _target_names(table, target)
        # The columns that are no inputs, and what they are.
        taken = dict.fromkeys(targets, "target")
        others = {"column of the tasks": task_column, "column of what is censored": censored, **roles}
        for what, column in others.items():
            if column:
                require_column(table, column, f"the {what}")
                if column in taken:
                    raise ValueError(f"{column!r} is the {taken[column]}, and cannot be the {what} too; name another")
                taken[column] = what
        for column in drop:
            require_column(table, column, "to drop")
            if column in taken:
                raise ValueError(f"{column!r} is the {taken[column]}, and cannot be left out; take it out of drop=…")
        limits = {task_column: MAX_TASKS} | dict.fromkeys(roles.values(), MAX_COUNTED)
        seen = summaries(table, but=drop, limits=limits)
        num_rows = seen[targets[0]].num_rows
        if num_rows == 0:
            raise ValueError(f"{table.path} has names and no rows; add at least two rows")
        for name in targets:
            if seen[name].num_known < 2:
                raise ValueError(
                    f"{table.path} has {seen[name].num_known} rows with a target {name!r}, but a fit needs at least 2"
                )
        columns = columns_of(table, seen, [column for column in table.columns if column not in taken], drop)
        if not any(column.is_used for column in columns):
            said = in_one_line("; ".join(f"{column.name}: {column.says}" for column in columns), 1_000)
            raise ValueError(
                f"{table.path} has no column to predict {', '.join(map(repr, targets))} from "
                f"({said or 'it has no other column'})"
            )
        columns = (*columns, *roles_of(seen, roles))
        if task_column:
            columns = (*columns, seen[task_column].task())
        whole = Target.learn_all([seen[name] for name in targets], task, censored)
        if whole.is_classes and "precisions" in roles:
            raise ValueError(
                f"precisions: {roles['precisions']!r} is about noise of numbers, and {whole.name!r} is {whole.task} "
                f"({whole.why}); leave it out, or pass it as counts if rows stand for several"
            )
        num_known = seen[targets[0]].num_known
        if whole.also:
            num_known = sum(int(whole.has_any(batch).sum()) for batch in table.batches())
        found = cls(columns, whole, num_known, num_rows - num_known)
        if not effects.are_in(columns):
            return found
        told = found.as_told(table.decimal).target
        y = np.concatenate([told.read(batch) for batch in table.batches()])
        outputs = outputs_of(whole.columns, whole.labels)
        learned = effects.learned(columns, table, averaged(y, len(whole.labels)), outputs)
        return replace(found, columns=learned)

    @property
    def says(self) -> tuple[tuple[str, str], ...]:
        """What was done with each column, in words: (name, what)."""
        gaps = f"; {self.num_without_target:,} rows without it are unlabelled" if self.num_without_target else ""
        return (
            *((column.name, column.says) for column in self.columns),
            (self.target.title, f"target: {self.target.says}{gaps}"),
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
        return (*found, (self.target.title, words[self.target.title]))

    def training_data(self, file: TableFile) -> Data:
        """The table that this was learned from as `credo.Data`, to fit to.

        As `data`, but where a column holds means of the target, those of other rows than its own: see `ByTarget`. A
        column that gives the target away is pointed out.
        """
        table = as_table(file)
        data = self.data(table)
        if effects.are_in(self.columns):
            y = averaged(data.y, len(self.target.labels))
            data = replace(data, x=effects.of_other_rows(self.columns, table, y, data.x, data.groups))
        point_out(self.columns, data)
        return data

    def data(self, file: TableFile, *, unknown: Unknown = "error") -> Data:
        """A table with its targets as `credo.Data`; rows without a target are unlabelled."""
        table = as_table(file)
        for name in self.target.columns:
            require_column(table, name, "the target, which an evaluation needs")
        if self.target.censored:
            require_column(table, self.target.censored, "what says which targets are censored")
        own = self.as_told(table.decimal)
        self.require_columns(table)
        # Memory that is allocated but never written to costs nothing.
        shape = (table.max_rows, len(self.names))
        x = np.empty(shape, np.float64 if shape[0] * shape[1] <= MAX_DOUBLES else np.float32)
        of_row = (len(self.target.columns),) if self.target.also else ()
        y = np.empty((shape[0], *of_row), np.int32 if self.target.is_classes else np.float64)
        roles = [one for one in self.columns if isinstance(one, Role) and one.name in table.columns]
        of_rows: dict[str, list[Any]] = {one.argument: [] for one in roles}
        if self.target.censored:
            of_rows["censored"] = []
        read = num_known = 0
        for batch in table.batches():
            place = slice(read, read + len(batch))
            rows = range(read + 1, place.stop + 1)
            own.encode(batch, out=x[place], unknown=unknown, rows=rows)
            y[place] = own.target.read(batch, rows=rows)
            if self.target.censored:
                of_rows["censored"].append(self.target.read_censored(batch, rows=rows))
            for one in roles:
                of_rows[one.argument].append(one.values(batch[one.name], rows))
            read, num_known = place.stop, num_known + int(has_target(y[place]).sum())
        if num_known == 0:
            raise ValueError(f"{table.path} has no row with a target {self.target.title!r}")
        classes, is_table = self.target.labels or None, len(self.row) == 1
        more: dict[str, Any] = {argument: np.concatenate(values) for argument, values in of_rows.items()}
        return Data(
            x[:read].reshape(-1, *self.row),
            y[:read],
            standardise=True,
            names=self.names if is_table else None,
            target=self.target.title,
            classes=classes,
            tasks=self.tasks,
            columns=[column.name for column in self.columns for _ in column.names] if is_table else None,
            **more,
        )

    def new_classes(self, file: TableFile) -> tuple[str, ...]:
        """Classes of a table that are not among those of the target, in the order in which they come."""
        table = as_table(file)
        require_column(table, self.target.name, "the target")
        if not self.target.is_classes:
            return ()
        target = self.as_told(table.decimal).target
        found = (label for batch in table.batches() for label in target.new_classes(batch[target.name]))
        return tuple(dict.fromkeys(found))

    def as_told(self, decimal: str) -> Self:
        """The same for a table of which the decimal mark of numbers in texts is known."""
        return replace(super().as_told(decimal), target=self.target.as_told(decimal)) if decimal else self

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
        if stored.get("format_version") not in range(1, FORMAT_VERSION + 1):
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


def read(
    file: TableFile,
    *,
    target: str | None = None,
    task: str | None = None,
    drop: Sequence[str] = (),
    roles: Mapping[str, str] | None = None,
) -> Data:
    """A table as standardised `credo.Data` to fit to: categories, texts, dates and missing cells become numbers.

    Arguments:
        file: a .csv, .xlsx, .parquet or .npz file, a `Source` that says how it is written, or a data frame.
        target: the column to predict.
        task: "regression", "binary" or "multi-class"; by default found from the target.
        drop: columns not to use.
        roles: columns that say what rows are to each other, as for `Encoding.learn`: {"group": "patient"}.

    To read other tables in the same way, keep the `Encoding`: `encoding = Encoding.learn(file, target)`, then
    `encoding.training_data(file)` to fit to, and `encoding.data(other)`.

    >>> import polars as pl
    >>> read(pl.DataFrame({"size": [3, 4, 5], "price": [9.5, 8.0, 11.0]}), target="price")
    Data(3 rows; x: size; y: price float; standardised)
    """
    table = as_table(file)
    return Encoding.learn(table, target, task=task, drop=drop, roles=roles).training_data(table)


def _target_names(table: Table, target: str | None) -> tuple[str, ...]:
    """The columns to predict: one by its name, or several with commas between them."""
    if target is None:
        if table.path.suffix == ".npz" and "y" in table.columns:
            return ("y",)
        if isinstance(table, ImageTable):
            return (CLASS,)
        raise ValueError(f"pass target=… to name the column to predict; {table.path} has {listed(table.columns)}")
    names = (target,) if target in table.columns else tuple(name.strip() for name in target.split(","))
    for name in names:
        require_column(table, name, "the target")
    if len(set(names)) < len(names):
        raise ValueError(f"target is {target!r}, which names a column twice; name each once")
    return names
