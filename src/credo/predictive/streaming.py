"""Streaming over draws: what a prediction needs of p(y | x, thetaᵢ), accumulated draw by draw in compiled code.

An accumulator is carried from draw to draw, so that memory does not grow with their number. Means and variances use
West's weighted update (1979), log densities a running log-sum-exp.

Draws are trees of arrays with a leading axis of draws. A leaf may have an axis of one there: it is the same for all.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import xlogy

from credo._precision import in_working_precision
from credo.predictive.censored import log_prob_of
from credo.predictive.conditional import Conditional, ConditionalOf, as_vector, covariance_of, each_output, mean_of
from credo.predictive.laws import cdf_of, sample_rows
from credo.predictive.missing import observed_log_prob
from credo.typing import Array, Key, Theta, Tree


class Accumulator(NamedTuple):
    """`start(conditional, *by_row)` gives the carry, `add(carry, conditional, weight, *by_row)` the next one."""

    start: Callable[..., Tree]
    add: Callable[..., Tree]


class Moments(NamedTuple):
    """Weighted running moments: of the draws' means, and the average of the draws' own noise."""

    total: Any
    mean: Any
    spread: Any
    noise: Any


def _moments(mean: Callable[[Any], Array], noise: Callable[[Any], Array], product: Any = jnp.multiply) -> Accumulator:
    """Of a mean and a noise of each draw; `product` of two deviations is what a spread adds up."""

    def start(conditional: Conditional) -> Moments:
        centre = mean(conditional)
        zeros = map(jnp.zeros_like, (centre, product(centre, centre), noise(conditional)))
        return Moments(jnp.zeros(centre.shape[0]), *zeros)

    def add(carry: Moments, conditional: Conditional, weight: Array) -> Moments:
        """West's update (1979): stable, in one pass, for weights that add up to one."""
        total = carry.total + weight
        share = weight / jnp.maximum(total[0], jnp.finfo(jnp.float32).tiny)
        before = mean(conditional) - carry.mean
        moved = carry.mean + share * before
        spread = carry.spread + weight * product(before, mean(conditional) - moved)
        # An average moved by shares keeps its digits; a sum of many small terms in float32 would not.
        return Moments(total, moved, spread, carry.noise + share * (noise(conditional) - carry.noise))

    return Accumulator(start, add)


def _outer(a: Array, b: Array) -> Array:
    return a[..., :, None] * b[..., None, :]


def class_entropy(probs: Any) -> Array:
    return -jnp.sum(xlogy(probs, probs), axis=-1)


MOMENTS = _moments(lambda conditional: conditional.mean, lambda conditional: conditional.variance)
COVARIANCES = _moments(lambda conditional: as_vector(conditional.mean), covariance_of, _outer)
CLASSES = _moments(mean_of, lambda conditional: class_entropy(mean_of(conditional)))

LOG_MEAN_EXP = Accumulator(
    start=lambda conditional, y: jnp.full(y.shape[0], -jnp.inf),
    add=lambda carry, conditional, weight, y: jnp.logaddexp(carry, jnp.log(weight) + log_prob_of(conditional, y)),
)

# The same of targets of which some outputs are missing.
OBSERVED_LOG_MEAN_EXP = LOG_MEAN_EXP._replace(
    add=lambda carry, conditional, weight, y: jnp.logaddexp(carry, jnp.log(weight) + observed_log_prob(conditional, y)),
)

CDF = Accumulator(
    start=lambda conditional, y: jnp.zeros(y.shape),
    add=lambda carry, conditional, weight, y: carry + weight * cdf_of(each_output(conditional), y),
)


@partial(jax.jit, static_argnums=(0, 1))
def fold(
    conditional_of: ConditionalOf, accumulator: Accumulator, weights: Array, draws: Theta, x: Array, *by_row: Array
) -> Tree:
    def add(carry: Tree, draw: tuple[Array, Array]) -> tuple[Tree, None]:
        index, weight = draw
        return accumulator.add(carry, conditional_of(draw_of(draws, index), x), weight, *by_row), None

    carry = accumulator.start(conditional_of(draw_of(draws, 0), x), *by_row)
    return jax.lax.scan(add, carry, (jnp.arange(len(weights)), weights))[0]


def draw_of(draws: Theta, index: Array | int) -> Theta:
    """theta of one draw, in the working precision: draws may come from a fit, or a file, in another."""
    return in_working_precision(jax.tree.map(lambda leaf: leaf[index if len(leaf) > 1 else 0], draws))


def over_draws(function: Callable[[Theta], Tree], draws: Theta) -> Tree:
    """function(theta) of every draw, one after another: leaves gain a leading axis."""
    num = max((len(leaf) for leaf in jax.tree.leaves(draws)), default=1)
    return jax.lax.map(lambda index: function(draw_of(draws, index)), jnp.arange(num))


@partial(jax.jit, static_argnums=0)
def functions(conditional_of: ConditionalOf, draws: Theta, x: Array) -> Array:
    """E[y | x, thetaᵢ], rows first: (rows, draws, output…)."""
    return jnp.moveaxis(over_draws(lambda theta: mean_of(conditional_of(theta, x)), draws), 0, 1)


@partial(jax.jit, static_argnums=(0, 1))
def log_probs(conditional_of: ConditionalOf, gaps: bool, draws: Theta, x: Array, y: Array) -> Array:
    """log p(y | x, thetaᵢ), (rows, draws); with gaps, of the outputs that are there."""

    def of_draw(theta: Theta) -> Array:
        conditional = conditional_of(theta, x)
        return observed_log_prob(conditional, y) if gaps else log_prob_of(conditional, y)

    return over_draws(of_draw, draws).T


@partial(jax.jit, static_argnums=0)
def cdfs(conditional_of: ConditionalOf, draws: Theta, x: Array, y: Array) -> Array:
    """P(Y ≤ y | x, thetaᵢ) of each output alone, rows first: (rows, draws, output…)."""
    return jnp.moveaxis(over_draws(lambda theta: cdf_of(each_output(conditional_of(theta, x)), y), draws), 0, 1)


@partial(jax.jit, static_argnums=0)
def samples(conditional_of: ConditionalOf, chosen: Array, keys: Key, draws: Theta, x: Array, numbers: Array) -> Array:
    """A y of each chosen draw, rows first: (rows, samples, output…); see `sample_rows`."""

    def one(choice: tuple[Array, Key]) -> Array:
        index, key = choice
        return sample_rows(conditional_of, draw_of(draws, index), x, key, numbers)

    return jnp.moveaxis(jax.lax.map(one, (chosen, keys)), 0, 1)
