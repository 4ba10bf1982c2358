"""Chains that fit into a time: what a gradient costs, and how many steps of how many chains that leaves.

More chains come first: chains of networks find different modes, and a mixture of many that have not quite mixed
predicts better than each of them. Mean log density of test rows of eight tables, one split each, with one layer: −0.245
by eight chains of 10,000 steps, −0.276 by four of 14,000.
"""

import time

import jax
import numpy as np

from credo import random
from credo._machine import available_cores
from credo.data import Data
from credo.inference.mcmc.mclmc import MCLMC
from credo.inference.sampler import flat, log_density
from credo.models.program import Model

# A gradient of all rows on one core, and half of what else a step does: 55 µs, and 0.13 ms for each million parameters
# × rows. Two layers of 30 units, microseconds of the processor of a gradient alone: 31 on 130 rows, 98 on 500, 179 on
# 1,000, 541 on 2,500, 1,018 on 4,700 and 2,899 on 13,000.
SECONDS_PER_GRADIENT, SECONDS_PER_WORK = 55e-6, 0.13e-9
GRADIENTS_PER_STEP = 2
# A step of training takes the gradient of a minibatch, and the optimiser as long again.
GRADIENTS_PER_TRAINING_STEP = 2
# Chains that are shorter have hardly left where they began.
LEAST_STEPS, FEWEST_CHAINS, MOST_CHAINS, STEPS_PER_CHAIN = 3_000, 4, 8, 8_000
# Steps of 1.4 times the length: they make the sds of a posterior 2% too small rather than 1%, and chains from the prior
# that are too short to arrive go further. On pendulum, split 0, chains of 11,500 such steps came as far as of 17,200
# others: log joints of −868 and −844 on average, nats per test row 0.21 and 0.27; of 5,700 others −1,135 and −0.05.
ENERGY_VARIANCE = 4e-3
WARMUP_SHARE = 0.6
NUM_DRAWS = 400
# Compiling, and judging the draws.
SECONDS_BESIDE = 8.0
NUM_TIMED = 20


def chains_within(seconds: float, per_gradient: float) -> MCLMC | None:
    """MCLMC that takes so many seconds of one core; None where that is too short for four chains to arrive.

    >>> chains = chains_within(32.0, 0.2e-3)
    >>> chains.num_chains, chains.num_warmup, chains.num_samples * chains.thin
    (8, 6000, 4000)
    """
    total = seconds / (GRADIENTS_PER_STEP * per_gradient)
    num_chains = int(np.clip(total // STEPS_PER_CHAIN, FEWEST_CHAINS, MOST_CHAINS))
    steps = total / num_chains
    if steps < LEAST_STEPS:
        return None
    num_samples = NUM_DRAWS // num_chains
    thin = max(1, round((1 - WARMUP_SHARE) * steps / num_samples))
    return MCLMC(
        num_samples=num_samples,
        num_warmup=round(WARMUP_SHARE * steps),
        num_chains=num_chains,
        thin=thin,
        energy_variance=ENERGY_VARIANCE,
    )


def steps_within(seconds: float, per_gradient: float) -> int:
    """Steps of training that take so many seconds of one core.

    >>> steps_within(6.0, 0.15e-3)
    20000
    """
    return round(seconds / (GRADIENTS_PER_TRAINING_STEP * per_gradient))


def gradient_by_size(num_parameters: int, num_rows: float) -> float:
    """Seconds that a gradient takes on one core, by the sizes: the same on every machine, and so are the draws."""
    return SECONDS_PER_GRADIENT + SECONDS_PER_WORK * num_parameters * num_rows


def gradient_measured(model: Model, data: Data) -> float:
    """Seconds that a gradient takes on this machine, the least of several."""
    bound = model.bind(data)
    gradient = jax.jit(jax.value_and_grad(log_density(bound, data.batch())))
    position = flat(bound.initial_theta(random.key(0)))
    jax.block_until_ready(gradient(position))
    taken = []
    for _ in range(NUM_TIMED):
        began = time.perf_counter()
        jax.block_until_ready(gradient(position))
        taken.append(time.perf_counter() - began)
    return min(taken)


def core_seconds(budget: float) -> float:
    """What chains may take of all cores so that a fit ends within a budget of seconds on the clock."""
    return max(0.0, budget - SECONDS_BESIDE) * available_cores()
