"""p(y | x, theta) as an average over noise inside the model, such as errors of the inputs, or as a finite mixture.

    p(y | x, theta) = ∫ p(y | x, l, theta) p(l | x, theta) dl ≈ 1/K Σₖ p(y | x, lₖ, theta)

The laws of total expectation and total variance hold within theta too: what the noise does to y is aleatoric.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from credo.predictive.censored import log_survival
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
from credo.predictive.missing import observed_log_prob
from credo.typing import Array, Key

# K: the mean of 32 draws has a 32nd of their variance, 3 % more than y itself.
NUM_LOCAL_DRAWS = 32


class Mixed(NamedTuple):
    """The average of K distributions of y: draws with equal weights, or the parts of a finite mixture.

    Arguments:
        parts: a NumPyro distribution of which every array has a leading axis of K.
        log_weights: of the parts of a mixture in each row, (K, rows).
    """

    parts: Any
    log_weights: Any = None

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

    def average(self, values: Array) -> Array:
        """Σₖ wₖ valuesₖ, from values of every part, (K, rows, …)."""
        if self.log_weights is None:
            return jnp.mean(values, axis=0)
        weights = jnp.exp(self.log_weights)
        return jnp.sum(weights.reshape(weights.shape + (1,) * (values.ndim - 2)) * values, axis=0)

    def spread(self, squares: Array) -> Array:
        """The average of squared deviations of every part from the mean; of draws K/(K − 1) of it, unbiased."""
        num = len(squares)
        return self.average(squares) * (num / (num - 1) if self.log_weights is None else 1.0)

    @property
    def mean(self) -> Array:
        """E[y] = Σₖ wₖ Eₖ[y]."""
        return self.average(self.of_parts(lambda part: part.mean))

    @property
    def variance(self) -> Array:
        """Var[y] = Σₖ wₖ Varₖ[y] + Σₖ wₖ (Eₖ[y] − E[y])²."""
        squares = (self.of_parts(lambda part: part.mean) - self.mean) ** 2
        return self.average(self.of_parts(lambda part: part.variance)) + self.spread(squares)

    def log_prob(self, value: Array) -> Array:
        """log Σₖ wₖ pₖ(y) of each row."""
        return self.log_average(self.of_parts(lambda part: part.log_prob(value)))

    def log_average(self, log_values: Array) -> Array:
        """log Σₖ wₖ valuesₖ of each row, from the logarithms of every part, (K, rows)."""
        log_weights = -math.log(len(log_values)) if self.log_weights is None else self.log_weights
        return jax.nn.logsumexp(log_values + log_weights, axis=0)

    def cdf(self, value: Array) -> Array:
        """Σₖ wₖ Pₖ(Y ≤ value) of each output alone."""
        return self.average(self.of_parts(lambda part: cdf_of(each_output(part), value)))

    def sample(self, key: Key) -> Array:
        """One y for each row, of a part that is drawn for it."""
        choice_key, noise_key = jax.random.split(key)
        drawn = self.of_parts(lambda part: sample_of(part, noise_key))
        if self.log_weights is None:
            chosen = jax.random.randint(choice_key, (drawn.shape[1],), 0, len(drawn))
        else:
            chosen = jax.random.categorical(choice_key, self.log_weights, axis=0)
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
    return None if probs is None else conditional.average(probs)


@observed_log_prob.register
def _(conditional: Mixed, y: Array) -> Array:
    return conditional.log_average(conditional.of_parts(lambda part: observed_log_prob(part, y)))


@log_survival.register
def _(conditional: Mixed, value: Array) -> Array:
    return conditional.log_average(conditional.of_parts(lambda part: log_survival(part, value)))


@covariance_of.register
def _(conditional: Mixed) -> Array:
    means = conditional.of_parts(lambda part: as_vector(part.mean))
    centred = means - conditional.average(means)
    spread = conditional.spread(centred[..., :, None] * centred[..., None, :])
    return conditional.average(conditional.of_parts(covariance_of)) + spread
