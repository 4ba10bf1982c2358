"""Convolutions as matrix products of patches: what sees only products sees those of convolutions too."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo._dataflow import CONVOLUTIONS, as_it_is, rewritten
from credo.typing import Array


def with_patches(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, with its convolutions as products of patches.

    >>> def twice(x):
    ...     return jax.lax.conv(x, 2 * jnp.ones((1, 1, 1, 1)), (1, 1), "VALID")
    >>> print(with_patches(twice)(jnp.ones((1, 1, 1, 2))))
    [[[[2. 2.]]]]
    """

    return rewritten(function, CONVOLUTIONS, _in_patches)


def _in_patches(eqn: Any, inputs: list[Any]) -> Sequence[Any]:
    return [of_patches(inputs[0], inputs[1], eqn.params)] if is_plain(eqn.params) else as_it_is(eqn, inputs)


def is_plain(params: dict[str, Any]) -> bool:
    """No groups."""
    return params["feature_group_count"] == params["batch_group_count"] == 1


def of_patches(data: Array, kernel: Array, params: dict[str, Any]) -> Array:
    """out[n, p, o] = Σ over window places w and channels c of data[n, stride·p + dilation·w, c] kernel[w, c, o]."""
    lhs, rhs, out = params["dimension_numbers"]
    strides, dilation = np.array(params["window_strides"]), np.array(params["rhs_dilation"])
    # Rows first, channels last; and for the kernel: places, channels in, channels out.
    data = jnp.transpose(data, (lhs[0], *lhs[2:], lhs[1]))
    kernel = jnp.transpose(kernel, (*rhs[2:], rhs[1], rhs[0]))
    # Between the numbers too, of a convolution that is transposed.
    margins = [(*ends, step - 1) for ends, step in zip(params["padding"], params["lhs_dilation"], strict=True)]
    padding = [(0, 0, 0), *margins, (0, 0, 0)]
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
