"""Operations that hand numbers on in another order or shape."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from credo.networks.torch.table import torch_op
from credo.typing import Array


@torch_op("aten.sym_size.int")
def size(x: Array, axis: int) -> int:
    return x.shape[axis]


@torch_op("aten.view.default", "aten._unsafe_view.default", "aten.reshape.default")
def view(x: Array, shape: Sequence[int]) -> Array:
    return jnp.reshape(x, shape)


@torch_op("aten.permute.default")
def permute(x: Array, order: Sequence[int]) -> Array:
    return jnp.transpose(x, order)


@torch_op("aten.transpose.int")
def transpose(x: Array, first: int, second: int) -> Array:
    return jnp.swapaxes(x, first, second)


@torch_op("aten.t.default")
def t(x: Array) -> Array:
    return x.T


@torch_op("aten.unsqueeze.default")
def unsqueeze(x: Array, axis: int) -> Array:
    return jnp.expand_dims(x, axis)


@torch_op("aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims")
def squeeze(x: Array, axes: int | Sequence[int] | None = None) -> Array:
    asked = range(x.ndim) if axes is None else np.atleast_1d(axes).tolist()
    return jnp.squeeze(x, tuple(axis for axis in asked if x.shape[axis] == 1))


@torch_op("aten.expand.default")
def expand(x: Array, sizes: Sequence[int]) -> Array:
    own = (*(1,) * (len(sizes) - x.ndim), *x.shape)
    return jnp.broadcast_to(x, [kept if size == -1 else size for size, kept in zip(sizes, own, strict=True)])


@torch_op("aten.repeat.default")
def repeat(x: Array, times: Sequence[int]) -> Array:
    return jnp.tile(x, times)


@torch_op("aten.cat.default")
def cat(arrays: Sequence[Array], axis: int = 0) -> Array:
    # An empty vector stands for nothing, whatever the shape of the others.
    return jnp.concatenate([one for one in arrays if one.shape != (0,)], axis)


@torch_op("aten.stack.default")
def stack(arrays: Sequence[Array], axis: int = 0) -> Array:
    return jnp.stack(arrays, axis)


@torch_op("aten.split_with_sizes.default")
def split_with_sizes(x: Array, sizes: Sequence[int], axis: int = 0) -> tuple[Array, ...]:
    return tuple(jnp.split(x, np.cumsum(sizes)[:-1].tolist(), axis))


@torch_op("aten.split.Tensor")
def split(x: Array, size: int, axis: int = 0) -> tuple[Array, ...]:
    return tuple(jnp.split(x, list(range(size, x.shape[axis], size)), axis))


@torch_op("aten.unbind.int")
def unbind(x: Array, axis: int = 0) -> tuple[Array, ...]:
    return tuple(jnp.moveaxis(x, axis, 0))


@torch_op("aten.flip.default")
def flip(x: Array, axes: Sequence[int]) -> Array:
    return jnp.flip(x, axes)


@torch_op("aten.roll.default")
def roll(x: Array, shifts: Sequence[int], axes: Sequence[int] = ()) -> Array:
    return jnp.roll(x, tuple(shifts), tuple(axes) or None)


@torch_op("aten.diagonal.default")
def diagonal(x: Array, offset: int = 0, first: int = 0, second: int = 1) -> Array:
    return jnp.diagonal(x, offset, first, second)


@torch_op("aten.as_strided.default", "aten.as_strided_copy.default")
def as_strided(x: Array, shape: Sequence[int], strides: Sequence[int], offset: int | None = None) -> Array:
    steps = np.indices(shape).reshape(len(shape), -1).T @ np.asarray(strides, int)
    return jnp.ravel(x)[steps + (offset or 0)].reshape(shape)


@torch_op("aten.constant_pad_nd.default")
def constant_pad(x: Array, padding: Sequence[int], value: float = 0.0) -> Array:
    kept = tuple(
        slice(max(-low, 0), size - max(-high, 0))
        for size, (low, high) in zip(x.shape, _by_axis(x, padding), strict=True)
    )
    grown = [(max(low, 0), max(high, 0)) for low, high in _by_axis(x, padding)]
    return jnp.pad(x[kept], grown, constant_values=value)


@torch_op("aten.reflection_pad1d.default", "aten.reflection_pad2d.default", "aten.reflection_pad3d.default")
def reflection_pad(x: Array, padding: Sequence[int]) -> Array:
    return jnp.pad(x, _by_axis(x, padding), mode="reflect")


@torch_op("aten.replication_pad1d.default", "aten.replication_pad2d.default", "aten.replication_pad3d.default")
def replication_pad(x: Array, padding: Sequence[int]) -> Array:
    return jnp.pad(x, _by_axis(x, padding), mode="edge")


@torch_op("aten.pixel_shuffle.default")
def pixel_shuffle(x: Array, factor: int) -> Array:
    *lead, depth, height, width = x.shape
    apart = x.reshape(*lead, depth // factor**2, factor, factor, height, width)
    # (…, channels, i, j, height, width) → (…, channels, height, i, width, j)
    return jnp.moveaxis(apart, (-4, -3), (-3, -1)).reshape(*lead, depth // factor**2, height * factor, width * factor)


def _by_axis(x: Array, padding: Sequence[int]) -> list[Any]:
    """(low, high) for each axis, from PyTorch's flat list, which begins with the last."""
    pairs = [tuple(padding[at : at + 2]) for at in range(0, len(padding), 2)]
    return [(0, 0)] * (x.ndim - len(pairs)) + pairs[::-1]
