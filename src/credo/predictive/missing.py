"""Targets of which some are missing: the density of those that are there.

What is missing is integrated out: outputs that are independent given theta are left out of the product, and a normal
law of several outputs has a marginal.
"""

import math
from functools import singledispatch
from typing import Any

import jax.numpy as jnp
import numpyro.distributions as dist

from credo.data import is_observed
from credo.predictive.conditional import Conditional
from credo.typing import Array


def observed_part(conditional: Any, y: Array) -> Any:
    """The law of the targets that are there: its `log_prob(y)` counts no others.

    >>> law = dist.Normal(jnp.zeros((2, 2)), 1.0).to_event(1)
    >>> print(observed_part(law, jnp.array([[0.0, jnp.nan], [0.0, 0.0]])).log_prob(jnp.zeros((2, 2))).round(3))
    [-0.919 -1.838]
    """
    observed = is_observed(y)
    if observed.ndim == 1 and conditional.event_dim == 0:
        return conditional.mask(observed)
    if isinstance(conditional, dist.ExpandedDistribution) and conditional.event_dim:
        return observed_part(conditional.base_dist.expand(conditional.batch_shape), y)
    if isinstance(conditional, dist.Independent) and observed.ndim == len(conditional.base_dist.batch_shape):
        return dist.Independent(conditional.base_dist.mask(observed), conditional.reinterpreted_batch_ndims)
    if isinstance(conditional, dist.MultivariateNormal):
        return _PartOfNormal(conditional, observed)
    raise ValueError(
        f"y is drawn from {type(conditional).__name__}, and some of the outputs of a row are missing; credo can leave "
        "them out where outputs are independent (.to_event) or normal. Leave those rows out, or write the program so"
    )


@singledispatch
def observed_log_prob(conditional: Conditional, y: Array) -> Array:
    """log p(y | x, theta) of the targets that are there, (rows,)."""
    return observed_part(conditional, y).log_prob(y)


class _PartOfNormal(dist.Distribution):
    """The marginal of some outputs of a normal law: the others are as if independent, with density one.

    The covariance is that of the outputs that are there, and the identity for the rest, whose N(0; 0, 1) is taken back.
    """

    pytree_data_fields = ("normal", "observed")

    def __init__(self, normal: dist.MultivariateNormal, observed: Array) -> None:
        self.normal, self.observed = normal, observed
        super().__init__(normal.batch_shape, normal.event_shape)

    @property
    def support(self) -> Any:
        return self.normal.support

    @property
    def mean(self) -> Array:
        return self.normal.mean

    @property
    def variance(self) -> Array:
        return self.normal.variance

    def log_prob(self, value: Array) -> Array:
        both = self.observed[..., :, None] & self.observed[..., None, :]
        covariance = jnp.where(both, self.normal.covariance_matrix, jnp.eye(both.shape[-1]))
        centred = jnp.where(self.observed, jnp.where(self.observed, value, 0.0) - self.normal.mean, 0.0)
        density = dist.MultivariateNormal(jnp.zeros_like(centred), covariance).log_prob(centred)
        return density + 0.5 * math.log(2 * math.pi) * jnp.sum(~self.observed, axis=-1)
