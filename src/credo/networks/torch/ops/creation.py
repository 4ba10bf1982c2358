"""Arrays that are made of nothing but their shape."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from credo._precision import working_precision
from credo.networks.torch.ops.dtypes import dtype_of
from credo.networks.torch.table import torch_op
from credo.typing import Array


@torch_op("aten.full.default")
def full(shape: Sequence[int], value: Any, *, dtype: str | None = None) -> Array:
    return jnp.full(shape, value, dtype_of(dtype, working_precision() if isinstance(value, float) else None))


@torch_op("aten.full_like.default")
def full_like(x: Array, value: Any, *, dtype: str | None = None) -> Array:
    return jnp.full(x.shape, value, dtype_of(dtype, x.dtype))


@torch_op("aten.zeros.default", "aten.empty.memory_format")
def zeros(shape: Sequence[int], *, dtype: str | None = None) -> Array:
    return jnp.zeros(shape, dtype_of(dtype, working_precision()))


@torch_op("aten.ones.default")
def ones(shape: Sequence[int], *, dtype: str | None = None) -> Array:
    return jnp.ones(shape, dtype_of(dtype, working_precision()))


@torch_op("aten.zeros_like.default", "aten.empty_like.default")
def zeros_like(x: Array, *, dtype: str | None = None) -> Array:
    return full_like(x, 0, dtype=dtype)


@torch_op("aten.ones_like.default")
def ones_like(x: Array, *, dtype: str | None = None) -> Array:
    return full_like(x, 1, dtype=dtype)


@torch_op("aten.scalar_tensor.default")
def scalar(value: Any, *, dtype: str | None = None) -> Array:
    return jnp.asarray(value, dtype_of(dtype))


@torch_op("aten.arange.start_step")
def arange(start: Any, end: Any, step: Any = 1, *, dtype: str | None = None) -> Array:
    return jnp.arange(start, end, step, dtype=dtype_of(dtype))


@torch_op("aten.eye.m", "aten.eye.default")
def eye(rows: int, columns: int | None = None, *, dtype: str | None = None) -> Array:
    return jnp.eye(rows, columns, dtype=dtype_of(dtype, working_precision()))


@torch_op("aten.tril.default")
def tril(x: Array, diagonal: int = 0) -> Array:
    return jnp.tril(x, diagonal)


@torch_op("aten.triu.default")
def triu(x: Array, diagonal: int = 0) -> Array:
    return jnp.triu(x, diagonal)
