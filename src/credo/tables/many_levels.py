"""What becomes of text with many different values: a category, free text, or a name for each row."""

from collections import Counter

import polars as pl

from credo.tables.cells import clean, words
from credo.tables.column import Column
from credo.tables.columns import Categorical, Dropped
from credo.tables.learning import FEW_LEVELS, MAX_LEVELS, MAX_LEVELS_PER_ROW
from credo.tables.levels import OTHER, ByTarget, Grouped
from credo.tables.text import WORD, Text

# More are neither counted nor kept: those of a table of customers, say.
MAX_COUNTED = 100_000
# Words in a cell, on average, from which it is free text and no name or code: "12 Main Street" has two of letters.
WORDS_OF_TEXT = 3.0
# The most frequent levels that have a column of their own, and the share of the cells from which these are enough. Of
# simulated tables (600 to 20,000 rows, 120 to 5,000 levels, as many rows in each or by Zipf's law with exponents 0.8
# and 1.3) effects of the target had the better R² wherever they held less, by 0.01 to 0.21; above, both were within
# 0.01 of each other.
NUM_OWN, SHARE_OF_OWN = MAX_LEVELS - 1, 0.98


class Levels:
    """How often each level of a column comes, and how many words its cells have."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.num_rows = self.num_missing = self.num_words = 0
        self.counts: Counter[str] = Counter()

    def see(self, cells: pl.Series) -> None:
        """Take some more rows into account."""
        known = words(clean(cells)).drop_nulls()
        self.num_rows += len(cells)
        self.num_missing += len(cells) - len(known)
        self.num_words += int(known.str.count_matches(WORD).sum())
        if len(self.counts) <= MAX_COUNTED:
            self.counts.update(dict(known.alias("level").value_counts().iter_rows()))

    def column(self) -> Column:
        """The column that its cells suggest; a `ByTarget` has no effects yet."""
        num_known, num_levels = self.num_rows - self.num_missing, len(self.counts)
        if num_levels > MAX_COUNTED or num_levels > max(FEW_LEVELS, MAX_LEVELS_PER_ROW * num_known):
            if self.num_words >= WORDS_OF_TEXT * num_known:
                return Text(self.name, self.num_missing)
            counted = f"more than {MAX_COUNTED:,}" if num_levels > MAX_COUNTED else f"{num_levels:,}"
            reason = f"text that hardly repeats ({counted} values in {num_known:,} cells), like a name"
            return Dropped(self.name, self.num_missing, reason=reason)
        frequent = sorted(self.counts, key=lambda level: (-self.counts[level], level))
        if num_levels <= MAX_LEVELS:
            return Categorical(self.name, self.num_missing, levels=tuple(sorted(frequent)), fill=frequent[0])
        if sum(self.counts[level] for level in frequent[:NUM_OWN]) < SHARE_OF_OWN * num_known:
            return ByTarget(self.name, self.num_missing, levels=tuple(sorted(frequent)))
        own = (*sorted(level for level in frequent[:NUM_OWN] if level != OTHER), OTHER)
        return Grouped(self.name, self.num_missing, levels=own, fill=frequent[0], num_levels=num_levels)
