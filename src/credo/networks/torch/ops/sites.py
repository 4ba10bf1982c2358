"""Dropout, as a place that asks for a mask: see `credo.networks.masks`."""

from credo.networks.masks import masked
from credo.networks.torch.table import torch_op
from credo.typing import Array


@torch_op("credo.dropout.default")
def dropout(x: Array, rate: float, by_channel: bool) -> Array:
    """Nothing, but where a mask is given. Of images, (n, channels, height, width), it is one of channels."""
    return masked(x, rate, axis=1 if by_channel or x.ndim > 3 else -1)
