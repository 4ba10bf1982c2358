"""blackjax's own NUTS and MCLMC on credo's log density: the flat log joint of the same model, with the same data.

At their best: one compiled program for warm-up and draws, of which only the draws and the numbers of leapfrogs are
kept; chains in threads over the cores or as one axis; and keys of a cheap generator.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.adaptation.base import get_filter_adapt_info_fn
from blackjax.util import run_inference_algorithm, thin_algorithm
from jax.flatten_util import ravel_pytree

import credo
from benchmarks.problems import Problem
from credo import random
from credo._machine import available_cores

CHAIN_METHODS = ("threads", "axis")
# What `mclmc_find_L_and_step_size` makes of the number of steps that are to follow, with its defaults: three tenths,
# and a third of one for the step size after the scales.
TUNING_SHARE = 1 / 3


@dataclass(frozen=True)
class Target:
    """The log joint of a model on some data, for flat vectors of all numbers in theta."""

    model: credo.Model
    batch: Any
    unravel: Callable[[Any], Any]

    @classmethod
    def of(cls, model: credo.Model, arrays: tuple[Any, Any]) -> "Target":
        bound = model.bind(arrays)
        first = {name: leaf[0] for name, leaf in bound.sample_prior(random.key(0), 1).items()}
        return cls(bound, credo.Data(*arrays).batch(), ravel_pytree(first)[1])

    def log_density(self, batch: Any) -> Callable[[Any], Any]:
        """The data come as an argument of the compiled program, as they do in credo, not as constants."""
        return lambda position: self.model.log_joint(self.unravel(position), batch)

    def positions(self, theta: Any) -> Any:
        """Flat vectors, (chains, D)."""
        return jax.vmap(lambda one: ravel_pytree(one)[0])(theta)

    def functions(self, positions: Any, x: Any) -> np.ndarray:
        """Outputs of all draws, (chains, draws, D), at some inputs."""
        mean = jax.vmap(jax.vmap(lambda position: self.model.predictive(self.unravel(position), x).mean))
        return np.asarray(mean(positions)).reshape(*positions.shape[:2], -1)


class Chain(NamedTuple):
    """Draws of one chain, (draws, D), and how many gradients warm-up and draws took."""

    draws: Any
    warmup_gradients: Any
    gradients: Any


def nuts(log_density: Any, key: Any, position: Any, *, num: int, depth: int) -> Chain:
    """As many steps of warm-up in Stan's windows as draws."""
    warmup_key, draw_key = jax.random.split(key)
    warmup = blackjax.window_adaptation(
        blackjax.nuts,
        log_density,
        adaptation_info_fn=get_filter_adapt_info_fn(info_keys={"num_integration_steps"}),
        max_num_doublings=depth,
    )
    (state, parameters), warmup_trace = warmup.run(warmup_key, position, num)
    _, (draws, gradients) = run_inference_algorithm(
        draw_key,
        blackjax.nuts(log_density, **parameters),
        num,
        initial_state=state,
        transform=lambda state, info: (state.position, info.num_integration_steps),
    )
    return Chain(draws, jnp.sum(warmup_trace.info.num_integration_steps), jnp.sum(gradients))


def mclmc(log_density: Any, key: Any, position: Any, *, warmup: int, draws: int, thin: int) -> Chain:
    """Tuned by `mclmc_find_L_and_step_size`, with a scale for each parameter."""
    init_key, tuning_key, draw_key = jax.random.split(key, 3)
    state, tuned, num_tuning = blackjax.mclmc_find_L_and_step_size(
        mclmc_kernel=blackjax.mclmc.build_kernel(),
        num_steps=round(warmup / TUNING_SHARE),
        state=blackjax.mclmc.init(position, log_density, init_key),
        rng_key=tuning_key,
        logdensity_fn=log_density,
    )
    sampler = blackjax.mclmc(log_density, tuned.L, tuned.step_size, inverse_mass_matrix=tuned.inverse_mass_matrix)
    _, positions = run_inference_algorithm(
        draw_key,
        thin_algorithm(sampler, thin, info_transform=lambda info: None),
        draws,
        initial_state=state,
        transform=lambda state, info: state.position,
    )
    # Two gradients per step.
    return Chain(positions, jnp.array(2 * num_tuning), jnp.array(2 * draws * thin))


def run_chains(sampler: Callable[..., Chain], target: Target, positions: Any, *, seed: int, chain_method: str) -> Chain:
    """A chain from each position, in threads or as an axis, compiled and run to the end."""

    def one(key: Any, position: Any, batch: Any) -> Chain:
        return sampler(target.log_density(batch), key, position)

    keys = jax.random.split(random.key(seed), len(positions))
    if chain_method == "axis":
        return jax.block_until_ready(jax.jit(jax.vmap(one, (0, 0, None)))(keys, positions, target.batch))
    compiled = jax.jit(one).lower(keys[0], positions[0], target.batch).compile()
    with ThreadPoolExecutor(available_cores()) as pool:
        chains = pool.map(
            lambda key, position: jax.block_until_ready(compiled(key, position, target.batch)), keys, positions
        )
        return jax.tree.map(lambda *leaves: np.stack(leaves), *chains)


def nuts_chunk(
    problem: Problem, depth: int, num: int, *, generator: Callable[[int], Any] = random.key
) -> Callable[[], int]:
    """Trajectories with a step far too small, so that each doubles to the end; returns how many leapfrogs they took."""

    def run(log_density: Any, key: Any, position: Any) -> Any:
        sampler = blackjax.nuts(log_density, 1e-7, jnp.ones_like(position), max_num_doublings=depth)
        return run_inference_algorithm(
            key,
            sampler,
            num,
            initial_state=sampler.init(position),
            transform=lambda state, info: (state.position, info.num_integration_steps),
        )[1]

    chunk = _chunk(run, problem, generator)
    return lambda: int(np.sum(chunk()[1]))


def mclmc_chunk(problem: Problem, num_steps: int, *, generator: Callable[[int], Any] = random.key) -> Callable[[], Any]:
    """Short steps of MCLMC, with a scale for each parameter; the last position is kept."""

    def run(log_density: Any, key: Any, position: Any) -> Any:
        sampler = blackjax.mclmc(log_density, 1.0, 1e-4, inverse_mass_matrix=jnp.ones_like(position))
        sampler = thin_algorithm(sampler, num_steps, info_transform=lambda info: None)
        state, _ = run_inference_algorithm(
            key, sampler, 1, initial_position=position, transform=lambda state, info: None
        )
        return state.position

    return _chunk(run, problem, generator)


def _chunk(run: Callable[..., Any], problem: Problem, generator: Callable[[int], Any]) -> Callable[[], Any]:
    target = Target.of(problem.model(), problem.arrays())
    compiled = jax.jit(lambda key, position, batch: run(target.log_density(batch), key, position))
    key, position = generator(0), problem.start()
    return lambda: compiled(key, position, target.batch)
