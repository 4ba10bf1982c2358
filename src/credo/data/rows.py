"""Rows of inputs as a user passes them, checked, with the names of their columns."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from credo.data.arrays import numbers, require_finite
from credo.data.missing import MISSING_LABEL
from credo.data.names import labels_of, order_of, per_column


def inputs_and_names(x: ArrayLike, names: Sequence[str] | None = None) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """Checked inputs, and the names of their columns: a data frame brings its own."""
    inputs = numbers("x", x)
    inputs = inputs.astype(np.result_type(inputs.dtype, np.float32), copy=False)
    inputs = inputs[:, None] if inputs.ndim == 1 else inputs
    if 0 in inputs.shape[1:]:
        raise ValueError(f"x has shape {inputs.shape}, which holds no columns; pass at least one")
    columns = per_column("names", labels_of(x) if names is None else names, inputs)
    require_finite("x", inputs, columns)
    return inputs, columns


def task_names(tasks: Sequence[str], x: np.ndarray) -> tuple[str, ...]:
    if isinstance(tasks, str) or x.ndim != 2 or not np.isin(x[:, -1], np.arange(-1, len(tasks))).all():
        raise ValueError(
            f"tasks is {tasks!r}, and the last column of x (shape {x.shape}) does not hold their numbers, 0, 1, …, or "
            "−1 for another task; credo.tasks_data makes that column"
        )
    return tuple(map(str, tasks))


def with_unlabelled(
    x: np.ndarray, y: np.ndarray, unlabelled: ArrayLike, names: Sequence[str] | None
) -> tuple[np.ndarray, np.ndarray]:
    """Rows with a target, and after them those without."""
    more = numbers("unlabelled", unlabelled)
    more = more[:, None] if more.ndim == 1 else more
    if more.shape[1:] != x.shape[1:]:
        raise ValueError(
            f"unlabelled has rows of shape {more.shape[1:]}, and x of {x.shape[1:]}; pass inputs like those"
        )
    if (order := order_of(labels_of(unlabelled), names, "unlabelled")) is not None:
        more = more[:, order]
    require_finite("unlabelled", more, names)
    missing = np.full((len(more), *y.shape[1:]), np.nan if y.dtype.kind == "f" else MISSING_LABEL)
    return np.concatenate([x, more.astype(x.dtype)]), np.concatenate([y, missing.astype(y.dtype)])
