"""Normalisation of each row by itself, as one scale and shift for each channel."""

import jax
import jax.numpy as jnp

from credo.typing import Array


def group_normalised(
    x: Array, scale: Array | None, bias: Array | None, *, num_groups: int, eps: float, axis: int
) -> Array:
    """scale · (x − mean)/√(variance + eps) + bias, mean and variance over the places and channels of a group.

    Both come from sums over the places of each channel, so the array is read three times, and its gradient as often:

        mean = avg_c m_c        variance = avg_c v_c + avg_c (m_c − mean)²        v_c = avg (x − k)² − (m_c − k)²

    The third equation holds for every constant k, with all derivatives. With k = m_c it is exact: no small difference
    of large numbers, and nothing negative. Wu & He 2018, "Group Normalization".

    Arguments:
        x: of shape (n, …) with at least one axis of places.
        scale, bias: one number for each channel; None for one and zero.
        axis: of the channels.

    >>> x = jnp.arange(8.0).reshape(1, 4, 2)
    >>> group_normalised(x, None, None, num_groups=1, eps=0.0, axis=-1).std().round(3).item()
    1.0
    """
    num, channels = x.shape[0], x.shape[axis]
    along = [num, *(size if at == axis % x.ndim else 1 for at, size in enumerate(x.shape) if at > 0)]
    places = tuple(at for at in range(1, x.ndim) if at != axis % x.ndim)
    own_mean = jnp.mean(x, places)
    constant = jax.lax.stop_gradient(own_mean)
    own_variance = jnp.mean(jnp.square(x - constant.reshape(along)), places) - jnp.square(own_mean - constant)
    means = own_mean.reshape(num, num_groups, -1)
    mean = jnp.mean(means, -1, keepdims=True)
    variance = jnp.mean(own_variance.reshape(means.shape) + jnp.square(means - mean), -1, keepdims=True)
    weight, offset = (
        jnp.full(channels, value, x.dtype) if one is None else one for one, value in ((scale, 1.0), (bias, 0.0))
    )
    factor = weight * jnp.broadcast_to(jax.lax.rsqrt(variance + eps), means.shape).reshape(num, channels)
    shift = offset - factor * jnp.broadcast_to(mean, means.shape).reshape(num, channels)
    return x * factor.reshape(along) + shift.reshape(along)
