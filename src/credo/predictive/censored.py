"""Censored targets: of some rows no more is known than that y is at least so much, and P(Y ≥ y) is their likelihood.

    log p(D | theta) = Σ_seen log p(y | x, theta) + Σ_censored log P(Y ≥ y | x, theta)

Right for censoring that says nothing about y beyond its bound. Kalbfleisch and Prentice, "The statistical analysis of
failure time data" (2002).
"""

from functools import singledispatch
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import gammaln, log_ndtr

from credo.data import parted
from credo.predictive.conditional import Conditional, is_discrete
from credo.predictive.laws import cdf_of, has_cdf
from credo.typing import Array

# A quadrature of so many points is exact for Student's tails of up to 127 degrees of freedom.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)


class Censored(dist.Distribution):
    """The law of y in rows of which some are censored: its `log_prob` of these is log P(Y ≥ y).

    >>> law = Censored(dist.Exponential(jnp.array([0.5, 0.5])), jnp.array([False, True]))
    >>> print(law.log_prob(jnp.array([2.0, 2.0])).round(3))
    [-1.693 -1.   ]
    """

    pytree_data_fields = ("law", "censored")

    def __init__(self, law: Any, censored: Array) -> None:
        self.law, self.censored = law, censored
        super().__init__(law.batch_shape, law.event_shape)

    @property
    def support(self) -> Any:
        return self.law.support

    def log_prob(self, value: Array) -> Array:
        return jnp.where(self.censored, log_survival(self.law, value), self.law.log_prob(value))


def log_prob_of(conditional: Conditional, y: Array) -> Array:
    """log p(y | x, theta) of each row, (rows,); with a second column of y, log P(Y ≥ y) of those that it censors."""
    return conditional.log_prob(y) if y.ndim == len(conditional.shape()) else censored_log_prob(conditional, *parted(y))


def censored_log_prob(conditional: Any, y: Array, censored: Array) -> Array:
    """log p(y | x, theta) of each row, and log P(Y ≥ y | x, theta) of those that are censored."""
    return jnp.where(censored, log_survival(conditional, y), conditional.log_prob(y))


@singledispatch
def log_survival(law: Any, value: Array) -> Array:
    """log P(Y ≥ value) of each row."""
    if not has_cdf(law):
        raise ValueError(
            f"y is drawn from {type(law).__name__}, which has no distribution function, and some targets are censored; "
            "take credo.models.positive, or credo.models.regression with noise of one target"
        )
    below = cdf_of(law, value - 1 if is_discrete(law) else value)
    return jnp.log(jnp.maximum(1 - below, jnp.finfo(below.dtype).tiny))


@log_survival.register
def _(law: dist.Normal, value: Array) -> Array:
    return log_ndtr((law.loc - value) / law.scale)


@log_survival.register
def _(law: dist.LogNormal, value: Array) -> Array:
    return log_ndtr((law.loc - jnp.log(value)) / law.scale)


@log_survival.register
def _(law: dist.Exponential, value: Array) -> Array:
    return -law.rate * value


@log_survival.register
def _(law: dist.Weibull, value: Array) -> Array:
    return -((value / law.scale) ** law.concentration)


@log_survival.register
def _(law: dist.StudentT, value: Array) -> Array:
    """By quadrature, which JAX can differentiate in the degrees of freedom: with tan ψ = √ν/z,

    P(Z ≥ z) = Γ((ν + 1)/2) / (√π Γ(ν/2)) ∫₀^ψ sin(u)^(ν − 1) du,    z ≥ 0
    """
    z, df = jnp.broadcast_arrays((value - law.loc) / law.scale, law.df)
    angle = jnp.arctan2(jnp.sqrt(df), jnp.abs(z))[..., None]
    terms = (df[..., None] - 1) * jnp.log(jnp.sin(angle * (NODES + 1) / 2)) + jnp.log(angle * WEIGHTS / 2)
    tail = jax.nn.logsumexp(terms, axis=-1) + gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * np.log(np.pi)
    # No more than a half, so that the other side keeps all its digits.
    tail = jnp.minimum(tail, np.log(0.5))
    return jnp.where(z >= 0, tail, jnp.log1p(-jnp.exp(tail)))


for kind in (dist.ExpandedDistribution, dist.MaskedDistribution):
    log_survival.register(kind, lambda law, value: log_survival(law.base_dist, value))
