"""Kinds of columns: each turns its cells into numbers, and says in words how.

Missing cells are filled in, and if some were missing at fit a further column of 0 and 1 says which. The same rules hold
at fit and at prediction: a column keeps all that it learned.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from credo._text import nearest
from credo.data import NEW_TASK
from credo.tables.cells import booleans, clean, dates, twins, words
from credo.tables.column import ALL_ROWS, ANYWHERE, Column, Filled, RowNumbers, Unknown, tell
from credo.tables.forms import PLAIN, Form

DAYS_PER_YEAR = 365.2425
MICROSECONDS_PER_DAY = 86_400_000_000


@dataclass(frozen=True)
class Numeric(Filled):
    """Numbers, unchanged. A missing one becomes the median.

    >>> Numeric("age", num_missing=1, fill=40.0, low=20.0, high=60.0).encode(pl.Series(["20", None]))
    array([[20.,  0.],
           [40.,  1.]])
    """

    kind: ClassVar[str] = "numeric"
    fill: float = 0.0
    low: float = 0.0
    high: float = 0.0
    unit: str = ""  # where the table has no numbers, but what can be told in them
    form: Form = PLAIN

    @property
    def says(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        form = f", {self.form.says}" if self.form.says else ""
        return f"number, {self.low:g} to {self.high:g}{unit}{form}{self._and_missing()}"

    @property
    def limits(self) -> tuple[tuple[float, float], ...]:
        return ((self.low, self.high), *super().limits[1:])

    @property
    def ordered_by(self) -> str:
        return self.name

    @property
    def filling(self) -> str:
        return f"the median {self.fill:g}"

    def read(self, cells: pl.Series) -> pl.Series:
        return self.form.numbers(cells)

    def _hint(self, cell: str) -> str:
        is_one = Form.of(".").numbers(pl.Series([cell])).null_count() == 0
        return " (if its thousands are set apart, read the file with decimal='.')" if is_one else ""

    def numbers_of(self, values: pl.Series) -> np.ndarray:
        found = values.to_numpy()
        if np.isinf(found).any():
            raise ValueError(
                f"column {self.name!r} holds infinite numbers; correct the file, or leave those cells empty"
            )
        return (np.where(np.isnan(found), self.fill, found) if values.null_count() else found)[:, None]


@dataclass(frozen=True)
class Constant(Numeric):
    """Numbers that were all the same at fit: the network sees that number, whatever comes later.

    It stays an input (0 when standardised), so that a table and an array of the same numbers give the same network.

    >>> import polars as pl
    >>> import credo
    >>> credo.tables.Constant("floors", fill=2.0, low=2.0, high=2.0).encode(pl.Series(["2", "2"])).tolist()
    [[2.0], [2.0]]
    """

    kind: ClassVar[str] = "constant"

    @property
    def says(self) -> str:
        return f"constant: always {self.fill:g}, so it says nothing and the network sees 0"

    @property
    def limits(self) -> tuple[tuple[float, float], ...]:
        return (ANYWHERE,)

    @property
    def ordered_by(self) -> str:
        return ""

    @property
    def is_used(self) -> bool:
        return False

    @property
    def names(self) -> tuple[str, ...]:
        return self.values_names

    def encode(self, cells: pl.Series, *, unknown: Unknown = "error", rows: RowNumbers = ALL_ROWS) -> np.ndarray:
        found = self.form.numbers(clean(cells)).drop_nulls().to_numpy()
        if np.any(found != self.fill):
            tell(f"column {self.name!r} was always {self.fill:g} at fit, so what it holds now is ignored")
        return np.full((len(cells), 1), self.fill)


@dataclass(frozen=True)
class Boolean(Filled):
    """Yes or no, as 1 or 0. A missing one becomes the more frequent.

    >>> import polars as pl
    >>> import credo
    >>> credo.tables.Boolean("garden", fill=True).encode(pl.Series(["yes", "no"])).tolist()
    [[1.0], [0.0]]
    """

    kind: ClassVar[str] = "boolean"
    read = staticmethod(booleans)
    fill: bool = False

    @property
    def says(self) -> str:
        return f"yes or no, as 1 or 0{self._and_missing()}"

    @property
    def ordered_by(self) -> str:
        return self.name

    @property
    def filling(self) -> str:
        return f"the more frequent {'yes' if self.fill else 'no'}"

    def numbers_of(self, values: pl.Series) -> np.ndarray:
        return values.fill_null(self.fill).to_numpy().astype(np.float64)[:, None]


@dataclass(frozen=True)
class Categorical(Filled):
    """One of several levels: a column of 0 and 1 for each, or a single column for two levels.

    A missing cell has 0 in all of them, and a column of its own. If none was missing at fit, it becomes the most
    frequent level.

    >>> Categorical("city", levels=("Bern", "Rome", "Ulm"), fill="Bern").encode(pl.Series(["Ulm", "Bern"]))
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """

    kind: ClassVar[str] = "categorical"
    levels: tuple[str, ...] = ()
    fill: str = ""

    @property
    def values_names(self) -> tuple[str, ...]:
        shown = self.levels if len(self.levels) > 2 else self.levels[-1:]
        return tuple(f"{self.name}={level}" for level in shown)

    @property
    def says(self) -> str:
        shown = ", ".join(self.levels[:4]) + (", …" if len(self.levels) > 4 else "")
        missing = f"; {self.num_missing:,} missing, a level of their own" if self.num_missing else ""
        alike = " and ".join(map(repr, twins(self.levels)))
        alike = f"; {alike} differ by case or spaces alone" if alike else ""
        return f"category of {len(self.levels)} levels ({shown}), a column of 0 and 1 for each{alike}{missing}"

    @property
    def filling(self) -> str:
        return f"the most frequent level {self.fill!r}"

    def read(self, cells: pl.Series) -> pl.Series:
        return words(cells).cast(pl.Enum(self.levels), strict=False)

    def numbers_of(self, values: pl.Series) -> np.ndarray:
        filled = values if self.num_missing else values.fill_null(self.fill)
        places = filled.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
        found = (places[:, None] == np.arange(len(self.levels))).astype(np.float64)
        return found if len(self.levels) > 2 else found[:, -1:]

    def _hint(self, cell: str) -> str:
        shown = ", ".join(self.levels[:6]) + (", …" if len(self.levels) > 6 else "")
        return f", which was not there at fit (levels are {shown}){nearest(cell, self.levels)}"


@dataclass(frozen=True)
class Date(Filled):
    """A date or a time: years since the earliest, and its place in the year, the week and the day on a circle.

    A circle is a sine and a cosine, so that December is close to January. A missing date becomes the median.

    >>> import polars as pl
    >>> import credo
    >>> built = credo.tables.Date("built")
    >>> built.encode(pl.Series(["1970-01-01", "1971-01-01"]))[:, 0].round(2).tolist()  # years since the earliest
    [0.0, 1.0]
    """

    kind: ClassVar[str] = "date"
    earliest: int = 0  # microseconds since 1970
    fill: int = 0
    has_times: bool = False
    latest: int | None = None  # microseconds since 1970; unknown to earlier versions
    form: Form = PLAIN

    @property
    def values_names(self) -> tuple[str, ...]:
        circles = ("year", "week", "day") if self.has_times else ("year", "week")
        turns = (f"{self.name}: {circle} {part}" for circle in circles for part in ("sin", "cos"))
        return (f"{self.name}: years", *turns)

    @property
    def says(self) -> str:
        circles = "the year, the week and the day" if self.has_times else "the year and the week"
        order = f" ({self.form.says})" if self.form.says else ""
        years = f"date{order}, as years since {_day(self.earliest)}"
        return f"{years}, and its place in {circles} (sin, cos){self._and_missing()}"

    @property
    def limits(self) -> tuple[tuple[float, float], ...]:
        if self.latest is None:
            return super().limits
        years = (self.latest - self.earliest) / MICROSECONDS_PER_DAY / DAYS_PER_YEAR
        return ((0.0, years), *super().limits[1:])

    @property
    def ordered_by(self) -> str:
        return self.values_names[0]  # the trend; seasons are free

    @property
    def filling(self) -> str:
        return f"the median {_day(self.fill)}"

    def read(self, cells: pl.Series) -> pl.Series:
        return dates(cells, self.form.order)

    def numbers_of(self, values: pl.Series) -> np.ndarray:
        filled = values.dt.epoch("us").fill_null(self.fill)
        days = filled.to_numpy() / MICROSECONDS_PER_DAY
        in_year = filled.cast(pl.Datetime("us")).dt.ordinal_day().to_numpy() / DAYS_PER_YEAR
        # 1 January 1970 was a Thursday, day 3 of a week that starts on Monday.
        turns = [in_year, (np.floor(days) + 3) % 7 / 7, *([days % 1] if self.has_times else [])]
        circles = [part(2 * np.pi * turn) for turn in turns for part in (np.sin, np.cos)]
        return np.column_stack([(days - self.earliest / MICROSECONDS_PER_DAY) / DAYS_PER_YEAR, *circles])


@dataclass(frozen=True)
class Task(Column):
    """The task that a row belongs to, as its number among those that were there at fit; −1 for any other.

    >>> Task("school", levels=("Bern", "Ulm")).encode(pl.Series(["Ulm", "Bern"]))
    array([[1.],
           [0.]])
    """

    kind: ClassVar[str] = "task"
    levels: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def is_used(self) -> bool:
        return False  # a new row need not say whose it is

    @property
    def says(self) -> str:
        shown = ", ".join(self.levels[:4]) + (", …" if len(self.levels) > 4 else "")
        return f"task, {len(self.levels)} of them ({shown}); any other is a new task, predicted from the population"

    def encode(self, cells: pl.Series, *, unknown: Unknown = "error", rows: RowNumbers = ALL_ROWS) -> np.ndarray:
        texts = words(clean(cells))
        places = texts.cast(pl.Enum(self.levels), strict=False).to_physical().cast(pl.Int64)
        found = places.fill_null(NEW_TASK).to_numpy().astype(np.float64)[:, None]
        new = sorted(map(str, texts.filter(places.is_null()).fill_null("nothing").unique().to_list()))
        if new:
            shown = ", ".join(map(repr, new[:4])) + (", …" if len(new) > 4 else "")
            tell(f"{self.name} {shown} was not there at fit: a new task, predicted from the population of the others")
        return found


@dataclass(frozen=True)
class Dropped(Column):
    """A column that the network does not see, and why.

    >>> import credo
    >>> credo.tables.Dropped("id", reason="different in every row").reason
    'different in every row'
    """

    kind: ClassVar[str] = "dropped"
    reason: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return ()

    @property
    def says(self) -> str:
        return f"not used: {self.reason}"

    def encode(self, cells: pl.Series, *, unknown: Unknown = "error", rows: RowNumbers = ALL_ROWS) -> np.ndarray:
        return np.empty((len(cells), 0))


def _day(microseconds: int) -> str:
    return str(np.datetime64(microseconds, "us").astype("datetime64[D]"))
