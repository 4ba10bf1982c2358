"""Has anything become slower? A few ratios of time in some minutes, beside those that are recorded.

    python -m benchmarks check [--record]

Each ratio is of two things that this process times in turns, so that it depends little on the machine, and less on
what else the machine does: a leapfrog in bare gradients, a prediction in bare predictions, a step of a method in steps
of MAP. Which have moved by more than a fifth is said, and if one has grown so much, the exit code is 1. `--record`
writes what was found in place of what was recorded.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

import credo
from benchmarks import mcmc, vi
from benchmarks.printing import console, new_table
from benchmarks.problems import MEDIUM, SMALL, Problem
from benchmarks.timing import best_of
from credo import random
from credo.posterior import Provenance

RECORDED = Path(__file__).parent / "results" / "check.json"
MOVED = 0.2
NUM_ROUNDS = 12
# Of each, the doublings of a trajectory, and how many of these are timed together.
LEAPFROGS = ((SMALL, 8, 20), (MEDIUM, 6, 4))
NUM_DRAWS, NUM_ROWS = 1_000, 1_000


def main(arguments: Sequence[str] = ()) -> None:
    """The table of all ratios, beside the recorded ones."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks check", description=__doc__.splitlines()[0])
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(list(arguments))
    found = leapfrogs() | predictions() | steps()
    before = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    table = new_table("Ratios of time", "what", "recorded", "now", "moved")
    for name, ratio in found.items():
        known = before.get(name)
        table.add_row(name, f"{known:.2f}" if known else "–", f"{ratio:.2f}", _moved(ratio, known))
    console.print(table)
    if options.record:
        RECORDED.write_text(json.dumps({name: round(ratio, 3) for name, ratio in found.items()}, indent=1) + "\n")
    elif slower := [name for name, ratio in found.items() if ratio > (1 + MOVED) * before.get(name, np.inf)]:
        console.print(f"slower by more than {MOVED:.0%}: {'; '.join(slower)}")
        sys.exit(1)


def _moved(ratio: float, known: float | None) -> str:
    if known is None:
        return "new"
    change = ratio / known
    return f"{change - 1:+.0%}" if max(change, 1 / change) > 1 + MOVED else ""


def leapfrogs() -> dict[str, float]:
    """A leapfrog of NUTS in the engine, in gradients of the log density written by hand."""
    return {f"NUTS, {one[0].name}: a leapfrog / a bare gradient": _leapfrog(*one) for one in LEAPFROGS}


def _leapfrog(problem: Problem, depth: int, num_records: int) -> float:
    num_steps, gradient = num_records * 2**depth, jax.value_and_grad(problem.hand_written())
    trajectories = mcmc.nuts_chunk(problem, depth, num_records)
    sides = {"bare": lambda: mcmc.bare_scan(gradient, num_steps, problem.start()), "credo": trajectories}
    times = best_of(NUM_ROUNDS, sides)
    return times["credo"] / trajectories() / (times["bare"] / num_steps)


def predictions() -> dict[str, float]:
    """A mean over many draws, and one row, in calls of the compiled network."""
    problem, draws = MEDIUM, NUM_DRAWS
    model = problem.model().bind(problem.arrays())
    theta = {name: np.asarray(leaf)[None] for name, leaf in model.sample_prior(random.key(0), draws).items()}
    posterior = credo.Draws(model, theta, Provenance({}, 0, 0.0, 0))
    flat = 0.1 * jax.random.normal(jax.random.key(1), (draws, problem.num_parameters))
    bare = jax.jit(lambda flat, x: jax.vmap(problem.apply, (0, None))(flat, x).mean(0))
    x = np.random.default_rng(1).normal(size=(NUM_ROWS, problem.sizes[0])).astype(np.float32)

    def ratio(x: np.ndarray) -> float:
        times = best_of(NUM_ROUNDS, {"bare": lambda: bare(flat, x), "credo": lambda: posterior.predict(x).mean})
        return times["credo"] / times["bare"]

    return {f"prediction, {len(rows):,} rows / bare": ratio(rows) for rows in (x, x[:1])}


def steps() -> dict[str, float]:
    """A step of each method, in steps of MAP."""
    batch: dict[str, Any] = {"batch_size": vi.BATCH_SIZE}
    sides: dict[str, Callable[[], Any]] = {"MAP": vi.MLP.chunk(credo.MAP(**batch))}
    sides["BayesByBackprop"] = vi.MLP.chunk(credo.BayesByBackprop(**batch))
    sides["IVON"] = vi.MLP.chunk(credo.IVON(**batch))
    sides["SGLD"] = vi.MLP.chunk(credo.SGLD(**batch), thin=20)
    sides["SGHMC"] = vi.MLP.chunk(credo.SGHMC(**batch), thin=20)
    times = vi.MLP.per_step(sides)
    own = times.pop("MAP")
    return {f"{name}, {vi.MLP.label}: a step / one of MAP": time / own for name, time in times.items()}


if __name__ == "__main__":
    main(sys.argv[1:])
