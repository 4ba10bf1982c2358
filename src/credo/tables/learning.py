"""Finding out what the columns of a table are, batch of rows by batch of rows."""

from collections import Counter
from typing import Any

import numpy as np
import polars as pl

from credo.tables.cells import booleans, clean, dates, numbers, words
from credo.tables.columns import Boolean, Categorical, Column, Constant, Date, Dropped, Numeric

# A category of more levels is more likely a name or a number of the row, of which there is little to learn.
MAX_LEVELS = 100
# So is one that hardly ever repeats, where the table has more than a few rows.
MAX_LEVELS_PER_ROW, FEW_LEVELS = 0.5, 10


class Summary:
    """All that has been seen of one column.

    A column is what all of its cells can be: first numbers, then yes or no, then dates, and else words.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.num_rows = self.num_missing = 0
        self.kinds = ["numbers", "booleans", "dates"]
        self.values: dict[str, list[np.ndarray]] = {kind: [] for kind in self.kinds}
        self.levels: Counter[str] = Counter()
        self.too_many_levels = False

    def see(self, cells: pl.Series) -> None:
        """Take note of some rows."""
        cleaned = clean(cells)
        known = cleaned.drop_nulls()
        self.num_rows += len(cells)
        self.num_missing += len(cells) - len(known)
        for kind in list(self.kinds):
            values = {"numbers": numbers, "booleans": booleans, "dates": dates}[kind](known)
            if values.null_count():
                self.kinds.remove(kind)
                self.values[kind].clear()
            else:
                self.values[kind].append(_compact(values))
                break  # what can be a number is no date; the other kinds wait for a batch that cannot
        if not self.too_many_levels:
            counts: Any = words(known).value_counts().iter_rows()
            self.levels.update(dict(counts))
            self.too_many_levels = len(self.levels) > MAX_LEVELS

    @property
    def num_known(self) -> int:
        """Cells that are not missing."""
        return self.num_rows - self.num_missing

    @property
    def kind(self) -> str:
        """What all cells are: "numbers", "booleans", "dates" or "words"."""
        return next((kind for kind in self.kinds if sum(map(len, self.values[kind])) == self.num_known), "words")

    def column(self) -> Column:
        """What is to become of the column."""
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

    def _numeric(self) -> Column:
        values = np.concatenate(self.values["numbers"])
        low, high = float(values.min()), float(values.max())
        # The compact copy is rounded, and cannot tell large numbers apart; the levels are not.
        different = set() if self.too_many_levels else {float(level) for level in self.levels}
        if len(different) == 1 and not self.num_missing:
            return Constant(self.name, fill=different.pop(), low=low, high=high)
        return Numeric(self.name, self.num_missing, fill=_median(values), low=low, high=high)

    def _date(self) -> Column:
        values = np.concatenate(self.values["dates"])
        has_times = bool(np.any(values % 86_400_000_000))
        fill = int(np.sort(values)[len(values) // 2])
        return Date(self.name, self.num_missing, earliest=int(values.min()), fill=fill, has_times=has_times)

    def _categorical(self) -> Column:
        num_levels = len(self.levels)
        if self.too_many_levels:
            example = _not_a_number(self.levels)
            return Dropped(
                self.name,
                self.num_missing,
                reason=f"text of more than {MAX_LEVELS} different values, such as {example!r}: too many to learn from",
            )
        if num_levels > FEW_LEVELS and num_levels > MAX_LEVELS_PER_ROW * self.num_known:
            return Dropped(
                self.name,
                self.num_missing,
                reason=f"text that hardly repeats ({num_levels} values in {self.num_known} cells), as names do",
            )
        fill = max(sorted(self.levels), key=lambda level: self.levels[level])
        return Categorical(self.name, self.num_missing, levels=tuple(sorted(self.levels)), fill=fill)


def _compact(values: pl.Series) -> np.ndarray:
    if values.dtype == pl.Float64:
        return values.to_numpy().astype(np.float32)
    return (values.dt.epoch("us") if values.dtype.is_temporal() else values).to_numpy()


def _median(values: np.ndarray) -> float:
    # Seven digits are what single precision holds: the rest would only look odd in words.
    return float(f"{np.median(values):.7g}")


def _not_a_number(levels: Counter[str]) -> str:
    """The level that shows best why a column is text."""
    texts = pl.Series(sorted(levels))
    strange = texts.filter(numbers(texts).is_null())
    return str(strange[0] if len(strange) else texts[0])
