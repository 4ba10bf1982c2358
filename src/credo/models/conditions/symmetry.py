"""Symmetries: what a transformation of the inputs does to the prediction."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.models.conditions.condition import Function, Ready
from credo.models.conditions.transforms import Transform, as_transform, transformed
from credo.typing import Array


@dataclass(frozen=True)
class Invariant(Ready):
    """‖f(T x) − f(x)‖². See `invariant`.

    >>> from credo import conditions
    >>> conditions.invariant("negate")
    Invariant(transform=('negate',))
    """

    name = "invariant"
    transform: Transform

    def prepare(self, x: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        return _checked(self.name, self.transform, super().prepare(x)[0])

    def __call__(self, function: Function, rows: Array, **constants: Array) -> Array:
        here, there = jnp.split(function.raw(jnp.concatenate([rows, transformed(self.transform, rows)])), 2)
        return jnp.sum((there - here) ** 2, axis=-1)


@dataclass(frozen=True)
class Equivariant(Ready):
    """‖f(T x) − T′ f(x)‖². See `equivariant`.

    >>> from credo import conditions
    >>> conditions.equivariant("negate", "negate")
    Equivariant(transform=('negate',), of_output=('negate',))
    """

    name = "equivariant"
    transform: Transform
    of_output: Transform

    def prepare(self, x: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        return _checked(self.name, self.transform, super().prepare(x)[0])

    def __call__(self, function: Function, rows: Array, **constants: Array) -> Array:
        here, there = jnp.split(function(jnp.concatenate([rows, transformed(self.transform, rows)])), 2)
        expected = transformed(self.of_output, here)
        if expected.shape != there.shape:
            raise ValueError(f"equivariant: of_output turns outputs of shape {here.shape} into {expected.shape}")
        return jnp.sum((there - expected) ** 2, axis=-1)


def invariant(transform: Any) -> Invariant:
    """A transformation of the inputs does not change the function.

        C(theta, x) = ‖f(T x) − f(x)‖²

    f are all the network's own outputs, so that with heteroscedastic noise the noise is invariant too. A constant is
    invariant as well: with learned noise, chains may settle there, far below the others in log joint; R-hat tells.

    Arguments:
        transform: T, a pure JAX function of x (rows, …) in the user's units, or one that can be stored: "negate",
            "transpose", ("flip", axis), ("permute", order of the columns), ("shift", by), which makes a period.

    >>> from credo.models.conditions import Plain
    >>> even = invariant("negate")
    >>> even(Plain(lambda x: x), jnp.array([[1.0], [2.0]])).tolist()
    [4.0, 16.0]

    Reference: Abu-Mostafa, 1990, Learning from hints in neural networks.
    """
    return Invariant(as_transform("transform", transform))


def equivariant(transform: Any, of_output: Any) -> Equivariant:
    """A transformation of the inputs transforms the prediction in a known way, in the user's units.

        C(theta, x) = ‖f(T x) − T′ f(x)‖²

    Arguments:
        transform: T, as of `invariant`.
        of_output: T′, likewise, of predictions (rows, outputs): `equivariant("negate", "negate")` is an odd function,
            and for two classes `equivariant("negate", ("permute", (1, 0)))` swaps them.

    >>> from credo.models.conditions import Plain
    >>> odd = equivariant("negate", "negate")
    >>> odd(Plain(lambda x: x**3), jnp.array([[1.0], [2.0]])).tolist()
    [0.0, 0.0]
    """
    return Equivariant(as_transform("transform", transform), as_transform("of_output", of_output))


def _checked(name: str, transform: Transform, points: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    after = jax.eval_shape(lambda x: transformed(transform, x), jax.ShapeDtypeStruct(points.shape, points.dtype))
    if after.shape != points.shape:
        raise ValueError(
            f"{name}: transform turns inputs of shape {points.shape} into {after.shape}; it must keep the shape, since "
            "the network is asked about both"
        )
    return points, {}
