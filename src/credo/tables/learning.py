"""Learning what the columns of a table are, one batch of rows at a time."""

import re
from collections import Counter
from typing import Any

import numpy as np
import polars as pl

from credo.tables.cells import are_codes, booleans, clean, dates, numbers, order_of, unit_of, words
from credo.tables.column import Column
from credo.tables.columns import Boolean, Categorical, Constant, Date, Dropped, Numeric, Task
from credo.tables.forms import PLAIN, Form

# A category with more levels is more likely a name or an identifier, from which there is little to learn.
MAX_LEVELS = 100
# Tasks that one table may hold: each has weights of its own.
MAX_TASKS = 10_000
# So is one that hardly ever repeats, if there are more than a few levels.
MAX_LEVELS_PER_ROW, FEW_LEVELS = 0.5, 10
# What pandas calls an index without a name when it writes it into a file.
INDEX = re.compile(r"__index_level_\d+__")
# Values of a column that are kept to find a median: 8 MB, whatever the number of rows.
MAX_KEPT = 2**21
# So many cells for each level tell a column of measurements, with more levels than that, from one of codes.
LEVELS_AT_FIRST = 4


class Kept:
    """The values of a column: all of them, or of very many some at equal distances; and the range of all.

    >>> kept = Kept(most=4)
    >>> for first in (0, 4, 8):
    ...     kept.add(np.arange(first, first + 4))
    >>> kept.num, int(kept.low), int(kept.high), kept.some.tolist()
    (12, 0, 11, [0, 4, 8])
    """

    def __init__(self, most: int = MAX_KEPT) -> None:
        self.most, self.every, self.num = most, 1, 0
        self.low: Any = np.inf
        self.high: Any = -np.inf
        self._parts: list[np.ndarray] = []
        self._num_kept = 0

    def add(self, values: np.ndarray) -> None:
        """Some more values, in the order of the rows."""
        if len(values):
            self.low, self.high = min(self.low, values.min()), max(self.high, values.max())
        chosen = values[-self.num % self.every :: self.every]
        self._parts.append(chosen)
        self.num, self._num_kept = self.num + len(values), self._num_kept + len(chosen)
        while self._num_kept > self.most:
            self._parts, self.every = [self.some[::2].copy()], 2 * self.every
            self._num_kept = len(self._parts[0])

    @property
    def some(self) -> np.ndarray:
        """Those that are kept."""
        return np.concatenate(self._parts)


