"""When a trajectory turns back: NUTS on independent normals, credo's and blackjax's.

Of independent normals of one scale all coordinates turn at once. A test from the first leaf of a tree to the last
leaves out the step between its two halves; where a half goes round by half a turn, just too little to be noticed, the
whole goes on in circles, and which step sizes do so depends on the number of dimensions.
"""

from functools import partial
from typing import Any

import numpy as np
import numpyro
import numpyro.distributions as dist

import credo
from benchmarks import blackjax_runs
from benchmarks.printing import console, new_table
from credo import random
from credo.diagnostics.chains import convergence

DIMENSIONS = (3, 10, 30, 100, 300, 1_000)
NUM_DRAWS, NUM_CHAINS, DEPTH = 1_000, 4, 10
# Coordinates that the least ESS is taken over.
NUM_PROBES = 100
# One row of data, on which nothing depends.
ARRAYS = (np.zeros((1, 1), np.float32), np.zeros(1, np.float32))


def main() -> None:
    """Least effective draws of the coordinates and their squares, at the step size that warm-up finds."""
    title = f"NUTS on independent normals, {NUM_CHAINS} chains of {NUM_DRAWS:,} + {NUM_DRAWS:,}: least ESS of z and z²"
    columns = ("dimensions", "leapfrogs per draw", "blackjax", "ESS per 1,000 leapfrogs", "blackjax's", "ratio")
    table = new_table(title, *columns)
    for dimension in DIMENSIONS:
        model = credo.Model(partial(_normals, dimension))
        lengths, rates = zip(*(_measured(*side(model)) for side in (_by_credo, _by_blackjax)), strict=True)
        table.add_row(
            f"{dimension:,}",
            *(f"{length:.1f}" for length in lengths),
            *(f"{1e3 * rate:.1f}" for rate in rates),
            f"{rates[0] / rates[1]:.2f}",
        )
    console.print(table)


def _normals(dimension: int, x: Any, y: Any = None) -> None:
    numpyro.sample("z", dist.Normal(0, 1).expand([dimension]).to_event(1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(0, 1), obs=y)


def _by_credo(model: credo.Model) -> tuple[np.ndarray, float]:
    method = credo.NUTS(NUM_DRAWS, NUM_DRAWS, num_chains=NUM_CHAINS, max_depth=DEPTH)
    posterior = credo.fit(model, ARRAYS, method, progress=False)
    return np.asarray(posterior.theta["z"]), float(np.sum(posterior.infos["num_leapfrogs"]))


def _by_blackjax(model: credo.Model) -> tuple[np.ndarray, float]:
    target = blackjax_runs.Target.of(model, ARRAYS)
    starts = target.positions(target.model.sample_prior(random.key(1), NUM_CHAINS))
    sampler = partial(blackjax_runs.nuts, num=NUM_DRAWS, depth=DEPTH)
    chains = blackjax_runs.run_chains(sampler, target, starts, seed=0, chain_method="threads")
    return np.asarray(chains.draws), float(np.sum(chains.gradients))


def _measured(draws: np.ndarray, num_leapfrogs: float) -> tuple[float, float]:
    """Leapfrogs per draw, and the least ESS per leapfrog."""
    probes = draws[..., :NUM_PROBES]
    least = min(convergence(probes).ess_bulk, convergence(probes**2).ess_bulk)
    return num_leapfrogs / (NUM_CHAINS * NUM_DRAWS), least / num_leapfrogs


if __name__ == "__main__":
    main()
