"""Consistency conditions: what they add to a step on minibatches, and the memory of a graph over many points.

    python -m benchmarks conditions

Steps of MAP with Adam on a table of 20 columns, with the plain prior and with one condition at the training inputs, of
which a step sees one for sixteen rows. The sides take turns and the best of several rounds counts.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import credo
from benchmarks.printing import console, new_table
from benchmarks.timing import best_of, in_new_process
from credo.inference.engine import driver as engine

NUM_ROWS, NUM_COLUMNS, BATCH_SIZE = 10_000, 20, 128
NETWORKS = {"20-50-50-1": [50, 50], "20-400-400-1": [400, 400]}
NUM_STEPS, NUM_ROUNDS = 200, 6
NUM_POINTS = 50_000

CONDITIONS = {
    "plain": None,
    "bounded": credo.conditions.bounded(-1.0, 1.0),
    "monotone in one column": credo.conditions.monotone({0: "+"}),
    "monotone in five": credo.conditions.monotone(dict.fromkeys(range(5), "+")),
    "smooth": credo.conditions.smooth(),
    "invariant": credo.conditions.invariant("negate"),
    "neighbours": credo.conditions.neighbours(5),
}


def main() -> None:
    """Both tables."""
    steps()
    memory()


def steps() -> None:
    """Milliseconds of a step, and beside the plain one."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(NUM_ROWS, NUM_COLUMNS))
    data = credo.Data(x, x[:, 0] + rng.normal(size=NUM_ROWS))
    for label, features in NETWORKS.items():
        title = f"{label}, batch {BATCH_SIZE}: a step of MAP with a condition at {NUM_ROWS:,} inputs"
        table = new_table(title, "prior", "per step", "beside plain")
        times = best_of(NUM_ROUNDS, {name: _chunk(features, one, data) for name, one in CONDITIONS.items()})
        for name, time in times.items():
            table.add_row(name, f"{time / NUM_STEPS * 1e3:.3f} ms", f"{time / times['plain']:.2f}")
        console.print(table)


def memory() -> None:
    """Of a process that fits with a graph over many unlabelled points, on full batches and on minibatches."""
    table = new_table(f"A graph over {NUM_POINTS:,} unlabelled points, 20-50-50-1", "what", "peak", "above plain")
    sides = {"full batches": None, "minibatches": BATCH_SIZE}
    for what, batch_size in sides.items():
        plain, peak = (
            in_new_process([sys.executable, "-m", "benchmarks.conditions", json.dumps([batch_size, num])])
            for num in (0, NUM_POINTS)
        )
        table.add_row(what, f"{peak:.0f} MB", f"{peak - plain:.0f} MB")
    console.print(table)


def peak_of_fit(batch_size: int | None, num_points: int) -> float:
    """The peak memory of this process, in MB, after a few steps."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, NUM_COLUMNS))
    prior: Any = credo.priors.normal(1.0)
    if num_points:
        graph = credo.conditions.neighbours(10)
        prior = credo.priors.consistent(prior, graph, inputs=rng.normal(size=(num_points, NUM_COLUMNS)))
    model = credo.models.regression(credo.networks.MLP([50, 50], 1), prior=prior)
    credo.fit(model, credo.Data(x, x[:, 0]), credo.MAP(num_steps=3, batch_size=batch_size), progress=False)
    # Not getrusage, which begins with the peak of the process that started this one.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 2**10


def _chunk(features: list[int], condition: Any, data: credo.Data) -> Callable[[], Any]:
    """A compiled chunk of steps in the engine."""
    base = credo.priors.normal(1.0)
    prior = base if condition is None else credo.priors.consistent(base, condition)
    model = credo.models.regression(credo.networks.MLP(features, 1), prior=prior).bind(data)
    method = credo.MAP(num_steps=NUM_STEPS, batch_size=BATCH_SIZE)
    driver = engine.Driver(method, model, method.plan(), NUM_STEPS)
    chain = driver.start(0, 0, None, model.with_inputs(data.batch()), None)
    driver.compile([chain])
    return lambda: driver.chunk(chain, num_records=NUM_STEPS, thin=1)


if __name__ == "__main__":
    print(json.dumps(peak_of_fit(*json.loads(sys.argv[1]))))
