"""Free text: which words it holds, as numbers."""

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
import polars as pl

from credo.tables.cells import words
from credo.tables.column import Filled

# Letters only, at least two: numbers in a text are seldom the same twice.
WORD = r"[^\W\d_]{2,}"
NUM_HASHED = 128


@dataclass(frozen=True)
class Text(Filled):
    """Words and pairs of neighbouring words, hashed into a fixed number of columns: nothing is learned or stored.

        x_j ∝ Σ_t s(t) count(t) [h(t) = j],   Σ_j x_j² = 1;    t: a word, or two in a row, in lower case

    h(t) and the sign s(t) are bits of a 32-bit MurmurHash3 of t in UTF-8, the same on every machine: terms that share a
    column by chance cancel on average (Weinberger et al., "Feature hashing for large scale multitask learning", 2009).

    Arguments:
        num_hashed: how many columns.

    >>> Text("note", num_hashed=8).encode(pl.Series(["payment LATE late"])).round(2).tolist()
    [[0.76, -0.38, 0.0, 0.38, 0.0, 0.0, -0.38, 0.0]]
    """

    kind: ClassVar[str] = "text"
    num_hashed: int = NUM_HASHED
    read = staticmethod(words)

    @property
    def values_names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}: words {place}" for place in range(1, self.num_hashed + 1))

    @property
    def says(self) -> str:
        return f"text: its words and pairs of words, hashed into {self.num_hashed} columns{self._and_missing()}"

    @property
    def filling(self) -> str:
        return "a text without words"

    def numbers_of(self, values: pl.Series) -> np.ndarray:
        return np.asarray(_hashing(self.num_hashed).transform(values.fill_null("").to_list()).toarray())


@cache
def _hashing(num_hashed: int) -> Any:
    from sklearn.feature_extraction.text import HashingVectorizer  # lazy: only tables with texts need it

    return HashingVectorizer(n_features=num_hashed, token_pattern=WORD, ngram_range=(1, 2))