class Summary:
    """What has been seen of one column.

    Its kind is the first that all cells fit: numbers, booleans, dates, or else words.

    Arguments:
        form: how all its cells are written; None where no text among them is a number.
        is_unnamed: whether it is a first column to which nobody gave a name.
    """

    def __init__(
        self, name: str, *, max_levels: int = MAX_LEVELS, form: Form | None = PLAIN, is_unnamed: bool = False
    ) -> None:
        self.name, self.max_levels, self.form, self.is_unnamed = name, max_levels, form or PLAIN, is_unnamed
        self.num_rows = self.num_missing = 0
        self.is_text = False
        self.kinds = ["booleans", "dates"] if form is None else ["numbers", "booleans", "dates"]
        self.values = {kind: Kept() for kind in self.kinds}
        self.levels: Counter[str] = Counter()
        self.too_many_levels = False
        self.unit = ""
        self.order: tuple[str, ...] = ()  # of its levels, where the column says it

    def see(self, cells: pl.Series) -> None:
        """Take some more rows into account."""
        cleaned = self.form.typed(clean(cells))
        self.unit, self.is_text = unit_of(cells), cleaned.dtype == pl.String
        self.order = order_of(cells)
        known = cleaned.drop_nulls() if cleaned.null_count() else cleaned
        self.num_rows += len(cells)
        self.num_missing += len(cells) - len(known)
        for kind in list(self.kinds):
            values = {"numbers": numbers, "booleans": booleans, "dates": dates}[kind](known)
            if values.null_count() or (kind == "numbers" and are_codes(known, values)):
                self.kinds.remove(kind)
                self.values[kind] = Kept()
            else:
                self.values[kind].add(_compact(values))
                break  # the other kinds are tried only on a batch that is not of this one
        if not self.too_many_levels:
            # Numbers that differ do so in their first rows already, and as words they take long to count.
            few = known.head(LEVELS_AT_FIRST * self.max_levels) if self.kinds[:1] == ["numbers"] else known
            many = len(few) < len(known) and few.n_unique() > self.max_levels
            counts: Any = words(few if many else known).alias("level").value_counts().iter_rows()
            self.levels.update(dict(counts))
            self.too_many_levels = len(self.levels) > self.max_levels

    @property
    def num_known(self) -> int:
        """Cells that are not missing."""
        return self.num_rows - self.num_missing

    @property
    def kind(self) -> str:
        """What all cells are: "numbers", "booleans", "dates" or "words"."""
        return next((kind for kind in self.kinds if self.values[kind].num == self.num_known), "words")

    @property
    def has_many_levels(self) -> bool:
        """Whether it is text of more levels than a category has columns for, or that hardly repeats."""
        is_words = self.kind == "words" and len(self.levels) > 1 and not INDEX.fullmatch(self.name)
        return is_words and isinstance(self._categorical(), Dropped)

    def anew(self, form: Form | None) -> "Summary":
        """A summary of the same column, of which nothing has been seen, as it is written."""
        return Summary(self.name, max_levels=self.max_levels, form=form, is_unnamed=self.is_unnamed)

    def column(self) -> Column:
        """The column that one look at its cells suggests; what only numbers the rows is none."""
        if INDEX.fullmatch(self.name) or (self.is_unnamed and self._are_row_numbers):
            return Dropped(self.name, self.num_missing, reason="it only numbers the rows, as the index of a data frame")
        if not self.num_known:
            return Dropped(self.name, self.num_missing, reason="every cell is missing")
        if self.kind == "numbers":
            return self._numeric()
        if len(self.levels) == 1 and not self.num_missing:
            return Dropped(self.name, reason=f"constant, always {next(iter(self.levels))!r}")
        if self.kind == "dates":
            return self._date()
        if self.kind == "booleans":
            share = np.mean(self.values["booleans"].some)
            return Boolean(self.name, self.num_missing, fill=bool(share > 0.5))
        return self._categorical()

    def task(self) -> Task:
        """The column as one that says which task a row belongs to."""
        if self.num_missing or self.too_many_levels:
            what = f"{self.num_missing:,} cells are missing" if self.num_missing else f"more than {MAX_TASKS:,} levels"
            raise ValueError(f"column {self.name!r} cannot say which task a row belongs to: {what}; fill or group them")
        return Task(self.name, levels=tuple(sorted(self.levels)))

    @property
    def _are_row_numbers(self) -> bool:
        """Whether its cells are whole numbers of which no two are the same, as an index has them."""
        if self.num_missing or self.kind != "numbers":
            return False
        values = self.values["numbers"].some
        is_whole = np.all(values == np.floor(values)) and values.min() >= 0
        # Single precision tells whole numbers up to there apart.
        return bool(is_whole and (len(np.unique(values)) == len(values) or values.max() > 2**24))

    def _numeric(self) -> Column:
        kept = self.values["numbers"]
        values, low, high = kept.some, float(kept.low), float(kept.high)
        # The compact copy is rounded and cannot tell large numbers apart; the levels can.
        different = set() if self.too_many_levels else {float(level) for level in self.levels}
        if len(different) == 1 and not self.num_missing:
            return Constant(self.name, fill=different.pop(), low=low, high=high, form=self.form)
        known: dict[str, Any] = {"low": low, "high": high, "unit": self.unit, "form": self.form}
        return Numeric(self.name, self.num_missing, fill=_median(values), **known)

    def _date(self) -> Column:
        kept = self.values["dates"]
        values = kept.some
        has_times = bool(np.any(values % 86_400_000_000))
        fill = int(np.sort(values)[len(values) // 2])
        span = {"earliest": int(kept.low), "latest": int(kept.high)}
        return Date(self.name, self.num_missing, fill=fill, has_times=has_times, form=self.form, **span)

    def _categorical(self) -> Column:
        num_levels, reason = len(self.levels), ""
        if self.too_many_levels:
            example = not_a_number(self.levels)
            reason = f"text of more than {MAX_LEVELS} different values, such as {example!r}: too many to learn from"
        elif num_levels > FEW_LEVELS and num_levels > MAX_LEVELS_PER_ROW * self.num_known:
            reason = f"text that hardly repeats ({num_levels} values in {self.num_known} cells), like a name"
        if reason:
            return Dropped(self.name, self.num_missing, reason=reason)
        fill = max(sorted(self.levels), key=lambda level: self.levels[level])
        return Categorical(self.name, self.num_missing, levels=tuple(sorted(self.levels)), fill=fill)


def _compact(values: pl.Series) -> np.ndarray:
    if values.dtype == pl.Float64:
        return values.to_numpy().astype(np.float32)
    return (values.dt.epoch("us") if values.dtype.is_temporal() else values).to_numpy()


def _median(values: np.ndarray) -> float:
    # Single precision has seven digits: more would only look odd in words.
    return float(f"{np.median(values):.7g}")


def not_a_number(levels: Counter[str]) -> str:
    """The level that shows best why a column is text."""
    texts = pl.Series(sorted(levels))
    strange = texts.filter(numbers(texts).is_null())
    return str(strange[0] if len(strange) else texts[0])
