"""Units whose incoming weights have a fixed norm: no scale can move from one layer to the next.

Paper, "Addressing unidentifiability in Bayesian neural networks": as ReLU(αx) = α ReLU(x), the weights (W₁, W₂) and
(αW₁, W₂/α) of two layers give the same function. With ‖w‖ fixed for every unit of the first, only one of them is left.
"""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.scipy.special import gammaln
from numpyro.distributions import constraints

from credo.models.priors.base import Composite, Drawn, Parameter, fill, positive
from credo.typing import Array, Key


class GivensAngles(dist.Distribution):
    """Angles (d − 1, units) that turn e₁ into a uniform direction of d dimensions, for each unit.

        p(θ₂, …, θ_d) = 1/2π · Π_{j>2} cos(θⱼ)^(j−2) / B(½, (j−1)/2),    θ₂ in (−π, π), the others in (−π/2, π/2)

    the surface element of the sphere over its surface; B is the beta function.

    >>> import jax
    >>> from credo import priors
    >>> priors.GivensAngles(3, 5).sample(jax.random.key(0)).shape
    (2, 5)
    """

    def __init__(self, size: int, units: int, *, validate_args: bool | None = None) -> None:
        # j − 2 for j = 2, …, d.
        self.power = np.arange(size - 1.0)[:, None]
        super().__init__(batch_shape=(), event_shape=(size - 1, units), validate_args=validate_args)

    @property
    def support(self) -> constraints.Constraint:
        half_width = np.broadcast_to(np.where(self.power == 0, np.pi, np.pi / 2), self.event_shape)
        return constraints.independent(constraints.interval(-half_width, half_width), 2)

    def sample(self, key: Key, sample_shape: tuple[int, ...] = ()) -> Array:
        size, units = self.event_shape
        return angles_of(jax.random.normal(key, (*sample_shape, size + 1, units)))

    def log_prob(self, value: Array) -> Array:
        half = (self.power + 1) / 2
        log_beta = gammaln(0.5) + gammaln(half) - gammaln(half + 0.5)
        # cos⁰ is one, also where the circle's cosine is negative.
        cosine = jnp.where(self.power == 0, 1.0, jnp.cos(value))
        log_density = self.power * jnp.log(cosine) - jnp.where(self.power == 0, math.log(2 * math.pi), log_beta)
        return jnp.sum(log_density, axis=(-2, -1))


def rotated(angles: Array) -> Array:
    """R₁₂(θ₂) R₁₃(θ₃) … R₁_d(θ_d) e₁: unit vectors (…, d, units) from angles (…, d − 1, units).

    The rotation R₁ⱼ turns the plane of the first and the j-th axis, so that wⱼ = sin θⱼ Π_{k>j} cos θₖ.

    >>> rotated(jnp.array([[0.5 * jnp.pi], [0.0]])).ravel().round(3).tolist()
    [-0.0, 1.0, 0.0]
    """
    one = jnp.ones_like(angles[..., :1, :])
    cosines = jnp.flip(jnp.cumprod(jnp.flip(jnp.cos(angles), -2), -2), -2)
    after = jnp.concatenate([cosines, one], -2)
    return jnp.concatenate([one, jnp.sin(angles)], -2) * after


def angles_of(vector: Array) -> Array:
    """The angles (…, d − 1, units) of vectors (…, d, units): the inverse of `rotated`, of any norm."""
    before = jnp.sqrt(jnp.cumsum(vector**2, -2))[..., :-1, :]
    # The first angle goes all the way round, so it needs the sign.
    before = jnp.concatenate([vector[..., :1, :], before[..., 1:, :]], -2)
    return jnp.arctan2(vector[..., 1:, :], before)


@dataclass(frozen=True)
class UnitNorm(Composite):
    """w = scale · z/‖z‖ with z ~ N(0, I). See `unit_norm`.

    >>> from credo import priors
    >>> priors.unit_norm(2.0)
    UnitNorm(scale=2.0)
    """

    name = "unit_norm"
    breaks = "rescalable"
    scale: float = 1.0

    def draw(self, parameter: Parameter, drawn: Drawn) -> Array:
        _check_kernel(self.name, parameter)
        z = numpyro.sample(f"{parameter.path}.z", fill(dist.Normal(0.0, 1.0), parameter.shape))
        inputs = tuple(range(z.ndim - 1))
        norm = jnp.sqrt(jnp.sum(z**2, axis=inputs, keepdims=True))
        return numpyro.deterministic(parameter.path, self.scale * z / norm)


@dataclass(frozen=True)
class Givens(Composite):
    """w = scale · (Givens rotations of e₁). See `givens`.

    >>> from credo import priors
    >>> priors.givens().breaks
    'rescalable'
    """

    name = "givens"
    breaks = "rescalable"
    scale: float = 1.0

    def draw(self, parameter: Parameter, drawn: Drawn) -> Array:
        _check_kernel(self.name, parameter)
        *inputs, units = parameter.shape
        angles = numpyro.sample(f"{parameter.path}.angle", GivensAngles(math.prod(inputs), units))
        return numpyro.deterministic(parameter.path, self.scale * rotated(angles).reshape(parameter.shape))


def unit_norm(scale: float = 1.0) -> UnitNorm:
    """Units whose incoming weights have the norm `scale` and any direction: w = scale · z/‖z‖, z ~ N(0, I).

    The norm is over all axes but the last, which counts the units, or the output channels of a convolution. The site
    is `<path>.z`. It costs one number more for each unit than the direction has, the radius of z: the data say nothing
    about it, so it stays a draw from its prior, which does a sampler no harm. It does harm a search for the mode, for
    N(0, I) is highest at zero, where there is no direction: for `MAP` and `Laplace` take `givens`.

    >>> unit_norm(2.0).to_config()
    {'name': 'unit_norm', 'scale': 2.0}
    """
    return UnitNorm(positive("scale", scale))


def givens(scale: float = 1.0) -> Givens:
    """The same sphere as that of `unit_norm`, by angles: w = scale · R₁₂(θ₂) R₁₃(θ₃) … R₁_d(θ_d) e₁.

    The site is `<path>.angle`, d − 1 angles for each unit with the density that makes the direction uniform. Nothing is
    superfluous, but the circle is cut open: θ₂ = −π and π are the same direction, and theta has them infinitely far
    apart; and at the poles (θⱼ = ±π/2) the angles below j do nothing. A posterior that lies across the cut has two
    modes for a sampler.

    Pourzanjani, Jiang and Petzold, "Improving the identifiability of neural networks for Bayesian inference" (2017).

    >>> givens().to_config()
    {'name': 'givens', 'scale': 1.0}
    """
    return Givens(positive("scale", scale))


def _check_kernel(name: str, parameter: Parameter) -> None:
    """Refuse what has no units with several incoming weights."""
    num_inputs = math.prod(parameter.shape[:-1])
    if len(parameter.shape) < 2:
        raise ValueError(
            f"prior: {name} is for kernels, and {parameter.path!r} has shape {parameter.shape}; name the kernels, "
            f"{{'hidden.*.kernel': credo.priors.{name}()}}"
        )
    if num_inputs < 2:
        raise ValueError(
            f"prior: the units of {parameter.path!r}, of shape {parameter.shape}, have one incoming weight, and of a "
            f"fixed norm it could only change its sign; leave it out of {name}, with a prior of its own"
        )
