"""Matrix products. A layer's is one product with its weights, and a sum with its bias: what curvature looks for."""

from typing import Any

import jax.numpy as jnp

from credo.networks.torch.table import torch_op
from credo.typing import Array

torch_op("aten.mm.default", "aten.bmm.default", "aten.mv.default", "aten.dot.default", "aten.matmul.default")(
    jnp.matmul
)


@torch_op("aten.linear.default")
def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    product = jnp.tensordot(x, weight, axes=(-1, 1))
    return product if bias is None else product + bias


@torch_op("aten.addmm.default", "aten.baddbmm.default")
def addmm(bias: Array, x: Array, weight: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    product = jnp.matmul(x, weight)
    return (product if alpha == 1 else alpha * product) + (bias if beta == 1 else beta * bias)
