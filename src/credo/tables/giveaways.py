"""Columns that give the target away: what holds the answer already is seldom known when an answer is wanted."""

import math
import warnings
from collections.abc import Iterator, Sequence

import numpy as np

from credo.data import Data
from credo.tables.column import Column
from credo.tables.columns import Numeric
from credo.tables.cross_fitting import averaged

# Rows that are looked at, at equal distances: enough to be sure of an exact relation.
MAX_ROWS = 2_000
# What a column leaves unexplained of the target's variance, and what a sum of columns does: a copy that was rounded to
# a hundredth of the target's sd, and rounding errors.
LEFT_BY_ONE, LEFT_BY_SUM = 1e-4, 1e-8
# More columns are not tried together.
MAX_TOGETHER = 400
# A relation that would come by chance more often than this is none.
CHANCE = 1e-6
# In the sum, of the target's sd: columns with less have no part in it.
LEAST_PART = 1e-4


def point_out(columns: Sequence[Column], data: Data) -> None:
    """A warning for each column of a training table that tells the target, or nearly so."""
    for said in giveaways(columns, data):
        warnings.warn(
            f"{said}; if that is not known before {data.target or 'the target'} is, leave it out (drop=…)", stacklevel=3
        )


def giveaways(columns: Sequence[Column], data: Data) -> Iterator[str]:
    """What gives the target away, in words: a column as a line or a category, one that orders it, or a sum of several.

    Arguments:
        columns: of the inputs, in the order of x.
        data: the training rows, of one target.

    >>> x = np.random.default_rng(0).normal(size=(50, 2))
    >>> next(giveaways([Numeric("a"), Numeric("b")], Data(x, 3 * x[:, 1] - 1, target="price")))
    "column 'b' gives 'price' away: the one is a line in the other"
    """
    if data.x.ndim > 2:  # pictures are no columns
        return
    seen = data.only_labelled()
    rows = np.linspace(0, seen.size - 1, min(seen.size, MAX_ROWS)).astype(int)
    x, y, first = seen.x[rows].astype(np.float64), seen.y[rows], 0
    if y.ndim > 1:
        return
    targets = averaged(y, len(data.classes or ()))
    told = False
    for column in columns:
        own = x[:, first : first + len(column.names)]
        first += len(column.names)
        how = _how(column, own, y, targets)
        if how:
            told = True
            yield f"column {column.name!r} gives {data.target!r} away: {how}"
    if not told and x.shape[1] <= MAX_TOGETHER and _left(x, targets, y) < LEFT_BY_SUM:
        named = ", ".join(repr(column.name) for column in _parts(columns, x, targets))
        yield f"columns {named} give {data.target!r} away: it is a sum of multiples of them"


def _how(column: Column, own: np.ndarray, y: np.ndarray, targets: np.ndarray) -> str:
    """How a column tells the target; nothing if it does not."""
    if not column.is_used:
        return ""
    if _left(own, targets, y) < LEFT_BY_ONE:
        is_line = isinstance(column, Numeric) and y.dtype.kind == "f"
        return "the one is a line in the other" if is_line else "each of its values has one of the target's"
    if isinstance(column, Numeric) and not column.num_missing and _is_ordered(own[:, 0], y):
        return "the one rises or falls with the other" if y.dtype.kind == "f" else "its order is that of the classes"
    return ""


def _left(x: np.ndarray, targets: np.ndarray, y: np.ndarray) -> float:
    """The share of the targets' variance that no line in x explains; 1 where rows are too few to tell."""
    num, width = x.shape
    share = np.unique(y, return_counts=True)[1].max() / num
    # Rows that are not used up by the coefficients, and would all have had to come right.
    if share == 1 or (num - width - 1) * math.log(share) > math.log(CHANCE):
        return 1.0
    centred = targets - targets.mean(axis=0)
    residual = centred - x @ _coefficients(x, targets)
    return float(np.sum((residual - residual.mean(axis=0)) ** 2) / np.sum(centred**2))


def _coefficients(x: np.ndarray, targets: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.linalg.lstsq(x - x.mean(axis=0), targets - targets.mean(axis=0))[0]
    return found


def _parts(columns: Sequence[Column], x: np.ndarray, targets: np.ndarray) -> Iterator[Column]:
    """The columns that have a part in a sum."""
    spread = np.abs(_coefficients(x, targets)) * x.std(axis=0)[:, None] / targets.std(axis=0)
    first = 0
    for column in columns:
        if np.any(spread[first : first + len(column.names)] > LEAST_PART):
            yield column
        first += len(column.names)


def _is_ordered(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether rows in the order of x have targets in order, or classes one after another; equal x, equal targets."""
    order = np.lexsort((y, x))
    x, y = x[order], y[order]
    counts = np.unique(y, return_counts=True)[1]
    log_orders = math.lgamma(len(y) + 1) - sum(math.lgamma(count + 1) for count in counts)
    steps, same = np.diff(y), np.diff(x) == 0
    if log_orders < -math.log(CHANCE) or np.any(steps[same] != 0):
        return False
    if y.dtype.kind == "f":
        return bool(np.all(steps >= 0) or np.all(steps <= 0))
    return bool(np.count_nonzero(steps) == len(counts) - 1)
