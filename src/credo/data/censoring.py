"""Censored targets: of some rows only a lower bound is known, as of lives that had not ended when the study did.

To those who take all of a target at once, models and metrics, it is two numbers: its value, and 1 where that is only a
bound, else 0.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from credo.data.missing import is_observed


def as_censored(censored: ArrayLike, y: np.ndarray) -> np.ndarray:
    """Which rows are censored, checked, as booleans.

    >>> as_censored([0, 1.0], np.array([2.0, 5.0]))
    array([False,  True])
    """
    if y.ndim > 1:
        raise ValueError(f"censored is for one target, and y has shape {y.shape}; fit one model for each target")
    flags = np.asarray(censored)
    if flags.shape != y.shape:
        raise ValueError(f"censored has shape {flags.shape} and y {y.shape}; pass one yes or no for each row")
    wrong = np.flatnonzero([flag not in (0, 1) for flag in flags.tolist()])
    if len(wrong):
        raise ValueError(
            f"censored holds {flags[wrong[0]].item()!r} in row {wrong[0]}; pass True or 1 where y is only a lower "
            "bound, False or 0 where it is the target itself"
        )
    return flags.astype(bool)


def joined(y: np.ndarray, censored: np.ndarray | None) -> np.ndarray:
    """Targets as models and metrics take them: (rows, 2) where some may be censored, else y.

    >>> joined(np.array([2.0, 5.0]), np.array([False, True]))
    array([[2., 0.],
           [5., 1.]])
    """
    if censored is None:
        return y
    return np.stack([y, np.where(is_observed(y), censored, np.nan)], axis=-1, dtype=y.dtype)


def parted(y: Any) -> tuple[Any, Any]:
    """The inverse of `joined`, of an array of NumPy's or JAX's: values, and which are censored."""
    return y[..., 0], y[..., 1] > 0


def require_uncensored(data: Any, what: str) -> None:
    """Refuse data of which some targets may be only lower bounds, for what needs the targets themselves."""
    if data.censored is not None:
        raise ValueError(
            f"{what} needs the targets themselves, and {data.censored.sum()} of {data.size} are censored; leave those "
            "rows out, data.select(~data.censored), if that is what you want to know"
        )
