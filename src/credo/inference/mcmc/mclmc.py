"""Microcanonical Langevin Monte Carlo: a particle of constant speed that is steered by the gradient and by noise.

Robnik, De Luca, Silverstein & Seljak (2023), Microcanonical Hamiltonian Monte Carlo; Robnik & Seljak (2023),
Microcanonical Langevin Monte Carlo; as an ensemble, Sommer, Robnik, Nozadze, Seljak & Rügamer (2025), Microcanonical
Langevin Ensembles: Advancing the Sampling of Bayesian Neural Networks. The scales are those of Seyboldt, Carlson &
Carpenter (2024), Preconditioning Hamiltonian Monte Carlo by minimizing Fisher divergence. Beside blackjax's, scales
learn from gradients too, and warm-up keeps no positions: a run can stop and go on at any step (docs/decisions.md).
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from blackjax.adaptation.mass_matrix import welford_algorithm

from credo import random
from credo._checks import require_positive
from credo.inference.guide import Guide, Reach
from credo.inference.mcmc.trajectory import Point, ValueAndGrad, point_at
from credo.inference.sampler import START_WHERE_FINITE, FlatSampler, flat, log_density
from credo.models.program import Model
from credo.typing import Array, Batch, Key, Theta

# The minimal norm integrator (Omelyan, Mryglod & Folk, 2003): of the schemes with two gradients per step, the one with
# the least error. Shares of the step for kicks and drifts, in turn.
_OUTER = 0.1931833275037836
KICKS = (_OUTER, 1 - 2 * _OUTER, _OUTER)
DRIFTS = (0.5, 0.5)
# The first step is this share of L: shorter than need be, so that the first steps do not throw an optimised member out
# of its mode. The step size grows twentyfold in one step where the energy allows it.
FIRST_STEP = 0.002
# The step size looks back at this share of the steps so far, and at no fewer than these.
MEMORY_SHARE, MEMORY = 0.1, 10
# The scales learn in windows, between these shares of the warm-up: with the scales of one, the next explores further.
# Not earlier: scales that were learned on the way to the typical set slow it down.
WINDOWS = ((0.3, 0.6), (0.65, 0.9))
# How many powers of e a squared energy error may be off before the step size learns less from it (as in blackjax).
TRUST = 9.0
# One look changes the step size by no more than the sixth root of this.
LARGEST_EXCESS = 1e8
# Steps are counted in this share of L, so that their sixth powers are numbers that single precision can hold; none is
# shorter than a thousandth of it.
UNIT = 1e-3
# Draws that scales can be learned from: their sds are then off by a tenth.
FEWEST = 50
# A step whose energy is off by more than this many nats, or by one nat per parameter, ends nowhere: it would throw an
# optimised member out of its mode, from where a network does not find back in thousands of steps.
LARGEST_ERROR = 1000.0
# On the way to the typical set a step that ends nowhere shortens all that follow.
SHRINK = 0.8


class Tuning(NamedTuple):
    """What the sampler uses now, and what it has learned so far."""

    step_size: Array
    length: Array
    scale: Array  # (D,): the coordinates are theta/scale
    longest: Array  # no step is longer, once a longer one has failed
    error: Array  # sums with fading weights: of squared energy errors over step_size⁶,
    weight: Array  # and of the weights
    moments: Any  # of (position, gradient) in the window, as one vector of 2D numbers


class MCLMCState(NamedTuple):
    """Where the chain stands, on the flat vector of all numbers in theta, and the direction it goes in (|u| = 1)."""

    step: Array
    point: Point
    direction: Array
    tuning: Tuning


class MCLMCInfo(NamedTuple):
    """`energy_change` is the error of the integrator in this step; exact dynamics would have none."""

    log_joint: Array
    energy_change: Array
    diverged: Array
    step_size: Array
    length: Array


@dataclass(frozen=True, kw_only=True)
class MCLMC(FlatSampler):
    """Microcanonical Langevin Monte Carlo: two gradients per step and no rejections, for posteriors of many dimensions.

        du = (I − uuᵀ)(∇log p(theta) dt/(D − 1) + √(2/(L D)) dW),    dtheta = u dt,    |u| = 1

    *Unadjusted*: the draws are those of a density close to the posterior. How close is set by `energy_variance`, the
    mean square of the integrator's energy error per step and parameter: the standard deviations of a normal posterior
    come out too small by about 0.15 · energy_variance^(1/3) of themselves, 1% at the default (measured; bias ∝
    step_size², error ∝ step_size³). `NUTS` has no such bias.

    Warm-up tunes the step size to that energy variance, the scale of each parameter, and L, the length after which the
    direction is forgotten: the root of the sum of the variances in units of the scales, `persistence` times. Then all
    stay.

        scaleᵢ² = sd(thetaᵢ)/sd(∂ log p/∂thetaᵢ)

    is the variance where the parameters are independent. Where they are not, as in a network, it lies between the
    variance of a parameter and what that would be if all others stood still, which is what limits the steps: functions
    of 3,051 weights had three times the ESS per gradient that the standard deviations themselves gave.

    The curvature of a network's posterior varies, and few steps make most of the energy error: after warm-up its mean
    square can exceed `energy_variance` a hundredfold (`infos["energy_change"]`). Sds of functions were then up to 3%
    larger than those of `NUTS`, at the median of the inputs that were looked at.

    Started from `credo.MAP()` it is a *microcanonical Langevin ensemble*: every chain explores around an optimised
    member of its own, as in the example below.

    Arguments:
        thin: steps per kept draw. Steps are short: a network's draws are independent after some hundred of them.
        energy_variance: of the integrator, per parameter. An eighth of it halves the bias, and shortens the steps
            to 0.7 of their length.
        persistence: of the direction. A longer one explores further, and its draws are of another density: the sds of
            the functions of a 1-50-1 network, beside those of `NUTS`, were 1.00 to 1.03 at the median of 40 inputs with
            1, 1.05 to 1.08 with 4, and 1.13 to 1.24 with 16, where the worst was 2.6 (two seeds, two starts). Where
            chains are too short to arrive, that may be the lesser evil.
        preconditioned: whether warm-up learns the scale of each parameter; without it all have the same.

    >>> from credo import MAP
    >>> MCLMC(num_samples=100, num_chains=8, start=MAP(num_steps=500)).plan().num_chains
    8
    """

    guide: ClassVar[Guide] = Guide(
        exact="up to its step size",
        benefits="steps that stay long as models grow; started from MAP, an ensemble that sees around its modes",
        limits="a small bias that no step corrects; all data in every gradient",
        use_cases="models of thousands of parameters, rows in the thousands",
        stores="every kept draw of theta",
        costs="two gradients of all data per step, `thin` steps per draw",
        reaches=Reach(0.1, (0.9, 1.1)),
        if_non_finite=START_WHERE_FINITE,
    )

    num_warmup: int = 5000
    thin: int = 50
    energy_variance: float = 5e-4
    persistence: float = 1.0
    preconditioned: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(energy_variance=self.energy_variance, persistence=self.persistence)

    def init(self, key: Key, model: Model, theta: Theta, data: Batch, held_out: Batch | None) -> MCLMCState:
        if model.num_parameters < 2:
            raise ValueError(
                "MCLMC turns a direction, so it needs at least two parameters, and the model has one; use credo.NUTS()"
            )
        point = point_at(log_density(model, data), flat(theta))
        direction = _unit(random.normal(key, point.position.shape))
        return MCLMCState(jnp.array(0), point, direction, self.first_tuning(direction.size))

    def step(self, key: Key, model: Model, state: MCLMCState, batch: Batch) -> tuple[MCLMCState, MCLMCInfo]:
        value_and_grad = jax.value_and_grad(log_density(model, batch))
        tuning = state.tuning
        turned = self.turn(key, state.direction, tuning.step_size / tuning.length)
        point, direction, energy_change = isokinetic(
            state.point, turned, value_and_grad, tuning.step_size, tuning.scale
        )
        is_small = jnp.abs(energy_change) <= max(LARGEST_ERROR, turned.size)
        diverged = ~(is_small & jnp.all(jnp.isfinite(point.gradient)))
        # A step that ends nowhere is not made; the way back is open.
        point, direction, energy_change = jax.tree.map(
            lambda new, old: jnp.where(diverged, old, new),
            (point, direction, energy_change),
            (state.point, -turned, jnp.zeros(())),
        )
        tuned = self.tuned(tuning, state.step, point, energy_change, diverged)
        info = MCLMCInfo(point.log_density, energy_change, diverged, tuning.step_size, tuning.length)
        return MCLMCState(state.step + 1, point, direction, tuned), info

    def turn(self, key: Key, direction: Array, share: Array) -> Array:
        """The direction after a share of L: u ∝ u + ν ε, ν² = (exp(2 share) − 1)/D, ε ~ N(0, I)."""
        amount = jnp.sqrt(jnp.expm1(2 * share) / direction.size)
        return _unit(direction + amount * random.normal(key, direction.shape))

    # -- warm-up -------------------------------------------------------------------------------------------

    def first_tuning(self, num_parameters: int) -> Tuning:
        """L as for a posterior of unit variance, and a short step."""
        length = jnp.sqrt(float(num_parameters))
        start_moments, _, _ = welford_algorithm(is_diagonal_matrix=True)
        moments = jax.tree.map(jnp.asarray, start_moments(2 * num_parameters))
        zero = jnp.zeros(())
        scale = jnp.ones(num_parameters)
        return Tuning(FIRST_STEP * length, length, scale, jnp.array(jnp.inf), zero, zero, moments)

    def tuned(self, tuning: Tuning, step: Array, point: Point, energy_change: Array, diverged: Array) -> Tuning:
        """What is learned from one step, if warm-up is still on: the scales in their windows, the step size always."""
        if self.num_warmup == 0:
            return tuning
        _, learn_moments, _ = welford_algorithm(is_diagonal_matrix=True)
        windows = [tuple(int(share * self.num_warmup) for share in window) for window in WINDOWS]
        # Few draws say less than the first guess does.
        windows = [(opens, closes) for opens, closes in windows if closes - opens >= FEWEST]

        def learn() -> Tuning:
            new = self.with_step_size(tuning, step, energy_change, diverged)
            seen = jnp.concatenate([point.position, point.gradient])
            for opens, closes in windows:
                is_open = (opens <= step) & (step < closes)
                moments = jax.lax.cond(
                    is_open, lambda new: learn_moments(new.moments, seen), lambda new: new.moments, new
                )
                new = new._replace(moments=moments)
                is_last = (opens, closes) == windows[-1]
                new = jax.lax.cond(step + 1 == closes, partial(self.with_scale, is_last), lambda new: new, new)
            return new

        return jax.lax.cond(step < self.num_warmup, learn, lambda: tuning)

    def with_step_size(self, tuning: Tuning, step: Array, energy_change: Array, diverged: Array) -> Tuning:
        """The step size from the law (energy error)² ∝ step_size⁶ of integrators of second order.

        An error far from the wanted one tells less, because the law holds for small steps only.
        """
        excess = energy_change**2 / (self.energy_variance * tuning.scale.size)
        excess = jnp.clip(excess, 1 / LARGEST_EXCESS, LARGEST_EXCESS)
        weight = jnp.where(diverged, 0.0, jnp.exp(-0.5 * (jnp.log(excess) / TRUST) ** 2))
        fade = 1 - 1 / jnp.maximum(MEMORY, MEMORY_SHARE * step)
        unit = UNIT * tuning.length
        error = fade * tuning.error + weight * excess * (unit / tuning.step_size) ** 6
        total = fade * tuning.weight + weight
        longest = jnp.where(diverged, SHRINK * tuning.step_size, tuning.longest)
        wanted = jnp.where(total > 0, unit * (total / error) ** (1 / 6), tuning.step_size)
        step_size = jnp.clip(wanted, 1e-3 * unit, longest)
        return tuning._replace(step_size=step_size, longest=longest, error=error, weight=total)

    def with_scale(self, is_last: bool, tuning: Tuning) -> Tuning:
        """The scales and L from the variances of the window; the step size and the next window begin to learn anew."""
        _, _, close_window = welford_algorithm(is_diagonal_matrix=True)
        variance, of_gradient = jnp.split(close_window(tuning.moments)[0], 2)
        # A parameter that did not move, or on which nothing depends, says nothing about its scale.
        is_known = (variance > 0) & (of_gradient > 0)
        learned = jnp.where(is_known, variance / jnp.where(is_known, of_gradient, 1.0), 1.0) ** (1 / 4)
        scale = learned if self.preconditioned else tuning.scale
        length = self.persistence * jnp.sqrt(jnp.sum(variance / scale**2))
        if not is_last:
            # Chains on their way to the typical set vary less than they will: they must not forget where they go.
            length = jnp.maximum(length, tuning.length * jnp.linalg.norm(tuning.scale) / jnp.linalg.norm(scale))
        # No parameter moves faster than before: a step that is too long would throw the chain out of its mode.
        step_size = jnp.minimum(tuning.step_size * jnp.min(tuning.scale / scale), length / self.persistence / 4)
        zero = jnp.zeros(())
        afresh = jax.tree.map(jnp.zeros_like, tuning.moments)
        return Tuning(step_size, length, scale, jnp.array(jnp.inf), zero, zero, afresh)

    # -- result --------------------------------------------------------------------------------------------

    def draw(self, model: Model, state: MCLMCState) -> Array:
        return state.point.position

    def status_line(self, infos: MCLMCInfo) -> str:
        return f"log joint {infos.log_joint[-1]:.4g}, step {infos.step_size[-1]:.3g}, L {infos.length[-1]:.3g}"


def isokinetic(
    point: Point, direction: Array, value_and_grad: ValueAndGrad, step_size: Array, scale: Array
) -> tuple[Point, Array, Array]:
    """One step of the deterministic dynamics: reversible, and the direction keeps its length of one.

    Arguments:
        point: at theta, (D,).
        direction: u, (D,), of length one in the coordinates theta/scale.
        value_and_grad: theta -> (log p, ∇log p).
        step_size: the way that is gone, in the coordinates theta/scale.
        scale: (D,).

    Returns the point and the direction at the end, and the error in energy, Δ(kinetic energy) − Δ log p.

    >>> normal = jax.value_and_grad(lambda q: -0.5 * jnp.sum(q**2))
    >>> start = Point(jnp.ones(2), *normal(jnp.ones(2)))
    >>> _, u, error = isokinetic(start, jnp.array([1.0, 0.0]), normal, jnp.array(0.1), jnp.ones(2))
    >>> bool(jnp.abs(error) < 1e-4), round(float(jnp.linalg.norm(u)), 5)
    (True, 1.0)
    """
    here = point
    direction, kinetic = kick(direction, scale * here.gradient, KICKS[0] * step_size)
    for drift, share in zip(DRIFTS, KICKS[1:], strict=True):
        position = here.position + drift * step_size * scale * direction
        here = Point(position, *value_and_grad(position))
        direction, gained = kick(direction, scale * here.gradient, share * step_size)
        kinetic = kinetic + gained
    return here, direction, kinetic - (here.log_density - point.log_density)


def kick(direction: Array, gradient: Array, time: Array) -> tuple[Array, Array]:
    """Turn the direction towards the gradient: du/dt = (I − uuᵀ) g/(D − 1), solved exactly; and the energy gained.

        u′ = (u + e (sinh δ + (e·u)(cosh δ − 1)))/(cosh δ + (e·u) sinh δ),    e = g/|g|,    δ = |g| t/(D − 1)
        ΔK = (D − 1) log(cosh δ + (e·u) sinh δ)

    All divided by exp(δ), which would overflow far from the mode.
    """
    norm = jnp.linalg.norm(gradient)
    towards = gradient / jnp.where(norm > 0, norm, 1.0)
    delta = norm * time / (direction.size - 1)
    fall = jnp.exp(-delta)
    along = jnp.vdot(towards, direction)
    turned = 2 * fall * direction + towards * (1 - fall) * (1 + fall + along * (1 - fall))
    # 2 exp(−δ)(cosh δ + (e·u) sinh δ): rounding must not leave it at zero.
    stretch = jnp.maximum(1 + along + (1 - along) * fall**2, 1e-30)
    # A direction that points straight away from the gradient does not know where to turn.
    turned = jnp.where(jnp.any(turned != 0), turned, direction)
    return _unit(turned), (direction.size - 1) * (delta + jnp.log(0.5 * stretch))


def _unit(vector: Array) -> Array:
    return vector / jnp.linalg.norm(vector)
