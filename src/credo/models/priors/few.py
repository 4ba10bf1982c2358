"""Rates of which a few are large: how many of several outputs go wrong is known, which of them is not."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpyro.distributions as dist

from credo.models.priors.base import Described, Parameter, positive
from credo.models.priors.regularizers import Unnormalised
from credo.typing import Array


@dataclass(frozen=True)
class Few(Described):
    """N(s; 0, scale²) · exp(−strength (Σ sigmoid(s) − number)²). See `few`.

    >>> from credo import priors
    >>> priors.few(2.0)
    Few(number=2.0, strength=3000.0, scale=50.0)
    """

    name = "few"
    number: float = 1.0
    strength: float = 3000.0
    scale: float = 50.0

    def __call__(self, parameter: Parameter) -> dist.Distribution:
        return Unnormalised(self.penalty, 1.0, parameter.shape)

    def penalty(self, log_odds: Array) -> Array:
        """−log p(s), up to a constant."""
        missed = jnp.sum(jax.nn.sigmoid(log_odds)) - self.number
        return jnp.sum(log_odds**2) / (2 * self.scale**2) + self.strength * missed**2


def few(number: float = 1.0, *, strength: float = 3000.0, scale: float = 50.0) -> Few:
    """A joint density for the log-odds s of several rates p = sigmoid(s) that add up to about a known number.

        p(s) ∝ N(s; 0, scale² I) · exp(−strength (‖p‖₁ − number)²)

    It is for rates that are points, `errors=point(few(1.0))` of `credo.models.outliers`: "about one of the outputs is
    broken". Its constant is not known, and no draws of it can be made.

    Arguments:
        number: of the rates that are one, if all others are zero.
        strength: of that knowledge. At 3,000 a sum that is off by 0.03 costs three nats.
        scale: of the log-odds; at 50 rates may well be zero or one.

    >>> density = few(1.0)(Parameter("rate", (3,)))
    >>> [round(float(density.log_prob(jnp.array(s))), 2) for s in ([9.0, -9.0, -9.0], [9.0, 9.0, -9.0])]
    [-0.05, -2999.31]

    Reference: the sparse measure of the paper's supplement.
    """
    return Few(positive("number", number), positive("strength", strength), positive("scale", scale))
