"""Data of several tasks: one set for each, as one `Data` with a column that says whose row it is."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from credo.data.data import Data
from credo.data.given import as_data
from credo.data.scaling import Scaling, fitted

# The number of a task that the model has not seen.
NEW_TASK = -1
# The name of the column that holds the numbers.
TASK = "task"


def tasks_data(sets: Any, tasks: ArrayLike | None = None, *, standardise: bool = False) -> Data:
    """Data of several tasks, with the number of the task as one more, last column of x, which is never standardised.

    Predictions take the same rows; the number −1 stands for a task that was not there. See `credo.models.tasks`.

    Arguments:
        sets: one set for each task, a list or a dict by name, each `Data` or (x, y), of any sizes; or one set of the
            rows of all tasks, with `tasks`.
        tasks: for each row the name or the number of its task.
        standardise: whether the other columns, and targets that are numbers, get mean 0 and standard deviation 1.

    >>> data = tasks_data({"Bern": ([[1.0], [2.0]], [0.5, 1.0]), "Ulm": ([[4.0]], [3.0])})
    >>> data.tasks, data.x[:, -1]
    (('Bern', 'Ulm'), array([0., 0., 1.]))
    >>> tasks_data(([1.0, 2.0, 4.0], [0.5, 1.0, 3.0]), ["Bern", "Bern", "Ulm"]).tasks
    ('Bern', 'Ulm')
    """
    if tasks is not None:
        whole = as_data(sets)
        names, numbers = _numbered(tasks, whole.size)
    else:
        named = _named(sets)
        names = tuple(named)
        numbers = np.repeat(np.arange(len(names)), [one.size for one in named.values()])
        whole = _joined(named)
    if whole.x.ndim != 2:
        raise ValueError(f"x has shape {whole.x.shape}, and a task column needs rows of numbers; flatten the rows")
    columns = None if whole.names is None else (*whole.names, TASK)
    units = None if whole.units is None else (*whole.units, "")
    belongs = None if whole.columns is None else (*whole.columns, TASK)
    x = np.column_stack([whole.x, numbers])
    return replace(
        whole,
        x=x,
        names=columns,
        units=units,
        columns=belongs,
        tasks=names,
        standardise=standardise or whole.standardise,
    )


def packed_tasks(sets: Any, *, standardise: bool = False) -> Data:
    """Data with one *row* for each task: x (tasks, shots, D), and y (tasks, shots) with NaN where a set is shorter.

    It is for `credo.models.task_heads`, whose likelihood is that of a whole task.

    Arguments:
        sets: one set for each task, a list or a dict by name, each `Data` or (x, y).
        standardise: whether the columns and the targets of all tasks together get mean 0 and standard deviation 1.

    >>> data = packed_tasks([([[1.0], [2.0]], [0.5, 1.0]), ([[4.0]], [3.0])])
    >>> data.x.shape, data.y[1]
    ((2, 2, 1), array([ 3., nan]))
    """
    named = _named(sets)
    for name, one in named.items():
        if one.x.ndim != 2 or one.y.ndim != 1 or one.y.dtype.kind != "f":
            raise ValueError(
                f"task {name!r} has x of shape {one.x.shape} and y of {one.y.dtype} {one.y.shape}; a packed task has "
                "rows of numbers, and one number as the target of each"
            )
    whole = _joined(named)
    shots, width = max(one.size for one in named.values()), whole.x.shape[1]
    x = np.zeros((len(named), shots, width), whole.x.dtype)
    y = np.full((len(named), shots), np.nan, whole.y.dtype)
    for place, one in enumerate(named.values()):
        x[place, : one.size], y[place, : one.size] = one.x, one.y
    data = Data(x, y, target=whole.target, unit=whole.unit)
    # The names are those of the last axis, by which new tasks are matched.
    return data._changed(names=whole.names, scaling=fitted(whole.x, whole.y) if standardise else Scaling())


def _named(sets: Any) -> dict[str, Data]:
    """The sets by name, checked."""
    if isinstance(sets, Mapping):
        pairs = list(sets.items())
    elif isinstance(sets, Sequence) and not isinstance(sets, str | tuple):
        pairs = [(str(number), one) for number, one in enumerate(sets)]
    else:
        raise ValueError(
            f"sets is of type {type(sets).__name__}; pass a list of data sets, one for each task, a dict of them, or "
            "one set together with tasks=…"
        )
    if not pairs:
        raise ValueError("sets is empty; pass at least one data set")
    found = {}
    for name, one in pairs:
        if isinstance(one, tuple) and len(one) == 2 and np.size(one[1]) == 0:
            raise ValueError(f"task {str(name)!r} has no rows; leave it out: a new task needs none to be predicted")
        found[str(name)] = as_data(one)
    return found


def _joined(named: Mapping[str, Data]) -> Data:
    """The rows of all sets, one set after another."""
    first, *_ = named.values()
    for name, one in named.items():
        if one.x.shape[1:] != first.x.shape[1:] or one.y.shape[1:] != first.y.shape[1:]:
            raise ValueError(
                f"task {name!r} has rows of x {one.x.shape[1:]} and y {one.y.shape[1:]}, and the first has "
                f"{first.x.shape[1:]} and {first.y.shape[1:]}; all tasks share one network, so pass rows alike"
            )
    alike = [one.arranged(first.names) for one in named.values()]
    x, y = (np.concatenate([getattr(one, part) for one in alike]) for part in "xy")
    return replace(first, x=x, y=y)


def _numbered(tasks: ArrayLike, num_rows: int) -> tuple[tuple[str, ...], np.ndarray]:
    """The names of the tasks, and the number of each row's."""
    labels = np.asarray(tasks)
    if labels.shape != (num_rows,):
        raise ValueError(f"tasks has shape {labels.shape} for {num_rows} rows; pass one name or number for each")
    if labels.dtype.kind in "biu":
        empty = np.setdiff1d(np.arange(labels.max() + 1), labels)
        if labels.min() < 0 or len(empty):
            what = f"the number {labels.min()}" if labels.min() < 0 else f"no row of task {empty[0]}"
            raise ValueError(f"tasks has {what}; number them 0, 1, … without gaps, or pass names")
    elif labels.dtype.kind == "f":
        raise ValueError(f"tasks holds {labels.dtype}, and tasks are counted; pass whole numbers or names")
    names, numbers = np.unique(labels.astype(str) if labels.dtype.kind == "O" else labels, return_inverse=True)
    return tuple(map(str, names)), numbers
