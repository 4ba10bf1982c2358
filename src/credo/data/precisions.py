"""Precisions: how much less the target of a row scatters than that of others, y ~ f(x) + noise of variance σ²/w.

A mean of w measurements has the precision w of one. That is another thing than w rows: see `counts` of `credo.Data`.
"""

from typing import Any

import numpy as np

from credo.data.belonging import weights_of
from credo.data.targets import as_numbers


def as_precisions(precisions: Any, num_rows: int) -> np.ndarray:
    """w of each row, (rows,): finite, and above zero.

    >>> as_precisions([2, 0.5], 2).tolist()
    [2.0, 0.5]
    """
    return weights_of(
        "precisions",
        precisions,
        num_rows,
        lambda values: values > 0,
        "w of the variance σ²/w of its noise, a number above zero; to leave a row out, give it no target",
    )


def to_be_weighed(y: np.ndarray) -> np.ndarray:
    """Targets that may have precisions: numbers, whole ones as floats."""
    if y.ndim > 2:
        raise ValueError(f"precisions are for one number in each row, or several, and y has shape {y.shape}")
    return as_numbers(y).astype(np.result_type(y.dtype, np.float32))


def with_precisions(y: np.ndarray, precisions: np.ndarray | None) -> np.ndarray:
    """Targets as models take them: with a last column of precisions, if there are any.

    >>> with_precisions(np.array([2.0, 5.0]), np.array([1.0, 4.0]))
    array([[2., 1.],
           [5., 4.]])
    """
    if precisions is None:
        return y
    return np.concatenate([to_be_weighed(y).reshape(len(y), -1), precisions[:, None]], axis=1)


def require_equal_precisions(data: Any, what: str) -> None:
    """Refuse data whose rows have precisions of their own, for what takes all rows alike."""
    if data.precisions is not None:
        raise ValueError(f"{what} takes all rows to be measured alike, and these have precisions; leave these out")
