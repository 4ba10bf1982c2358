"""Whatever a user passes as an array of numbers, or an error that names it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from credo._text import in_one_line


def numbers(argument: str, values: ArrayLike) -> np.ndarray:
    """Values of any array-like type as an array of numbers with at least one row."""
    if np.ma.is_masked(values):
        raise ValueError(f"{argument} has masked entries; remove those rows, or fill them with .filled(value)")
    try:
        array = np.asarray(values)
    except Exception as error:  # of whatever library the values are from
        raise ValueError(f"{argument} is not an array: {error}; pass rows of equal length, of numbers") from error
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"{argument} has dtype {array.dtype}; pass real numbers: encode text and categories first, and "
            "cast columns of mixed types with .astype(float)"
        )
    if array.ndim == 0:
        raise ValueError(f"{argument} is the single number {array}; pass an array with one row per observation")
    if len(array) == 0:
        raise ValueError(f"{argument} has shape {array.shape}, which is empty; pass at least one row")
    # Nothing that is stored or computed has more digits than double precision.
    return array.astype(np.float64) if array.dtype == np.longdouble else array


def require_finite(
    argument: str, values: np.ndarray, names: Sequence[str] | None = None, *, gaps: bool = False
) -> None:
    """Refuse what single precision cannot hold; with `gaps`, NaN stands for a missing value."""
    limit = np.finfo(np.float32).max
    if -limit <= values.min() and values.max() <= limit:  # false for NaN too, and makes no copy of a large set
        return
    bad = np.argwhere(~((np.abs(values) <= limit) | (np.isnan(values) & gaps)))
    if not len(bad):
        return
    row, *rest = map(int, bad[0])
    place = f"row {row}"
    if len(rest) == 1:
        place += f", column {rest[0]}" + (f" ({in_one_line(names[rest[0]], 60)})" if names is not None else "")
    elif rest:
        place += f", position {tuple(rest)}"
    raise ValueError(
        f"{argument} has values that are NaN, infinite or too large for single precision ({len(bad)} of "
        f"{values.size}), the first ({values[tuple(bad[0])]}) in {place}; remove those rows, or fill them in"
    )
