"""What the operations of PyTorch are in JAX, by kind; `OPS` is the table with all of them."""

from credo.networks.torch.ops import (
    attention,
    convolution,
    creation,
    elementwise,
    indexing,
    normalisation,
    pooling,
    products,
    recurrent,
    reductions,
    resampling,
    shapes,
    sites,
)
from credo.networks.torch.table import OPS

__all__ = [
    "OPS",
    "attention",
    "convolution",
    "creation",
    "elementwise",
    "indexing",
    "normalisation",
    "pooling",
    "products",
    "recurrent",
    "reductions",
    "resampling",
    "shapes",
    "sites",
]
