"""Operations that sum, average, sort and search along axes."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from credo.networks.torch.ops.dtypes import dtype_of
from credo.networks.torch.table import torch_op
from credo.typing import Array

Axes = int | Sequence[int] | None


def _axes(axes: Axes) -> Any:
    """No axis, or an empty list of them, is all."""
    return axes if isinstance(axes, int) else tuple(axes) if axes else None


def _typed(reduce: Callable[..., Array]) -> Callable[..., Array]:
    def reduced(x: Array, axes: Axes = None, keepdim: bool = False, *, dtype: str | None = None) -> Array:
        return reduce(x, _axes(axes), keepdims=keepdim, dtype=dtype_of(dtype))

    return reduced


def _untyped(reduce: Callable[..., Array]) -> Callable[..., Array]:
    def reduced(x: Array, axes: Axes = None, keepdim: bool = False) -> Array:
        return reduce(x, _axes(axes), keepdims=keepdim)

    return reduced


torch_op("aten.sum.default", "aten.sum.dim_IntList")(_typed(jnp.sum))
torch_op("aten.mean.default", "aten.mean.dim")(_typed(jnp.mean))
torch_op("aten.prod.default", "aten.prod.dim_int")(_typed(jnp.prod))
torch_op("aten.amax.default", "aten.max.default")(_untyped(jnp.max))
torch_op("aten.amin.default", "aten.min.default")(_untyped(jnp.min))
torch_op("aten.any.default", "aten.any.dim", "aten.any.dims")(_untyped(jnp.any))
torch_op("aten.all.default", "aten.all.dim", "aten.all.dims")(_untyped(jnp.all))
torch_op("aten.argmax.default")(_untyped(jnp.argmax))
torch_op("aten.argmin.default")(_untyped(jnp.argmin))
torch_op("aten.logsumexp.default")(_untyped(jax.scipy.special.logsumexp))


@torch_op("aten.max.dim")
def max_along(x: Array, axis: int, keepdim: bool = False) -> tuple[Array, Array]:
    return jnp.max(x, axis, keepdims=keepdim), jnp.argmax(x, axis, keepdims=keepdim)


@torch_op("aten.min.dim")
def min_along(x: Array, axis: int, keepdim: bool = False) -> tuple[Array, Array]:
    return jnp.min(x, axis, keepdims=keepdim), jnp.argmin(x, axis, keepdims=keepdim)


@torch_op("aten.var.correction")
def var(x: Array, axes: Axes = None, *, correction: float | None = None, keepdim: bool = False) -> Array:
    return jnp.var(x, _axes(axes), correction=1 if correction is None else correction, keepdims=keepdim)


@torch_op("aten.var.dim")
def var_along(x: Array, axes: Axes = None, unbiased: bool = True, keepdim: bool = False) -> Array:
    return var(x, axes, correction=int(unbiased), keepdim=keepdim)


@torch_op("aten.var_mean.correction")
def var_mean(x: Array, axes: Axes = None, **options: Any) -> tuple[Array, Array]:
    return var(x, axes, **options), jnp.mean(x, _axes(axes), keepdims=options.get("keepdim", False))


@torch_op("aten.linalg_vector_norm.default")
def vector_norm(
    x: Array, order: Any = 2, axes: Axes = None, keepdim: bool = False, *, dtype: str | None = None
) -> Array:
    return jnp.linalg.vector_norm(x.astype(dtype_of(dtype, x.dtype)), axis=_axes(axes), keepdims=keepdim, ord=order)


@torch_op("aten.cumsum.default")
def cumsum(x: Array, axis: int, *, dtype: str | None = None) -> Array:
    return jnp.cumsum(x, axis, dtype=dtype_of(dtype))


@torch_op("aten._softmax.default", "aten.softmax.int")
def softmax(x: Array, axis: int, *_: Any) -> Array:
    return jax.nn.softmax(x, axis)


@torch_op("aten._log_softmax.default", "aten.log_softmax.int")
def log_softmax(x: Array, axis: int, *_: Any) -> Array:
    return jax.nn.log_softmax(x, axis)


@torch_op("aten.sort.default")
def sort(x: Array, axis: int = -1, descending: bool = False) -> tuple[Array, Array]:
    order = jnp.argsort(x, axis, descending=descending)
    return jnp.take_along_axis(x, order, axis), order


@torch_op("aten.topk.default")
def topk(x: Array, num: int, axis: int = -1, largest: bool = True, *_: Any) -> tuple[Array, Array]:
    values, order = sort(x, axis, largest)
    first = range(num)
    return jnp.take(values, jnp.asarray(first), axis), jnp.take(order, jnp.asarray(first), axis)
