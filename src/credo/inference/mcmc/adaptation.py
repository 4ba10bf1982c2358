"""Warm-up of Hamiltonian samplers: the step size and the mass, learned in Stan's windows.

A fast window finds the typical set and a step size; slow windows, each twice as long as the last, estimate the inverse
mass as the covariance of the draws and start the step size anew; a last fast window settles it. The pieces are
blackjax's; they are put together so that one compiled step serves warm-up and sampling.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from blackjax.adaptation.mass_matrix import mass_matrix_adaptation
from blackjax.adaptation.staged_adaptation import build_schedule
from blackjax.adaptation.step_size import dual_averaging_adaptation

from credo.typing import Array


class Tuning(NamedTuple):
    """What a sampler uses now, and what it has learned so far."""

    step_size: Array
    inverse_mass: Array
    step_size_state: Any
    mass_state: Any


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
        start_step_size, _, _ = dual_averaging_adaptation(self.target_acceptance)
        start_mass, _, _ = mass_matrix_adaptation(not self.is_dense)
        mass = start_mass(num_parameters)
        return Tuning(jnp.asarray(step_size), mass.inverse_mass_matrix, start_step_size(step_size), mass)

    def update(self, tuning: Tuning, step: Array, position: Array, acceptance: Array) -> Tuning:
        """Learn from one transition, if warm-up is still on."""
        if self.num_warmup == 0:
            return tuning
        return jax.lax.cond(
            step < self.num_warmup, lambda: self._learn(tuning, step, position, acceptance), lambda: tuning
        )

    def _learn(self, tuning: Tuning, step: Array, position: Array, acceptance: Array) -> Tuning:
        restart, learn_step_size, settle = dual_averaging_adaptation(self.target_acceptance)
        _, learn_mass, close_window = mass_matrix_adaptation(not self.is_dense)
        is_slow, closes = self._stage(step)

        step_state = learn_step_size(tuning.step_size_state, acceptance)
        mass = jax.lax.cond(is_slow, lambda: learn_mass(tuning.mass_state, position), lambda: tuning.mass_state)
        mass = jax.lax.cond(closes, lambda: close_window(mass), lambda: mass)
        step_state = jax.lax.cond(closes, lambda: restart(settle(step_state)), lambda: step_state)
        # The last step takes the average over the final window: it is what sampling uses.
        log_step_size = jnp.where(step == self.num_warmup - 1, step_state.log_step_size_avg, step_state.log_step_size)
        return Tuning(jnp.exp(log_step_size), mass.inverse_mass_matrix, step_state, mass)

    def _stage(self, step: Array) -> tuple[Array, Array]:
        """Whether a step lies in a slow window, and whether it is the last of one."""
        schedule = jnp.asarray(build_schedule(self.num_warmup)).astype(bool)
        return schedule[step, 0], schedule[step, 1]
