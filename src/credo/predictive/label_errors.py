"""The probability that what was given is wrong, of each draw of theta, and its average over them.

With p(y | x, theta) = Σ_z p(z | x, theta) p(y | z, x, theta), what was given tells about z, by Bayes' rule:

    p(z | x, y, theta) ∝ p(z | x, theta) p(y | z, x, theta)
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.data import is_observed
from credo.predictive.marginal import Predictive
from credo.predictive.missing import observed_part
from credo.predictive.streaming import Accumulator
from credo.typing import Array


class LabelsApart(NamedTuple):
    """The law of a given label for each true one.

    Arguments:
        parts: p(y | z, x, theta), a distribution with a leading axis of the values of z.
        log_weights: log p(z | x, theta), (values, rows).
        labels: the true label that each value of z stands for, (values,).
    """

    parts: Any
    log_weights: Array
    labels: Array

    def shape(self) -> tuple[int, ...]:
        """Of y, (rows,) or (rows, annotators)."""
        return self.parts.shape()

    def errors(self, y: Array) -> Array:
        """P(z is another label than y | x, y, theta), in the shape of y."""
        log_probs = jax.vmap(lambda part: observed_part(part, y).log_prob(y))(self.parts)
        shares = jax.nn.softmax(self.log_weights + log_probs, axis=0)
        differs = self.labels.reshape(-1, *(1,) * y.ndim) != y
        # The parts that differ are added up, so that a tiny probability keeps its digits.
        return jnp.sum(differs * shares.reshape(*shares.shape, *(1,) * (y.ndim - 1)), axis=0)


class OutliersApart(NamedTuple):
    """A mixture for each target: its first component is that of values that are no outliers."""

    mixture: Any

    def shape(self) -> tuple[int, ...]:
        """Of y, (rows,) or (rows, targets)."""
        return self.mixture.shape()

    def errors(self, y: Array) -> Array:
        """P(not of the first component | x, y, theta), in the shape of y."""
        known = jnp.where(is_observed(y), y, 0.0)
        return jnp.sum(jax.nn.softmax(self.mixture.component_log_probs(known))[..., 1:], axis=-1)


_AVERAGE = Accumulator(
    start=lambda conditional, y: jnp.zeros(y.shape),
    add=lambda carry, conditional, weight, y: carry + weight * conditional.errors(y),
)


def errors_of(judged: Predictive, y: np.ndarray) -> np.ndarray:
    """P(y is wrong | x, y, D) in the shape of y, averaged over the draws; NaN where y is missing.

    Arguments:
        judged: a prediction whose conditionals are `LabelsApart` or `OutliersApart`.
        y: in the model's units.
    """
    found = np.clip(np.asarray(judged.fold(_AVERAGE, y)), 0.0, 1.0)
    return np.where(is_observed(y), found, np.nan)
