"""Canonical draws: of all weights that mean the same function, the ones that every chain agrees on.

A layer of k tanh units has 2ᵏ k! mirror images, and a ReLU unit any scale; chains that sit in different images disagree
about every weight. Here each draw moves to the image that fits the others best, and stays the same function:

1. scales are balanced: what enters a unit has the norm of what leaves it. Of all scalings it is the one of least Σ w²;
2. units are reordered and turned round to fit those of a reference, the draw of the highest log joint: layer by layer,
   by the weights that come from layers already in order. Then to fit N(μ, σ²) with the mean and the variance of each
   weight over the aligned draws, again and again until nothing moves: Stephens' relabelling algorithm, which minimises
   the Kullback-Leibler divergence between the draws and a product of normals;
3. units are sorted by the norm of their mean weights, the largest first, and turned so that the largest mean weight
   that enters them (or leaves the last layer) is positive.

Reference: Stephens, Dealing with label switching in mixture models, JRSS B 62 (2000), section 4.
"""

from collections.abc import Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import linear_sum_assignment

from credo._precision import working_precision
from credo.models.program import Model
from credo.networks.symmetries import symmetries_of
from credo.networks.units import Group
from credo.typing import Theta

# Alignment ends when no unit moves any more: after three to six rounds where units can be told apart. Of many redundant
# ones some always move, and nothing is gained by following them.
_NUM_ROUNDS = 10
# Neighbouring layers share weights, so balancing one tips the other; each round halves what is left, or better.
_NUM_BALANCES, _BALANCED = 100, 1e-6
# A weight of a reference is not known better than this part of the spread of its layer: four draws may agree by chance.
_LEAST_VARIANCE = 1e-3
# Single precision sums a log density of size L to about 10⁻⁶ L.
_SAME = 1e-5
# Rows of random inputs at which functions are compared.
_NUM_ROWS = 8


def canonical_theta(model: Model, theta: Theta, log_joint: np.ndarray | None = None) -> Theta:
    """Draws of the same functions, whose units are in the same order, with the same signs and balanced scales.

    Arguments:
        model: bound to the shape of the data.
        theta: unconstrained, every leaf (chains, draws, …).
        log_joint: (chains, draws); the first draw is the reference without it.
    """
    flat = {name: leaf.reshape(-1, *leaf.shape[2:]) for name, leaf in theta.items()}
    groups = _groups(model, {name: leaf[0] for name, leaf in flat.items()})
    flat = _balanced(flat, groups)
    best = 0 if log_joint is None else int(np.argmax(log_joint))
    flat = _sorted(_aligned(flat, groups, best), groups)
    changed = {path for group in groups for path in group.paths}
    return {name: flat[name].reshape(leaf.shape) if name in changed else leaf for name, leaf in theta.items()}


# -- which units the posterior does not tell apart ---------------------------------------------------------


def _groups(model: Model, theta: Theta) -> list[Group]:
    """The groups of units that neither p(y | x, theta) nor the prior tells apart."""
    rows = np.random.default_rng(0).standard_normal((_NUM_ROWS, *model.example().x.shape[1:]))
    x = jnp.asarray(rows, working_precision())
    found = symmetries_of(lambda theta: jax.tree.leaves(model.predictive(theta, x)), theta).groups
    _require_real(model, theta, found)
    log_prior = jax.jit(model.log_prior)
    before = log_prior(theta)

    def is_same(changed: Theta) -> bool:
        return bool(np.isclose(log_prior(changed), before, rtol=_SAME, atol=_SAME))

    return [
        replace(group, signed=group.signed and is_same(group.scaled(theta, -np.ones(group.size))))
        for group in found
        if is_same(group.permuted(theta, np.roll(np.arange(group.size), 1)))
    ]


def _require_real(model: Model, theta: Theta, groups: Sequence[Group]) -> None:
    """Refuse weights that are not drawn from the whole line: their unconstrained values do not add and multiply."""
    constrained = model.constrain(theta)
    for path in (path for group in groups for path in group.paths):
        if not np.array_equal(constrained[path], theta[path]):
            raise ValueError(
                f"canonical: the prior of {path!r} has another support than the real line, so its unconstrained draws "
                "are no weights that could be rescaled or compared; give it a prior on the whole line, such as "
                "credo.priors.normal(1.0)"
            )


# -- scales ------------------------------------------------------------------------------------------------


def _balanced(theta: Theta, groups: Sequence[Group]) -> Theta:
    """Each unit that can be rescaled with a = √(‖out‖ / ‖in‖), so that a ‖in‖ = ‖out‖ / a; layer by layer, repeated."""
    rescalable = [group for group in groups if group.rescalable]
    for _ in range(_NUM_BALANCES):
        furthest = 0.0
        for group in rescalable:
            entering, leaving = (np.linalg.norm(group.weights(theta, role), axis=-1) for role in ("out", "in"))
            # A unit that nothing enters or nothing leaves has no balance.
            is_alive = (entering > 0) & (leaving > 0)
            factors = np.sqrt(np.divide(leaving, entering, out=np.ones_like(leaving), where=is_alive))
            theta = group.scaled(theta, factors)
            furthest = max(furthest, float(np.max(np.abs(np.log(factors)))))
        if furthest <= _BALANCED:
            break
    return theta


# -- order and signs ---------------------------------------------------------------------------------------


def _aligned(theta: Theta, groups: Sequence[Group], best: int) -> Theta:
    """Every draw in the image that fits the others best; theta has one axis of draws."""
    for number, group in enumerate(groups):
        weights = _in_order(group, groups[number + 1 :]).weights(theta)
        theta = _turned(theta, group, *_fit(weights, weights[best], np.ones(1), signed=group.signed))
    for _ in range(_NUM_ROUNDS):
        num_moved = 0
        for group in groups:
            weights = group.weights(theta)
            order, signs = _fit(weights, *_moments(weights), signed=group.signed)
            theta = _turned(theta, group, order, signs)
            num_moved += np.sum(order != np.arange(group.size)) + np.sum(signs < 0)
        if num_moved == 0:
            break
    return theta


def _in_order(group: Group, later: Sequence[Group]) -> Group:
    """The group with those weights alone that no group to come reorders; with all, if none are left."""
    unsettled = {path for other in later for path in other.paths}
    settled = tuple(member for member in group.members if member.path not in unsettled)
    return replace(group, members=settled or group.members)


def _turned(theta: Theta, group: Group, order: np.ndarray, signs: np.ndarray) -> Theta:
    return group.scaled(group.permuted(theta, order), signs)


def _fit(weights: np.ndarray, mean: np.ndarray, variance: np.ndarray, *, signed: bool) -> tuple[np.ndarray, np.ndarray]:
    """The order and the signs of units, (draws, units) each, of the largest Σᵢ log N(±w_order(i); μᵢ, σᵢ²).

    Arguments:
        weights: (draws, units, numbers).
        mean: (units, numbers), of the reference; as the variance, or (1,).
    """
    agreement = weights @ (mean / variance).T
    penalty = 0.5 * np.square(weights) @ np.broadcast_to(1 / variance, mean.shape).T
    # [draw, unit, place]: what a unit adds to the log density in each place, up to terms of the place alone.
    gain = (np.abs(agreement) if signed else agreement) - penalty
    order = np.stack([linear_sum_assignment(one.T, maximize=True)[1] for one in gain])
    chosen = np.take_along_axis(agreement, order[:, None, :], axis=1)[:, 0]
    return order, np.where(signed & (chosen < 0), -1.0, 1.0)


def _moments(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each weight of each unit, over the draws."""
    doubles = weights.astype(np.float64)
    variance = doubles.var(axis=0)
    return doubles.mean(axis=0), variance + _LEAST_VARIANCE * variance.mean() + np.finfo(np.float32).tiny


def _sorted(theta: Theta, groups: Sequence[Group]) -> Theta:
    """Units with large mean weights first; if signs are free, the largest that comes from layers in order positive."""
    for number, group in enumerate(groups):
        mean = _moments(group.weights(theta))[0]
        theta = group.permuted(theta, np.argsort(-np.linalg.norm(mean, axis=-1), kind="stable"))
        if group.signed:
            mean = _moments(_in_order(group, groups[number + 1 :]).weights(theta))[0]
            largest = np.take_along_axis(mean, np.argmax(np.abs(mean), axis=-1)[:, None], axis=-1)[:, 0]
            theta = group.scaled(theta, np.where(largest < 0, -1.0, 1.0))
    return theta
