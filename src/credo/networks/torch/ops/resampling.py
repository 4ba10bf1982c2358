"""Images at another size. Each axis on its own: new places are weighted sums of old ones, a matrix of constants."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from credo.networks.torch.table import torch_op
from credo.typing import Array

# Of the cubic convolution kernel, as PyTorch has it: Keys, 1981, has −1/2.
_CUBIC = -0.75


def weighted(x: Array, axis: int, weights: np.ndarray) -> Array:
    """Sums along an axis, with weights (new places, old places)."""
    return jnp.moveaxis(jnp.tensordot(x, jnp.asarray(weights, x.dtype), axes=(axis, 1)), -1, axis)


def _nearest(length: int, num: int, scale: float, align: bool) -> np.ndarray:
    places = np.minimum(np.floor(np.arange(num) * scale).astype(int), length - 1)
    return np.eye(length)[places]


def _linear(length: int, num: int, scale: float, align: bool) -> np.ndarray:
    places = np.arange(num) * scale if align else np.maximum((np.arange(num) + 0.5) * scale - 0.5, 0)
    return _mixed(length, places, (0, 1), lambda distance: np.maximum(1 - distance, 0))


def _cubic(length: int, num: int, scale: float, align: bool) -> np.ndarray:
    places = np.arange(num) * scale if align else (np.arange(num) + 0.5) * scale - 0.5
    return _mixed(length, places, (-1, 0, 1, 2), _cubic_weight)


def _cubic_weight(distance: np.ndarray) -> np.ndarray:
    a, d = _CUBIC, distance
    near = ((a + 2) * d - (a + 3)) * d**2 + 1
    far = ((d - 5) * d + 8) * a * d - 4 * a
    return np.where(d <= 1, near, far)


def _mixed(
    length: int, places: np.ndarray, steps: Sequence[int], weight: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """(places, length): each place a mixture of the old ones around it; those beyond the edge are the edge."""
    result = np.zeros((len(places), length))
    for step in steps:
        old = np.floor(places).astype(int) + step
        np.add.at(result, (np.arange(len(places)), np.clip(old, 0, length - 1)), weight(np.abs(places - old)))
    return result


def _resampled(
    x: Array, sizes: Sequence[int] | None, factors: Sequence[float] | None, weights: Any, align: bool
) -> Array:
    num_axes = len(sizes or factors or ())
    for at in range(num_axes):
        axis = at - num_axes
        length = x.shape[axis]
        num = sizes[at] if sizes else math.floor(length * factors[at])  # type: ignore[index]
        step = 1 / factors[at] if factors else length / num
        x = weighted(x, axis, weights(length, num, (length - 1) / max(num - 1, 1) if align else step, align))
    return x


@torch_op(*(f"aten.upsample_nearest{num}d.vec" for num in (1, 2, 3)))
def nearest(x: Array, sizes: Sequence[int] | None, factors: Sequence[float] | None) -> Array:
    return _resampled(x, sizes, factors, _nearest, False)


@torch_op("aten.upsample_linear1d.vec", "aten.upsample_bilinear2d.vec", "aten.upsample_trilinear3d.vec")
def linear(x: Array, sizes: Sequence[int] | None, align: bool, factors: Sequence[float] | None) -> Array:
    return _resampled(x, sizes, factors, _linear, align)


@torch_op("aten.upsample_bicubic2d.vec")
def bicubic(x: Array, sizes: Sequence[int] | None, align: bool, factors: Sequence[float] | None) -> Array:
    return _resampled(x, sizes, factors, _cubic, align)
