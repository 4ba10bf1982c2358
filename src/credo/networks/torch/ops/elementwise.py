"""Operations that compute each number from the numbers in the same place."""

import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from credo.networks.torch.ops.dtypes import dtype_of
from credo.networks.torch.table import torch_op
from credo.typing import Array

_OF_ONE: dict[str, Callable[..., Array]] = {
    "abs": jnp.abs,
    "acos": jnp.arccos,
    "asin": jnp.arcsin,
    "atan": jnp.arctan,
    "atanh": jnp.arctanh,
    "bitwise_not": jnp.invert,
    "ceil": jnp.ceil,
    "cos": jnp.cos,
    "cosh": jnp.cosh,
    "erf": jax.lax.erf,
    "exp": jnp.exp,
    "expm1": jnp.expm1,
    "floor": jnp.floor,
    "isinf": jnp.isinf,
    "isnan": jnp.isnan,
    "log": jnp.log,
    "log10": jnp.log10,
    "log1p": jnp.log1p,
    "log2": jnp.log2,
    "logical_not": jnp.logical_not,
    "neg": jnp.negative,
    "reciprocal": jnp.reciprocal,
    "relu": jax.nn.relu,
    "round": jnp.round,
    "rsqrt": jax.lax.rsqrt,
    "sigmoid": jax.nn.sigmoid,
    "sign": jnp.sign,
    "silu": jax.nn.silu,
    "sin": jnp.sin,
    "sinh": jnp.sinh,
    "sqrt": jnp.sqrt,
    "tan": jnp.tan,
    "tanh": jnp.tanh,
    "trunc": jnp.trunc,
}
_OF_TWO: dict[str, Callable[..., Array]] = {
    "atan2": jnp.arctan2,
    "bitwise_and": jnp.bitwise_and,
    "bitwise_or": jnp.bitwise_or,
    "bitwise_xor": jnp.bitwise_xor,
    "eq": jnp.equal,
    "floor_divide": jnp.floor_divide,
    "fmod": jnp.fmod,
    "ge": jnp.greater_equal,
    "gt": jnp.greater,
    "le": jnp.less_equal,
    "logical_and": jnp.logical_and,
    "logical_or": jnp.logical_or,
    "logical_xor": jnp.logical_xor,
    "lt": jnp.less,
    "maximum": jnp.maximum,
    "minimum": jnp.minimum,
    "mul": jnp.multiply,
    "ne": jnp.not_equal,
    "pow": jnp.power,
    "remainder": jnp.remainder,
}
# Python's arithmetic of sizes, and the outputs of an operation that has several.
_OF_SIZES = ("add", "floordiv", "getitem", "mod", "mul", "neg", "sub", "truediv")

for _name, _function in _OF_ONE.items():
    torch_op(f"aten.{_name}.default")(_function)
for _name, _function in _OF_TWO.items():
    kinds = ("default", "Tensor", "Scalar", "Tensor_Tensor", "Tensor_Scalar")
    torch_op(*(f"aten.{_name}.{kind}" for kind in kinds))(_function)
for _name in _OF_SIZES:
    torch_op(f"operator.{_name}")(getattr(operator, _name))
# The posterior is that of the function: what its author held back from training is a part of it like any other.
torch_op("aten.alias.default", "aten.clone.default", "aten.detach.default", "aten.lift_fresh_copy.default")(jnp.asarray)


@torch_op("aten.add.Tensor", "aten.add.Scalar")
def add(x: Any, y: Any, alpha: float = 1) -> Array:
    return jnp.add(x, y if alpha == 1 else alpha * y)


@torch_op("aten.sub.Tensor", "aten.sub.Scalar")
def sub(x: Any, y: Any, alpha: float = 1) -> Array:
    return jnp.subtract(x, y if alpha == 1 else alpha * y)


@torch_op("aten.rsub.Scalar")
def rsub(x: Array, y: Any, alpha: float = 1) -> Array:
    return y - alpha * x


@torch_op("aten.div.Tensor", "aten.div.Scalar", "aten.div.Tensor_mode", "aten.div.Scalar_mode")
def div(x: Any, y: Any, *, rounding_mode: str | None = None) -> Array:
    if rounding_mode == "floor":
        return jnp.floor_divide(x, y)
    quotient = jnp.true_divide(x, y)
    # Whole numbers stay whole where the quotient is rounded.
    return quotient if rounding_mode is None else jnp.trunc(quotient).astype(jnp.result_type(x, y))


@torch_op("aten.pow.Scalar")
def pow_scalar(base: float, x: Array) -> Array:
    return jnp.power(base, x)


@torch_op("aten.clamp.default", "aten.clamp.Tensor", "aten.hardtanh.default")
def clamp(x: Array, low: Any = None, high: Any = None, **named: Any) -> Array:
    return jnp.clip(x, named.get("min", low), named.get("max", high))


@torch_op("aten.where.self", "aten.where.ScalarOther", "aten.where.ScalarSelf", "aten.where.Scalar")
def where(condition: Array, x: Any, y: Any) -> Array:
    return jnp.where(condition, x, y)


@torch_op("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(x: Array, mask: Array, value: Any) -> Array:
    return jnp.where(mask, jnp.asarray(value, x.dtype), x)


@torch_op("aten._to_copy.default", "aten.to.dtype")
def to_copy(x: Any, dtype: str | None = None, *_: Any) -> Array:
    return jnp.asarray(x, dtype_of(dtype))


@torch_op("aten.copy.default")
def copy(x: Array, source: Any, *_: Any) -> Array:
    return jnp.broadcast_to(source, x.shape).astype(x.dtype)


@torch_op("aten.gelu.default")
def gelu(x: Array, *, approximate: str = "none") -> Array:
    return jax.nn.gelu(x, approximate=approximate == "tanh")


@torch_op("aten.elu.default")
def elu(x: Array, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Array:
    return scale * jnp.where(x > 0, x, alpha * jnp.expm1(input_scale * jnp.minimum(x, 0)))


@torch_op("aten.leaky_relu.default")
def leaky_relu(x: Array, slope: float = 0.01) -> Array:
    return jax.nn.leaky_relu(x, slope)


@torch_op("aten.softplus.default")
def softplus(x: Array, beta: float = 1.0, threshold: float = 20.0) -> Array:
    return jnp.where(beta * x > threshold, x, jax.nn.softplus(beta * x) / beta)


@torch_op("aten.hardswish.default")
def hardswish(x: Array) -> Array:
    return x * jnp.clip(x + 3, 0, 6) / 6


@torch_op("aten.hardsigmoid.default")
def hardsigmoid(x: Array) -> Array:
    return jnp.clip(x + 3, 0, 6) / 6
