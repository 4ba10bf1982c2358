"""A normalising flow over theta: a Gaussian whose noise is warped before it is coloured.

    theta = location + √Σ f(ε),   log q(theta) = log N(ε; 0, I) − log|det ∂f/∂ε| − ½ log det Σ,   ε ~ N(0, I)

√Σ takes care of units and correlations, so that f works on numbers of order one. f is a few layers, each a monotone
spline for every coordinate (Durkan et al., 2019) and then an affine coupling (Dinh et al., 2017), in which half of
the coordinates, through a small network, move and stretch the other half. With all its numbers at zero a spline or the
last matrix of a coupling does nothing: f starts as the identity.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

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

    def log_density(self, offset: Theta) -> Array:
        """log q(location + offset)."""
        (block,) = self.root.layout.gather(offset, self.root.noise_shapes()).values()
        white = jax.scipy.linalg.solve_triangular(self.root.roots["all"][0], block[0], lower=True)
        epsilon, log_det = self.unwarped(white)
        log_normal = -0.5 * jnp.sum(epsilon**2) - 0.5 * epsilon.size * math.log(2 * math.pi)
        return log_normal - log_det - self.root.half_log_det()

    def warped(self, epsilon: Array) -> tuple[Array, Array]:
        """f(ε) and log|det ∂f/∂ε|."""

        def bend(carry: tuple[Array, Array], layer: tuple[Theta, Array]) -> tuple[tuple[Array, Array], None]:
            (x, log_det), (own, moved) = carry, layer
            x, log_slopes = spline(x, own["bins"])
            x, log_stretch = _coupled(x, own, moved)
            return (x, log_det + jnp.sum(log_slopes) + jnp.sum(log_stretch)), None

        # Unrolled, four layers take twice as long to compile and 1.5 to 2.4 times as long to run.
        return jax.lax.scan(bend, (epsilon, jnp.zeros(())), self._with_moves(epsilon.size))[0]

    def unwarped(self, warped: Array) -> tuple[Array, Array]:
        """ε = f⁻¹(warped), and log|det ∂f/∂ε| there."""

        def unbend(carry: tuple[Array, Array], layer: tuple[Theta, Array]) -> tuple[tuple[Array, Array], None]:
            (x, log_det), (own, moved) = carry, layer
            x, log_stretch = _uncoupled(x, own, moved)
            x, log_slopes = unspline(x, own["bins"])
            return (x, log_det + jnp.sum(log_slopes) + jnp.sum(log_stretch)), None

        layers = self._with_moves(warped.size)
        return jax.lax.scan(unbend, (warped, jnp.zeros(())), layers, reverse=True)[0]

    def _with_moves(self, size: int) -> tuple[Theta, Array]:
        """The numbers of the layers, and which coordinates each of them moves."""
        return self.layers, jnp.asarray(np.stack([moves(layer, size) for layer in range(self.num_layers)]))


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
    log_stretch, shift = _moves_of(x, own, moved)
    return x * jnp.exp(log_stretch) + shift, log_stretch


def _uncoupled(y: Array, own: Theta, moved: Array) -> tuple[Array, Array]:
    """The inverse of `_coupled`: what is kept is the same on both sides."""
    log_stretch, shift = _moves_of(y, own, moved)
    return (y - shift) * jnp.exp(-log_stretch), log_stretch


def _moves_of(x: Array, own: Theta, moved: Array) -> tuple[Array, Array]:
    """s and t, zero for what is kept."""
    hidden = jnp.tanh(own["inner"] @ jnp.where(moved, 0.0, x) + own["inner_bias"])
    raw, shift = own["outer"] @ hidden + own["outer_bias"]
    log_stretch = jnp.where(moved, LARGEST_LOG_STRETCH * jnp.tanh(raw / LARGEST_LOG_STRETCH), 0.0)
    return log_stretch, jnp.where(moved, shift, 0.0)


def spline(x: Array, raw: Array) -> tuple[Array, Array]:
    """A monotone rational-quadratic spline of each entry, and the logarithm of its slope.

    Arguments:
        x: (n,).
        raw: (n, 3·bins − 1), unconstrained: widths and heights of the bins, slopes at the knots between them.
    """
    inside, beyond = jnp.clip(x, -BOUND, BOUND), jnp.abs(x) > BOUND
    piece = _piece(inside, raw, of_values=False)
    part = (inside - piece.left) / piece.width
    y = piece.bottom + piece.height * (piece.mean * part**2 + piece.before * part * (1 - part)) / piece.denominator(
        part
    )
    return jnp.where(beyond, x, y), jnp.where(beyond, 0.0, piece.log_slope(part))


def unspline(y: Array, raw: Array) -> tuple[Array, Array]:
    """The inverse of `spline`, and the logarithm of the slope of the spline there: the root of a quadratic equation."""
    inside, beyond = jnp.clip(y, -BOUND, BOUND), jnp.abs(y) > BOUND
    piece = _piece(inside, raw, of_values=True)
    above = inside - piece.bottom
    bend = above * (piece.before + piece.after - 2 * piece.mean)
    a = piece.height * (piece.mean - piece.before) + bend
    b = piece.height * piece.before - bend
    c = -piece.mean * above
    part = 2 * c / (-b - jnp.sqrt(jnp.maximum(b**2 - 4 * a * c, 0.0)))
    return jnp.where(beyond, y, piece.left + piece.width * part), jnp.where(beyond, 0.0, piece.log_slope(part))


class Piece(NamedTuple):
    """The bin of a spline that each entry falls into: where it begins, its size, and the slopes at both ends."""

    left: Array
    width: Array
    bottom: Array
    height: Array
    before: Array
    after: Array

    @property
    def mean(self) -> Array:
        """The mean slope."""
        return self.height / self.width

    def denominator(self, part: Array) -> Array:
        return self.mean + (self.before + self.after - 2 * self.mean) * part * (1 - part)

    def log_slope(self, part: Array) -> Array:
        """At a share of the width of the bin."""
        rest = 1 - part
        rise = self.after * part**2 + 2 * self.mean * part * rest + self.before * rest**2
        return jnp.log(self.mean**2 * rise / self.denominator(part) ** 2)


def _piece(values: Array, raw: Array, *, of_values: bool) -> Piece:
    """The bin of each entry, by what goes into the spline, or by what comes out of it."""
    num_bins = (raw.shape[-1] + 1) // 3
    left, width = _bins(raw[:, :num_bins])
    bottom, height = _bins(raw[:, num_bins : 2 * num_bins])
    slopes = jnp.pad(_slopes(raw[:, 2 * num_bins :]), ((0, 0), (1, 1)), constant_values=1.0)
    edges = bottom if of_values else left
    place = jnp.sum(values[:, None] >= edges[:, 1:], axis=1, keepdims=True)
    parts = (left, width, bottom, height, slopes[:, :-1], slopes[:, 1:])
    return Piece(*(jnp.take_along_axis(part, place, axis=1)[:, 0] for part in parts))


def _bins(raw: Array) -> tuple[Array, Array]:
    """Where each bin begins, and its size; all of them fill the range."""
    share = LEAST_BIN + (1 - LEAST_BIN * raw.shape[-1]) * jax.nn.softmax(raw, axis=-1)
    size = 2 * BOUND * share
    return jnp.cumsum(size, axis=-1) - size - BOUND, size


def _slopes(raw: Array) -> Array:
    """Positive, and one at zero."""
    return LEAST_SLOPE + jax.nn.softplus(raw + math.log(math.expm1(1 - LEAST_SLOPE)))
