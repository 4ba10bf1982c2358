"""p(y | x, theta) as an average over noise inside the model, such as errors of the inputs.

    p(y | x, theta) = ∫ p(y | x, l, theta) p(l | x, theta) dl ≈ 1/K Σₖ p(y | x, lₖ, theta)

The laws of total expectation and total variance hold within theta too: what the noise does to y is aleatoric.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from credo.predictive.conditional import (
    Conditional,
    as_vector,
    class_probs,
    covariance_of,
    each_output,
    is_discrete,
    sample_of,
)
from credo.predictive.laws import cdf_of
from credo.typing import Array, Key

# K: the mean of 32 draws has a 32nd of their variance, 3 % more than y itself.
NUM_LOCAL_DRAWS = 32


class Mixed(NamedTuple):
    """The average of K distributions of y with equal weights.

    Arguments:
        parts: a NumPyro distribution of which every array has a leading axis of K.
    """

    parts: Any

    def shape(self) -> tuple[int, ...]:
        """Of y, (rows, output…)."""
        return self.parts.shape()

    @property
    def is_discrete(self) -> bool:
        """Whether y is a whole number."""
        return is_discrete(self.parts)

    def of_parts(self, function: Callable[[Any], Any]) -> Any:
        """function(part) of every part, (K, …)."""
        return jax.vmap(function)(self.parts)

    @property
    def mean(self) -> Array:
        """E[y] = 1/K Σₖ Eₖ[y]."""
        return jnp.mean(self.of_parts(lambda part: part.mean), axis=0)

    @property
    def variance(self) -> Array:
        """Var[y] = 1/K Σₖ Varₖ[y] + 1/(K − 1) Σₖ (Eₖ[y] − E[y])²: unbiased."""
        spread = jnp.var(self.of_parts(lambda part: part.mean), axis=0, ddof=1)
        return jnp.mean(self.of_parts(lambda part: part.variance), axis=0) + spread

    def log_prob(self, value: Array) -> Array:
        """log 1/K Σₖ pₖ(y) of each row."""
        log_probs = self.of_parts(lambda part: part.log_prob(value))
        return jax.nn.logsumexp(log_probs, axis=0) - math.log(len(log_probs))

    def cdf(self, value: Array) -> Array:
        """1/K Σₖ Pₖ(Y ≤ value) of each output alone."""
        return jnp.mean(self.of_parts(lambda part: cdf_of(each_output(part), value)), axis=0)

    def sample(self, key: Key) -> Array:
        """One y for each row, of a part that is drawn for it."""
        choice_key, noise_key = jax.random.split(key)
        drawn = self.of_parts(lambda part: sample_of(part, noise_key))
        chosen = jax.random.randint(choice_key, (drawn.shape[1],), 0, len(drawn))
        return drawn[chosen, jnp.arange(drawn.shape[1])]


def mixed(given: Callable[[Array], Conditional]) -> Mixed:
    """The average of p(y | x, l, theta) over draws of l, the same seeds for every theta.

    With noise of its own for every theta the average would differ between them for that reason alone.

    Arguments:
        given: p(y | x, l, theta) as a function of the seed that l is drawn with, a whole number.
    """
    # One after another: all at once would take K times the memory of the network.
    return Mixed(jax.lax.map(given, jnp.arange(NUM_LOCAL_DRAWS)))


@class_probs.register
def _(conditional: Mixed) -> Array | None:
    probs = conditional.of_parts(class_probs)
    return None if probs is None else jnp.mean(probs, axis=0)


@covariance_of.register
def _(conditional: Mixed) -> Array:
    means = conditional.of_parts(lambda part: as_vector(part.mean))
    centred = means - jnp.mean(means, axis=0)
    spread = jnp.einsum("kni,knj->nij", centred, centred) / (len(means) - 1)
    return jnp.mean(conditional.of_parts(covariance_of), axis=0) + spread
