"""Warm-up of Hamiltonian samplers: the step size and the mass.

A fast window finds the typical set and a step size; slow windows, each twice as long as the last, estimate the inverse
mass as the covariance of the draws; a last fast window, the longest, settles the step size for the mass that there is.
The step size follows Robbins and Monro (1951), and is the mean of the last window (Polyak and Juditsky, 1992):

    log ε ← log ε + 2/(n + 5)^0.6 · (acceptance − target),    n steps since the mass has changed.

Stan's dual averaging moves log ε by ± 0.6 to the end. Acceptance is concave in log ε, so that the mean of such steps is
too short: 0.88 to 0.94 of proposals were accepted where 0.8 had been asked for (docs/decisions.md).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from blackjax.adaptation.mass_matrix import mass_matrix_adaptation

from credo.typing import Array

# Acceptance falls by some 0.4 per unit of log ε at 0.8: 1/0.4 would be Newton's gain, and 1 to 4 were as good.
GAIN, DELAY, POWER = 2.0, 5.0, 0.6
# Of the warm-up: before and after the mass is estimated, and of the last window what is not averaged.
FIRST, LAST, UNSETTLED = 0.15, 0.4, 0.2
# Fewer draws tell nothing about a mass.
SHORTEST_WINDOW = 25


class StepSize(NamedTuple):
    """log ε, its mean over the last window so far, and the steps since the mass has changed."""

    log: Array
    mean: Array
    age: Array


class Tuning(NamedTuple):
    """What a sampler uses now, and what it has learned so far."""

    step_size: Array
    inverse_mass: Array
    step_size_state: StepSize
    mass_state: Any


class Windows(NamedTuple):
    """Of each step of a warm-up, whether the mass is estimated there, and whether it is changed there."""

    is_slow: np.ndarray
    closes: np.ndarray
    averaged_from: int


@dataclass(frozen=True)
class Adaptation:
    """The warm-up schedule and its updates.

    Arguments:
        num_warmup: steps; afterwards nothing changes.
        target_acceptance: what the step size aims at.
        is_dense: a full inverse mass (D, D) instead of a diagonal (D,).
    """

    num_warmup: int
    target_acceptance: float
    is_dense: bool

    def init(self, num_parameters: int, step_size: float) -> Tuning:
        """Unit mass, and a first step size."""
        start_mass, _, _ = mass_matrix_adaptation(not self.is_dense)
        mass = start_mass(num_parameters)
        log_step_size = jnp.log(jnp.asarray(step_size))
        state = StepSize(log_step_size, log_step_size, jnp.zeros_like(log_step_size))
        return Tuning(jnp.asarray(step_size), mass.inverse_mass_matrix, state, mass)

    def update(self, tuning: Tuning, step: Array, position: Array, acceptance: Array) -> Tuning:
        """Learn from one transition, if warm-up is still on."""
        if self.num_warmup == 0:
            return tuning
        return jax.lax.cond(
            step < self.num_warmup, lambda: self._learn(tuning, step, position, acceptance), lambda: tuning
        )

    def _learn(self, tuning: Tuning, step: Array, position: Array, acceptance: Array) -> Tuning:
        own = windows(self.num_warmup)
        is_slow, closes = jnp.asarray(own.is_slow)[step], jnp.asarray(own.closes)[step]
        _, learn_mass, close_window = mass_matrix_adaptation(not self.is_dense)
        mass = jax.lax.cond(is_slow, lambda: learn_mass(tuning.mass_state, position), lambda: tuning.mass_state)
        mass = jax.lax.cond(closes, lambda: close_window(mass), lambda: mass)

        log, mean, age = tuning.step_size_state
        log += GAIN * (age + 1 + DELAY) ** -POWER * (acceptance - self.target_acceptance)
        mean += (log - mean) / jnp.maximum(step - own.averaged_from + 1, 1)
        used = jnp.where(step == self.num_warmup - 1, mean, log)
        state = StepSize(log, mean, jnp.where(closes, 0.0, age + 1))
        return Tuning(jnp.exp(used), mass.inverse_mass_matrix, state, mass)


def windows(num_warmup: int) -> Windows:
    """The windows of a warm-up of so many steps.

    >>> np.flatnonzero(windows(1000).closes), windows(1000).averaged_from
    (array([174, 224, 324, 599]), 680)
    """
    first, last = round(FIRST * num_warmup), num_warmup - round(LAST * num_warmup)
    ends, width = list[int](), SHORTEST_WINDOW
    while (end := (ends[-1] if ends else first) + width) <= last:
        width *= 2
        # What is left would be shorter than the next window: it is part of this one.
        ends.append(end if end + width <= last else last)
    steps = np.arange(num_warmup)
    is_slow = (steps >= first) & (steps < last) if ends else np.zeros(num_warmup, bool)
    return Windows(is_slow, np.isin(steps, np.array(ends) - 1), last + round(UNSETTLED * (num_warmup - last)))
