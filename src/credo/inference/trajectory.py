"""Hamiltonian trajectories on a flat vector: the leapfrog, HMC, and the multinomial No-U-Turn sampler.

With potential −log p(q) and inverse mass M⁻¹ = L Lᵀ, everything here is written in the *whitened* momentum
r = Lᵀp ~ N(0, I) (paper, section V-A: Markov chain Monte Carlo): the velocity is L r, the kinetic energy is |r|²/2, and
no later dot product needs the mass. For a diagonal mass L is a vector and is folded into the step, `step = ε L`; a
dense mass is a diagonal one in coordinates z with q = q₀ + L z (`_in_whitened_coordinates`).

A CPU pays for every small kernel that XLA runs, and a small network's gradient is about twenty of them. So the
loop over leapfrogs holds one gradient and little else: random numbers are drawn once for each transition, scalars travel
as one array, a leaf writes one row of checkpoints, and U-turn tests run only at the leaves that complete a subtree.

References: Hoffman & Gelman, "The No-U-Turn Sampler" (2014); Betancourt, "A Conceptual Introduction to Hamiltonian
Monte Carlo" (2017), appendix A; Phan, Pradhan & Jankowiak, "Composable Effects for Flexible and Accelerated
Probabilistic Programming in NumPyro" (2019), the iterative tree.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from credo.typing import Array, Key

LogDensityAndGrad = Callable[[Array], tuple[Array, Array]]


class Point(NamedTuple):
    """A position (D,) with the log density and its gradient (D,) there."""

    position: Array
    log_density: Array
    gradient: Array


class TrajectoryInfo(NamedTuple):
    """What one transition did: the evidence for step-size adaptation, divergences and E-BFMI.

    `acceptance` is the mean of min(1, exp(−ΔH)) over all leapfrogs, `energy` the Hamiltonian H after the momentum is drawn.
    """

    acceptance: Array
    num_leapfrogs: Array
    tree_depth: Array
    diverged: Array
    energy: Array


class _Leaf(NamedTuple):
    """A state of the trajectory; at an end of the tree, `momentum` points outwards."""

    point: Point
    momentum: Array


class _Subtree(NamedTuple):
    """A subtree under construction: the loop state of `_extend`."""

    num_leaves: Array
    leaf: _Leaf
    proposal: Array  # (2, D): position and gradient, one array so that choosing is one kernel
    tally: Array  # (5,): log_weight, log_density of the proposal, took, acceptance, diverged
    checkpoints: Array
    turning: Array
