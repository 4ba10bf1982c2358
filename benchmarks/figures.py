"""Means with their errors, and how they stand in a table."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np


class Figure(NamedTuple):
    """A mean and its error; None where none was printed."""

    mean: float
    error: float | None = None


def mean_of(values: Iterable[float]) -> Figure | None:
    """Mean and standard error; one value has no error."""
    scores = list(values)
    if not scores:
        return None
    error = float(np.std(scores, ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else None
    return Figure(float(np.mean(scores)), error)


def cell(figure: Figure | None, plain: bool = False) -> str:
    """A figure with its error, or as a plain whole number."""
    if figure is None:
        return "–"
    if plain:
        return f"{figure.mean:.0f}"
    # Errors of naval are a ten-thousandth: three digits of what is small, two decimals of the rest.
    digits = ".2f" if abs(figure.mean) >= 0.01 or figure.mean == 0 else ".2g"
    return f"{figure.mean:{digits}}" + ("" if figure.error is None else f" ± {figure.error:.2g}")
