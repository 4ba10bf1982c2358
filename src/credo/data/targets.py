"""Targets: real numbers or class labels, some of which may be missing."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from credo.data.arrays import numbers, require_finite
from credo.data.missing import MISSING_LABEL, filled, is_observed


def as_targets(y: ArrayLike) -> np.ndarray:
    """Checked targets: real numbers, of which some may be missing, or class labels."""
    targets = numbers("y", filled(y))
    targets = targets[:, 0] if targets.ndim == 2 and targets.shape[1] == 1 else targets
    if 0 in targets.shape[1:]:
        raise ValueError(f"y has shape {targets.shape}, which holds no targets; pass at least one column")
    if targets.dtype.kind == "f":
        targets = targets.astype(np.result_type(targets.dtype, np.float32), copy=False)
        require_finite("y", targets, gaps=True)
    elif targets.dtype.kind == "b":
        targets = targets.astype(np.int32)
    elif max(-int(targets.min()) - 1, int(targets.max())) > np.iinfo(np.int32).max:
        raise ValueError("y holds integers beyond 32 bits, too large for labels; pass floats for a regression")
    _require_some(is_observed(targets))
    return targets


def _require_some(observed: np.ndarray) -> None:
    """Refuse targets, or an output of several, of which none is there."""
    if not observed.any():
        raise ValueError("y has no value at all: all targets are missing; pass the target of at least one row")
    empty = np.flatnonzero(~observed.reshape(len(observed), -1).any(axis=0))
    if len(empty):
        raise ValueError(f"y has no value in column {empty[0]}: all of that target are missing; leave the column out")


def as_labels(y: np.ndarray) -> np.ndarray:
    """Whole numbers with NaN among them as labels with `MISSING_LABEL`; anything else as it is."""
    return y if is_observed(y).all() else as_whole(y)


def as_whole(y: np.ndarray) -> np.ndarray:
    """Whole numbers as integers, which are never scaled; anything else as it is.

    >>> as_whole(np.array([2.0, 0.0])), as_whole(np.array([0.5]))
    (array([2, 0], dtype=int32), array([0.5]))
    """
    if y.dtype.kind != "f":
        return y
    known = y[np.isfinite(y)]
    if not np.array_equal(known, np.round(known)) or np.any(np.abs(known) > np.iinfo(np.int32).max):
        return y
    return np.where(np.isfinite(y), y, MISSING_LABEL).astype(np.int32)


def as_numbers(y: np.ndarray) -> np.ndarray:
    """Integers as floats, with NaN where they are missing; floats as they are.

    >>> as_numbers(np.array([2, MISSING_LABEL]))
    array([ 2., nan])
    """
    return y if y.dtype.kind == "f" else np.where(is_observed(y), y, np.nan)


def class_names(classes: Sequence[str] | None, targets: np.ndarray) -> tuple[str, ...] | None:
    """A name for each class label of the targets."""
    if classes is None:
        return None
    if targets.dtype.kind == "f":
        raise ValueError(f"classes names class labels, and y is {targets.dtype}; pass integer labels, or no classes")
    if isinstance(classes, str) or len(classes) <= targets.max():
        raise ValueError(f"classes is {classes!r}, and y has labels up to {targets.max()}; pass one name for each")
    return tuple(map(str, classes))
