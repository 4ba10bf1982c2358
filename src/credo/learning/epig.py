"""EPIG: the rows whose labels tell the most about predictions elsewhere.

    EPIG(x) = E_x*[ I[y; y* | x, x*] ] = E_x*[ H[y | x] + H[y* | x*] − H[y, y* | x, x*] ]

BALD asks for what is not known about theta, wherever that matters; EPIG for what matters to inputs x* like those that
the model is for. A pool with many rows that nobody will ask about is where they differ. For classes the joint law of
two labels is an average over the draws, for numbers the two are as if normal: I = −½ log(1 − ρ²).

Bickford Smith et al., "Prediction-oriented Bayesian active learning" (2023).
"""

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo._blocks import by_block
from credo._checks import require_at_least
from credo.data import as_inputs
from credo.learning.acquisition import Acquisition, Chosen, best
from credo.learning.functions import blocks_of_functions, functions_of, weights_of
from credo.learning.scores import LEAST_VARIANCE
from credo.predictive import ClassPredictive
from credo.predictive.streaming import class_entropy
from credo.typing import Array

# Rows whose joint laws with all targets are held at once: of ten classes and 100 targets 2.5 MB.
ROWS_AT_ONCE = 64
# Of two numbers that are known to be equal the information is infinite; beyond this it says no more.
LARGEST_SQUARE = 1 - 1e-6


@dataclass(frozen=True, eq=False)
class EPIG(Acquisition):
    """What a label is expected to tell about labels of the target inputs.

    Arguments:
        target: inputs like those that the model is for, (targets, …); None for those of the pool.
        num_targets: how many of them each round looks at, drawn at random.

    >>> EPIG(target=[[0.0], [1.0]]).num_targets
    100
    """

    target: Any = field(default=None)
    num_targets: int = 100

    def __post_init__(self) -> None:
        require_at_least(1, num_targets=self.num_targets)
        if self.target is not None:
            object.__setattr__(self, "target", as_inputs(self.target))

    def choose(
        self, posterior: Any, x: np.ndarray, num: int, *, allowed: np.ndarray, rng: np.random.Generator
    ) -> Chosen:
        targets = x if self.target is None else self.target
        chosen = rng.choice(len(targets), self.num_targets, replace=len(targets) < self.num_targets)
        pool, asked = (posterior.predict(some, num_draws=self.num_draws) for some in (x, targets[chosen]))
        scores = epig(pool, asked)
        return Chosen(best(scores, x, num, allowed=allowed, rng=rng), scores)


def epig(pool: Any, target: Any) -> np.ndarray:
    """E over the target of I[y; y*] for each row of the pool: two predictions by the same draws."""
    asked = functions_of(target, np.arange(len(target)))
    weights = weights_of(target, asked).astype(asked.dtype)
    scores = np.empty(len(pool))
    if isinstance(pool, ClassPredictive):
        for rows, probs in blocks_of_functions(pool):
            scores[rows] = by_block(lambda probs: _of_classes(probs, asked, weights), [probs], ROWS_AT_ONCE)
        return scores
    noises = [one.aleatoric.reshape(len(one), -1) for one in (pool, target)]
    for rows, functions in blocks_of_functions(pool):
        noise = noises[0][rows].astype(functions.dtype)
        found = by_block(lambda *row: _of_numbers(*row, asked, noises[1], weights), [functions, noise], ROWS_AT_ONCE)
        scores[rows] = found
    return scores


@jax.jit
def _of_classes(probs: Array, asked: Array, weights: Array) -> Array:
    """H[y] + H[y*] − H[y, y*], averaged over the targets: (rows,) of probs (rows, draws, classes)."""
    joint = jnp.einsum("s,nsc,tsd->ntcd", weights, probs, asked)
    own, other = (class_entropy(jnp.einsum("s,nsc->nc", weights, one)) for one in (probs, asked))
    together = class_entropy(joint.reshape(*joint.shape[:2], -1))
    return own + jnp.mean(other - together, axis=1)


@jax.jit
def _of_numbers(functions: Array, noise: Array, asked: Array, asked_noise: Array, weights: Array) -> Array:
    """−½ log(1 − ρ²) of each output of y with the same of y*, summed over them and averaged over the targets."""
    unbiased = 1 / jnp.maximum(1 - jnp.sum(weights**2), LEAST_VARIANCE)

    def centred(functions: Array) -> Array:
        return functions - jnp.einsum("s,nsk->nk", weights, functions)[:, None]

    own, other = centred(functions), centred(asked)
    covariance = unbiased * jnp.einsum("s,nsk,tsk->ntk", weights, own, other)
    variance = noise + unbiased * jnp.einsum("s,nsk,nsk->nk", weights, own, own)
    variances = asked_noise + unbiased * jnp.einsum("s,nsk,nsk->nk", weights, other, other)
    square = covariance**2 / jnp.maximum(variance[:, None] * variances, LEAST_VARIANCE)
    return jnp.mean(jnp.sum(-0.5 * jnp.log1p(-jnp.minimum(square, LARGEST_SQUARE)), axis=2), axis=1)
