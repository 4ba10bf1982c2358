"""Units of a network as groups: which axes of which arrays run along them, and how to reorder and rescale them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from credo.typing import Theta

# An axis along which an array puts out units, or takes them in.
Role = Literal["out", "in", "held"]
# What a factor a of a unit does to its weights.
_POWERS = {"out": 1, "in": -1, "held": 0}


@dataclass(frozen=True)
class Member:
    """An axis of an array that runs along the units of a group.

    Arguments:
        path: of the array in theta.
        axis: of the array, axes of draws before it not counted.
        ndim: how many axes the array has.
        role: "out" if its weights enter the units (a kernel's outputs, a bias), "in" if they leave them (the inputs of
            the next kernel), "held" if they enter, but are normalised or scaled again, so that a rescaling of the units
            leaves them alone.
        outer: the axis is (outer, units, inner) flattened: (H·W, units, 1) behind an image, else (1, units, 1).
        inner: see above.
    """

    path: str
    axis: int
    ndim: int
    role: Role
    outer: int = 1
    inner: int = 1

    def __str__(self) -> str:
        flattened = "" if self.outer * self.inner == 1 else f" of {self.outer} × units × {self.inner}"
        return f"{self.path}[{self.axis}]{flattened} {self.role}"


@dataclass(frozen=True)
class Group:
    """Units that may be reordered among themselves.

    Arguments:
        size: the number of units.
        members: the axes that run along them, in the order in which the network uses the arrays.
        rescalable: whether "out" weights may be multiplied by a > 0 and "in" weights divided by it, unit by unit.
        signed: whether the same holds for a = −1.

    The functions below take theta as NumPy arrays by path, with any leading axes, such as (chains, draws, …), and
    return a new dict; arrays outside the group are passed on as they are.

    >>> two = Group(2, (Member("w", 1, 2, "out"), Member("v", 0, 1, "in")))
    >>> theta = {"w": np.array([[1.0, 2.0]]), "v": np.array([3.0, 4.0])}
    >>> two.permuted(theta, [1, 0])["v"], two.scaled(theta, [2, 1])["w"]
    (array([4., 3.]), array([[2., 2.]]))
    """

    size: int
    members: tuple[Member, ...]
    rescalable: bool = False
    signed: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        """Of the arrays that take part."""
        return tuple(dict.fromkeys(member.path for member in self.members))

    def permuted(self, theta: Theta, order: Any) -> Theta:
        """theta with unit `order[i]` at place i; order (…, units), its leading axes those of the arrays, or none."""
        order = np.asarray(order)
        if order.shape[-1:] != (self.size,) or np.any(np.sort(order, axis=-1) != np.arange(self.size)):
            raise ValueError(f"order must hold each of 0 … {self.size - 1} once, got {order.tolist()}")
        return self._changed(theta, lambda units, _: np.take_along_axis(units, _beside(order, units), axis=-2))

    def scaled(self, theta: Theta, factors: Any) -> Theta:
        """theta with what enters each unit times its factor, and what leaves it divided by it; factors (…, units)."""
        factors = np.asarray(factors)
        if factors.shape[-1:] != (self.size,) or not np.all(np.isfinite(factors) & (factors != 0)):
            raise ValueError(f"factors must be {self.size} numbers other than 0, one per unit, got {factors.tolist()}")

        def change(units: np.ndarray, member: Member) -> np.ndarray:
            return units * _beside(factors.astype(units.dtype) ** _POWERS[member.role], units)

        return self._changed(theta, change)

    def weights(self, theta: Theta, *roles: Role) -> np.ndarray:
        """The weights of each unit side by side, (…, units, numbers); of these roles only, if any are named."""
        chosen = [member for member in self.members if member.role in (roles or _POWERS)]
        return np.concatenate(
            [_apart(_array(theta, member, self.size), member, self.size) for member in chosen], axis=-1
        )

    def _changed(self, theta: Theta, change: Callable[[np.ndarray, Member], np.ndarray]) -> Theta:
        changed = dict(theta)
        for member in self.members:
            array = _array(changed, member, self.size)
            changed[member.path] = _together(change(_apart(array, member, self.size), member), member, array.shape)
        return changed


def _array(theta: Theta, member: Member, size: int) -> np.ndarray:
    if member.path not in theta:
        raise ValueError(f"theta has no array {member.path!r}, which the group needs, but {', '.join(sorted(theta))}")
    array = np.asarray(theta[member.path])
    length = member.outer * size * member.inner
    if array.ndim < member.ndim or array.shape[array.ndim - member.ndim + member.axis] != length:
        raise ValueError(
            f"theta: {member.path!r} has shape {array.shape}; its axis {member.axis} should hold {size} units, in all "
            f"{length} numbers, and be one of {member.ndim} axes after those of the draws"
        )
    return array


def _apart(array: np.ndarray, member: Member, size: int) -> np.ndarray:
    """The numbers of each unit: (draws…, units, numbers)."""
    lead, before, after = _around(array.shape, member)
    split = array.reshape(*lead, *before, member.outer, size, member.inner, *after)
    return np.moveaxis(split, len(lead) + len(before) + 1, len(lead)).reshape(*lead, size, -1)


def _together(units: np.ndarray, member: Member, shape: tuple[int, ...]) -> np.ndarray:
    """The array of that shape whose numbers `_apart` returns."""
    lead, before, after = _around(shape, member)
    split = units.reshape(*units.shape[:-1], *before, member.outer, member.inner, *after)
    return np.moveaxis(split, len(lead), len(lead) + len(before) + 1).reshape(shape)


def _around(shape: tuple[int, ...], member: Member) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The axes of draws, those before the units', and those after it."""
    num_lead = len(shape) - member.ndim
    at = num_lead + member.axis
    return shape[:num_lead], shape[num_lead:at], shape[at + 1 :]


def _beside(values: np.ndarray, units: np.ndarray) -> np.ndarray:
    """(…, units) for (draws…, units, numbers)."""
    return values.reshape(*(1,) * (units.ndim - 1 - values.ndim), *values.shape, 1)
