"""What a consistency condition is: a penalty C(theta, x) ≥ 0 of the function that theta stands for.

    p(theta | D_x) ∝ p(theta) exp(−strength · mean over x of C(theta, x))

Paper, "Prior with a consistency condition". A condition sees theta only through the function, in the user's units.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol, Self

import jax
import jax.numpy as jnp
import numpy as np

from credo._precision import working_precision
from credo.data import Data
from credo.typing import Array

# How strongly a condition is imposed in all, unless the user says how. Of what the truth keeps exactly, residuals r of
# 0.1 standard deviations at a third of the inputs cost three nats of C = r².
KNOWN = 1000.0
# What is a matter of degree (slopes, differences between neighbours) no function of interest is without: a slope of one
# standard deviation of y per standard deviation of x costs ten nats. With 60 houses of `credo example table` the error
# of test prices was 34,200 without `smooth`, 35,500 with 10, 61,200 with 100, and 81,000 with 1,000: no slope is left.
PREFERRED = 10.0
# Penalties below zero by less than this are rounded zeros: sums of terms of size one, in single precision.
ROUNDING = 1e-5


class Function(Protocol):
    """The function of one theta: pure, and differentiable in x, which is (rows, …) in the user's units.

    >>> import jax.numpy as jnp
    >>> from credo import conditions
    >>> f = conditions.Plain(lambda x: 2 * x)
    >>> f(jnp.array([[1.0], [3.0]])).tolist()
    [[2.0], [6.0]]
    """

    def __call__(self, x: Array) -> Array:
        """The prediction in the user's units: the mean, (rows, outputs), or probabilities, (rows, classes)."""

    def raw(self, x: Array) -> Array:
        """The network's own outputs, (rows, outputs): for classes the logits, one column if there are two classes."""


