"""Function-space elicitation: scales of the weights under which prior functions resemble those one has in mind.

Nobody knows what a weight should be, but many know what a function should look like: a Gaussian process, or a few
hundred curves of the kind. Tran et al., "All you need is a good functional prior for Bayesian deep learning" (2022),
choose the prior whose functions are nearest to them in the 1-Wasserstein distance, which takes a second network, the
potential, trained within each step. Here it is the *sliced* 2-Wasserstein distance,

    SW² = E_v[ ∫ (F_v⁻¹(u) − G_v⁻¹(u))² du ],    v uniform on the unit sphere of values at the n points,

whose one-dimensional distances are in closed form: sort both samples along v, and compare them in order (Rabin et al.,
2012). No inner network, and zero only if the two laws of functions agree at the points.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from credo import random
from credo._checks import require_at_least
from credo._precision import working_precision
from credo.data import as_inputs
from credo.models.priors.base import Prior
from credo.models.priors.by_path import ByPath
from credo.models.priors.independent import Normal
from credo.networks.functional import Network, functional
from credo.typing import Array, Key, Theta

# Functions and directions per step. Sorted samples of 256 correlate by 0.988: scales come out 1% too small.
NUM_DRAWS, NUM_DIRECTIONS = 256, 64
# For the distances that are reported: two samples of one law are 0.08 of its sd apart.
NUM_DRAWS_REPORTED = 1024
# Adam on log scales, decaying to zero: in 100 steps a scale can move by a factor of about ten.
LEARNING_RATE = 0.05
# An eigenvalue of a kernel matrix that is this much below zero, relative to the largest, is not rounding.
ROUNDING = 1e-5

Curves = Callable[[Key, int], Array]


@dataclass(frozen=True)
class Matched(ByPath):
    """Normal priors, one scale for each array, and how near their functions are to the target. See `matching`.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> import credo
    >>> net, points = credo.networks.MLP([20], out=1), [[-1.0], [0.0], [1.0]]
    >>> prior = credo.priors.matching(net, RBF(1.0), points, num_steps=20)
    >>> type(prior).__name__, prior.distance_after < prior.distance_before
    ('Matched', True)
    """

    distance_before: float
    distance_after: float


def matching(net: Any, like: Any, x: Any, *, num_steps: int = 500, seed: int = 0) -> Matched:
    """Normal priors N(0, scale²), one scale for each array, whose functions are like those of a Gaussian process.

    Or like given curves. The scales minimise the sliced Wasserstein distance between draws of the network at x and
    draws of the target. `distance_before` is that of N(0, 1), the default prior, and `distance_after` that of the
    result, in the units of the function: a network that cannot draw such functions stays far. What the functions do
    between the points, the distance does not see.

    Arguments:
        net: any network that `credo.networks.functional` takes, with one output.
        like: a kernel, `k(x, x') -> (n, n)` (those of scikit-learn are such functions), for the Gaussian process of
            mean zero; or samples of curves at x, of shape (draws, n).
        x: where functions are compared, of shape (n, …), in the units the network sees (`fit` standardises).
        num_steps: of Adam.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from credo.networks import MLP
    >>> prior = matching(MLP([20], 1), RBF(1.0), np.linspace(-2, 2, 8)[:, None], num_steps=100)
    >>> prior.distance_after < prior.distance_before
    True
    """
    require_at_least(1, num_steps=num_steps)
    points = jnp.asarray(as_inputs(x), working_precision())
    network = functional(net, points)
    _check_output(network, points)
    target = _curves(like, points)
    of_fit, of_report = jax.random.split(random.key(seed))
    found = _minimise(network, points, target, of_fit, num_steps)
    default = {path: jnp.zeros(()) for path in network.params}
    report = jax.jit(partial(_distance, network, points, target, num=NUM_DRAWS_REPORTED))
    before, after = (float(np.sqrt(report(log_scales, of_report))) for log_scales in (default, found))
    patterns: list[tuple[str, Prior]] = [(path, Normal(float(np.exp(value)))) for path, value in found.items()]
    return Matched(tuple(patterns), Normal(), before, after)


def sliced_distance(first: Array, second: Array, directions: Array) -> Array:
    """SW² between two samples (num, n) of one size, over unit vectors (num_directions, n).

    >>> sample = jnp.array([[0.0], [1.0]])
    >>> float(sliced_distance(sample, sample[::-1] + 2.0, jnp.ones((1, 1))))
    4.0
    """
    along = [jnp.sort(sample @ directions.T, axis=0) for sample in (first, second)]
    return jnp.mean((along[0] - along[1]) ** 2)


def _minimise(network: Network, points: Array, target: Curves, key: Key, num_steps: int) -> Theta:
    optimizer = optax.adam(optax.cosine_decay_schedule(LEARNING_RATE, num_steps))

    def step(state: Any, key: Key) -> tuple[Any, None]:
        log_scales, moments = state
        gradient = jax.grad(lambda own: _distance(network, points, target, own, key, num=NUM_DRAWS))(log_scales)
        updates, moments = optimizer.update(gradient, moments)
        return (optax.apply_updates(log_scales, updates), moments), None

    # From `fan_in`, functions of about the right size. From N(0, 1) all scales shrink together, into weights so small
    # that the network is linear, and stay there: at twice the distance, for 50 units of tanh and a smooth process.
    fan_in = {path: network.fan_in[path] if value.ndim > 1 else 1 for path, value in network.params.items()}
    start = {path: jnp.asarray(-0.5 * np.log(number), working_precision()) for path, number in fan_in.items()}

    def run(start: Theta, key: Key) -> Theta:
        (found, _), _ = jax.lax.scan(step, (start, optimizer.init(start)), jax.random.split(key, num_steps))
        return found

    return jax.jit(run)(start, key)


def _distance(network: Network, points: Array, target: Curves, log_scales: Theta, key: Key, *, num: int) -> Array:
    """SW² between functions of the network under w = scale · z and those of the target, from draws of both."""
    of_weights, of_target, of_directions = jax.random.split(key, 3)

    def function(key: Key) -> Array:
        keys = dict(zip(network.params, jax.random.split(key, len(network.params)), strict=True))
        weights = {
            path: jnp.exp(log_scales[path]) * jax.random.normal(keys[path], value.shape)
            for path, value in network.params.items()
        }
        return network.apply(weights, points)[:, 0]

    directions = jax.random.normal(of_directions, (NUM_DIRECTIONS, points.shape[0]))
    directions /= jnp.linalg.norm(directions, axis=1, keepdims=True)
    return sliced_distance(jax.vmap(function)(jax.random.split(of_weights, num)), target(of_target, num), directions)


def _curves(like: Any, points: Array) -> Curves:
    """Draws of the target at the points: of a Gaussian process, or of the samples, with replacement."""
    num = points.shape[0]
    if callable(like):
        at = np.asarray(points)
        root = jnp.asarray(_root(np.asarray(like(at, at), np.float64), num), working_precision())
        return lambda key, size: jax.random.normal(key, (size, num)) @ root.T
    samples = np.asarray(like, working_precision())
    if samples.ndim != 2 or samples.shape[1] != num or len(samples) < 2 or not np.all(np.isfinite(samples)):
        raise ValueError(
            f"like: an array of shape {samples.shape}; pass a kernel, or at least two curves of finite values at the "
            f"{num} points of x, of shape (draws, {num})"
        )
    return lambda key, size: jax.random.choice(key, jnp.asarray(samples), (size,))


def _root(covariance: np.ndarray, num: int) -> np.ndarray:
    """A with A Aᵀ = K."""
    if covariance.shape != (num, num) or not np.all(np.isfinite(covariance)):
        raise ValueError(
            f"like: the kernel gives an array of shape {covariance.shape} for {num} points; expected finite values of "
            f"shape ({num}, {num})"
        )
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    if not np.allclose(covariance, covariance.T, atol=ROUNDING * values[-1]) or values[0] < -ROUNDING * values[-1]:
        raise ValueError("like: the kernel gives a matrix that is no covariance: not symmetric, or not positive")
    return vectors * np.sqrt(np.maximum(values, 0.0))


def _check_output(network: Network, points: Array) -> None:
    shape = jax.eval_shape(network.apply, network.params, points).shape
    if shape != (points.shape[0], 1):
        raise ValueError(
            f"net: it maps x of shape {points.shape} to {shape}, and matching compares functions with one output, "
            f"({points.shape[0]}, 1)"
        )
