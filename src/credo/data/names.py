"""Names of columns: where a data frame has them, and how rows to predict are matched with those of the training."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def labels_of(values: Any) -> tuple[str, ...] | None:
    """Column names of a data frame, or the name of a series; None where columns are but counted.

    >>> import pandas
    >>> labels_of(pandas.DataFrame({"a": [1.0], "b": [2.0]})), labels_of(pandas.DataFrame([[1.0, 2.0]]))
    (('a', 'b'), None)
    """
    if hasattr(values, "columns"):
        found = list(values.columns)
    else:
        # Arrays of other libraries may have a name that is none of a column.
        found = [values.name] if hasattr(values, "to_frame") and getattr(values, "name", None) else []
    if all(isinstance(label, int | np.integer) for label in found):
        return None
    return tuple(map(str, found))


def per_column(argument: str, labels: Sequence[str] | None, x: np.ndarray) -> tuple[str, ...] | None:
    """A string for each column of x, or an error."""
    if labels is None:
        return None
    if isinstance(labels, str) or x.ndim != 2 or len(labels) != x.shape[1]:
        raise ValueError(
            f"{argument} is {labels!r} and x has shape {x.shape}; pass one string for each column of a 2-D x"
        )
    return tuple(map(str, labels))


def order_of(given: Sequence[str] | None, wanted: Sequence[str] | None, argument: str = "x") -> list[int] | None:
    """Where each of the wanted columns is among those given; None where they are in order, or either has no names.

    >>> order_of(["b", "a"], ["a", "b"])
    [1, 0]
    """
    if given is None or wanted is None or tuple(given) == tuple(wanted):
        return None
    places = {name: place for place, name in enumerate(given)}
    expected = set(wanted)
    faults = {
        "lacks": [name for name in wanted if name not in places],
        "also has": [name for name in given if name not in expected],
    }
    said = " and ".join(f"{what} {_listed(names)}" for what, names in faults.items() if names)
    if said or len(places) < len(given):
        what = said or "has several columns of one name, in another order"
        raise ValueError(
            f"{argument} {what}: the columns were {_listed(wanted)} in training; pass those, in any order, or "
            "an array, whose columns are taken by their position"
        )
    return [places[name] for name in wanted]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:8])) + (f", … ({len(names)} in all)" if len(names) > 8 else "")
