"""Columns by number or by name, and how far each of them varies."""

from collections.abc import Sequence

import numpy as np

from credo._text import nearest

Column = int | str


def number_of(column: Column, names: Sequence[str]) -> int:
    """The number of a column of these names.

    >>> number_of("age", ["size", "age"])
    1
    """
    if isinstance(column, int):
        return column
    if column not in names:
        raise ValueError(f"there is no column {column!r}{nearest(column, names)}; there are {', '.join(names)}")
    return list(names).index(column)


def as_column(condition: str, column: object) -> Column:
    """A column as users pass it: a number from 0, or a name."""
    if isinstance(column, str):
        return column
    if not isinstance(column, int | np.integer) or isinstance(column, bool) or column < 0:
        raise ValueError(f"{condition}: a column is a number from 0 or a name, got {column!r}")
    return int(column)


def as_sign(condition: str, sign: object) -> int:
    """A direction as users pass it: "+" or 1, "-" or −1."""
    if isinstance(sign, bool) or sign not in ("+", "-", 1, -1):
        raise ValueError(f"{condition}: a sign is '+' or '-' (or 1 or -1), got {sign!r}")
    return 1 if sign in ("+", 1) else -1


def checked_columns(condition: str, columns: Sequence[Column], num_columns: int) -> list[int]:
    """The columns by number, if they are in range and no name is left that nobody has resolved."""
    numbers = []
    for column in columns:
        if isinstance(column, str):
            raise ValueError(
                f"{condition}: the inputs are an array without names, so column {column!r} cannot be found; "
                "pass the column's number, or inputs with names"
            )
        if column >= num_columns:
            raise ValueError(f"{condition}: there is no column {column}; there are {num_columns}, counted from 0")
        numbers.append(column)
    return numbers


def scales_of(points: np.ndarray) -> np.ndarray:
    """Standard deviations: one per column of a table, (columns,); one for all of what is no table, of a row's shape."""
    if points.ndim == 2:
        return points.std(axis=0, dtype=np.float64).astype(points.dtype)
    return np.full(points.shape[1:], points.std(dtype=np.float64), points.dtype)


def in_sds(points: np.ndarray) -> np.ndarray:
    """Points in units of the standard deviations of their columns; those that do not vary stay as they are."""
    scales = scales_of(points)
    return points / np.where(scales > 0, scales, 1)
