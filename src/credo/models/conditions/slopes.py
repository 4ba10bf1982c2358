"""Conditions on derivatives: monotone in chosen columns, smooth in all of them.

Slopes are those of the network's own outputs (standardised targets, logits) per standard deviation of a column, so that
a strength means the same whatever the units of x and y.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from credo.models.conditions.columns import Column, as_column, as_sign, checked_columns, number_of, scales_of
from credo.models.conditions.condition import PREFERRED, Function, Ready, checked_points
from credo.models.conditions.derivatives import along, gradients, units
from credo.models.conditions.outputs import check_choice, chosen, means, num_predicted
from credo.typing import Array


@dataclass(frozen=True)
class Monotone(Ready):
    """Σⱼ relu(margin − signⱼ ∂f/∂xⱼ)². See `monotone`.

    >>> from credo import conditions
    >>> conditions.monotone({"age": "+", "price": "-"}).directions
    (('age', 1), ('price', -1))
    """

    name = "monotone"
    # On diabetes, where bmi and bp should rise, falls became 8 to 13 times smaller at 1,000, 17 to 25 times at 3,000,
    # at the same held-out log-likelihood.
    strength = 3000.0
    directions: tuple[tuple[Column, int], ...]
    output: int | None = None
    label: int | None = None
    margin: float = 0.0

    def __str__(self) -> str:
        signs = {1: "+", -1: "−"}
        return f"monotone({', '.join(f'{column} {signs[sign]}' for column, sign in self.directions)})"

    def resolved(self, names: Sequence[str]) -> Self:
        """The same condition with numbers for the names of columns."""
        numbered = _consistent((number_of(column, names), sign) for column, sign in self.directions)
        return replace(self, directions=numbered)

    def prepare(self, x: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        points = checked_points(self.name, x, num_axes=2)
        columns = checked_columns(self.name, [column for column, _ in self.directions], points.shape[1])
        for column in columns:
            if np.ptp(points[:, column]) == 0:
                raise ValueError(f"monotone: column {column} is the same in all inputs, so it has no direction")
        steps = np.zeros((len(columns), points.shape[1]), points.dtype)
        steps[np.arange(len(columns)), columns] = [sign for _, sign in self.directions]
        return points, {"steps": steps * scales_of(points)}

    def __call__(self, function: Function, rows: Array, **constants: Array) -> Array:
        def f(x: Array) -> Array:
            return chosen(self.name, function, x, output=self.output, label=self.label)[:, None]

        # In reverse, one gradient is for all columns: with 8 of them a step cost 1.7 of a plain one, where directional
        # derivatives of one column cost 1.8, and of three 3.8.
        rises = gradients(f, rows)[0] @ constants["steps"].T
        return jnp.sum(jax.nn.relu(self.margin - rises) ** 2, axis=-1)


@dataclass(frozen=True)
class Smooth(Ready):
    """‖∇f‖² or ‖∇²f‖². See `smooth`.

    >>> from credo import conditions
    >>> conditions.smooth(order=2)
    Smooth(order=2)
    """

    name = "smooth"
    strength = PREFERRED
    order: int = 1

    def prepare(self, x: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        points = checked_points(self.name, x)
        return points, {"scales": scales_of(points)}

    def __call__(self, function: Function, rows: Array, **constants: Array) -> Array:
        scales = constants["scales"]

        def f(x: Array) -> Array:
            return means(function, x)

        if self.order == 2:
            return _curvature(f, rows, scales)
        # One sweep for each column or for each output, whichever are fewer.
        if scales.size <= num_predicted(function, rows):
            return jnp.sum(along(f, rows, units(scales.shape) * scales) ** 2, axis=(0, 2))
        return _squares(gradients(f, rows) * scales)


def monotone(
    directions: Mapping[Any, Any] | Sequence[tuple[Any, Any]],
    *,
    output: int | None = None,
    label: int | None = None,
    margin: float = 0.0,
) -> Monotone:
    """The prediction rises (+) or falls (−) in chosen columns, whatever the others are.

        C(theta, x) = Σⱼ relu(margin − signⱼ sⱼ ∂f/∂xⱼ)²,    sⱼ the standard deviation of column j over the inputs

    f is the network's own output, so that slopes count standard deviations of y (or log-odds) per standard deviation of
    a column. Paper, "Prior with a consistency condition": the probability of getting the flu increases with age.

    Arguments:
        directions: a sign, "+" or "-" (or 1 and −1), for each column, by number or name: `{"size": "+", 3: "-"}`.
        output: the target that is meant, if there are several.
        label: the class whose probability is meant; with two classes it is class 1 by default.
        margin: the least slope that is free of a penalty.

    >>> from credo.models.conditions import Plain
    >>> rows, constants = monotone({0: "+"}).prepare(np.array([[-1.0], [1.0]]))
    >>> monotone({0: "+"})(Plain(lambda x: -3 * x), rows, **constants).tolist()
    [9.0, 9.0]

    Reference: Sill, Abu-Mostafa, 1996, Monotonicity hints.
    """
    pairs = directions.items() if isinstance(directions, Mapping) else directions
    signed = [(as_column("monotone", column), as_sign("monotone", sign)) for column, sign in pairs]
    if not signed:
        raise ValueError("monotone: directions is empty; name at least one column, such as {0: '+'}")
    check_choice("monotone", output, label)
    if not np.isfinite(margin):
        raise ValueError(f"monotone: margin must be a finite number, got {margin!r}")
    return Monotone(_consistent(signed), output, label, float(margin))


def smooth(order: int = 1) -> Smooth:
    """The function does not change fast (order 1), or bends little (order 2).

        C(theta, x) = ‖∇f(x)‖² = Σₖⱼ (sⱼ ∂fₖ/∂xⱼ)²,    or ‖∇²f(x)‖² = Σₖᵢⱼ (sᵢ sⱼ ∂²fₖ/∂xᵢ∂xⱼ)²

    with sⱼ the standard deviation of column j over the inputs (for images, of all their pixels), and f the outputs of
    the network. Order 1 costs one gradient per output, or per column if they are fewer; order 2 one gradient per
    column and output, and it says nothing about networks of ReLUs, which bend in corners only.

    >>> from credo.models.conditions import Plain
    >>> rows, constants = smooth().prepare(np.array([[-1.0, 0.0], [1.0, 0.0]]))
    >>> smooth()(Plain(lambda x: x @ jnp.array([[2.0], [5.0]])), rows, **constants).tolist()
    [4.0, 4.0]

    Reference: Bishop, 1993, Curvature-driven smoothing; Drucker, LeCun, 1992, Double backpropagation.
    """
    if order not in (1, 2):
        raise ValueError(f"smooth: order must be 1 (slopes) or 2 (curvature), got {order!r}")
    return Smooth(int(order))


def _curvature(f: Any, x: Array, scales: Array) -> Array:
    """Rows of the Hessian one after another: memory does not grow with the number of columns."""

    def along_one(step: Array) -> Array:
        bent = jax.jvp(lambda points: gradients(f, points), (x,), (jnp.broadcast_to(step, x.shape).astype(x.dtype),))[1]
        return _squares(bent * scales)

    return jnp.sum(jax.lax.map(along_one, units(scales.shape) * scales), axis=0)


def _squares(values: Array) -> Array:
    """Sums of squares over all axes but that of the rows, the second."""
    return jnp.sum(values**2, axis=(0, *range(2, values.ndim)))


def _consistent(signed: Iterable[tuple[Column, int]]) -> tuple[tuple[Column, int], ...]:
    """Each column once; a column that should both rise and fall is a contradiction."""
    found: dict[Column, int] = {}
    for column, sign in signed:
        if found.setdefault(column, sign) != sign:
            raise ValueError(f"monotone: column {column!r} is said both to rise (+) and to fall (-); keep one of them")
    return tuple(found.items())
