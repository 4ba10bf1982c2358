"""The means of a target in the levels of a category, of all rows or of those in other folds.

A mean that holds a row's own target would tell the network that target, at fit and never again. So each row gets those
of the rows in the other folds, and new rows those of all.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from credo.data.missing import MISSING_LABEL
from credo.tables.levels import ByTarget

NUM_FOLDS = 5
# Where levels determine the target: a level without rows is then still not known.
LEAST_ROWS = 1e-6


class Sums(NamedTuple):
    """Of each level: how many rows, and the sums of their targets."""

    num: np.ndarray  # (levels,)
    total: np.ndarray  # (levels, outputs)

    @classmethod
    def of(cls, places: np.ndarray, y: np.ndarray, num_levels: int) -> "Sums":
        """Of rows with these levels and targets; a place of −1 is none."""
        places, y = places[places >= 0], y[places >= 0]
        total = [np.bincount(places, column, num_levels) for column in y.T]
        return cls(np.bincount(places, minlength=num_levels).astype(np.float64), np.column_stack(total))

    def less(self, other: "Sums") -> "Sums":
        return Sums(self.num - other.num, self.total - other.total)

    def shrunk(self, overall: np.ndarray, rows_within: float) -> np.ndarray:
        """Effects and how well they are known, (levels + 1, outputs + 1): the last level is a new one."""
        known = self.num / (self.num + rows_within)
        means = self.total / np.maximum(self.num, 1.0)[:, None]
        effects = np.where(self.num[:, None] > 0, overall + known[:, None] * (means - overall), overall)
        return np.vstack([np.column_stack([effects, known]), [*overall, 0.0]])


def averaged(y: np.ndarray, num_classes: int = 0) -> np.ndarray:
    """What is averaged of targets, (rows, outputs): numbers, or 1 and 0 for each class, of two the second one.

    >>> averaged(np.array([0, 1, MISSING_LABEL]), 2).ravel().tolist()
    [0.0, 1.0, nan]
    """
    if not num_classes:
        return y.reshape(len(y), -1).astype(np.float64)
    classes = np.arange(num_classes) if num_classes > 2 else np.array([1])
    return np.where(y[:, None] == MISSING_LABEL, np.nan, y[:, None] == classes)


def outputs_of(targets: Sequence[str], labels: Sequence[str]) -> tuple[str, ...]:
    """The same in words."""
    shown = labels if len(labels) > 2 else labels[1:]
    return tuple(f"share of {label}" for label in shown) or tuple(f"mean of {target}" for target in targets)


def with_effects(column: ByTarget, places: np.ndarray, y: np.ndarray, outputs: tuple[str, ...]) -> ByTarget:
    """A column with the effects of its levels on the targets of all rows.

    Arguments:
        places: the levels of the rows, (rows,).
        y: (rows, outputs); rows with NaN are left out.
        outputs: what their means are, in words.
    """
    places, y = _seen(places, y)
    sums, overall = Sums.of(places, y, len(column.levels)), y.mean(axis=0)
    table = np.vectorize(_rounded)(sums.shrunk(overall, _rows_within(sums, places, y)))
    *effects, known = (tuple(map(float, values)) for values in table[:-1].T)
    return replace(
        column, outputs=outputs, effects=tuple(effects), known=known, overall=tuple(map(float, table[-1, :-1]))
    )


def cross_fitted(column: ByTarget, places: np.ndarray, y: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """Effects and how well they are known for the rows of the fit, each from other folds: (rows, outputs + 1).

    Arguments:
        folds: the number of each row's fold, (rows,).
    """
    num_levels, overall = len(column.levels), np.asarray(column.overall)
    seen, targets = _seen(places, y)
    whole = Sums.of(seen, targets, num_levels)
    rows_within = _rows_within(whole, seen, targets)
    found = np.empty((len(places), y.shape[1] + 1))
    for fold in np.unique(folds):
        own = folds == fold
        others = whole.less(Sums.of(*_seen(places[own], y[own]), num_levels))
        found[own] = others.shrunk(overall, rows_within)[places[own]]
    return found


def folds_of(groups: np.ndarray) -> np.ndarray:
    """A fold for each row at random, the same for all rows of a group, in folds of nearly the same number of groups."""
    names, places = np.unique(groups, return_inverse=True)
    return (np.random.default_rng(0).permutation(len(names)) % NUM_FOLDS)[places]


def _seen(places: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows with a target."""
    there = ~np.isnan(y).any(axis=1)
    return places[there], y[there]


def _rows_within(sums: Sums, places: np.ndarray, y: np.ndarray) -> float:
    """m = σ²/τ², the rows that a level needs for its own mean to count as much as that of all; infinite if none count.

    Both from the sums of squares of an analysis of variance with groups of different sizes (Searle, Casella and
    McCulloch, "Variance components", 1992, chapter 3), over all outputs together.
    """
    there = sums.num > 0
    num, num_rows, num_levels = sums.num[there], sums.num.sum(), there.sum()
    if num_levels < 2 or num_rows <= num_levels:
        return np.inf
    means = sums.total[there] / num[:, None]
    middle = sums.total.sum(axis=0) / num_rows
    known = places >= 0
    within = np.sum((y[known] - (sums.total / np.maximum(sums.num, 1.0)[:, None])[places[known]]) ** 2)
    within /= num_rows - num_levels
    between = np.sum(num[:, None] * (means - middle) ** 2) / (num_levels - 1)
    size = (num_rows - np.sum(num**2) / num_rows) / (num_levels - 1)
    spread = (between - within) / size
    return max(float(within / spread), LEAST_ROWS) if spread > 0 else np.inf


def _rounded(value: float) -> float:
    # More than the digits of single precision would only make the file longer.
    return float(f"{value:.7g}")
