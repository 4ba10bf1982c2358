"""Ordered biases: one of the n! equivalent orders of the units of a layer.

Paper, "Addressing unidentifiability in Bayesian neural networks": permuting hidden units changes no function, so that
every mode of the posterior has n! copies; sorted biases leave one.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.scipy.special import gammaln
from numpyro.distributions import constraints

from credo.models.priors.base import Described, Parameter, positive
from credo.typing import Array, Key


class OrderedNormal(dist.Distribution):
    """n numbers from N(0, scale²), sorted: n! Π N(bᵢ; 0, scale²) where b₁ < … < bₙ.

    >>> bool(jnp.all(jnp.diff(OrderedNormal(2.0, 5).sample(jax.random.key(0))) > 0))
    True
    """

    arg_constraints = {"scale": constraints.positive}  # noqa: RUF012
    support = constraints.ordered_vector

    def __init__(self, scale: float, size: int, *, validate_args: bool | None = None) -> None:
        self.scale = scale
        super().__init__(batch_shape=(), event_shape=(size,), validate_args=validate_args)

    def sample(self, key: Key, sample_shape: tuple[int, ...] = ()) -> Array:
        return jnp.sort(self.scale * jax.random.normal(key, (*sample_shape, *self.event_shape)), axis=-1)

    def log_prob(self, value: Array) -> Array:
        each = dist.Normal(0.0, self.scale).log_prob(value)
        return gammaln(self.event_shape[0] + 1.0) + jnp.sum(each, axis=-1)


@dataclass(frozen=True)
class Ordered(Described):
    """N(0, scale²) on b₁ < … < bₙ. See `ordered`.

    >>> from credo import priors
    >>> priors.ordered(2.0).breaks
    'permutable'
    """

    name = "ordered"
    breaks = "permutable"
    scale: float = 1.0

    def __call__(self, parameter: Parameter) -> dist.Distribution:
        if len(parameter.shape) != 1:
            raise ValueError(
                f"prior: ordered is for vectors, and {parameter.path!r} has shape {parameter.shape}; name the biases "
                "of hidden layers, {'hidden.*.bias': credo.priors.ordered()}"
            )
        return OrderedNormal(self.scale, parameter.shape[0])


def ordered(scale: float = 1.0) -> Ordered:
    """Biases in ascending order, n! Π N(bᵢ; 0, scale²) on b₁ < … < bₙ: no two units can change places.

    For the biases of *hidden* layers, whose units may be permuted; outputs may not. theta holds b₁ and the logarithms
    of the gaps. The price: units cannot pass each other, so that optimisers and samplers may find it harder to get
    from one fit to another.

    >>> ordered(2.0)(Parameter("hidden.0.bias", (3,))).event_shape
    (3,)
    """
    return Ordered(positive("scale", scale))
