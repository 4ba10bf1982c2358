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
from credo.data.belonging import as_counts, as_groups, as_times, held_out, one_each, share_of
from credo.data.censoring import as_censored, joined
from credo.data.described import described
from credo.data.from_torch import arrays_of
from credo.data.missing import has_target, is_observed
from credo.data.names import labels_of, order_of, per_column
from credo.data.precisions import as_precisions, to_be_weighed, with_precisions
from credo.data.rows import inputs_and_names, task_names, with_unlabelled
from credo.data.scaling import Scaling, fitted
from credo.data.targets import as_labels, as_numbers, as_targets, class_names
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
        censored: (N,) booleans, True where y is only a lower bound of the target: a duration that has not ended yet.
        groups: (N,), equal for rows that belong together, such as those of a patient: no split cuts a group.
        times: (N,), numbers or dates: the rows that a split holds out are then the latest.
        counts: (N,), how often each row was seen: its likelihood to that power, so that 2 is the row twice. Any numbers
            from zero on; a row with 0 is left out. They are replicates, not precisions.
        precisions: (N,), how precisely each row was measured, for noise of variance σ²/w, σ² that of w = 1: above zero,
            and near 1 where the noise is learned.
        columns: for each number of x the column of a table that it tells of, where one became several numbers.

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
    censored: np.ndarray | None
    groups: np.ndarray | None
    times: np.ndarray | None
    counts: np.ndarray | None
    precisions: np.ndarray | None
    columns: tuple[str, ...] | None
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
        censored: ArrayLike | None = None,
        columns: Sequence[str] | None = None,
        groups: ArrayLike | None = None,
        times: ArrayLike | None = None,
        counts: ArrayLike | None = None,
        precisions: ArrayLike | None = None,
    ) -> None:
        inputs, own_names = inputs_and_names(x, names)
        targets = as_targets(y)
        if censored is not None:
            targets = as_numbers(targets).astype(np.result_type(targets.dtype, np.float32))
            censored = as_censored(censored, targets)
        if precisions is not None and classes is None:
            targets = to_be_weighed(targets)
        if len(inputs) != len(targets):
            raise ValueError(f"x has {len(inputs)} rows and y has {len(targets)}; pass one row of each per observation")
        if classes is not None:
            targets = as_labels(targets)
        if unlabelled is not None:
            inputs, targets = with_unlabelled(inputs, targets, unlabelled, own_names)
            censored = None if censored is None else np.pad(censored, (0, len(targets) - len(censored)))
        own, often = labels_of(y) or (), as_counts(counts, len(inputs))
        # A frozen dataclass forbids assignment, even to its own constructor; its dictionary is open.
        self.__dict__.update(
            x=inputs,
            y=targets,
            standardise=standardise,
            names=own_names,
            target=own[0] if target is None and len(own) == 1 else target,
            unit=unit,
            units=per_column("units", units, inputs),
            classes=class_names(classes, targets),
            tasks=None if tasks is None else task_names(tasks, inputs),
            censored=censored,
            columns=per_column("columns", columns, inputs),
            groups=as_groups(groups, len(inputs)),
            times=as_times(times, len(inputs)),
            counts=often,
            precisions=None if precisions is None else as_precisions(precisions, len(inputs)),
            scaling=fitted(inputs, targets, often, but_last=tasks is not None) if standardise else Scaling(),
            capacity=None,
        )

    @classmethod
    def from_torch(cls, dataset: Any, *, columns: tuple[str, str] | None = None, **options: Any) -> "Data":
        """The rows of a PyTorch dataset or loader of pairs (x, y), or of a Hugging Face dataset; images as they come.

        `columns` says which columns are x and y where their names do not tell; `options` are those of `Data` itself.

        >>> Data.from_torch([([1.0, 2.0], 0), ([3.0, 4.0], 1)])
        Data(2 rows; x: shape (2,); y: labels 0 to 1)
        """
        x, y, classes = arrays_of(dataset, columns)
        return cls(x, y, **{"classes": classes} | options)

    @staticmethod
    def open(source: Any, **options: Any) -> Any:
        """Rows in files that need not fit into memory, with the options of `credo.data.FileData.open`."""
        from credo.data.file_data import FileData  # which stands on this class

        return FileData.open(source, **options)

    @property
    def size(self) -> int:
        """The number of rows, with and without a target."""
        return len(self.x)

    def probes(self, num: int) -> np.ndarray:
        """So many inputs at equal distances, or all, in the user's units."""
        return self.x[np.linspace(0, self.size - 1, min(num, self.size)).round().astype(int)]

    @cached_property
    def observed(self) -> np.ndarray:
        """Which targets are there, in the shape of y."""
        return np.asarray(is_observed(self.y))

    @cached_property
    def labelled(self) -> np.ndarray:
        """Which rows have a target, or some of their targets, and were seen at all: (N,)."""
        there = np.asarray(has_target(self.y))
        return there if self.counts is None else there & (self.counts > 0)

    @property
    def num_labelled(self) -> int:
        """How many rows have a target: the N of the likelihood."""
        return int(self.labelled.sum())

    @property
    def outcomes(self) -> np.ndarray:
        """The targets as metrics take them: y, beside a column of 1 where it is censored, if any may be."""
        return joined(self.y, self.censored)

    @property
    def seen(self) -> np.ndarray:
        """Which rows have a target that is no mere bound: (N,)."""
        return self.labelled if self.censored is None else self.labelled & ~self.censored

    @property
    def scaled_outcomes(self) -> np.ndarray:
        """The same as models take them, in standardised units; a last column holds precisions, if there are any."""
        return with_precisions(joined(self.scaling.targets(self.y), self.censored), self.precisions)

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
        x, y = jax.device_put(seen.scaling.inputs(seen.x), may_alias=True), jnp.asarray(seen.scaled_outcomes)
        found = Batch(x, y, num, num=None if self.capacity is None else num)
        if seen.counts is None:
            return found
        total = float(seen.counts[:num].sum())
        counts = jnp.asarray(seen.counts, working_precision())
        return found._replace(total=total, counts=counts, mean_count=total / num)

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
        return self if labels is self.y else self.with_unit(labels)

    def with_unit(self, y: np.ndarray, unit: float = 1.0) -> "Data":
        """The same rows with targets that the network sees in that unit, and not standardised; splits keep it.

        >>> Data([1.0, 2.0], [100.0, 300.0], standardise=True).with_unit(np.array([100.0, 300.0]), 200.0).batch().y
        Array([0.5, 1.5], dtype=float32)
        """
        scaling = replace(self.scaling, y_mean=np.zeros(()), y_scale=np.asarray(unit, np.float64))
        if y is self.y and np.array_equal(scaling.y_scale, self.scaling.y_scale) and not np.any(self.scaling.y_mean):
            return self
        # Integers are not standardised in any case, and splits may scale their inputs anew.
        return self._changed(y=y, scaling=scaling, standardise=self.standardise and y.dtype.kind != "f")

    def with_targets(self, y: ArrayLike) -> "Data":
        """The same inputs, under the same scaling, with other targets, all seen; numbers are scaled by the new ones.

        >>> Data([1.0, 2.0, 3.0], [0, None, None]).with_targets([0, None, 1]).num_labelled
        2
        """
        targets = as_targets(y)
        if len(targets) != self.size:
            raise ValueError(f"y has {len(targets)} rows, and there are {self.size} of x; pass one for each")
        if not self.standardise or targets.dtype.kind != "f":
            return self._changed(y=targets, censored=None)
        own = fitted(self.x[:1], targets)
        return self._changed(
            y=targets, censored=None, scaling=replace(self.scaling, y_mean=own.y_mean, y_scale=own.y_scale)
        )

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
        others = {name: value[rows] for name in PER_ROW if (value := getattr(self, name)) is not None}
        return self._changed(x=self.x[rows], y=self.y[rows], **others)

    def followed_by(self, *others: "Data") -> "Data":
        """The rows of several sets one after another, under the scaling of the first."""
        whole = (self, *others)
        known = [name for name in PER_ROW if all(getattr(one, name) is not None for one in whole)]
        joined = {name: np.concatenate([getattr(one, name) for one in whole]) for name in ("x", "y", *known)}
        joined |= one_each("counts", whole) | one_each("precisions", whole)
        return self._changed(**(dict.fromkeys(PER_ROW) | joined))

    def arranged(self, columns: Sequence[str] | None) -> "Data":
        """The same rows with their columns in that order, by name; as they are where there are no names.

        >>> Data([[1.0, 2.0]], [0.5], names=["b", "a"]).arranged(["a", "b"]).x
        array([[2., 1.]])
        """
        order = order_of(self.names, columns)
        if order is None:
            return self
        units, own = (
            None if one is None else tuple(one[place] for place in order) for one in (self.units, self.columns)
        )
        moments = {name: getattr(self.scaling, name) for name in ("x_mean", "x_scale")}
        scaling = replace(
            self.scaling, **{name: value[order] if value.ndim else value for name, value in moments.items()}
        )
        return self._changed(
            x=self.x[..., order], names=tuple(columns or ()), units=units, columns=own, scaling=scaling
        )

    def partition(self, train: ArrayLike, test: ArrayLike) -> tuple["Data", "Data"]:
        """Two sets of rows; if this set is standardised, so are both, by the scaling of `train` alone."""
        part = self.select(train)
        if self.standardise:
            part = part._changed(scaling=fitted(part.x, part.y, part.counts, but_last=self.tasks is not None))
        return part, self.select(test).with_scaling(part.scaling)

    def split(self, fraction: float = 0.1, *, seed: int = 0, stratify: bool = False) -> tuple["Data", "Data"]:
        """A random (train, test), with `fraction` of the rows for testing; with `times` the latest ones.

        Rows of one group, or of one time, stay together; parts may be a little larger or smaller for that. `stratify`
        gives both parts the same share of every label, to within a row, where rows do not belong together. Both have
        the same share of rows without a target in that case, and at least one with in any.
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
        if self.times is not None or self.groups is not None:
            in_test = held_out(self.groups, self.times, self.labelled, fraction, np.random.default_rng(seed))
            return self.partition(~in_test, in_test)
        order = np.random.default_rng(seed).permutation(self.size)
        labelled = self.labelled[order]
        chosen = share_of(order[labelled], fraction, self.y if stratify else None)
        if not labelled.all():
            chosen = np.concatenate([chosen, share_of(order[~labelled], fraction)])
        in_test = np.isin(np.arange(self.size), chosen)
        return self.partition(~in_test, in_test)

    def __repr__(self) -> str:
        return described(self)

    def _changed(self, **changes: Any) -> "Data":
        """A copy with some fields changed, not checked again."""
        other = copy.copy(self)
        other.__dict__.update(changes)
        return other


# What rows may have beside x and y.
PER_ROW = ("censored", "groups", "times", "counts", "precisions")
# What is computed from the rows: a copy may be about to change, and computes it anew.
_DERIVED = ("_batches", "observed", "labelled")
