"""Hamiltonian trajectories: the leapfrog, Hamiltonian Monte Carlo, and the multinomial No-U-Turn sampler.

Paper, "Markov Chain Monte Carlo". With M⁻¹ = L Lᵀ the inverse mass, momenta are kept as r = Lᵀp ~ N(0, I): then the
kinetic energy is |r|²/2 and no product needs the mass. A diagonal L is folded into the step, ε L per coordinate; with a
dense one the trajectory is followed in coordinates z, q = q₀ + L z, where the step is ε again.

A gradient of a small network takes microseconds, and every small kernel beside it counts. So leapfrogs run in blocks:
the innermost loop holds a gradient, two fused updates, and one write; energies, choices and U-turn tests are made once
per block, as small matrix products. A subtree that turns inside a block is noticed at the block's end, a few leapfrogs
late, and rejected as it would have been.

Hoffman & Gelman (2014), The No-U-Turn Sampler; Betancourt (2017), A Conceptual Introduction to Hamiltonian Monte Carlo;
Phan, Pradhan & Jankowiak (2019), Composable Effects for Flexible and Accelerated Probabilistic Programming in NumPyro
(the iterative tree).
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from credo.typing import Array, Key

LogDensity = Callable[[Array], Array]
T = TypeVar("T")

# An error in energy beyond this is a divergence: Stan's threshold.
DIVERGENCE = 1000.0
# Leapfrogs per block, a power of two. Longer blocks make the bookkeeping cheaper, and waste more of the last one.
BLOCK = 8
# Pairs (first leaf, last leaf) of the subtrees that lie within a block.
_SPANS = [
    (first, first + size - 1)
    for size in (2**level for level in range(1, BLOCK.bit_length()))
    for first in range(0, BLOCK, size)
]
_IS_SPAN = np.zeros((BLOCK, BLOCK), bool)
_IS_SPAN[tuple(np.transpose(_SPANS))] = True


class Point(NamedTuple):
    """A position (D,), with the log density and its gradient (D,) there."""

    position: Array
    log_density: Array
    gradient: Array


class Transition(NamedTuple):
    """What a transition did. `acceptance` averages min(1, exp(−ΔH)) over the leapfrogs; `energy` is H at the end."""

    acceptance: Array
    num_leapfrogs: Array
    diverged: Array
    energy: Array


class Leaf(NamedTuple):
    """A state of a trajectory, with the momentum r."""

    position: Array
    momentum: Array
    gradient: Array


class Subtree(NamedTuple):
    """A subtree on its way: its newest leaf, the leaf chosen so far, and what the tests need to remember.

    `firsts` and `own` hold, per level, (momentum, path) of the first leaf of the subtree that is open there, and
    their product. `block` (BLOCK, 3, D) and `densities` (BLOCK,) are the leaves of the newest block, carried along so
    that their memory is used again.
    """

    num_blocks: Array
    leaf: Leaf
    chosen: Point
    log_weight: Array
    acceptance: Array
    diverged: Array
    turning: Array
    firsts: Array
    own: Array
    block: Array
    densities: Array


class Frame:
    """The coordinates in which a trajectory from a point is followed: its own for a diagonal mass, z for a dense one.

    Arguments:
        inverse_mass: (D,) or (D, D).
    """

    def __init__(self, point: Point, log_density: LogDensity, step_size: Array, inverse_mass: Array) -> None:
        self.log_density = jax.value_and_grad(log_density)
        self.offset, self.root = point.position, None
        self.start, self.step = point, step_size * jnp.sqrt(inverse_mass)
        if inverse_mass.ndim == 2:
            self.root = jnp.linalg.cholesky(inverse_mass)
            self.start = Point(jnp.zeros_like(point.position), point.log_density, point.gradient @ self.root)
            self.step = jnp.full_like(point.position, step_size)

    def value_and_grad(self, position: Array) -> tuple[Array, Array]:
        if self.root is None:
            return self.log_density(position)
        log_density, gradient = self.log_density(self.offset + self.root @ position)
        return log_density, gradient @ self.root

    def back(self, chosen: Point) -> Point:
        """A point of the trajectory in the coordinates of the caller."""
        if self.root is None:
            return chosen
        gradient = jax.scipy.linalg.solve_triangular(self.root.T, chosen.gradient)
        return Point(self.offset + self.root @ chosen.position, chosen.log_density, gradient)

    def leaf(self, momentum: Array) -> Leaf:
        """The start, with a momentum."""
        return Leaf(self.start.position, momentum, self.start.gradient)

    def leapfrog(self, leaf: Leaf) -> tuple[Leaf, Array]:
        """Half a kick, a drift, half a kick: reversible, volume preserving, of second order. Also the log density."""
        half = leaf.momentum + 0.5 * self.step * leaf.gradient
        position = leaf.position + self.step * half
        log_density, gradient = self.value_and_grad(position)
        return Leaf(position, half + 0.5 * self.step * gradient, gradient), log_density

    def path(self, leaf: Leaf) -> Array:
        """c with c_b − c_a = Σ (rᵢ + rᵢ₊₁)/2 from leaf a to leaf b: the sum of momenta, less half of those at the ends.

        A leapfrog moves q by ε(r + εg/2) and r by ε(g + g′)/2, so the sum telescopes to Δq/ε + εΔg/4.
        """
        return (leaf.position - self.start.position) / self.step + 0.25 * self.step * leaf.gradient

    def turns(self, back: Leaf, front: Leaf) -> Array:
        """Whether a trajectory turns. Both ends point outwards, so the back's momentum counts with its sign changed."""
        across = self.path(front) - self.path(back)
        return (jnp.vdot(-back.momentum, across) <= 0) | (jnp.vdot(front.momentum, across) <= 0)


