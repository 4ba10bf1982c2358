"""Convolutions as matrix products of patches, where that is faster: on a CPU, inside compiled loops.

Training, sampling and prediction run inside `fori_loop` and `scan`. There XLA's CPU backend computes convolutions,
and above all their gradients, by a slow routine: a LeNet step took 620 ms in a loop and 30 ms outside of one. As a
product of patches with the kernel it takes 35 ms in either place. The network's own code is not touched: it is traced,
and its convolutions are replaced.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo._dataflow import CONVOLUTION, PLAIN_CALLS, as_it_is, body, walk
from credo.typing import Array


def with_patches(function: Callable[..., Any], *, everywhere: bool = False) -> Callable[..., Any]:
    """The same function, with its convolutions as products of patches where the backend is a CPU, or everywhere.

    >>> def twice(x):
    ...     return jax.lax.conv(x, 2 * jnp.ones((1, 1, 1, 1)), (1, 1), "VALID")
    >>> print(with_patches(twice)(jnp.ones((1, 1, 1, 2))))
    [[[[2. 2.]]]]
    """

    def replaced(*arguments: Any) -> Any:
        if not everywhere and jax.default_backend() != "cpu":
            return function(*arguments)
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*arguments)
        if not _has_convolution(closed.jaxpr):
            return function(*arguments)
        outputs = walk(closed, jax.tree.leaves(arguments), _equation)
        return jax.tree.unflatten(jax.tree.structure(shape), outputs)

    return replaced


def _has_convolution(jaxpr: Any) -> bool:
    return any(
        eqn.primitive.name == CONVOLUTION or (eqn.primitive.name in PLAIN_CALLS and _has_convolution(body(eqn)))
        for eqn in getattr(jaxpr, "jaxpr", jaxpr).eqns
    )


def _equation(eqn: Any, inputs: list[Any]) -> list[Any]:
    if eqn.primitive.name in PLAIN_CALLS and _has_convolution(body(eqn)):
        return walk(body(eqn), inputs, _equation)
    if eqn.primitive.name == CONVOLUTION and _is_plain(eqn.params):
        return [_convolve(inputs[0], inputs[1], eqn.params)]
    return as_it_is(eqn, inputs)


def _is_plain(params: dict[str, Any]) -> bool:
    """No groups, and no holes in the data (transposed convolutions): those stay as they are."""
    groups = params["feature_group_count"], params["batch_group_count"]
    return groups == (1, 1) and all(step == 1 for step in params["lhs_dilation"])


def _convolve(data: Array, kernel: Array, params: dict[str, Any]) -> Array:
    """out[n, p, o] = Σ over window places w and channels c of data[n, stride·p + dilation·w, c] kernel[w, c, o]."""
    lhs, rhs, out = params["dimension_numbers"]
    strides, dilation = np.array(params["window_strides"]), np.array(params["rhs_dilation"])
    # Rows first, channels last; and for the kernel: places, channels in, channels out.
    data = jnp.transpose(data, (lhs[0], *lhs[2:], lhs[1]))
    kernel = jnp.transpose(kernel, (*rhs[2:], rhs[1], rhs[0]))
    padding = [(0, 0, 0), *((low, high, 0) for low, high in params["padding"]), (0, 0, 0)]
    data = jax.lax.pad(data, jnp.zeros((), data.dtype), padding)
    window, (num_in, num_out) = kernel.shape[:-2], kernel.shape[-2:]
    starts = dilation * list(np.ndindex(*window))
    # How far the data's place goes while the output's goes from its first to its last.
    reach = (data.shape[1:-1] - starts[-1] - 1) // strides * strides
    patches = [
        jax.lax.slice(data, (0, *start, 0), (len(data), *stop, num_in), (1, *params["window_strides"], 1))
        for start, stop in zip(starts.tolist(), (starts + reach + 1).tolist(), strict=True)
    ]
    result = jnp.matmul(
        jnp.concatenate(patches, axis=-1),
        kernel.reshape(math.prod(window) * num_in, num_out),
        precision=params["precision"],
        preferred_element_type=params["preferred_element_type"],
    )
    # From (rows, places, channels) to the order that was asked for.
    return jnp.transpose(result, np.argsort((out[0], *out[2:], out[1])).tolist())
