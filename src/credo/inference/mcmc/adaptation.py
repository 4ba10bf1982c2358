"""Warm-up of Hamiltonian samplers: the step size and the mass.

A fast window finds the typical set and a step size; slow windows, each twice as long as the last, estimate the inverse
mass as the covariance of the draws; a last fast window settles the step size for the mass that there is. The step size
follows Robbins and Monro (1951), and is the mean of the last window (Polyak and Juditsky, 1992):

    log ε ← log ε + 2/(n + 5)^0.6 · (acceptance − target),    n steps since the mass has changed.

Stan's dual averaging moves log ε by ± 0.6 to the end. Acceptance is concave in log ε, so that the mean of such steps is
too short: 0.88 to 0.94 of proposals were accepted where 0.8 had been asked for (docs/decisions.md).

Parameters that the posterior does not tell apart, such as the weights of one input into all hidden units, have one
variance. A chain sees each unit in the part that it plays for the time being; with masses that fit these parts, units
that swap them, long after the warm-up, leave a step size that is far too long. So they get one mass, where they do.

The schedule has a clock. It runs ahead where the warm-up has shown that nothing more is to be learned: to the last
window, when the mass and the level of the log density are those of the window before; and to the end, when the
acceptance of the mean step is known.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from blackjax.adaptation.mass_matrix import mass_matrix_adaptation

from credo.typing import Array

# Acceptance falls by some 0.4 per unit of log ε at 0.8: 1/0.4 would be Newton's gain, and 1 to 4 were as good.
GAIN, DELAY, POWER = 2.0, 5.0, 0.6
# Of the warm-up: before the mass is estimated, but no more steps than finding a step size takes; and after it.
FIRST, MOST_FIRST, LAST = 0.15, 50, 0.4
# Steps of the last window that are not averaged: a step size that was wrong by a factor e is then by 3%.
UNSETTLED = 25
# Fewer draws tell nothing about a mass, nor about an acceptance.
SHORTEST_WINDOW = 25
# The mass is settled when its logarithm has changed by less, root mean square: of 25 and 50 draws that are independent
# chance makes 0.35. The second estimate is then off by 0.2, and the scales by a tenth.
SETTLED_MASS = 0.4
# The acceptance of a chain is known with this standard error: that of four chains with half of it.
KNOWN_ACCEPTANCE = 0.01
# Units swap their parts where their weights are not known too well. Of 10-30-1 with 442 rows, the scale of all units
# together was 2 to 9 times that of the one known best, and units swapped within some thousand steps; of 13-10-1 with
# 2,000 rows, 17 to 62 times, and none did: there, one mass for all would cost six times the gradients.
FURTHEST_APART = 12.0


class StepSize(NamedTuple):
    """log ε, its mean over the last window so far, the variance of acceptance there, steps since the mass changed."""

    log: Array
    mean: Array
    variance: Array
    age: Array


class Level(NamedTuple):
    """The log density in this window, steps, mean and sum of squares; and its mean in the window before."""

    num: Array
    mean: Array
    squares: Array
    before: Array

    @classmethod
    def after(cls, before: Array) -> Self:
        zero = jnp.zeros_like(before)
        return cls(zero, zero, zero, before)

    def add(self, value: Array) -> Self:
        num, away = self.num + 1, value - self.mean
        mean = self.mean + away / num
        return self._replace(num=num, mean=mean, squares=self.squares + away * (value - mean))

    @property
    def is_steady(self) -> Array:
        """Whether it has not moved by more than it moves within a window anyway; never in a first window."""
        return (self.mean - self.before) ** 2 * self.num < self.squares


class Tuning(NamedTuple):
    """What a sampler uses now, and what it has learned so far."""

    step_size: Array
    inverse_mass: Array
    step_size_state: StepSize
    mass_state: Any
    level: Level
    clock: Array


class Windows(NamedTuple):
    """Of each step of a warm-up, whether the mass is estimated there, and whether it is changed there; the last window.

    Arguments:
        first: the first step that is not of the first window.
        last: the first step of the last window.
        averaged_from: the first step whose step size counts.
    """

    is_slow: np.ndarray
    closes: np.ndarray
    first: int
    last: int
    averaged_from: int


@dataclass(frozen=True)
class Adaptation:
    """The warm-up schedule and its updates.

    Arguments:
        num_warmup: steps at most; afterwards nothing changes.
        target_acceptance: what the step size aims at.
        is_dense: a full inverse mass (D, D) instead of a diagonal (D,).
        alike: a number per parameter, (D,): those with the same number get the same mass. None tells all apart.
        runs_ahead: whether the clock may.
    """

    num_warmup: int
    target_acceptance: float
    is_dense: bool
    alike: np.ndarray | None = None
    runs_ahead: bool = True

    def init(self, num_parameters: int, step_size: float) -> Tuning:
        """Unit mass, and a first step size."""
        start_mass, _, _ = mass_matrix_adaptation(not self.is_dense)
        mass = start_mass(num_parameters)
        log = jnp.log(jnp.asarray(step_size))
        state = StepSize(log, log, jnp.zeros_like(log), jnp.zeros_like(log))
        level = Level.after(jnp.full_like(log, -jnp.inf))
        return Tuning(jnp.asarray(step_size), mass.inverse_mass_matrix, state, mass, level, jnp.array(0))

    def is_over(self, tuning: Tuning) -> Array:
        return tuning.clock >= self.num_warmup

    def update(self, tuning: Tuning, position: Array, log_density: Array, acceptance: Array) -> Tuning:
        """Learn from one transition, if warm-up is still on."""
        if self.num_warmup == 0:
            return tuning
        return jax.lax.cond(
            self.is_over(tuning), lambda: tuning, lambda: self._learn(tuning, position, log_density, acceptance)
        )

    def _learn(self, tuning: Tuning, position: Array, log_density: Array, acceptance: Array) -> Tuning:
        own, clock = windows(self.num_warmup), tuning.clock
        is_slow, closes = jnp.asarray(own.is_slow)[clock], jnp.asarray(own.closes)[clock]
        _, learn_mass, close_window = mass_matrix_adaptation(not self.is_dense)
        mass = jax.lax.cond(is_slow, lambda: learn_mass(tuning.mass_state, position), lambda: tuning.mass_state)
        mass = jax.lax.cond(closes, lambda: self._shared(close_window(mass)), lambda: mass)
        level = jax.tree.map(
            lambda new, old: jnp.where(closes | (clock == own.first - 1), new, old),
            Level.after(tuning.level.mean),
            tuning.level.add(log_density),
        )

        log, mean, variance, age = tuning.step_size_state
        error, num = acceptance - self.target_acceptance, jnp.maximum(clock - own.averaged_from + 1, 1)
        log += GAIN * (age + 1 + DELAY) ** -POWER * error
        mean += (log - mean) / num
        variance += (error**2 - variance) / num
        state = StepSize(log, mean, variance, jnp.where(closes, 0.0, age + 1))

        clock += 1
        if self.runs_ahead:
            change = jnp.log(mass.inverse_mass_matrix / tuning.inverse_mass)
            is_settled = closes & tuning.level.is_steady & (jnp.mean(change**2) < SETTLED_MASS**2)
            clock = jnp.where(is_settled, own.last, clock)
            is_known = (num >= SHORTEST_WINDOW) & (variance < num * KNOWN_ACCEPTANCE**2)
            clock = jnp.where(is_known, self.num_warmup, clock)
        step_size = jnp.exp(jnp.where(clock == self.num_warmup, mean, log))
        return Tuning(step_size, mass.inverse_mass_matrix, state, mass, level, clock)

    def _shared(self, mass: Any) -> Any:
        """The mean of the variances of parameters that are alike, unless the chain knows them too well to swap them."""
        if self.alike is None or self.is_dense:
            return mass
        own, num = mass.inverse_mass_matrix, int(np.max(self.alike)) + 1
        shared = (jax.ops.segment_sum(own, self.alike, num) / np.bincount(self.alike))[self.alike]
        swaps = jnp.max(shared / own) < FURTHEST_APART**2
        return mass._replace(inverse_mass_matrix=jnp.where(swaps, shared, own))


def windows(num_warmup: int) -> Windows:
    """The windows of a warm-up of so many steps.

    >>> np.flatnonzero(windows(1000).closes), windows(1000).last, windows(1000).averaged_from
    (array([ 74, 124, 224, 599]), 600, 625)
    """
    first, last = min(round(FIRST * num_warmup), MOST_FIRST), num_warmup - round(LAST * num_warmup)
    ends, width = list[int](), SHORTEST_WINDOW
    while (end := (ends[-1] if ends else first) + width) <= last:
        width *= 2
        # What is left would be shorter than the next window: it is part of this one.
        ends.append(end if end + width <= last else last)
    steps = np.arange(num_warmup)
    is_slow = (steps >= first) & (steps < last) if ends else np.zeros(num_warmup, bool)
    unsettled = min(UNSETTLED, round(0.2 * (num_warmup - last)))
    return Windows(is_slow, np.isin(steps, np.array(ends) - 1), first, last, last + unsettled)