def point_at(log_density: LogDensity, position: Array) -> Point:
    """Log density and gradient at a position."""
    return Point(position, *jax.value_and_grad(log_density)(position))


def hmc(
    key: Key,
    point: Point,
    log_density: LogDensity,
    step_size: Array,
    inverse_mass: Array,
    num_leapfrogs: Array,
) -> tuple[Point, Transition]:
    """One transition of Hamiltonian Monte Carlo: follow a trajectory, accept its end with min(1, exp(−ΔH))."""
    momentum_key, accept_key = jax.random.split(key)
    frame = Frame(point, log_density, step_size, inverse_mass)
    start = frame.leaf(jax.random.normal(momentum_key, point.position.shape))
    end, end_density = lax.fori_loop(
        0, num_leapfrogs, lambda _, carry: frame.leapfrog(carry[0]), (start, point.log_density)
    )
    start_energy, end_energy = (
        energy_of(point.log_density, start.momentum),
        energy_of(end_density, end.momentum),
    )
    error = _or_infinite(end_energy - start_energy)
    acceptance = jnp.exp(-jnp.maximum(error, 0.0))
    accepted = jax.random.uniform(accept_key) < acceptance
    end_point = frame.back(Point(end.position, end_density, end.gradient))
    moved = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), end_point, point)
    energy = jnp.where(accepted, end_energy, start_energy)
    return moved, Transition(acceptance, num_leapfrogs, error > DIVERGENCE, energy)


class Tree(NamedTuple):
    """A trajectory on its way: its two ends, both pointing outwards, and the point chosen so far."""

    depth: Array
    growing: Leaf
    resting: Leaf
    chosen: Point
    log_weight: Array
    num_leapfrogs: Array
    acceptance: Array
    diverged: Array
    done: Array


def nuts(
    key: Key, point: Point, log_density: LogDensity, step_size: Array, inverse_mass: Array, max_depth: int
) -> tuple[Point, Transition]:
    """One transition of the No-U-Turn sampler.

    The trajectory doubles, to a random side each time, until it or one of its dyadic subtrees turns back on itself; a
    state of it is chosen with probability ∝ exp(−H), progressively, with a bias towards the newer half.

    Arguments:
        point: where the chain stands, (D,).
        inverse_mass: (D,) for a diagonal mass, (D, D) for a dense one.
        max_depth: at most this many doublings.
    """
    momentum_key, side_key, accept_key, choice_key = jax.random.split(key, 4)
    frame = Frame(point, log_density, step_size, inverse_mass)
    momentum = jax.random.normal(momentum_key, point.position.shape)
    energy = energy_of(point.log_density, momentum)
    swaps = jax.random.bernoulli(side_key, shape=(max_depth,))
    log_uniforms = jnp.log(jax.random.uniform(accept_key, (max_depth,)))

    def double(tree: Tree) -> Tree:
        swap = swaps[tree.depth]
        growing = _where(swap, tree.resting, tree.growing)
        resting = _where(swap, tree.growing, tree.resting)
        num_leaves = 1 << tree.depth
        keys = jax.random.fold_in(choice_key, tree.depth)
        new = grow(keys, frame, growing, num_leaves, energy, max_depth)
        valid = ~(new.turning | new.diverged)
        taken = valid & (log_uniforms[tree.depth] < new.log_weight - tree.log_weight)
        return Tree(
            depth=tree.depth + 1,
            growing=new.leaf,
            resting=resting,
            chosen=_where(taken, new.chosen, tree.chosen),
            log_weight=jnp.logaddexp(tree.log_weight, new.log_weight),
            num_leapfrogs=tree.num_leapfrogs + jnp.minimum(new.num_blocks * BLOCK, num_leaves),
            acceptance=tree.acceptance + new.acceptance,
            diverged=new.diverged,
            done=~valid | frame.turns(resting, new.leaf) | (tree.depth + 1 == max_depth),
        )

    zero, no = jnp.zeros(()), jnp.array(False)
    none, ends = jnp.array(0), (frame.leaf(momentum), frame.leaf(-momentum))
    first = Tree(none, *ends, frame.start, zero, none, zero, no, no)
    tree = lax.while_loop(lambda tree: ~tree.done, double, first)
    acceptance = tree.acceptance / tree.num_leapfrogs
    return frame.back(tree.chosen), Transition(acceptance, tree.num_leapfrogs, tree.diverged, energy)


