"""Scores of rows in files: those of parts of the rows, averaged."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from credo.data import Data
from credo.evaluation.metric import Score

# The rows of a part: what is computed of them takes some hundred bytes for each.
ROWS_PER_PART = 2**16
# Roots of mean squares: the squares are averaged.
ROOTS = ("rmse",)


def by_part(judge: Callable[[Data], Any], parts: Iterable[Data]) -> Any:
    """The `Scores` of all rows, from those of parts that hold rows from anywhere, each row in one of them.

    Of metrics that are means over rows it is the mean over all rows; of others, such as a distance between curves, that
    of sets of as many rows as a part has. Standard errors are those of a mean over parts; curves, those of the first.
    """
    found, sizes = [], []
    for part in parts:
        found.append(judge(part))
        sizes.append(found[-1].num_rows)
    first = found[0]
    if len(found) == 1:
        return first
    values = {name: _joined(name, [one[name].value for one in found], sizes) for name in first}
    confusions = [one.confusion for one in found if one.confusion is not None]
    return replace(
        first, num_rows=sum(sizes), values=values, confusion=np.sum(confusions, axis=0) if confusions else None
    )


def _joined(name: str, values: Sequence[float], sizes: Sequence[int]) -> Score:
    terms = np.square(values) if name in ROOTS else np.asarray(values)
    known = np.isfinite(terms)
    if not known.any():
        return Score(float("nan"), float("nan"))
    terms, weights = terms[known], np.asarray(sizes, float)[known]
    weights = weights / weights.sum()
    mean = float(weights @ terms)
    # Of parts of unlike sizes; with n alike it is the usual s/√n.
    num = len(terms)
    error = float(np.sqrt(np.sum(weights**2 * (terms - mean) ** 2) * num / (num - 1))) if num > 1 else float("nan")
    if name in ROOTS:
        root = float(np.sqrt(mean))
        return Score(root, error / (2 * root) if root else error)
    return Score(mean, error)
