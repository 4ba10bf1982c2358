"""Draws that go on by their weights: wᵢ ← wᵢ^λ p(D_t | thetaᵢ), over their sum.

This is Bayes' rule for draws as they are, in however many dimensions and modes, without a density that is fitted to
them. It lasts as long as enough draws have weight: their effective number is 1/Σ wᵢ².

Reference: Chopin, "A sequential particle filter method for static models" (2002).
"""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np

from credo._precision import working_precision
from credo.data import Data
from credo.learning.going_on import NothingToGoOnFrom
from credo.models.program import Model
from credo.posterior import Draws
from credo.typing import Array, Batch, Theta

# The error of a predicted mean is then a quarter of its epistemic standard deviation.
LEAST_EFFECTIVE = 16.0


def reweighted(posterior: Any, data: Data, *, kept: float = 1.0) -> Draws:
    """Draws, weighed by what the data say of each.

    Arguments:
        posterior: whose draws of theta are kept.
        data: new rows, in the user's units.
        kept: λ, the share of the log weights that is kept.
    """
    if not isinstance(posterior, Draws):
        raise ValueError(
            f"density='weights' weighs draws, and the posterior is a {type(posterior).__name__}; leave density out"
        )
    theta, before = posterior.weighted_draws(0)
    batch = data.with_scaling(posterior.scaling).batch()
    log_likelihood = np.asarray(_log_likelihoods(posterior.model, theta, batch), np.float64)
    log_weights = kept * np.log(np.maximum(before, np.finfo(np.float64).tiny)) + log_likelihood
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    num_effective = effective_draws(weights)
    if num_effective < LEAST_EFFECTIVE:
        raise NothingToGoOnFrom(
            f"the new rows leave {num_effective:.1f} of {len(weights):,} draws with any weight, fewer than "
            f"{LEAST_EFFECTIVE:.0f}: they say too much for draws that were made without them",
            "fit again with all rows, or begin with a method that goes on from what it knows, such as "
            "method='bayes_by_backprop' or method='laplace'",
        )
    own = weights.reshape(posterior.num_chains, -1).astype(working_precision())
    return replace(posterior, weights=own, evidence=None)


@partial(jax.jit, static_argnums=0)
def _log_likelihoods(model: Model, draws: Theta, batch: Batch) -> Array:
    return jax.lax.map(lambda theta: model.log_likelihood(theta, batch), draws)


def effective_draws(weights: np.ndarray) -> float:
    """1/Σ wᵢ²: as many draws of equal weight tell as much.

    >>> effective_draws(np.array([0.5, 0.5, 0.0]))
    2.0
    """
    return float(1 / np.sum(np.square(weights, dtype=np.float64)))
