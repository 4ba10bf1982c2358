"""Scaled dot-product attention, softmax(Q Kᵀ/√d) V."""

import math

import jax
import jax.numpy as jnp

from credo.networks.torch.table import torch_op
from credo.typing import Array


@torch_op("aten.scaled_dot_product_attention.default")
def attention(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Array:
    if enable_gqa:
        groups = query.shape[-3] // key.shape[-3]
        key, value = jnp.repeat(key, groups, axis=-3), jnp.repeat(value, groups, axis=-3)
    scores = jnp.einsum("...qd,...kd->...qk", query, key) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        attn_mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    if attn_mask is None:
        weights = jax.nn.softmax(scores, axis=-1)
    elif attn_mask.dtype == bool:
        # A row that sees nothing attends to nothing: it gives zeros, where −∞ would give NaN.
        seen = jax.nn.softmax(jnp.where(attn_mask, scores, jnp.finfo(scores.dtype).min), axis=-1)
        weights = jnp.where(attn_mask, seen, 0)
    else:
        weights = jax.nn.softmax(scores + attn_mask, axis=-1)
    return jnp.einsum("...qk,...kd->...qd", weights, value)
