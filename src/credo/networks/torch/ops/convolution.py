"""Convolutions in one, two or three dimensions, and transposed ones."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from credo.networks.torch.table import torch_op
from credo.typing import Array

# Rows, channels and places; and the weights (out, in, window…).
_LAYOUTS = {1: ("NCH", "OIH", "NCH"), 2: ("NCHW", "OIHW", "NCHW"), 3: ("NCDHW", "OIDHW", "NCDHW")}


@torch_op("aten.convolution.default")
def convolution(
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Array:
    num = weight.ndim - 2
    steps, margins, dilations = (each(values, num) for values in (stride, padding, dilation))
    pads = list(zip(margins, margins, strict=True))
    if transposed:
        reach = np.multiply(dilations, np.subtract(weight.shape[2:], 1)) - margins
        pads = list(zip(reach.tolist(), (reach + each(output_padding, num)).tolist(), strict=True))
        weight = _turned(weight, groups)
    product = jax.lax.conv_general_dilated(
        x,
        weight,
        window_strides=(1,) * num if transposed else steps,
        padding=pads,
        lhs_dilation=steps if transposed else None,
        rhs_dilation=dilations,
        dimension_numbers=_LAYOUTS[num],
        feature_group_count=groups,
    )
    return product if bias is None else product + bias.reshape(-1, *(1,) * num)


def each(values: int | Sequence[int], num: int) -> tuple[int, ...]:
    """One value for each of `num` axes: PyTorch takes one for all."""
    return tuple(np.broadcast_to(values, num).tolist())


def _turned(weight: Array, groups: int) -> Array:
    """(in, out of a group, window…) → (out, in of a group, window… turned round)."""
    apart = weight.reshape(groups, weight.shape[0] // groups, *weight.shape[1:])
    swapped = jnp.swapaxes(apart, 1, 2)
    return jnp.flip(swapped.reshape(-1, *swapped.shape[2:]), tuple(range(2, weight.ndim)))
