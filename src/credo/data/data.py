"""Data: arrays in the user's units, their scaling to units that suit a network, and splits."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from credo._precision import working_precision
from credo.data.arrays import numbers, require_finite
from credo.data.missing import MISSING_LABEL, has_target, is_observed
from credo.data.names import labels_of, order_of, per_column
from credo.data.scaling import Scaling, fitted
from credo.data.targets import as_labels, as_targets, class_names
from credo.typing import Batch


@dataclass(frozen=True, eq=False, init=False)
class Data:
    """N rows of inputs x and targets y, in the user's units.

    Integer targets are class labels: they are never scaled, and a batch holds them as int32. A regression
    model casts them to float itself; give it floats to have them standardised. Columns are standardised one by
    one, images (N, H, W, C) by channel, and images (N, H, W) as a whole, because a pixel that is nearly always 0
    has no scale of its own.

    Targets may be missing: NaN or None, for a row or for some of its outputs (`observed` says which are there). The
    likelihood leaves them out, N counts the rows with a target, and metrics skip what is missing. Rows without any are
    unlabelled: their inputs scale the columns, and a prior with a condition looks at them.

    Arguments:
        x: (N, D), (N,) for one column, or (N, …) for images: anything `np.asarray` takes, data frames included.
        y: (N,) or (N, K); (N, 1) becomes (N,).
        unlabelled: further inputs, like x, that have no target: rows with a missing y.
        standardise: whether the network sees columns of mean 0 and standard deviation 1.
        names: the columns of x; a data frame brings its own.
        target: the name of y; a named series brings its own.
        unit: the unit of y.
        units: the units of the columns of x.
        classes: names for the class labels 0, 1, …, shown in plots and reports.
        tasks: names of tasks, whose numbers are then the last column of x, never standardised: see `credo.tasks_data`.

    >>> data = Data([[1.0, 10.0], [3.0, 20.0]], [0.5, 1.5], standardise=True, names=["age", "dose"])
    >>> data
    Data(2 rows; x: age, dose; y: float; standardised)
    >>> print(data.batch().x)
    [[-1. -1.]
     [ 1.  1.]]
    """

    x: np.ndarray
    y: np.ndarray
    standardise: bool
    names: tuple[str, ...] | None
    target: str | None
    unit: str | None
    units: tuple[str, ...] | None
    classes: tuple[str, ...] | None
    tasks: tuple[str, ...] | None
    scaling: Scaling = field(init=False)
    capacity: int | None = field(init=False)

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        *,
        standardise: bool = False,
        names: Sequence[str] | None = None,
        target: str | None = None,
        unit: str | None = None,
        units: Sequence[str] | None = None,
        classes: Sequence[str] | None = None,
        unlabelled: ArrayLike | None = None,
        tasks: Sequence[str] | None = None,
    ) -> None:
        inputs, columns = _inputs(x, names)
        targets = as_targets(y)
        if len(inputs) != len(targets):
            raise ValueError(f"x has {len(inputs)} rows and y has {len(targets)}; pass one row of each per observation")
        if classes is not None:
            targets = as_labels(targets)
        if unlabelled is not None:
            inputs, targets = _with_unlabelled(inputs, targets, unlabelled, columns)
        own = labels_of(y) or ()
        # A frozen dataclass forbids assignment, even to its own constructor; its dictionary is open.
        self.__dict__.update(
            x=inputs,
            y=targets,
            standardise=standardise,
            names=columns,
            target=own[0] if target is None and len(own) == 1 else target,
            unit=unit,
            units=per_column("units", units, inputs),
            classes=class_names(classes, targets),
            tasks=None if tasks is None else _task_names(tasks, inputs),
            scaling=fitted(inputs, targets, but_last=tasks is not None) if standardise else Scaling(),
            capacity=None,
        )

    @property
    def size(self) -> int:
        """The number of rows, with and without a target."""
        return len(self.x)

    @cached_property
    def observed(self) -> np.ndarray:
        """Which targets are there, in the shape of y."""
        return np.asarray(is_observed(self.y))

    @cached_property
    def labelled(self) -> np.ndarray:
        """Which rows have a target, or some of their targets: (N,)."""
        return np.asarray(has_target(self.y))

    @property
    def num_labelled(self) -> int:
        """How many rows have a target: the N of the likelihood."""
        return int(self.labelled.sum())

    @property
    def has_gaps(self) -> bool:
        """Whether rows that have a target miss others."""
        return self.y.ndim > 1 and not self.observed[self.labelled].all()

    def only_labelled(self) -> "Data":
        """The rows with a target."""
        return self if self.num_labelled == self.size else self.select(self.labelled)

    def batch(self) -> Batch:
        """The rows with a target in standardised units, as JAX arrays in the working precision; labels are int32.

        Made once, and kept as long as the set: all its fits share one copy on the device.
        """
        precision = working_precision()
        if precision not in self._batches:
            self._batches[precision] = self._batch()
        return self._batches[precision]

    @cached_property
    def _batches(self) -> dict[Any, Batch]:
        return {}

    def _batch(self) -> Batch:
        seen = self.only_labelled()
        num = seen.size
        if self.capacity is not None:
            rows = np.arange(max(self.capacity, num))
            seen = seen.select(np.where(rows < num, rows, 0))
        # Fresh arrays that nobody else writes to: JAX may take x as it is, where asarray would make two copies.
        x, y = jax.device_put(seen.scaling.inputs(seen.x), may_alias=True), jnp.asarray(seen.scaling.targets(seen.y))
        return Batch(x, y, num, num=None if self.capacity is None else num)

    def padded(self, capacity: int) -> "Data":
        """The same rows, for fits to data that grow: what is compiled for one of them serves up to `capacity` rows.

        A batch has that many rows, of which those with a target count and the others are repeated ones; the posterior
        is that of the rows themselves.

        >>> Data([1.0, 2.0, 3.0], [0, 1, 1]).padded(5).batch().y.tolist()
        [0, 1, 1, 0, 0]
        """
        if capacity < self.num_labelled:
            raise ValueError(f"capacity is {capacity}, and {self.num_labelled} rows have a target; pass at least that")
        return self._changed(capacity=capacity)

    def with_labels(self) -> "Data":
        """The same rows with class labels, where y holds whole numbers and gaps, for which NumPy has only floats."""
        labels = as_labels(self.y)
        if labels is self.y:
            return self
        scaling = replace(self.scaling, y_mean=np.zeros(()), y_scale=np.ones(()))
        return self._changed(y=labels, scaling=scaling)

    def with_targets(self, y: ArrayLike) -> "Data":
        """The same inputs, under the same scaling, with other targets; standardised numbers are scaled by the new ones.

        >>> Data([1.0, 2.0, 3.0], [0, None, None]).with_targets([0, None, 1]).num_labelled
        2
        """
        targets = as_targets(y)
        if len(targets) != self.size:
            raise ValueError(f"y has {len(targets)} rows, and there are {self.size} of x; pass one for each")
        if not self.standardise or targets.dtype.kind != "f":
            return self._changed(y=targets)
        own = fitted(self.x[:1], targets)
        return self._changed(y=targets, scaling=replace(self.scaling, y_mean=own.y_mean, y_scale=own.y_scale))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in _DERIVED}

    def with_scaling(self, scaling: Scaling) -> "Data":
        """The same rows under another scaling, which splits of them keep."""
        return self._changed(scaling=scaling, standardise=False)

    def select(self, rows: ArrayLike) -> "Data":
        """Some of the rows, by index or by mask, under the same scaling."""
        rows = np.atleast_1d(rows)
        if rows.size == 0 or (rows.dtype == bool and not rows.any()):
            raise ValueError("rows selects nothing; pass at least one index, or a mask with one True")
        if rows.ndim > 1 or rows.dtype.kind not in "biu" or (rows.dtype == bool and len(rows) != self.size):
            raise ValueError(
                f"rows is {rows.dtype} of shape {rows.shape}; pass whole numbers, or a mask of {self.size} booleans"
            )
        if rows.dtype != bool and not (-self.size <= rows.min() and rows.max() < self.size):
            raise ValueError(
                f"rows holds indices from {rows.min()} to {rows.max()}, and there are {self.size} rows; "
                f"pass 0 to {self.size - 1}, or −{self.size} to −1 to count from the end"
            )
        return self._changed(x=self.x[rows], y=self.y[rows])

    def arranged(self, columns: Sequence[str] | None) -> "Data":
        """The same rows with their columns in that order, by name; as they are where there are no names.

        >>> Data([[1.0, 2.0]], [0.5], names=["b", "a"]).arranged(["a", "b"]).x
        array([[2., 1.]])
        """
        order = order_of(self.names, columns)
        if order is None:
            return self
        units = None if self.units is None else tuple(self.units[place] for place in order)
        moments = {name: getattr(self.scaling, name) for name in ("x_mean", "x_scale")}
        scaling = replace(
            self.scaling, **{name: value[order] if value.ndim else value for name, value in moments.items()}
        )
        return self._changed(x=self.x[..., order], names=tuple(columns or ()), units=units, scaling=scaling)

    def partition(self, train: ArrayLike, test: ArrayLike) -> tuple["Data", "Data"]:
        """Two sets of rows; if this set is standardised, so are both, by the scaling of `train` alone."""
        part = self.select(train)
        if self.standardise:
            # The constructor fits the scaling to the rows that are left.
            part = replace(part)._changed(capacity=self.capacity)
        return part, self.select(test).with_scaling(part.scaling)

    def split(self, fraction: float = 0.1, *, seed: int = 0, stratify: bool = False) -> tuple["Data", "Data"]:
        """A random (train, test), with `fraction` of the rows for testing.

        `stratify` gives both parts the same share of every label, to within a row. Both have the same share of rows
        without a target in any case, and at least one with.
        """
        if not 0 < fraction < 1:
            raise ValueError(f"fraction is {fraction}; it is the share of rows for testing, between 0 and 1")
        if self.size < 2:
            raise ValueError("x has 1 row; a split needs at least 2")
        if stratify and (self.y.ndim > 1 or self.y.dtype.kind == "f"):
            raise ValueError(
                f"stratify needs an integer label per row, and y is {self.y.dtype} of shape {self.y.shape}; "
                "pass integer labels, or stratify=False"
            )
        order = np.random.default_rng(seed).permutation(self.size)
        labelled = self.labelled[order]
        chosen = self._share_of(order[labelled], fraction, stratify)
        if not labelled.all():
            chosen = np.concatenate([chosen, self._share_of(order[~labelled], fraction)])
        in_test = np.isin(np.arange(self.size), chosen)
        return self.partition(~in_test, in_test)

    def _share_of(self, rows: np.ndarray, fraction: float, stratify: bool = False) -> np.ndarray:
        """A fraction of some rows, at least one of two."""
        num = min(max(round(fraction * len(rows)), 1), max(len(rows) - 1, 0))
        if not stratify:
            return rows[:num]
        # Equally spaced rows of a list sorted by label visit every label in proportion.
        rows = rows[np.argsort(self.y[rows], kind="stable")]
        return rows[((np.arange(num) + 0.5) * len(rows) / num).astype(int)]

    def __repr__(self) -> str:
        names = self.names or ()
        columns = ", ".join(names) if 0 < len(names) <= 4 else f"shape {self.x.shape[1:]}"
        known = self.y[self.observed]
        kind = "float" if self.y.dtype.kind == "f" else f"labels {known.min()} to {known.max()}"
        target = " ".join(filter(None, [self.target, f"[{self.unit}]" if self.unit else None, kind]))
        outputs = f" × {self.y.shape[1]}" if self.y.ndim == 2 else ""
        scaled = "" if self.scaling.is_identity else "; standardised"
        rows = f"{self.size} rows" + (
            f", {self.size - self.num_labelled} unlabelled" if self.num_labelled < self.size else ""
        )
        return f"Data({rows}; x: {columns}; y: {target}{outputs}{scaled})"

    def _changed(self, **changes: Any) -> "Data":
        """A copy with some fields changed, not checked again."""
        other = copy.copy(self)
        other.__dict__.update(changes)
        return other


# What is computed from the rows: a copy may be about to change, and computes it anew.
_DERIVED = ("_batches", "observed", "labelled")


def as_data(data: Data | tuple[ArrayLike, ArrayLike], *, standardise: bool = False) -> Data:
    """`Data` from a tuple (x, y); a `Data` that already has a scaling keeps it, whatever `standardise` says.

    >>> as_data(([1.0, 2.0, 3.0], [0, 1, 1])).x.shape
    (3, 1)
    """
    if isinstance(data, Data):
        return replace(data, standardise=True) if standardise and data.scaling.is_identity else data
    if not isinstance(data, tuple):
        raise TypeError(f"data is of type {type(data).__name__}; pass credo.Data or a tuple (x, y)")
    if len(data) != 2:
        raise ValueError(f"data is a tuple of {len(data)}; pass two arrays, (x, y)")
    return Data(*data, standardise=standardise)


def as_inputs(
    x: ArrayLike | Data, like: tuple[int, ...] | None = None, columns: Sequence[str] | None = None
) -> np.ndarray:
    """Inputs alone, checked, in the user's units: (N, …), each row of the shape `like` that rows had in training.

    Columns with names are put into the order of `columns`, those of the training; others are taken as they stand.

    >>> as_inputs([1, 2, 3], like=(1,)).shape
    (3, 1)
    """
    inputs, names = (x.x, x.names) if isinstance(x, Data) else _inputs(x)
    if inputs.ndim == 2 and (order := order_of(names, columns)) is not None:
        inputs = inputs[:, order]
    if like is not None and inputs.shape[1:] != tuple(like):
        hint = "; for one row, pass x[None]" if tuple(like) in (inputs.shape, inputs.shape[:-1]) else ""
        raise ValueError(
            f"x has rows of shape {inputs.shape[1:]}, and the model was trained on rows of {tuple(like)}; "
            f"pass x of shape (N, {', '.join(map(str, like))}){hint}"
        )
    return inputs


def _inputs(x: ArrayLike, names: Sequence[str] | None = None) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """Checked inputs, and the names of their columns: a data frame brings its own."""
    inputs = numbers("x", x)
    inputs = inputs.astype(np.result_type(inputs.dtype, np.float32), copy=False)
    inputs = inputs[:, None] if inputs.ndim == 1 else inputs
    if 0 in inputs.shape[1:]:
        raise ValueError(f"x has shape {inputs.shape}, which holds no columns; pass at least one")
    columns = per_column("names", labels_of(x) if names is None else names, inputs)
    require_finite("x", inputs, columns)
    return inputs, columns


def _task_names(tasks: Sequence[str], x: np.ndarray) -> tuple[str, ...]:
    if isinstance(tasks, str) or x.ndim != 2 or not np.isin(x[:, -1], np.arange(-1, len(tasks))).all():
        raise ValueError(
            f"tasks is {tasks!r}, and the last column of x (shape {x.shape}) does not hold their numbers, 0, 1, …, or "
            "−1 for another task; credo.tasks_data makes that column"
        )
    return tuple(map(str, tasks))


def _with_unlabelled(
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
