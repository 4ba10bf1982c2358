"""Normalisation, as in evaluation: batch statistics are constants, all else is of each row."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from credo.networks.normalisation import group_normalised
from credo.networks.torch.table import torch_op
from credo.typing import Array


@torch_op("aten._native_batch_norm_legit_no_training.default")
def batch_norm(
    x: Array, weight: Array | None, bias: Array | None, mean: Array, var: Array, momentum: float, eps: float
) -> tuple[Array]:
    # One scale and shift for each channel: the gradient sums over rows and places once for each.
    scale = jax.lax.rsqrt(var + eps)
    scale = scale if weight is None else scale * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    return (_affine(x, *_channels(x, scale, shift)),)


@torch_op("aten._native_batch_norm_legit.no_stats")
def instance_norm(
    x: Array, weight: Array | None, bias: Array | None, training: bool, momentum: float, eps: float
) -> tuple[Array]:
    return (_affine(_standardised(x, (0, *range(2, x.ndim)), eps), *_channels(x, weight, bias)),)


@torch_op("aten.native_layer_norm.default")
def layer_norm(x: Array, shape: Sequence[int], weight: Array | None, bias: Array | None, eps: float) -> tuple[Array]:
    return (_affine(_standardised(x, tuple(range(-len(shape), 0)), eps), weight, bias),)


@torch_op("aten.native_group_norm.default")
def group_norm(
    x: Array, weight: Array | None, bias: Array | None, rows: int, channels: int, places: int, groups: int, eps: float
) -> tuple[Array]:
    at_places = x if x.ndim > 2 else x[..., None]
    normalised = group_normalised(at_places, weight, bias, num_groups=groups, eps=eps, axis=1)
    return (normalised.reshape(x.shape),)


@torch_op("aten.rms_norm.default", "aten._fused_rms_norm.default")
def rms_norm(x: Array, shape: Sequence[int], weight: Array | None = None, eps: float | None = None) -> Array:
    axes = tuple(range(-len(shape), 0))
    power = jnp.mean(jnp.square(x), axes, keepdims=True)
    return _affine(x * jax.lax.rsqrt(power + (jnp.finfo(x.dtype).eps if eps is None else eps)), weight, None)


def _standardised(x: Array, axes: tuple[int, ...], eps: float) -> Array:
    centred = x - jnp.mean(x, axes, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(jnp.square(centred), axes, keepdims=True) + eps)


def _affine(x: Array, weight: Array | None, bias: Array | None) -> Array:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def _channels(x: Array, *vectors: Any) -> list[Any]:
    return [None if one is None else _by_channel(x, one) for one in vectors]


def _by_channel(x: Array, vector: Array) -> Array:
    return vector.reshape(-1, *(1,) * (x.ndim - 2))
