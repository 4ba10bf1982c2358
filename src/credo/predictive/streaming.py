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
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import xlogy

from credo.typing import Array, Key, Theta, Tree

# Bisection halves the bracket each time: 2⁻³⁰ of it is below the resolution of float32.
NUM_BISECTIONS = 30

Conditional = Callable[[Theta, Array], dist.Distribution]


class Accumulator(NamedTuple):
    """`start(distribution, *by_row)` gives the carry, `add(carry, distribution, weight, *by_row)` the next one."""

    start: Callable[..., Tree]
    add: Callable[..., Tree]


class Moments(NamedTuple):
    """Weighted running moments: of the draws' means, and the average of the draws' own noise."""

    total: Any
    mean: Any
    spread: Any
    noise: Any


def _start_moments(mean: Array, spread: Array, noise: Array) -> Moments:
    rows = mean.shape[0]
    return Moments(jnp.zeros(rows), jnp.zeros_like(mean), jnp.zeros_like(spread), jnp.zeros_like(noise))


def _add_moments(carry: Moments, weight: Array, mean: Array, noise: Array, product: Any = jnp.multiply) -> Moments:
    """West's update (1979): stable, in one pass, for weights that add up to one."""
    total = carry.total + weight
    share = weight / jnp.maximum(total[0], jnp.finfo(jnp.float32).tiny)
    before = mean - carry.mean
    moved = carry.mean + share * before
    spread = carry.spread + weight * product(before, mean - moved)
    # An average moved by shares keeps its digits; a sum of many small terms in float32 would not.
    return Moments(total, moved, spread, carry.noise + share * (noise - carry.noise))


def _outer(a: Array, b: Array) -> Array:
    return a[..., :, None] * b[..., None, :]


def _as_vector(values: Array) -> Array:
    return values[:, None] if values.ndim == 1 else values


def noise_covariance(distribution: dist.Distribution) -> Array:
    """Covariance of y given theta, (rows, outputs, outputs)."""
    if hasattr(distribution, "covariance_matrix"):
        return jnp.broadcast_to(distribution.covariance_matrix, (*distribution.mean.shape, distribution.mean.shape[-1]))
    variance = _as_vector(distribution.variance)
    return variance[..., None] * jnp.eye(variance.shape[-1])


def _class_probs(distribution: dist.Distribution) -> Array:
    probs = distribution.probs
    return probs if distribution.support != dist.constraints.boolean else jnp.stack([1 - probs, probs], axis=-1)


def class_entropy(probs: Any) -> Array:
    return -jnp.sum(xlogy(probs, probs), axis=-1)


MOMENTS = Accumulator(
    start=lambda distribution: _start_moments(distribution.mean, distribution.mean, distribution.variance),
    add=lambda carry, distribution, weight: _add_moments(carry, weight, distribution.mean, distribution.variance),
)

COVARIANCES = Accumulator(
    start=lambda distribution: _start_moments(
        _as_vector(distribution.mean), noise_covariance(distribution), noise_covariance(distribution)
    ),
    add=lambda carry, distribution, weight: _add_moments(
        carry, weight, _as_vector(distribution.mean), noise_covariance(distribution), _outer
    ),
)

CLASSES = Accumulator(
    start=lambda distribution: _start_moments(
        _class_probs(distribution), _class_probs(distribution), _class_probs(distribution)[..., 0]
    ),
    add=lambda carry, distribution, weight: _add_moments(
        carry, weight, _class_probs(distribution), class_entropy(_class_probs(distribution))
    ),
)

LOG_MEAN_EXP = Accumulator(
    start=lambda distribution, y: jnp.full(y.shape[0], -jnp.inf),
    add=lambda carry, distribution, weight, y: jnp.logaddexp(carry, jnp.log(weight) + distribution.log_prob(y)),
)

CDF = Accumulator(
    start=lambda distribution, y: jnp.zeros(y.shape),
    add=lambda carry, distribution, weight, y: carry + weight * _marginal(distribution).cdf(y),
)


@partial(jax.jit, static_argnums=(0, 1))
def fold(
    conditional: Conditional, accumulator: Accumulator, weights: Array, draws: Theta, x: Array, *by_row: Array
) -> Tree:
    def add(carry: Tree, draw: tuple[Array, Array]) -> tuple[Tree, None]:
        index, weight = draw
        return accumulator.add(carry, conditional(_draw(draws, index), x), weight, *by_row), None

    carry = accumulator.start(conditional(_draw(draws, 0), x), *by_row)
    return jax.lax.scan(add, carry, (jnp.arange(len(weights)), weights))[0]


