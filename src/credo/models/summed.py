"""Discrete latents of the rows, summed out exactly: the true label behind a noisy one, whether a row is an outlier.

A latent z inside the plate `data` with finitely many values makes the likelihood of a row a sum,

    p(y | x, theta) = Σ_z p(y | z, x, theta) p(z | x, theta),    p(z | y, x, theta) ∝ p(y | z, x, theta) p(z | x, theta)

The program runs once, with z as one more axis: what does not depend on z, the network above all, is computed once.
"""

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from credo.models.sites import is_seen, row_log_density, stripped
from credo.predictive.conditional import Conditional, class_probs
from credo.predictive.mixed import Mixed
from credo.typing import Array, Theta

# Values of all such latents together: each row of the likelihood is a sum of so many terms.
MAX_TERMS = 1024
# Where a probability is nothing, its logarithm must still have a gradient.
LEAST_PROBABILITY = 1e-30


def combinations(supports: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """All values that the latents can have together, by name, each (terms,)."""
    rows = list(itertools.product(*supports.values()))
    if len(rows) > MAX_TERMS:
        raise ValueError(
            f"the discrete latents {', '.join(supports)} have {len(rows):,} values together, and credo sums over at "
            f"most {MAX_TERMS:,}; write the sum in the program, as a mixture (dist.MixtureSameFamily)"
        )
    return {name: np.array(column) for name, column in zip(supports, zip(*rows, strict=True), strict=True)}


def row_terms(trace: Mapping[str, Any]) -> Array:
    """What the sites inside the plate `data` add up to in each row, (rows,); local latents count nothing."""
    return sum((row_log_density(site) for site in trace.values() if is_seen(site)), jnp.zeros(()))


def parts_of(run: Callable[[Theta], Mapping[str, Any]], supports: Mapping[str, tuple[int, ...]]) -> tuple[Array, Any]:
    """log p(z | x, theta), (terms, rows), and p(y | z, x, theta), a distribution with a leading axis of terms.

    Arguments:
        run: from values of the discrete latents to a trace of the program.
    """

    def given(values: Theta) -> tuple[Array, Any]:
        trace = run(values)
        log_weight = sum((row_log_density(trace[name]) for name in supports), jnp.zeros(()))
        law = trace["y"]["fn"]
        return jnp.broadcast_to(log_weight, law.batch_shape[:1]), law

    return jax.vmap(given)(combinations(supports))


def mixture_of(run: Callable[[Theta], Mapping[str, Any]], supports: Mapping[str, tuple[int, ...]]) -> Conditional:
    """p(y | x, theta) = Σ_z p(z | x, theta) p(y | z, x, theta): of classes again a law of classes.

    Arguments:
        run: from values of the discrete latents to a trace of the program.
    """

    log_weights, parts = parts_of(run, supports)
    probs = jax.vmap(class_probs)(parts)
    if probs is None:
        return Mixed(parts, log_weights)
    log_probs = jnp.log(jnp.maximum(probs, LEAST_PROBABILITY))
    return class_law(jax.nn.logsumexp(log_weights[..., None] + log_probs, axis=0), parts)


def class_law(logits: Array, like: Any) -> Conditional:
    """A law of classes from the logarithms of their probabilities, (rows, classes), of the kind that another is of."""
    is_binary = isinstance(stripped(like), dist.BernoulliLogits | dist.BernoulliProbs)
    return dist.Bernoulli(logits=logits[..., 1] - logits[..., 0]) if is_binary else dist.Categorical(logits=logits)
