"""Learning what the columns of a table are, one batch of rows at a time."""

from collections import Counter
from typing import Any

import numpy as np
import polars as pl

from credo.tables.cells import booleans, clean, dates, numbers, unit_of, words
from credo.tables.columns import Boolean, Categorical, Column, Constant, Date, Dropped, Numeric, Task

# A category with more levels is more likely a name or an identifier, from which there is little to learn.
MAX_LEVELS = 100
# Tasks that one table may hold: each has weights of its own.
MAX_TASKS = 10_000
# So is one that hardly ever repeats, if there are more than a few levels.
MAX_LEVELS_PER_ROW, FEW_LEVELS = 0.5, 10
# So many cells for each level tell a column of measurements, with more levels than that, from one of codes.
LEVELS_AT_FIRST = 4


class Summary:
    """What has been seen of one column.

    Its kind is the first that all cells fit: numbers, booleans, dates, or else words.
    """

    def __init__(self, name: str, *, max_levels: int = MAX_LEVELS) -> None:
        self.name, self.max_levels = name, max_levels
        self.num_rows = self.num_missing = 0
        self.kinds = ["numbers", "booleans", "dates"]
        self.values: dict[str, list[np.ndarray]] = {kind: [] for kind in self.kinds}
        self.levels: Counter[str] = Counter()
        self.too_many_levels = False
        self.unit = ""

    def see(self, cells: pl.Series) -> None:
        """Take some more rows into account."""
        cleaned = clean(cells)
        self.unit = unit_of(cells)
        known = cleaned.drop_nulls() if cleaned.null_count() else cleaned
        self.num_rows += len(cells)
        self.num_missing += len(cells) - len(known)
        for kind in list(self.kinds):
            values = {"numbers": numbers, "booleans": booleans, "dates": dates}[kind](known)
            if values.null_count():
                self.kinds.remove(kind)
                self.values[kind].clear()
            else:
                self.values[kind].append(_compact(values))
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
        return next((kind for kind in self.kinds if sum(map(len, self.values[kind])) == self.num_known), "words")

    def column(self) -> Column:
        """The column that its cells suggest."""
        if not self.num_known:
            return Dropped(self.name, self.num_missing, reason="every cell is missing")
        if self.kind == "numbers":
            return self._numeric()
        if len(self.levels) == 1 and not self.num_missing:
            return Dropped(self.name, reason=f"constant, always {next(iter(self.levels))!r}")
        if self.kind == "dates":
            return self._date()
        if self.kind == "booleans":
            share = np.mean(np.concatenate(self.values["booleans"]))
            return Boolean(self.name, self.num_missing, fill=bool(share > 0.5))
        return self._categorical()

    def task(self) -> Task:
        """The column as one that says which task a row belongs to."""
        if self.num_missing or self.too_many_levels:
            what = f"{self.num_missing:,} cells are missing" if self.num_missing else f"more than {MAX_TASKS:,} levels"
            raise ValueError(f"column {self.name!r} cannot say which task a row belongs to: {what}; fill or group them")
        return Task(self.name, levels=tuple(sorted(self.levels)))

    def _numeric(self) -> Column:
        values = np.concatenate(self.values["numbers"])
        low, high = float(values.min()), float(values.max())
        # The compact copy is rounded and cannot tell large numbers apart; the levels can.
        different = set() if self.too_many_levels else {float(level) for level in self.levels}
        if len(different) == 1 and not self.num_missing:
            return Constant(self.name, fill=different.pop(), low=low, high=high)
        return Numeric(self.name, self.num_missing, fill=_median(values), low=low, high=high, unit=self.unit)

    def _date(self) -> Column:
        values = np.concatenate(self.values["dates"])
        has_times = bool(np.any(values % 86_400_000_000))
        fill = int(np.sort(values)[len(values) // 2])
        return Date(self.name, self.num_missing, earliest=int(values.min()), fill=fill, has_times=has_times)

    def _categorical(self) -> Column:
        num_levels, reason = len(self.levels), ""
        if self.too_many_levels:
            example = _not_a_number(self.levels)
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


def _not_a_number(levels: Counter[str]) -> str:
    """The level that shows best why a column is text."""
    texts = pl.Series(sorted(levels))
    strange = texts.filter(numbers(texts).is_null())
    return str(strange[0] if len(strange) else texts[0])
