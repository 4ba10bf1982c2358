"""Operations that look numbers up by their places, or write them there."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from credo.networks.torch.table import torch_op
from credo.typing import Array


@torch_op("aten.embedding.default")
def embedding(weight: Array, indices: Array, padding_idx: int = -1, *_: Any) -> Array:
    # PyTorch holds the gradient of the padding's row back; the posterior is that of the function, and it is part of it.
    return weight[indices]


@torch_op("aten.select.int")
def select(x: Array, axis: int, index: int) -> Array:
    return _along(x, axis, index)


@torch_op("aten.slice.Tensor")
def cut(x: Array, axis: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Array:
    return _along(x, axis, slice(start, end, step))


@torch_op("aten.select_scatter.default")
def select_scatter(x: Array, values: Array, axis: int, index: int) -> Array:
    return x.at[_place(x, axis, index)].set(values)


@torch_op("aten.slice_scatter.default")
def slice_scatter(
    x: Array, values: Array, axis: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Array:
    return x.at[_place(x, axis, slice(start, end, step))].set(values)


@torch_op("aten.index_select.default")
def index_select(x: Array, axis: int, index: Array) -> Array:
    return jnp.take(x, index, axis)


@torch_op("aten.gather.default")
def gather(x: Array, axis: int, index: Array) -> Array:
    within = tuple(slice(size) if at != axis % x.ndim else slice(None) for at, size in enumerate(index.shape))
    return jnp.take_along_axis(x[within], index, axis)


@torch_op("aten.index.Tensor")
def index(x: Array, indices: Sequence[Array | None]) -> Array:
    return x[_places(indices)]


@torch_op("aten.index_put.default")
def index_put(x: Array, indices: Sequence[Array | None], values: Array, accumulate: bool = False) -> Array:
    places = x.at[_places(indices)]
    return places.add(values) if accumulate else places.set(values)


@torch_op("aten.scatter.src", "aten.scatter.value")
def scatter(x: Array, axis: int, index: Array, values: Any) -> Array:
    return x.at[_grid(x, axis, index)].set(_like(values, index))


@torch_op("aten.scatter_add.default")
def scatter_add(x: Array, axis: int, index: Array, values: Array) -> Array:
    return x.at[_grid(x, axis, index)].add(_like(values, index))


def _along(x: Array, axis: int, which: Any) -> Array:
    return x[_place(x, axis, which)]


def _place(x: Array, axis: int, which: Any) -> tuple[Any, ...]:
    return (*(slice(None),) * (axis % x.ndim), which)


def _places(indices: Sequence[Array | None]) -> tuple[Any, ...]:
    return tuple(slice(None) if one is None else one for one in indices)


def _grid(x: Array, axis: int, index: Array) -> tuple[Array, ...]:
    """The place of each number of `index` in x: its own, but along the axis."""
    grid = jnp.indices(index.shape)
    return tuple(index if at == axis % x.ndim else grid[at] for at in range(x.ndim))


def _like(values: Any, index: Array) -> Any:
    return values[tuple(map(slice, index.shape))] if jnp.ndim(values) else values