class Condition(Protocol):
    """A penalty for each row of what it prepares from the inputs.

    >>> import jax.numpy as jnp
    >>> from credo import conditions
    >>> zero_at_zero = conditions.as_condition(lambda f, x: f(jnp.zeros_like(x))[:, 0] ** 2)
    >>> zero_at_zero(conditions.Plain(lambda x: x + 3.0), jnp.ones((2, 1))).tolist()
    [9.0, 9.0]
    """

    @property
    def name(self) -> str:
        """Short: the name of the factor in the graph."""

    @property
    def strength(self) -> float:
        """In all, unless the user says otherwise."""

    def resolved(self, names: Sequence[str]) -> "Condition":
        """The same condition with numbers for the names of columns."""

    def prepare(self, x: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Once, on the host: what is subsampled row by row, and constants that are always whole."""

    def __call__(self, function: Function, rows: Array, **constants: Array) -> Array:
        """Penalties, at least zero, one per row."""

    def to_config(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Plain:
    """A plain function `x -> (rows, outputs)` as a `Function`, whose own outputs are its predictions.

    It tells what a condition says of a function that is known.

    >>> import jax.numpy as jnp
    >>> from credo import conditions
    >>> conditions.bounded(high=1.0)(conditions.Plain(lambda x: x), jnp.array([[0.5], [3.0]])).tolist()
    [0.0, 4.0]
    """

    function: Callable[[Array], Array]

    def __call__(self, x: Array) -> Array:
        return self.function(x)

    def raw(self, x: Array) -> Array:
        return self.function(x)


class Ready:
    """What conditions have in common: a frozen dataclass, described by its name and its settings; rows are the inputs.

    A condition of your own derives from it, and adds `name`, `__call__`, and `prepare` if it needs more than inputs.

    >>> from dataclasses import dataclass
    >>> import jax.numpy as jnp
    >>> from credo import conditions
    >>> @dataclass(frozen=True)
    ... class Small(conditions.Ready):
    ...     name = "small"
    ...     def __call__(self, function, x, **constants):
    ...         return function(x)[:, 0] ** 2
    >>> Small()(conditions.Plain(lambda x: x), jnp.array([[2.0]])).tolist()
    [4.0]
    """

    name: ClassVar[str]
    strength: ClassVar[float] = KNOWN
    # What has to be true of the data for the condition to help, in words.
    assumes: ClassVar[str] = ""

    def __str__(self) -> str:
        """The name, and the settings that are not the usual ones."""
        own = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}  # type: ignore[arg-type]
        said = [f"{name}={value!r}" for name, (value, usual) in own.items() if value != usual]
        return f"{self.name}({', '.join(said)})"

    def prepare(self, x: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        return checked_points(self.name, x), {}

    def resolved(self, names: Sequence[str]) -> Self:
        """The same condition with numbers for the names of columns; most conditions have none."""
        return self

    def to_config(self) -> dict[str, Any]:
        """Settings as JSON; code of the user's is named and not stored, and `from_config` asks for it."""
        settings = {field.name: _to_json(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]
        return {"name": self.name, **settings}


class Labelled(Ready):
    """A condition that looks at the targets of the training rows too: it is prepared from the data.

    >>> import credo
    >>> rows, constants = credo.conditions.same_label(k=1).prepare_data(credo.Data([[0.0], [1.0]], [0, 1]))
    >>> isinstance(credo.conditions.same_label(), credo.conditions.Labelled), constants["labels"].tolist()
    (True, [])
    """

    def prepare(self, x: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        raise ValueError(
            f"{self.name}: it looks at the targets of the training rows, and other inputs have none; leave inputs= "
            "out, and pass those without targets as credo.Data(x, y, unlabelled=inputs)"
        )

    def prepare_data(self, data: Data) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Once, on the host: what is subsampled row by row, and constants that are always whole."""
        raise NotImplementedError


@dataclass(frozen=True)
class Custom(Ready):
    """Any `(function, x) -> penalties` of the user's, at least zero, one per row. See `as_condition`.

    >>> from credo import conditions
    >>> conditions.as_condition(lambda f, x: f(x)[:, 0] ** 2).name
    'custom'
    """

    function: Callable[[Function, Array], Array]

    @property
    def name(self) -> str:  # type: ignore[override]
        name = getattr(self.function, "__name__", "custom")
        return name if name.isidentifier() else "custom"

    def __call__(self, function: Function, rows: Array, **constants: Array) -> Array:
        penalties = jnp.asarray(self.function(function, rows))
        return penalties[:, 0] if penalties.ndim == 2 and penalties.shape[1] == 1 else penalties

    def to_config(self) -> dict[str, Any]:
        return {"name": "custom", "function": _to_json(self.function)}


def check_penalty(condition: Condition, penalties: Any, num_rows: int | None = None) -> None:
    """Refuse penalties that are not one finite number of at least zero for each row.

    >>> from credo import conditions
    >>> check_penalty(conditions.sparse(), [0.0, -1.0])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: the condition 'sparse' gives a penalty of -1, and a penalty is at least zero; ...
    """
    values = np.asarray(penalties, np.float64)
    start = f"the condition {condition.name!r} gives"
    if values.ndim != 1 or num_rows not in (None, len(values)):
        expected = "(rows,)" if num_rows is None else f"({num_rows},)"
        raise ValueError(
            f"{start} penalties of shape {values.shape}, but one per row was expected, {expected}; "
            "sum over the outputs, and do not average over the rows"
        )
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise ValueError(
            f"{start} {values[row]} for row {row}; a penalty must be a finite number wherever the inputs are: "
            "look for a division by zero, or for a logarithm or a root outside its domain"
        )
    if values.min(initial=0.0) < -ROUNDING * max(1.0, np.abs(values).max(initial=0.0)):
        raise ValueError(
            f"{start} a penalty of {values.min():g}, and a penalty is at least zero; "
            "square it, or subtract the least value that it can have"
        )


def checked_points(name: str, x: Any, num_axes: int | None = None) -> np.ndarray:
    """The inputs, if they are finite numbers, (rows, …) with at least one row."""
    points = np.asarray(x)
    start = f"the condition {name!r} has inputs"
    if points.dtype.kind not in "fiub":
        raise ValueError(f"{start} of type {points.dtype}; pass an array of numbers, (rows, columns)")
    if points.ndim < 2 or num_axes not in (None, points.ndim):
        expected = "(rows, …)" if num_axes is None else "(rows, columns): it is about the columns of a table"
        raise ValueError(f"{start} of shape {points.shape}, but expected {expected}")
    if not points.size:
        raise ValueError(f"{start} of shape {points.shape}: there is no point to look at")
    if not np.isfinite(points).all():
        row = int(np.argwhere(~np.isfinite(points))[0, 0])
        raise ValueError(f"{start} with NaN or infinity, first in row {row}; drop or fill such rows")
    # Real numbers, which have derivatives, in the precision that compiled code will see.
    kind = jax.dtypes.canonicalize_dtype(points.dtype if points.dtype.kind == "f" else working_precision())
    return points.astype(kind, copy=False)


def _to_json(value: Any) -> Any:
    if callable(value):
        return {"code": getattr(value, "__qualname__", type(value).__qualname__)}
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    return value


def from_json(name: str, value: Any) -> Any:
    """A setting as it was before JSON; code is not stored, so it is refused."""
    if isinstance(value, Mapping):
        raise ValueError(
            f"the condition {name!r} holds a function of your own, {value['code']!r}, and code is not stored; "
            "build the model again and pass it: credo.load(folder, model=model)"
        )
    return tuple(from_json(name, item) for item in value) if isinstance(value, list) else value
