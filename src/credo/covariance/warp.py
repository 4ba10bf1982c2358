"""A normalising flow over theta: a Gaussian whose noise is warped before it is coloured.

    theta = location + √Σ f(ε),   log q(theta) = log N(ε; 0, I) − log|det ∂f/∂ε| − ½ log det Σ,   ε ~ N(0, I)

√Σ takes care of units and correlations, so that f works on numbers of order one. f is a few layers, each a monotone
spline for every coordinate (Durkan et al., 2019) and then an affine coupling (Dinh et al., 2017), in which half of
the coordinates, through a small network, move and stretch the other half. With all its numbers at zero a spline or the
last matrix of a coupling does nothing: f starts as the identity.
"""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from credo.covariance.blocks import Blocks
from credo.typing import Array, Key, Theta

# Splines bend within ±5 sds of the noise and are the identity beyond: one draw in two million is beyond.
BOUND = 5.0
# No bin is narrower or lower than this share of the range: slopes stay finite.
LEAST_BIN = 1e-3
LEAST_SLOPE = 1e-3
# A coupling stretches by at most e³: a network that runs off for a rare draw must not take log q with it.
LARGEST_LOG_STRETCH = 3.0


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Warp:
    """√Σ f(ε): what a covariance root is to a Gaussian, to a flow.

    Arguments:
        root: √Σ, one block over all entries of theta.
        layers: the numbers of f, each with a leading axis of layers: "bins" (n, 3·bins − 1) for the splines; for the
            couplings "inner" (hidden, n), "inner_bias" (hidden,), "outer" (2, n, hidden), "outer_bias" (2, n).
    """

    root: Blocks
    layers: Theta

    @property
    def num_layers(self) -> int:
        return self.layers["bins"].shape[0]

    def draw_and_log_q(self, key: Key) -> tuple[Theta, Array]:
        """√Σ f(ε) for fresh noise, and log q there."""
        return self.offset_and_log_q(self.root.noise(key)["all"].ravel())

    def offset_and_log_q(self, epsilon: Array) -> tuple[Theta, Array]:
        """√Σ f(ε), and log q there, for noise ε of shape (n,)."""
        warped, log_det = self.warped(epsilon)
        log_normal = -0.5 * jnp.sum(epsilon**2) - 0.5 * epsilon.size * math.log(2 * math.pi)
        return self.root.offset({"all": warped[None]}), log_normal - log_det - self.root.half_log_det()

    def warped(self, epsilon: Array) -> tuple[Array, Array]:
        """f(ε) and log|det ∂f/∂ε|."""
        moved = np.stack([moves(layer, epsilon.size) for layer in range(self.num_layers)])

        def bend(carry: tuple[Array, Array], layer: tuple[Theta, Array]) -> tuple[tuple[Array, Array], None]:
            (x, log_det), (own, moved) = carry, layer
            x, log_slopes = spline(x, own["bins"])
            x, log_stretch = _coupled(x, own, moved)
            return (x, log_det + jnp.sum(log_slopes) + jnp.sum(log_stretch)), None

        # Unrolled, four layers take twice as long to compile and 1.5 to 2.4 times as long to run.
        return jax.lax.scan(bend, (epsilon, jnp.zeros(())), (self.layers, jnp.asarray(moved)))[0]


def moves(layer: int, size: int) -> np.ndarray:
    """Which coordinates a layer moves, (n,): those of whose number a bit is set, then those of whose it is not.

    Two coordinates differ in some bit, so 2·⌈log₂ n⌉ layers let every pair meet, both ways.

    >>> [moves(layer, 4).astype(int).tolist() for layer in range(3)]
    [[0, 1, 0, 1], [1, 0, 1, 0], [0, 0, 1, 1]]
    """
    bit = layer // 2 % max((size - 1).bit_length(), 1)
    return (np.arange(size) >> bit) % 2 != layer % 2


def _coupled(x: Array, own: Theta, moved: Array) -> tuple[Array, Array]:
    """x for what is kept, x·exp(s) + t for what is moved, with s and t from what is kept; and s."""
    hidden = jnp.tanh(own["inner"] @ jnp.where(moved, 0.0, x) + own["inner_bias"])
    raw, shift = own["outer"] @ hidden + own["outer_bias"]
    log_stretch = jnp.where(moved, LARGEST_LOG_STRETCH * jnp.tanh(raw / LARGEST_LOG_STRETCH), 0.0)
    return x * jnp.exp(log_stretch) + jnp.where(moved, shift, 0.0), log_stretch


def spline(x: Array, raw: Array) -> tuple[Array, Array]:
    """A monotone rational-quadratic spline of each entry, and the logarithm of its slope.

    Arguments:
        x: (n,).
        raw: (n, 3·bins − 1), unconstrained: widths and heights of the bins, slopes at the knots between them.
    """
    num_bins = (raw.shape[-1] + 1) // 3
    left, width = _bins(raw[:, :num_bins])
    bottom, height = _bins(raw[:, num_bins : 2 * num_bins])
    slopes = jnp.pad(_slopes(raw[:, 2 * num_bins :]), ((0, 0), (1, 1)), constant_values=1.0)
    inside = jnp.clip(x, -BOUND, BOUND)
    place = jnp.sum(inside[:, None] >= left[:, 1:], axis=1, keepdims=True)

    def here(values: Array) -> Array:
        return jnp.take_along_axis(values, place, axis=1)[:, 0]

    wide, high = here(width), here(height)
    before, after, mean = here(slopes[:, :-1]), here(slopes[:, 1:]), high / wide
    part = (inside - here(left)) / wide
    rest = 1 - part
    denominator = mean + (before + after - 2 * mean) * part * rest
    y = here(bottom) + high * (mean * part**2 + before * part * rest) / denominator
    slope = mean**2 * (after * part**2 + 2 * mean * part * rest + before * rest**2) / denominator**2
    beyond = jnp.abs(x) > BOUND
    return jnp.where(beyond, x, y), jnp.where(beyond, 0.0, jnp.log(slope))


def _bins(raw: Array) -> tuple[Array, Array]:
    """Where each bin begins, and its size; all of them fill the range."""
    share = LEAST_BIN + (1 - LEAST_BIN * raw.shape[-1]) * jax.nn.softmax(raw, axis=-1)
    size = 2 * BOUND * share
    return jnp.cumsum(size, axis=-1) - size - BOUND, size


def _slopes(raw: Array) -> Array:
    """Positive, and one at zero."""
    return LEAST_SLOPE + jax.nn.softplus(raw + math.log(math.expm1(1 - LEAST_SLOPE)))