def grow(key: Key, frame: Frame, start: Leaf, num_leaves: Array, energy: Array, max_depth: int) -> Subtree:
    """A subtree of `num_leaves` leaves (a power of two) that goes on from `start`, block by block."""
    in_block = jnp.minimum(num_leaves, BLOCK)
    leaf_numbers = jnp.arange(BLOCK)
    levels = jnp.arange(max_depth)

    def step(number: Array, carry: tuple[Leaf, Array, Array]) -> tuple[Leaf, Array, Array]:
        leaf, block, densities = carry
        leaf, density = frame.leapfrog(leaf)
        block = lax.dynamic_update_index_in_dim(block, jnp.stack(leaf), number, 0)
        return leaf, block, lax.dynamic_update_index_in_dim(densities, density, number, 0)

    def extend(tree: Subtree) -> Subtree:
        leaf, block, densities = lax.fori_loop(0, in_block, step, (tree.leaf, tree.block, tree.densities))
        leaves = Leaf(block[:, 0], block[:, 1], block[:, 2])
        momenta, paths = leaves.momentum, frame.path(leaves)
        present = leaf_numbers < in_block

        errors = _or_infinite(energy_of(densities, momenta) - energy)
        log_weights = jnp.where(present, -errors, -jnp.inf)
        # Gumbel's trick: one draw among the leaves of the block and the leaf chosen before, by their weights.
        gumbels = jax.random.gumbel(jax.random.fold_in(key, tree.num_blocks), (BLOCK + 1,))
        winner = jnp.argmax(log_weights + gumbels[1:])
        keep = tree.log_weight + gumbels[0] >= (log_weights + gumbels[1:])[winner]
        candidate = Point(block[winner, 0], densities[winner], block[winner, 2])

        products = momenta @ paths.T
        own = jnp.diagonal(products)
        # Subtrees within the block: rᵢ·(cⱼ − cᵢ) and rⱼ·(cⱼ − cᵢ) of first leaf i and last leaf j.
        turned = ((products - own[:, None] <= 0) | (own[None, :] - products.T <= 0)) & _IS_SPAN
        turning_within = jnp.any(turned & present[None, :])
        # Larger subtrees that end with this block: with the trailing ones of its number, as many levels close.
        number = tree.num_blocks
        level = lax.population_count(number >> 1)
        num_closed = lax.population_count(number & ~(number + 1))
        last = jnp.stack([momenta[-1], paths[-1]])
        across = jnp.einsum("lsd,td->lst", tree.firsts, last)
        turned_across = (across[:, 0, 1] - tree.own <= 0) | (own[-1] - across[:, 1, 0] <= 0)
        turning_across = jnp.any(turned_across & (levels <= level) & (levels > level - num_closed))
        # An even block opens a subtree at its level. An odd one opens none: its row, the last, is never read.
        row = jnp.where(number % 2 == 0, level, max_depth - 1)
        first = jnp.stack([momenta[0], paths[0]])
        return Subtree(
            num_blocks=number + 1,
            leaf=leaf,
            chosen=_where(keep, tree.chosen, candidate),
            log_weight=jnp.logaddexp(tree.log_weight, jax.nn.logsumexp(log_weights)),
            acceptance=tree.acceptance + jnp.sum(jnp.where(present, jnp.exp(-jnp.maximum(errors, 0.0)), 0.0)),
            diverged=jnp.any(present & (errors > DIVERGENCE)),
            turning=turning_within | turning_across,
            firsts=lax.dynamic_update_index_in_dim(tree.firsts, first, row, 0),
            own=jnp.where(levels == row, own[0], tree.own),
            block=block,
            densities=densities,
        )

    zero, no = jnp.zeros(()), jnp.array(False)
    nothing = Point(start.position, zero, start.gradient)
    tests = (jnp.zeros((max_depth, 2, start.position.size)), jnp.zeros(max_depth))
    buffers = (jnp.zeros((BLOCK, 3, start.position.size)), jnp.zeros(BLOCK))
    first = Subtree(jnp.array(0), start, nothing, -jnp.array(jnp.inf), zero, no, no, *tests, *buffers)
    return lax.while_loop(
        lambda tree: (tree.num_blocks * BLOCK < num_leaves) & ~tree.turning & ~tree.diverged, extend, first
    )


def energy_of(log_density: Array, momentum: Array) -> Array:
    """H = −log p + |r|²/2, for one leaf or a block of them."""
    return 0.5 * jnp.sum(momentum**2, axis=-1) - log_density


def _or_infinite(error: Array) -> Array:
    """An energy that is not a number is infinitely wrong."""
    return jnp.where(jnp.isnan(error), jnp.inf, error)


def _where(condition: Array, yes: T, no: T) -> T:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)
