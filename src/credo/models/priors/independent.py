"""Priors that draw every weight by itself, from a distribution that is known.

Paper, "A good default prior": p(theta) = N(0, σ²I), the ℓ2 penalty of a point estimate.
"""

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from credo.models.priors.base import Described, Parameter, fill, positive


@dataclass(frozen=True)
class _Centred(Described):
    family: ClassVar[type[dist.Distribution]]
    scale: float = 1.0

    def __call__(self, parameter: Parameter) -> dist.Distribution:
        return fill(self.family(0.0, self.scale), parameter.shape)


class Normal(_Centred):
    """N(0, scale²), independent for every weight. See `normal`.

    >>> from credo import priors
    >>> float(priors.normal(2.0)(priors.Parameter("head.bias", (3,))).variance[0])
    4.0
    """

    name, family = "normal", dist.Normal


class Laplace(_Centred):
    """Laplace(0, scale): the ℓ1 penalty. See `laplace`.

    >>> from credo import priors
    >>> float(priors.laplace(0.5)(priors.Parameter("head.bias", (3,))).variance[0])  # 2 scale²
    0.5
    """

    name, family = "laplace", dist.Laplace


@dataclass(frozen=True)
class FanIn(Described):
    """N(0, scale²/fan_in) for kernels and N(0, bias_scale²) for vectors. See `fan_in`.

    >>> from credo import priors
    >>> float(priors.fan_in(1.0)(priors.Parameter("head.kernel", (4, 1), fan_in=4)).variance[0, 0])
    0.25
    """

    name = "fan_in"
    scale: float = 1.0
    bias_scale: float = 1.0

    def __call__(self, parameter: Parameter) -> dist.Distribution:
        is_kernel = len(parameter.shape) >= 2
        scale = self.scale / np.sqrt(parameter.fan_in) if is_kernel else self.bias_scale
        return fill(dist.Normal(0.0, float(scale)), parameter.shape)


@dataclass(frozen=True)
class ScaleMixture(Described):
    """π·N(0, scale²) + (1 − π)·N(0, narrow_scale²). See `scale_mixture`.

    >>> from credo import priors
    >>> priors.scale_mixture(0.25, scale=1.0, narrow_scale=0.01)
    ScaleMixture(weight=0.25, scale=1.0, narrow_scale=0.01)
    """

    name = "scale_mixture"
    weight: float = 0.5
    scale: float = 1.0
    narrow_scale: float = 0.0025

    def __call__(self, parameter: Parameter) -> dist.Distribution:
        mixing = dist.Categorical(probs=jnp.array([self.weight, 1 - self.weight]))
        components = dist.Normal(jnp.zeros(2), jnp.array([self.scale, self.narrow_scale]))
        return fill(dist.MixtureSameFamily(mixing, components), parameter.shape)


def normal(scale: float = 1.0) -> Normal:
    """The default prior N(0, σ²I): `scale` is σ, not σ² (the paper prints σI for the covariance).

    >>> normal(2.0)(Parameter("head.bias", (3,))).event_shape
    (3,)
    """
    return Normal(positive("scale", scale))


def fan_in(scale: float = 1.0, bias_scale: float = 1.0) -> FanIn:
    """N(0, σ²/fan_in): the size of the function stays the same whatever the width (Neal, 1996).

    Kernels get σ² = scale²/fan_in; biases and other vectors N(0, bias_scale²).

    >>> round(float(fan_in(2.0)(Parameter("head.kernel", (100, 1), 100)).variance[0, 0]), 4)
    0.04
    """
    return FanIn(positive("scale", scale), positive("bias_scale", bias_scale))


def laplace(scale: float = 1.0) -> Laplace:
    """Laplace(0, scale), density exp(−|w|/scale)/(2·scale): the ℓ1 penalty, many weights near zero.

    >>> laplace(0.5)(Parameter("head.bias", (3,))).event_shape
    (3,)
    """
    return Laplace(positive("scale", scale))


def scale_mixture(weight: float = 0.5, scale: float = 1.0, narrow_scale: float = 0.0025) -> ScaleMixture:
    """π·N(0, σ₁²) + (1 − π)·N(0, σ₂²), the spike and slab of Blundell et al. (2015, section 3.3).

    >>> scale_mixture(0.25, 1.0, 0.01)(Parameter("head.bias", (3,))).event_shape
    (3,)
    """
    if not 0 < weight < 1:
        raise ValueError(f"weight must be between 0 and 1, got {weight}")
    return ScaleMixture(weight, positive("scale", scale), positive("narrow_scale", narrow_scale))
