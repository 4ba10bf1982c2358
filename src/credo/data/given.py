"""What a user passes as data or as inputs, checked."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from credo.data.data import Data
from credo.data.file_data import FileData, FileInputs
from credo.data.names import order_of
from credo.data.rows import inputs_and_names


def as_data(data: Data | tuple[ArrayLike, ArrayLike], *, standardise: bool = False) -> Data:
    """`Data` from a tuple (x, y); a `Data` that already has a scaling keeps it, whatever `standardise` says.

    >>> as_data(([1.0, 2.0, 3.0], [0, 1, 1])).x.shape
    (3, 1)
    """
    if isinstance(data, FileData):
        raise ValueError(
            f"data is {data.size:,} rows in files, and this takes rows in memory; pass some of them, data.read(0, "
            "10_000), or go over data.blocks()"
        )
    if isinstance(data, Data):
        return replace(data, standardise=True) if standardise and data.scaling.is_identity else data
    if not isinstance(data, tuple):
        raise TypeError(f"data is of type {type(data).__name__}; pass credo.Data or a tuple (x, y)")
    if len(data) != 2:
        raise ValueError(f"data is a tuple of {len(data)}; pass two arrays, (x, y)")
    return Data(*data, standardise=standardise)


def as_inputs(
    x: ArrayLike | Data | FileData, like: tuple[int, ...] | None = None, columns: Sequence[str] | None = None
) -> np.ndarray:
    """Inputs alone, checked, in the user's units: (N, …), each row of the shape `like` that rows had in training.

    Columns with names are put into the order of `columns`, those of the training; others are taken as they stand.
    Rows in files stay there: what comes back reads the slices that it is asked for.

    >>> as_inputs([1, 2, 3], like=(1,)).shape
    (3, 1)
    """
    inputs: Any
    if isinstance(x, FileData):
        order = order_of(x.names, columns) if len(x.rows.x_shape) == 1 else None
        inputs = FileInputs(x, None if order is None else tuple(order))
    else:
        inputs, names = (x.x, x.names) if isinstance(x, Data) else inputs_and_names(x)
        if inputs.ndim == 2 and (order := order_of(names, columns)) is not None:
            inputs = inputs[:, order]
    if like is not None and inputs.shape[1:] != tuple(like):
        hint = "; for one row, pass x[None]" if tuple(like) in (inputs.shape, inputs.shape[:-1]) else ""
        raise ValueError(
            f"x has rows of shape {inputs.shape[1:]}, and the model was trained on rows of {tuple(like)}; "
            f"pass x of shape (N, {', '.join(map(str, like))}){hint}"
        )
    return inputs
