"""Columns that hold means of the target: learned from a table, and told to the network without what it is to learn."""

from collections.abc import Sequence

import numpy as np

from credo.tables.cells import clean
from credo.tables.column import Column
from credo.tables.cross_fitting import cross_fitted, folds_of, with_effects
from credo.tables.levels import ByTarget
from credo.tables.table import Table


def are_in(columns: Sequence[Column]) -> bool:
    """Whether any of the columns holds means of the target."""
    return any(isinstance(column, ByTarget) for column in columns)


def learned(columns: Sequence[Column], table: Table, y: np.ndarray, outputs: tuple[str, ...]) -> tuple[Column, ...]:
    """The columns with the effects of their levels on the target.

    Arguments:
        y: what is averaged of the targets, (rows, outputs), as `averaged` gives it.
        outputs: the same in words.
    """
    places = _places(columns, table)
    return tuple(
        with_effects(column, places[column.name], y, outputs) if isinstance(column, ByTarget) else column
        for column in columns
    )


def of_other_rows(
    columns: Sequence[Column], table: Table, y: np.ndarray, x: np.ndarray, groups: np.ndarray | None = None
) -> np.ndarray:
    """x of the rows that the columns were learned from, with effects from other folds than a row's own.

    Arguments:
        y: as for `learned`.
        x: what the columns make of the table, (rows, …).
        groups: rows that are to be in one fold, (rows,); each for itself by default.
    """
    places = _places(columns, table)
    folds, found, first = folds_of(np.arange(len(x)) if groups is None else groups), x.copy(), 0
    for column in columns:
        if isinstance(column, ByTarget):
            values = cross_fitted(column, places[column.name], y, folds)
            found[:, first : first + values.shape[1]] = values
        first += len(column.names)
    return found


def _places(columns: Sequence[Column], table: Table) -> dict[str, np.ndarray]:
    """The level of each row in those columns."""
    found: dict[str, list[np.ndarray]] = {column.name: [] for column in columns if isinstance(column, ByTarget)}
    for batch in table.batches():
        for column in columns:
            if isinstance(column, ByTarget):
                found[column.name].append(column.places(clean(batch[column.name])))
    return {name: np.concatenate(places) for name, places in found.items()}
