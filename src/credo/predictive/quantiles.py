"""Quantiles of the marginal, by bisection on its distribution function F = Σᵢ wᵢ Fᵢ."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo._precision import working_precision
from credo.predictive.conditional import Conditional, ConditionalOf, each_output, is_discrete, look
from credo.predictive.laws import cdf_of, has_icdf, within
from credo.predictive.streaming import draw_of, over_draws
from credo.typing import Array, Theta

# Bisection halves the bracket each time, seven times more than the mantissa has digits: 2⁻³⁰ of it is below the
# resolution of single precision, 2⁻⁵⁹ below that of double.
MORE_BISECTIONS = 7
# A bracket starts as mean ± 4 sd, which holds every quantile that a prediction is usually asked for.
NUM_SDS = 4.0
# It doubles until F brackets the level: from ± 4 this often, nearly to the largest number of float32, 2¹²⁸.
MAX_DOUBLINGS = 120

Bracket = tuple[Array, Array]


@partial(jax.jit, static_argnums=0)
def quantiles(conditional_of: ConditionalOf, weights: Array, levels: Array, draws: Theta, x: Array) -> Array:
    """The least y with F(y) ≥ level: (rows, levels, output…); a whole number where y is one.

    Where all Fᵢ have an inverse, the least and the greatest quantile among the draws bracket that of the mixture.
    """
    first = conditional_of(draw_of(draws, 0), x)
    laws = over_draws(lambda theta: each_output(conditional_of(theta, x)), draws)
    shape, discrete = first.shape(), is_discrete(first)

    def mixture_cdf(value: Array) -> Array:
        return jnp.tensordot(weights, jax.vmap(lambda law: cdf_of(law, value))(laws), axes=1)

    if has_icdf(first):

        def bracket(level: Array) -> Bracket:
            own = jax.vmap(lambda law: jnp.broadcast_to(law.icdf(level), shape))(laws)
            return own.min(0), own.max(0)
    else:
        start = _start(over_draws(lambda theta: _moments(conditional_of(theta, x)), draws))

        def bracket(level: Array) -> Bracket:
            return _widened(mixture_cdf, level, start)

    def solve(level: Array) -> Array:
        low, high = _bisected(mixture_cdf, level, bracket(level))
        # A step of F is at a whole number: the last one up to `high`, since F(low) < level ≤ F(high).
        # The last bracket may reach over a bound of y, by less than its own width.
        return jnp.floor(high) if discrete else within(each_output(first), (low + high) / 2)

    return jnp.moveaxis(jax.lax.map(solve, levels), 0, 1)


def _moments(conditional: Conditional) -> tuple[Array, Array]:
    return jnp.asarray(conditional.mean), jnp.sqrt(conditional.variance)


def _start(moments: tuple[Array, Array]) -> Bracket:
    """mean ± 4 sd of every draw; heavy tails may have neither, and start around zero with an sd of one."""
    mean, sd = moments
    centre = jnp.where(jnp.isfinite(mean), mean, 0.0)
    reach = NUM_SDS * jnp.where(jnp.isfinite(sd) & (sd > 0), sd, 1.0)
    return (centre - reach).min(0), (centre + reach).max(0)


def _widened(cdf: Callable[[Array], Array], level: Array, start: Bracket) -> Bracket:
    """Ends that the quantile is beyond move outwards by the width of the bracket, until F(low) < level ≤ F(high)."""

    def is_open(state: tuple[Bracket, Array]) -> Array:
        (low, high), number = state
        return (number < MAX_DOUBLINGS) & jnp.any((cdf(low) >= level) | (cdf(high) < level))

    def widen(state: tuple[Bracket, Array]) -> tuple[Bracket, Array]:
        (low, high), number = state
        width = high - low
        wider = jnp.where(cdf(low) < level, low, low - width), jnp.where(cdf(high) < level, high + width, high)
        return wider, number + 1

    return jax.lax.while_loop(is_open, widen, (start, jnp.zeros((), jnp.int32)))[0]


def _bisected(cdf: Callable[[Array], Array], level: Array, bracket: Bracket) -> Bracket:
    def halve(_: Array, bracket: Bracket) -> Bracket:
        low, high = bracket
        middle = (low + high) / 2
        below = cdf(middle) < level
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    num = jnp.finfo(bracket[0].dtype).nmant + MORE_BISECTIONS
    return jax.lax.fori_loop(0, num, halve, bracket)


def bytes_per_row(conditional_of: ConditionalOf, draws: Theta, x: np.ndarray, num_draws: int) -> int:
    """What the laws of all draws take for one row: twice their parameters, since F is computed beside them."""
    return 2 * num_draws * look(conditional_of, draws, x, _bytes_of_parameters)


def _bytes_of_parameters(conditional: Conditional) -> int:
    leaves = jax.tree.leaves(each_output(conditional))
    return sum(jnp.result_type(leaf).itemsize * jnp.size(leaf) for leaf in leaves)


def as_levels(level: Any) -> np.ndarray:
    """Levels of quantiles as an array, each between 0 and 1."""
    levels = np.asarray(level)
    if levels.dtype.kind not in "iuf" or not np.all((levels > 0) & (levels < 1)):
        raise ValueError(f"level must lie between 0 and 1, got {level!r}")
    return levels.astype(working_precision())
