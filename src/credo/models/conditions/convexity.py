"""Convex and concave functions, by their midpoints."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from credo._checks import require_at_least
from credo.models.conditions.columns import Column, as_column, as_sign, checked_columns, number_of
from credo.models.conditions.condition import Function, Ready, checked_points
from credo.models.conditions.outputs import check_choice, chosen
from credo.typing import Array


@dataclass(frozen=True)
class Convex(Ready):
    """relu(f((a+b)/2) − (f(a)+f(b))/2)². See `convex`.

    >>> from credo import conditions
    >>> conditions.convex()
    Convex(columns=None, sign=1, output=None, label=None, seed=0)
    """

    name = "convex"
    columns: tuple[Column, ...] | None = None
    sign: int = 1
    output: int | None = None
    label: int | None = None
    seed: int = 0

    def resolved(self, names: Sequence[str]) -> Self:
        """The same condition with numbers for the names of columns."""
        numbered = None if self.columns is None else tuple(number_of(column, names) for column in self.columns)
        return replace(self, columns=numbered)

    def prepare(self, x: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Pairs (a, b), (rows, 2, …): each input, and another one at random."""
        points = checked_points(self.name, x, None if self.columns is None else 2)
        if len(points) < 2:
            raise ValueError("convex: there is one input, but pairs of them are needed")
        others = points[_partners(len(points), self.seed)]
        if self.columns is not None:
            columns = checked_columns(self.name, self.columns, points.shape[1])
            # The other columns are held: the function is convex along the chosen ones.
            others = np.where(np.isin(np.arange(points.shape[1]), columns), others, points)
        return np.stack([points, others], axis=1), {}

    def __call__(self, function: Function, rows: Array, **constants: Array) -> Array:
        a, b = rows[:, 0], rows[:, 1]
        points = jnp.concatenate([a, b, (a + b) / 2])
        values = chosen(self.name, function, points, output=self.output, label=self.label)
        f_a, f_b, f_middle = values.reshape(3, -1)
        return jax.nn.relu(self.sign * (f_middle - (f_a + f_b) / 2)) ** 2


def convex(
    columns: Sequence[Any] | None = None,
    *,
    sign: int | str = 1,
    output: int | None = None,
    label: int | None = None,
    seed: int = 0,
) -> Convex:
    """The function is convex or concave, also where it is made of ReLUs.

        C(theta, (a, b)) = relu(sign · (f((a + b)/2) − (f(a) + f(b))/2))²

    for pairs of inputs: each with another one at random, the same pairs throughout. f is the network's own output.

    Arguments:
        columns: convex along these, by number or name, while the others are held; None for all of them.
        sign: 1 or "+" for convex, −1 or "-" for concave.
        output, label: as of `monotone`.
        seed: of the pairs.

    >>> from credo.models.conditions import Plain
    >>> rows, _ = convex().prepare(np.array([[-2.0], [2.0]]))
    >>> convex()(Plain(lambda x: -(x**2)), rows).tolist()
    [16.0, 16.0]

    Reference: Boyd, Vandenberghe, 2004, Convex optimization, section 3.1.
    """
    require_at_least(0, seed=seed)
    check_choice("convex", output, label)
    direction = as_sign("convex", sign)
    if columns is None:
        return Convex(None, direction, output, label, seed)
    if isinstance(columns, str) or not isinstance(columns, Sequence) or not columns:
        raise ValueError(f"convex: columns must be a list of columns, such as [0, 2], or None for all, got {columns!r}")
    return Convex(tuple(as_column("convex", column) for column in columns), direction, output, label, seed)


def _partners(num: int, seed: int) -> np.ndarray:
    """For each of `num` points another one: neighbours on a random circle through all of them."""
    circle = np.random.default_rng(seed).permutation(num)
    partners = np.empty(num, np.intp)
    partners[circle] = np.roll(circle, 1)
    return partners
