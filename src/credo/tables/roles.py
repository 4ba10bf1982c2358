"""Columns that say what rows are to each other. The network does not see them."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from credo._checks import require_one_of
from credo.tables.cells import clean, dates, numbers, words
from credo.tables.column import ALL_ROWS, Column, RowNumbers, Unknown
from credo.tables.learning import Kept, Summary, not_a_number


@dataclass(frozen=True)
class Role(Column):
    """A column that is no input."""

    argument: ClassVar[str]

    @property
    def names(self) -> tuple[str, ...]:
        return ()

    def encode(self, cells: pl.Series, *, unknown: Unknown = "error", rows: RowNumbers = ALL_ROWS) -> np.ndarray:
        return np.empty((len(cells), 0))

    @classmethod
    @abstractmethod
    def learn(cls, seen: Summary) -> "Role":
        """The column, of what was seen of it."""

    @abstractmethod
    def read(self, cells: pl.Series) -> pl.Series:
        """Clean cells as values of the role; null where they are none."""

    def values(self, cells: pl.Series, rows: RowNumbers = ALL_ROWS) -> np.ndarray:
        """What the rows have for `credo.Data`, under the name of `argument`."""
        cleaned = clean(cells)
        found = self.read(cleaned)
        if found.null_count():
            place = int(found.is_null().arg_true()[0])
            held = "nothing" if cleaned[place] is None else repr(str(cleaned[place]))
            raise ValueError(
                f"column {self.name!r}, the {self.kind}, holds {held} in row {rows[place]}; correct the file"
            )
        return found.to_numpy()


@dataclass(frozen=True)
class Group(Role):
    """Rows that belong together, such as those of one patient: no split of the rows cuts a group.

    >>> import polars as pl
    >>> import credo
    >>> frame = pl.DataFrame({"size": [3, 4, 5], "price": [9.5, 8.0, 7.0], "street": ["a", "b", "a"]})
    >>> credo.tables.read(frame, target="price", roles={"group": "street"}).groups.tolist()
    ['a', 'b', 'a']
    """

    kind: ClassVar[str] = "group"
    argument: ClassVar[str] = "groups"
    read = staticmethod(words)
    num_groups: int = 0
    least: int = 0
    most: int = 0

    @classmethod
    def learn(cls, seen: Summary) -> "Group":
        sizes = list(seen.levels.values())
        if len(sizes) < 2 or max(sizes) == 1:
            what = "the same everywhere" if len(sizes) < 2 else "another one in every row: each group has one row"
            raise ValueError(
                f"column {seen.name!r} is {what}, so it does not say which rows belong together; name one that several "
                "rows share, such as a patient"
            )
        return cls(seen.name, seen.num_missing, num_groups=len(sizes), least=min(sizes), most=max(sizes))

    @property
    def says(self) -> str:
        return (
            f"group: {self.num_groups:,} of them, of {self.least:,} to {self.most:,} rows; rows that are held out are "
            "whole groups, and the network does not see which"
        )


@dataclass(frozen=True)
class Time(Role):
    """When a row was recorded: the rows that are held out are the latest.

    >>> import polars as pl
    >>> import credo
    >>> frame = pl.DataFrame({"size": [3, 4, 5], "price": [9.5, 8.0, 7.0], "sold": [2019, 2021, 2020]})
    >>> credo.tables.read(frame, target="price", roles={"time": "sold"}).times.tolist()
    [2019.0, 2021.0, 2020.0]
    """

    kind: ClassVar[str] = "time"
    argument: ClassVar[str] = "times"
    are_dates: bool = False
    first: str = ""
    last: str = ""

    @classmethod
    def learn(cls, seen: Summary) -> "Time":
        if seen.kind not in ("numbers", "dates"):
            raise ValueError(
                f"column {seen.name!r} cannot order the rows in time: it holds {seen.kind}, neither dates nor numbers"
            )
        ends = [seen.values[seen.kind].low, seen.values[seen.kind].high]
        is_date = seen.kind == "dates"
        shown = [str(np.datetime64(int(end), "us").astype("datetime64[D]")) if is_date else f"{end:g}" for end in ends]
        return cls(seen.name, seen.num_missing, are_dates=is_date, first=shown[0], last=shown[1])

    @property
    def says(self) -> str:
        return (
            f"time, {self.first} to {self.last}: rows that are held out are the latest; no input, since all that is to "
            "come lies outside it (copy it under another name for that)"
        )

    def read(self, cells: pl.Series) -> pl.Series:
        return dates(cells) if self.are_dates else numbers(cells)


@dataclass(frozen=True)
class Counts(Role):
    """How often each row was seen: a row with 2 is that row twice.

    >>> import polars as pl
    >>> import credo
    >>> frame = pl.DataFrame({"size": [3, 4, 5], "price": [9.5, 8.0, 7.0], "seen": [2, 1, 5]})
    >>> credo.tables.read(frame, target="price", roles={"counts": "seen"}).counts.tolist()
    [2.0, 1.0, 5.0]
    """

    kind: ClassVar[str] = "counts"
    argument: ClassVar[str] = "counts"
    read = staticmethod(numbers)
    least: float = 0.0
    most: float = 0.0

    @classmethod
    def learn(cls, seen: Summary) -> "Counts":
        kept = _numbers_of(seen, "cannot count how often rows were seen")
        return cls(seen.name, seen.num_missing, least=float(kept.low), most=float(kept.high))

    @property
    def says(self) -> str:
        return (
            f"counts, {self.least:g} to {self.most:g}: how often each row was seen, its likelihood to that power; a "
            "row with 2 is that row twice"
        )

    def values(self, cells: pl.Series, rows: RowNumbers = ALL_ROWS) -> np.ndarray:
        found = super().values(cells, rows)
        bad = np.flatnonzero(~(np.isfinite(found) & (found >= 0)))
        if len(bad):
            raise ValueError(
                f"column {self.name!r}, the counts, holds {found[bad[0]]:g} in row {rows[int(bad[0])]}; write how "
                "often the row was seen, zero or more"
            )
        return found


@dataclass(frozen=True)
class Precisions(Role):
    """How precisely each row was measured: its noise has the variance σ²/w.

    Only ratios matter: w is told in units of `typical`, the geometric mean of the rows of the fit, so that σ² is the
    noise of a row like them.
    """

    kind: ClassVar[str] = "precisions"
    argument: ClassVar[str] = "precisions"
    read = staticmethod(numbers)
    least: float = 1.0
    most: float = 1.0
    typical: float = 1.0

    @classmethod
    def learn(cls, seen: Summary) -> "Precisions":
        kept = _numbers_of(seen, "cannot say how precisely rows were measured")
        known = kept.some[kept.some > 0]  # what is not is refused with its row
        typical = float(f"{np.exp(np.log(known).mean()):.7g}") if len(known) else 1.0
        return cls(seen.name, seen.num_missing, least=float(kept.low), most=float(kept.high), typical=typical)

    @property
    def says(self) -> str:
        return (
            f"precisions w, {self.least:g} to {self.most:g}: the noise of a row has the variance σ²/w, half as much "
            "where w is twice as large; new rows that do not tell theirs are predicted as if it were "
            f"{self.typical:.4g}, the geometric mean"
        )

    def values(self, cells: pl.Series, rows: RowNumbers = ALL_ROWS) -> np.ndarray:
        found = super().values(cells, rows)
        bad = np.flatnonzero(~(np.isfinite(found) & (found > 0)))
        if len(bad):
            raise ValueError(
                f"column {self.name!r}, the precisions, holds {found[bad[0]]:g} in row {rows[int(bad[0])]}; write w "
                "of the variance σ²/w of its noise, above zero"
            )
        return found / self.typical


ROLES: dict[str, type[Role]] = {role.kind: role for role in (Group, Time, Counts, Precisions)}


def _numbers_of(seen: Summary, cannot: str) -> Kept:
    """The cells of a column of numbers; else an error that says which cell is none."""
    if seen.kind != "numbers":
        text = seen.kind == "words" and seen.levels
        held = f"{seen.kind}, such as {not_a_number(seen.levels)!r}" if text else seen.kind
        raise ValueError(f"column {seen.name!r} {cannot}: it holds {held}")
    return seen.values["numbers"]


def roles_of(seen: Mapping[str, Summary], roles: Mapping[str, str]) -> tuple[Role, ...]:
    """The columns with a role, from what was seen of them.

    Arguments:
        roles: the column of each role, such as {"group": "patient"}.
    """
    for role in roles:
        require_one_of(tuple(ROLES), role=role)
    return tuple(ROLES[role].learn(seen[name]) for role, name in roles.items())