def _draw(draws: Theta, index: Array | int) -> Theta:
    return jax.tree.map(lambda leaf: leaf[index if len(leaf) > 1 else 0], draws)


def _over_draws(function: Callable[[Theta], Tree], draws: Theta) -> Tree:
    """function(theta) of every draw, one after another: leaves gain a leading axis."""
    num = max(len(leaf) for leaf in jax.tree.leaves(draws))
    return jax.lax.map(lambda index: function(_draw(draws, index)), jnp.arange(num))


@partial(jax.jit, static_argnums=0)
def functions(conditional: Conditional, draws: Theta, x: Array) -> Array:
    """E[y | x, thetaᵢ], rows first: (rows, draws, output…)."""
    return jnp.moveaxis(_over_draws(lambda theta: mean_of(conditional(theta, x)), draws), 0, 1)


@partial(jax.jit, static_argnums=0)
def log_probs(conditional: Conditional, draws: Theta, x: Array, y: Array) -> Array:
    """log p(y | x, thetaᵢ), (rows, draws)."""
    return _over_draws(lambda theta: conditional(theta, x).log_prob(y), draws).T


@partial(jax.jit, static_argnums=0)
def samples(conditional: Conditional, draws: Theta, chosen: Array, keys: Key, x: Array) -> Array:
    def one(choice: tuple[Array, Key]) -> Array:
        index, key = choice
        return conditional(_draw(draws, index), x).sample(key)

    return jax.lax.map(one, (chosen, keys))


@partial(jax.jit, static_argnums=0)
def quantiles(conditional: Conditional, weights: Array, levels: Array, draws: Theta, x: Array) -> Array:
    """Mixture quantiles by bisection, (rows, levels, output…)."""
    components = _over_draws(lambda theta: _marginal(conditional(theta, x)), draws)

    def mixture_cdf(value: Array) -> Array:
        cdf = jax.vmap(lambda component: component.cdf(value))(components)
        return jnp.tensordot(weights, cdf, axes=1)

    def solve(level: Array) -> Array:
        own = jax.vmap(lambda component: component.icdf(jnp.full(component.batch_shape, level)))(components)

        def halve(_: Array, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = bracket
            middle = (low + high) / 2
            below = mixture_cdf(middle) < level
            return jnp.where(below, middle, low), jnp.where(below, high, middle)

        low, high = jax.lax.fori_loop(0, NUM_BISECTIONS, halve, (own.min(0), own.max(0)))
        return (low + high) / 2

    return jnp.moveaxis(jax.lax.map(solve, levels), 0, 1)


def mean_of(distribution: dist.Distribution) -> Array:
    """E[y | x, theta]; the probabilities of the classes."""
    return _class_probs(distribution) if _has_classes(distribution) else distribution.mean


def _marginal(distribution: dist.Distribution) -> dist.Distribution:
    """The distribution of each output alone."""
    if isinstance(distribution, dist.Independent):
        return _marginal(distribution.base_dist)
    if isinstance(distribution, dist.MultivariateNormal):
        return dist.Normal(distribution.mean, jnp.sqrt(distribution.variance))
    return distribution


def _has_classes(distribution: dist.Distribution) -> bool:
    return isinstance(
        distribution,
        dist.CategoricalLogits | dist.CategoricalProbs | dist.BernoulliLogits | dist.BernoulliProbs,
    )


def is_classes(conditional: Conditional, draws: Theta, x: np.ndarray) -> bool:
    """Whether y is a class label, found without computing anything."""
    return _look(conditional, draws, x, _has_classes)


def is_normal(conditional: Conditional, draws: Theta, x: np.ndarray) -> bool:
    """Whether each output is normal, given theta."""
    return _look(conditional, draws, x, lambda distribution: isinstance(_marginal(distribution), dist.Normal))


def _look(conditional: Conditional, draws: Theta, x: np.ndarray, question: Callable[[dist.Distribution], bool]) -> bool:
    found: list[bool] = []

    def look(theta: Theta, row: Array) -> Array:
        found.append(question(conditional(theta, row)))
        return jnp.zeros(())

    first = {name: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype) for name, leaf in draws.items()}
    jax.eval_shape(look, first, jax.ShapeDtypeStruct((1, *x.shape[1:]), jnp.float32))
    return found[0]
