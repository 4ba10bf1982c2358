"""Missing targets: how users write them, and how arrays hold them: NaN for a number, `MISSING_LABEL` for a label."""

from typing import Any

import numpy as np

# A label that nobody can have given: users' labels fit into 32 bits together with their negatives.
MISSING_LABEL = int(np.iinfo(np.int32).min)


def is_observed(y: Any) -> Any:
    """Which targets are there, in the shape of y, an array of NumPy's or JAX's.

    >>> print(is_observed(np.array([0.5, np.nan])))
    [ True False]
    """
    return y == y if y.dtype.kind == "f" else y != MISSING_LABEL


def has_target(y: Any) -> Any:
    """Which rows have a target, or some of their targets, (rows,).

    >>> print(has_target(np.array([[0.5, np.nan], [np.nan, np.nan]])))
    [ True False]
    """
    return is_observed(y).any(axis=tuple(range(1, y.ndim)))


def filled(y: Any) -> Any:
    """Targets with None, masked or otherwise missing entries as an array that holds them.

    >>> filled([0.5, None]), filled([2, None])[0]
    (array([0.5, nan]), np.int64(2))
    """
    if isinstance(y, np.ma.MaskedArray):
        missing, values = np.ma.getmaskarray(y), np.ma.getdata(y)
    else:
        try:
            values = np.asarray(y)
        except Exception:  # rows of different lengths, or of a type without an array: the caller refuses them
            return y
        if values.dtype.kind == "f" and str(getattr(y, "dtype", "")).startswith(("Int", "UInt")):
            # A column of whole numbers with nulls, of pandas or polars, for which NumPy has only floats.
            return np.where(is_observed(values), values, MISSING_LABEL).astype(np.int64)
        if values.dtype != object:
            return values
        missing = np.vectorize(is_nothing, otypes=[bool])(values)
    if not missing.any() or missing.all():
        return np.full(values.shape, np.nan) if values.size and missing.all() else values
    known = np.asarray(values[~missing].tolist())
    if known.dtype.kind not in "biuf":
        return values
    whole = np.empty(values.shape, np.float64 if known.dtype.kind == "f" else np.int64)
    whole[~missing], whole[missing] = known, np.nan if whole.dtype.kind == "f" else MISSING_LABEL
    return whole


def is_nothing(value: Any) -> bool:
    """Whether a single value says that there is none.

    >>> [is_nothing(value) for value in (None, float("nan"), 0.0)]
    [True, True, False]
    """
    # pandas' NA and NaT cannot be compared, not even with themselves.
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )
