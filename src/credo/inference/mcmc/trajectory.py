"""Hamiltonian trajectories: the leapfrog, Hamiltonian Monte Carlo, and the multinomial No-U-Turn sampler.

Paper, "Markov Chain Monte Carlo". With M⁻¹ = L Lᵀ the inverse mass, momenta are kept as r = Lᵀp ~ N(0, I):
the kinetic energy is |r|²/2 and no product needs the mass. A diagonal L is folded into the step, ε L; with a
dense one the trajectory is followed in coordinates z, q = q₀ + L z, where the step is ε again.

A gradient of a small network takes microseconds, and each kernel that XLA starts beside it a tenth of one. So
the loop over leapfrogs starts as few as it can: random numbers are hashes of a counter, scalars travel as one
array, the chosen leaf is copied only when it changes, and U-turns are tested only where a subtree is complete.
blackjax's NUTS costs the same per leapfrog; ours stays for its test of U-turns, which leaves no gap between the halves
of a tree: up to twice the effective draws of z and z² per leapfrog on independent normals (docs/decisions.md).

Hoffman & Gelman (2014), The No-U-Turn Sampler; Betancourt (2017), A Conceptual Introduction to Hamiltonian
Monte Carlo; Phan, Pradhan & Jankowiak (2019), Composable Effects for Flexible and Accelerated Probabilistic
Programming in NumPyro (the tree without recursion).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from credo._precision import working_precision
from credo.random import mix
from credo.typing import Array, Key

LogDensity = Callable[[Array], Array]
ValueAndGrad = Callable[[Array], tuple[Array, Array]]

# An error in energy beyond this is a divergence: Stan's threshold.
DIVERGENCE = 1000.0
# Leaves are weighted by exp(H₀ − H); 2¹⁵ weights of e⁷⁷ add up to less than the largest float, 3·10³⁸. A leaf
# that the clip changes is e⁷⁷ times as likely as the start: a chain in equilibrium never meets one.
_LARGEST_LOG_WEIGHT = 77.0


class Point(NamedTuple):
    """A position (D,), with the log density and its gradient (D,) there."""

    position: Array
    log_density: Array
    gradient: Array


class Transition(NamedTuple):
    """What a transition did: the mean of min(1, exp(H₀ − H)) over its leapfrogs, …, and H₀ (for E-BFMI)."""

    acceptance: Array
    num_leapfrogs: Array
    diverged: Array
    energy: Array


class _Leaf(NamedTuple):
    """A position on a trajectory, and the momentum half a step on: at both ends of a tree, outwards."""

    position: Array
    momentum: Array


class _Tally(NamedTuple):
    """The scalars of a subtree: the sum of its weights, the log density of its chosen leaf, …"""

    weight: Array
    log_density: Array
    acceptance: Array
    diverged: Array


class _Subtree(NamedTuple):
    """The loop state while a doubling adds its leaves, one leapfrog each."""

    num_leaves: Array
    leaf: _Leaf
    chosen: tuple[Array, Array]  # position and gradient
    tally: Array  # (4,): a `_Tally`
    checkpoints: Array  # (max_depth, 2, D)
    turning: Array


class _Tree(NamedTuple):
    """The loop state between doublings."""

    growing: Array
    depth: Array
    ends: tuple[_Leaf, _Leaf]
    chosen: Point
    weight: Array
    num_leapfrogs: Array
    acceptance: Array
    diverged: Array
    checkpoints: Array


def point_at(log_density: LogDensity, position: Array) -> Point:
    """Log density and gradient at a position."""
    return Point(position, *jax.value_and_grad(log_density)(position))


def no_move(point: Point) -> tuple[Point, Transition]:
    """A trajectory of no steps: it ends where it began, and is always accepted."""
    one = jnp.ones_like(point.log_density)
    return point, Transition(one, jnp.array(0), jnp.array(False), -point.log_density)


def leapfrog(point: Point, momentum: Array, value_and_grad: ValueAndGrad, step: Array) -> tuple[Point, Array]:
    """Half a kick, a drift, half a kick: reversible, volume preserving, of second order.

        r½ = r + step/2 · ∇log p(q),   q′ = q + step · r½,   r′ = r½ + step/2 · ∇log p(q′)

    Arguments:
        point: at q.
        momentum: r, (D,).
        value_and_grad: q -> (log p(q), ∇log p(q)).
        step: (D,) or a scalar; negative to go back.

    >>> normal = jax.value_and_grad(lambda q: -0.5 * jnp.sum(q**2))
    >>> start = Point(jnp.ones(1), *normal(jnp.ones(1)))
    >>> point, momentum = leapfrog(start, jnp.zeros(1), normal, jnp.array(0.1))
    >>> round(float(point.position[0]), 5), round(float(momentum[0]), 5)
    (0.995, -0.09975)
    """
    half = momentum + 0.5 * step * point.gradient
    return _drift_and_kick(_Leaf(point.position, half), value_and_grad, step)


def _drift_and_kick(leaf: _Leaf, value_and_grad: ValueAndGrad, step: Array) -> tuple[Point, Array]:
    position = leaf.position + step * leaf.momentum
    log_density, gradient = value_and_grad(position)
    return Point(position, log_density, gradient), leaf.momentum + 0.5 * step * gradient


def hmc(
    key: Key,
    point: Point,
    log_density: LogDensity,
    step_size: Array,
    inverse_mass: Array,
    num_leapfrogs: Array,
) -> tuple[Point, Transition]:
    """One transition of Hamiltonian Monte Carlo: to a trajectory's end, with probability min(1, exp(H₀ − H)).

    Arguments: those of `nuts`. `num_leapfrogs` may be traced: draw it at random, as a fixed one can resonate.
    """
    start, value_and_grad, step, back = _whitened(point, log_density, step_size, inverse_mass)
    momentum_key, accept_key = jax.random.split(key)
    momentum = jax.random.normal(momentum_key, start.position.shape)
    energy = _energy(start.log_density, momentum)

    def advance(_: Array, state: tuple[Point, Array]) -> tuple[Point, Array]:
        return leapfrog(state[0], state[1], value_and_grad, step)

    end, momentum = lax.fori_loop(0, num_leapfrogs, advance, (start, momentum))
    error = _error(end.log_density, momentum, energy)
    acceptance = jnp.exp(-jnp.maximum(error, 0.0))
    chosen = _where(jax.random.uniform(accept_key) < acceptance, end, start)
    return back(chosen), Transition(acceptance, jnp.asarray(num_leapfrogs), error > DIVERGENCE, energy)


def nuts(
    key: Key, point: Point, log_density: LogDensity, step_size: Array, inverse_mass: Array, max_depth: int
) -> tuple[Point, Transition]:
    """One transition of the No-U-Turn sampler, with a multinomial choice of the next point.

    The trajectory doubles, to a random side each time, until it or one of its dyadic subtrees turns back on
    itself; a leaf is chosen with probability ∝ exp(−H), progressively, with a bias towards the newer half.

    A tree turns back when the momentum at one of its ends points against the way from end to end. The ends are
    half a step outside the first and the last leaf, so that the two halves of a tree meet. From leaf to leaf
    they would leave a gap of one step, which lets independent normals go round in circles at some step sizes
    (Stan makes two more tests per tree instead).

    Arguments:
        point: where the chain stands, (D,).
        log_density: where it, or its gradient, is not finite, the trajectory ends as a divergence.
        step_size: ε.
        inverse_mass: (D,) for a diagonal mass, (D, D) for a dense one.
        max_depth: at most this many doublings. The memory is 2 · max_depth · D floats.

    >>> log_density = lambda q: -0.5 * jnp.sum(q**2)
    >>> start = point_at(log_density, jnp.zeros(3))
    >>> point, transition = nuts(jax.random.key(0), start, log_density, jnp.array(0.5), jnp.ones(3), 10)
    >>> point.position.shape, bool(transition.diverged)
    ((3,), False)
    """
    start, value_and_grad, step, back = _whitened(point, log_density, step_size, inverse_mass)
    momentum_key, tree_key = jax.random.split(key)
    momentum = jax.random.normal(momentum_key, start.position.shape)
    sides, leaf_seed, subtree_seed = jax.random.bits(tree_key, (3,), jnp.uint32)
    energy = _energy(start.log_density, momentum)

    def end(leaf: _Leaf, ahead: float = 0.5) -> Array:
        """(2, D): the momentum of a leaf, and its position half a step on, in steps from the start."""
        return jnp.stack([leaf.momentum, (leaf.position - start.position) / step + ahead * leaf.momentum])

    def double(tree: _Tree) -> _Tree:
        near, far = _where((sides >> tree.depth) & 1 == 1, tree.ends, tree.ends[::-1])
        size = jnp.left_shift(1, tree.depth)

        def add_leaf(subtree: _Subtree) -> _Subtree:
            point, momentum = _drift_and_kick(subtree.leaf, value_and_grad, step)
            leaf = _Leaf(point.position, momentum + 0.5 * step * point.gradient)
            error = _error(point.log_density, momentum, energy)
            own_weight = jnp.exp(jnp.minimum(-error, _LARGEST_LOG_WEIGHT))
            old = _Tally(*subtree.tally)
            weight = old.weight + own_weight
            taken = _uniform(leaf_seed, tree.num_leapfrogs + subtree.num_leaves) * weight < own_weight
            tally = _Tally(
                weight,
                jnp.where(taken, point.log_density, old.log_density),
                old.acceptance + jnp.minimum(own_weight, 1.0),
                (error > DIVERGENCE).astype(weight.dtype),
            )
            before = end(_Leaf(point.position, subtree.leaf.momentum), ahead=-0.5)
            checkpoints, turning = _test_subtrees(subtree.checkpoints, subtree.num_leaves, before, lambda: end(leaf))
            chosen = lax.cond(taken, lambda: (point.position, point.gradient), lambda: subtree.chosen)
            return _Subtree(subtree.num_leaves + 1, leaf, chosen, jnp.stack(tally), checkpoints, turning)

        def growing(subtree: _Subtree) -> Array:
            return (subtree.num_leaves < size) & ~subtree.turning & (_Tally(*subtree.tally).diverged == 0)

        zero = jnp.zeros_like(energy)
        tally = jnp.stack(_Tally(zero, zero, tree.acceptance, zero))
        # The first leaf is always taken, so that what is chosen here does not matter.
        empty = _Subtree(jnp.array(0), near, tuple(near), tally, tree.checkpoints, jnp.array(False))
        subtree = lax.while_loop(growing, add_leaf, empty)
        new = _Tally(*subtree.tally)
        valid = ~subtree.turning & (new.diverged == 0)
        taken = valid & (_uniform(subtree_seed, tree.depth) * tree.weight < new.weight)
        candidate = Point(subtree.chosen[0], new.log_density, subtree.chosen[1])
        # The momentum at the far end points outwards, against the new subtree's direction.
        turning = _turns(end(far) * jnp.array([[-1.0], [1.0]]), end(subtree.leaf))
        return _Tree(
            growing=valid & ~turning & (tree.depth + 1 < max_depth),
            depth=tree.depth + 1,
            ends=(far, subtree.leaf),
            chosen=_where(taken, candidate, tree.chosen),
            weight=tree.weight + new.weight,
            num_leapfrogs=tree.num_leapfrogs + subtree.num_leaves,
            acceptance=new.acceptance,
            diverged=new.diverged > 0,
            checkpoints=subtree.checkpoints,
        )

    kick = 0.5 * step * start.gradient
    seed = _Tree(
        growing=jnp.array(True),
        depth=jnp.array(0),
        ends=(_Leaf(start.position, kick + momentum), _Leaf(start.position, kick - momentum)),
        chosen=start,
        weight=jnp.ones_like(energy),
        num_leapfrogs=jnp.array(0),
        acceptance=jnp.zeros_like(energy),
        diverged=jnp.array(False),
        checkpoints=jnp.zeros((max_depth, 2, momentum.size), momentum.dtype),
    )
    tree = lax.while_loop(lambda tree: tree.growing, double, seed)
    acceptance = tree.acceptance / tree.num_leapfrogs
    return back(tree.chosen), Transition(acceptance, tree.num_leapfrogs, tree.diverged, energy)


def _test_subtrees(checkpoints: Array, number: Array, before: Array, after: Callable[[], Array]) -> tuple[Array, Array]:
    """The checkpoints with a new leaf among them, and whether a subtree that the leaf completes turns back.

    A leaf whose number (from 0) ends in k binary ones completes subtrees of 2, 4, … 2ᵏ leaves, which begin at
    even numbers. An even leaf is kept in the row that counts the ones in its number: the next to come there
    finds all subtrees that begin with it complete. Odd leaves go to the last row, which is not read.
    """
    num_completed = lax.population_count(number ^ (number + 1)) - 1
    row = lax.population_count(number >> 1)
    here = jnp.where(num_completed > 0, checkpoints.shape[0] - 1, row)
    checkpoints = lax.dynamic_update_index_in_dim(checkpoints, before, here, 0)

    def some_turn() -> Array:
        last = after()

        def untested(state: tuple[Array, Array]) -> Array:
            return (state[0] < num_completed) & ~state[1]

        def test(state: tuple[Array, Array]) -> tuple[Array, Array]:
            return state[0] + 1, _turns(checkpoints[row - state[0]], last)

        return lax.while_loop(untested, test, (jnp.array(0), jnp.array(False)))[1]

    return checkpoints, lax.cond(num_completed > 0, some_turn, lambda: jnp.array(False))


def _turns(first: Array, last: Array) -> Array:
    """Whether the momentum at either end points against the way from the first end (2, D) to the last."""
    return jnp.any(jnp.stack([first[0], last[0]]) @ (last[1] - first[1]) <= 0)


def _energy(log_density: Array, momentum: Array) -> Array:
    """H = −log p(q) + |r|²/2, and infinite where that is not a finite number."""
    energy = 0.5 * jnp.vdot(momentum, momentum) - log_density
    return jnp.where(jnp.isfinite(energy), energy, jnp.inf)


def _error(log_density: Array, momentum: Array, initial_energy: Array) -> Array:
    error = _energy(log_density, momentum) - initial_energy
    return jnp.where(jnp.isnan(error), jnp.inf, error)


def _uniform(seed: Array, number: Array) -> Array:
    """A uniform that is a hash of a counter: threefry in the loop would cost as much as all bookkeeping."""
    bits = mix(seed + number.astype(jnp.uint32) * jnp.uint32(0x9E3779B9))
    # The middles of 2²³ equal intervals: exact in single precision, and never 0 or 1.
    return ((bits >> 9).astype(working_precision()) + 0.5) * 2.0**-23


def _where(condition: Array, yes: Any, no: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def _whitened(
    point: Point, log_density: LogDensity, step_size: Array, inverse_mass: Array
) -> tuple[Point, ValueAndGrad, Array, Callable[[Point], Point]]:
    """The start, the density and the step in coordinates where momenta are N(0, I); and the way back."""
    value_and_grad = jax.value_and_grad(log_density)
    if inverse_mass.ndim == 1:
        return point, value_and_grad, step_size * jnp.sqrt(inverse_mass), lambda chosen: chosen
    root = jnp.linalg.cholesky(inverse_mass)

    def in_z(z: Array) -> tuple[Array, Array]:
        log_density, gradient = value_and_grad(point.position + root @ z)
        return log_density, gradient @ root

    def back(chosen: Point) -> Point:
        gradient = jax.scipy.linalg.solve_triangular(root, chosen.gradient, trans=1, lower=True)
        return Point(point.position + root @ chosen.position, chosen.log_density, gradient)

    start = Point(jnp.zeros_like(point.position), point.log_density, point.gradient @ root)
    return start, in_z, jnp.full_like(point.position, step_size), back
