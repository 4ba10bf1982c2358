"""The law of a label that is given where another is true: right most often, else one of the others."""

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from numpyro.distributions import constraints

from credo._precision import working_precision
from credo.predictive.conditional import class_probs
from credo.typing import Array, Key

TINY, EPSILON = float(jnp.finfo(jnp.float32).tiny), float(jnp.finfo(jnp.float32).eps)


class Mistaken(dist.Distribution):
    """p(y | clean) = 1 − rate for y = clean, and rate · mistakes[clean, y] for the others.

    A categorical law; but it is looked up, not written out for all K labels, of which a sum over true labels would
    make K² numbers for each row.

    Arguments:
        clean: true labels, of a shape that broadcasts with that of the rate.
        rate: the probability that the label is wrong.
        num_classes: K.
        mistakes: (K, K − 1), or (annotators, K, K − 1): the law of the wrong labels, which leaves out the true one;
            None for a uniform one.

    >>> print(Mistaken(jnp.array([1]), jnp.array([0.2]), 3).probs.round(3))
    [[0.1 0.8 0.1]]
    """

    pytree_data_fields = ("clean", "rate", "mistakes")
    pytree_aux_fields = ("num_classes",)

    def __init__(self, clean: Array, rate: Array, num_classes: int, mistakes: Array | None = None) -> None:
        self.clean, self.rate, self.num_classes, self.mistakes = clean.astype(jnp.int32), rate, num_classes, mistakes
        super().__init__(jnp.broadcast_shapes(clean.shape, jnp.shape(rate)))

    @property
    def support(self) -> Any:
        return constraints.integer_interval(0, self.num_classes - 1)

    def log_prob(self, value: Array) -> Array:
        """log p(y | clean) of each row."""
        # Away from 0 and 1, where a logarithm has no gradient.
        rate = jnp.clip(self.rate, TINY, 1 - EPSILON)
        wrong = jnp.log(rate) + self._log_mistake(value)
        return jnp.where(value == self.clean, jnp.log1p(-rate), wrong)

    def _log_mistake(self, value: Array) -> Array:
        if self.mistakes is None:
            return -jnp.log(jnp.asarray(self.num_classes - 1, working_precision()))
        # Labels above the true one are a place further down, since it is left out.
        place = jnp.clip(value - (value > self.clean), 0, self.num_classes - 2)
        table = jnp.log(jnp.maximum(self.mistakes, TINY))
        if table.ndim == 2:
            return table[self.clean, place]
        return table[jnp.arange(len(table)), self.clean, place]

    @property
    def probs(self) -> Array:
        """Of all labels, (…, K)."""
        values = jnp.arange(self.num_classes).reshape(-1, *(1,) * len(self.batch_shape))
        return jnp.moveaxis(jnp.exp(jax.vmap(self.log_prob)(values)), 0, -1)

    def sample(self, key: Key, sample_shape: tuple[int, ...] = ()) -> Array:
        """One label for each row."""
        return dist.Categorical(probs=self.probs).sample(key, sample_shape)


class_probs.register(Mistaken, lambda conditional: conditional.probs)
