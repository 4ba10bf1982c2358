"""Convolutions that stay fast inside compiled loops, on a CPU, with all their derivatives.

Training, sampling and prediction run inside `fori_loop` and `scan`. There XLA's CPU backend has its fast routine only
for convolutions whose rows come first and whose channels come last; the gradients that JAX makes are of other orders,
and take a routine that is a hundred times slower. So a convolution is a primitive of our own, which is compiled in the
order that is fast. Its derivatives and its batches are those of JAX, in which each convolution is ours again.

The network's own code is not touched: it is traced, and its convolutions and poolings are replaced.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.extend.core.primitives import conv_general_dilated_p
from jax.interpreters import ad, batching, mlir

from credo._dataflow import CONVOLUTIONS, OWN_CONVOLUTION, as_it_is, rewritten
from credo.networks.patches import is_plain, of_patches
from credo.typing import Array

_POOLING = "reduce_window_max"
# What is written in another way.
_REPLACED = {*CONVOLUTIONS - {OWN_CONVOLUTION}, _POOLING}

convolution_p = Primitive(OWN_CONVOLUTION)


def with_fast_convolutions(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, with its convolutions as our own.

    >>> def twice(x):
    ...     return jax.lax.conv(x, 2 * jnp.ones((1, 1, 1, 1)), (1, 1), "VALID")
    >>> print(with_fast_convolutions(twice)(jnp.ones((1, 1, 1, 2))))
    [[[[2. 2.]]]]
    """

    return rewritten(function, _REPLACED, _as_own)


def _as_own(eqn: Any, inputs: list[Any]) -> Sequence[Any]:
    if eqn.primitive is conv_general_dilated_p:
        return [convolution_p.bind(*inputs, **eqn.params)]
    if eqn.primitive.name == _POOLING and _are_tiles(eqn.params):
        return [_tiles_max(inputs[0], eqn.params["window_dimensions"])]
    return as_it_is(eqn, inputs)


# -- pooling -------------------------------------------------------------------------------------------------


def _are_tiles(params: dict[str, Any]) -> bool:
    """Whether windows lie side by side: of them, the gradient is cheaper by reshaping."""
    spread = (*params["base_dilation"], *params["window_dilation"])
    margins = np.ravel(params["padding"])
    return params["window_dimensions"] == params["window_strides"] and set(spread) == {1} and not margins.any()


def _tiles_max(x: Array, window: Sequence[int]) -> Array:
    """The largest number of each window. Where several are, each has an equal part of the gradient."""
    counts = [length // size for length, size in zip(x.shape, window, strict=True)]
    whole = x[tuple(slice(count * size) for count, size in zip(counts, window, strict=True))]
    apart = whole.reshape([side for pair in zip(counts, window, strict=True) for side in pair])
    return jnp.max(apart, tuple(range(1, 2 * x.ndim, 2)))


# -- the primitive -------------------------------------------------------------------------------------------


@convolution_p.def_impl
def _run(data: Array, kernel: Array, **params: Any) -> Array:
    return _program(tuple(sorted(params.items())))(data, kernel)


@cache
def _program(params: tuple[tuple[str, Any], ...]) -> Callable[[Array, Array], Array]:
    """Outside of a trace: compiled once for each kind of convolution and shape."""
    return jax.jit(partial(convolution_p.bind, **dict(params)))


@convolution_p.def_abstract_eval
def _shape(data: Any, kernel: Any, **params: Any) -> Any:
    aval, _ = conv_general_dilated_p.abstract_eval(data, kernel, **params)
    return aval


def _compiled(data: Array, kernel: Array, **params: Any) -> Array:
    """A window that is larger than the image is a product of patches: XLA would let the image slide over the window."""
    lhs, rhs, _ = params["dimension_numbers"]
    image, window = (math.prod(one.shape[axis] for axis in axes[2:]) for one, axes in ((data, lhs), (kernel, rhs)))
    if window > image and is_plain(params):
        return of_patches(data, kernel, params)
    return _canonical(data, kernel, **params)


def _canonical(data: Array, kernel: Array, **params: Any) -> Array:
    """The same with rows first and channels last; and of the kernel, places, channels in, channels out."""
    lhs, rhs, out = params["dimension_numbers"]
    last = len(lhs) - 1
    rows, window = (0, last, *range(1, last)), (last, last - 1, *range(last - 1))
    result = conv_general_dilated_p.bind(
        jnp.transpose(data, (lhs[0], *lhs[2:], lhs[1])),
        jnp.transpose(kernel, (*rhs[2:], rhs[1], rhs[0])),
        **params | {"dimension_numbers": jax.lax.ConvDimensionNumbers(rows, window, rows)},
    )
    return jnp.transpose(result, np.argsort((out[0], *out[2:], out[1])).tolist())


mlir.register_lowering(convolution_p, mlir.lower_fun(_compiled, multiple_results=False), platform="cpu")
mlir.register_lowering(convolution_p, mlir.lower_fun(conv_general_dilated_p.bind, multiple_results=False))


def _derivative(side: int, cotangent: Array, *operands: Any, **params: Any) -> Array:
    """Of one side, as JAX has it."""
    other = operands[1 - side]

    def linear(one: Array, other: Array) -> Array:
        return conv_general_dilated_p.bind(*((one, other) if side == 0 else (other, one)), **params)

    def pulled(cotangent: Array, other: Array) -> Array:
        return jax.linear_transpose(partial(linear, other=other), operands[side].aval)(cotangent)[0]

    return with_fast_convolutions(pulled)(cotangent, other)


ad.defbilinear(convolution_p, partial(_derivative, 0), partial(_derivative, 1))


def _batched(operands: Sequence[Array], axes: Sequence[int | None], **params: Any) -> tuple[Array, int]:
    """One after another where both sides differ: groups of channels, as which JAX has them, are slow."""
    run = partial(convolution_p.bind, **params)
    data_axis, kernel_axis = axes
    if data_axis is not None and kernel_axis is not None:
        pairs = jnp.moveaxis(operands[0], data_axis, 0), jnp.moveaxis(operands[1], kernel_axis, 0)
        return jax.lax.map(lambda pair: run(*pair), pairs), 0
    plain = jax.vmap(partial(conv_general_dilated_p.bind, **params), in_axes=tuple(axes))
    return with_fast_convolutions(plain)(*operands), 0


batching.primitive_batchers[convolution_p] = _batched
