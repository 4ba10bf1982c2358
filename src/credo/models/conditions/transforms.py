"""Transformations of rows that have a name, and so can be stored: `"negate"`, `("permute", (1, 0))`, …"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from credo._checks import require_one_of
from credo.typing import Array

# A function of rows, or the name of one with its settings.
Transform = Callable[[Array], Array] | tuple[Any, ...]


def negate(x: Array) -> Array:
    """−x."""
    return -x


def flip(x: Array, axis: int) -> Array:
    """The order along an axis is reversed; axes are counted from 0 within a row."""
    _check_axis("flip", x, axis)
    return jnp.flip(x, axis + 1)


def permute(x: Array, order: tuple[int, ...]) -> Array:
    """Entries along the last axis in another order: entry i is what entry order[i] was."""
    if len(order) != x.shape[-1]:
        raise ValueError(f"permute: the order has {len(order)} numbers for rows of {x.shape[-1]}")
    return x[..., np.array(order)]


def shift(x: Array, by: float | tuple[float, ...]) -> Array:
    """x + by, with one number for all columns or one for each: invariance under it is a period."""
    if isinstance(by, tuple) and len(by) != x.shape[-1]:
        raise ValueError(f"shift: there are {len(by)} numbers for rows of {x.shape[-1]} columns")
    return x + jnp.asarray(by, x.dtype)


def transpose(x: Array) -> Array:
    """The first two axes within a row change places."""
    _check_axis("transpose", x, 1)
    return jnp.swapaxes(x, 1, 2)


TRANSFORMS: Mapping[str, Callable[..., Array]] = {
    transform.__name__: transform for transform in (negate, flip, permute, shift, transpose)
}
NUM_SETTINGS = {"negate": 0, "flip": 1, "permute": 1, "shift": 1, "transpose": 0}


def as_transform(argument: str, transform: Any) -> Transform:
    """A transformation as users pass it: a function of rows, a name, or a tuple of a name and its setting."""
    if callable(transform):
        return transform
    name, *settings = (transform,) if isinstance(transform, str) else _as_tuple(argument, transform)
    require_one_of(TRANSFORMS, **{argument: name})
    if len(settings) != NUM_SETTINGS[name]:
        expected = f'("{name}", setting)' if NUM_SETTINGS[name] else f'"{name}"'
        raise ValueError(f"{argument} must be {expected}, got {transform!r}")
    return (name, *map(_checked(argument, name), settings))


def transformed(transform: Transform, x: Array) -> Array:
    """What the transformation makes of rows; they keep their number, their shape and their type."""
    if callable(transform):
        return transform(x)
    name, *settings = transform
    return TRANSFORMS[name](x, *settings)


def _checked(argument: str, name: str) -> Callable[[Any], Any]:
    def check(setting: Any) -> Any:
        value = np.asarray(setting)
        whole = value.dtype.kind in "iu"
        if name == "permute" and not (whole and value.ndim == 1 and sorted(value) == list(range(value.size))):
            raise ValueError(f"{argument}: permute takes each of 0 to n − 1 once, got {setting!r}")
        if name == "flip" and not (whole and value.ndim == 0 and value >= 0):
            raise ValueError(f"{argument}: flip takes an axis, counted from 0 within a row, got {setting!r}")
        if value.dtype.kind not in "iuf" or value.ndim > 1 or not np.isfinite(value).all():
            raise ValueError(f"{argument}: {name} takes a finite number, or one per column, got {setting!r}")
        return tuple(value.tolist()) if value.ndim else value.item()

    return check


def _as_tuple(argument: str, transform: Any) -> tuple[Any, ...]:
    if not isinstance(transform, Sequence) or not transform:
        raise ValueError(
            f"{argument} must be a function of x, a name such as 'negate', or a name and its setting such as "
            f"('permute', (1, 0)), got {transform!r}"
        )
    return tuple(transform)


def _check_axis(name: str, x: Array, axis: int) -> None:
    if axis + 1 >= x.ndim:
        raise ValueError(f"{name}: there is no axis {axis} in rows of shape {x.shape[1:]}")
