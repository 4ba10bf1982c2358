"""Whole runs of NUTS on six networks, beside NumPyro, blackjax and nutpie, each at its best.

    python -m benchmarks nuts [--networks 1-50-1,10-30-1] [--seeds 3] [--markdown]

Four chains of as many steps of warm-up as draws, from cold: new processes, compilation included, imports and data not.
NumPyro has a host device for each chain, blackjax's chains are threads or one axis, whichever is faster on the first
seed, nutpie's are threads. What counts are the least effective draws of the functions at forty inputs: all of them, and
those per second. The sides take turns; each line is kept, and not run again.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from rich.progress import track

from benchmarks import peers
from benchmarks.printing import console, new_table, show
from benchmarks.problems import Problem
from benchmarks.resumable import Fit, Results
from benchmarks.side_by_side import whole_run
from credo.diagnostics.chains import convergence

RESULTS = Path(__file__).parent / "results" / "nuts.jsonl"
# Network, rows and noise; steps of warm-up, and draws; doublings at most. Much noise makes a posterior that mixes fast,
# and little one in which every trajectory is as long as it may be.
NETWORKS = {
    "1-50-1": (Problem((1, 50, 1), 100), 500, 8),
    "10-30-1": (Problem((10, 30, 1), 442, 0.7), 500, 8),
    "8-50-1": (Problem((8, 50, 1), 500, 0.3), 500, 8),
    "2-16-16-1": (Problem((2, 16, 16, 1), 200, 0.5), 500, 8),
    "13-10-1": (Problem((13, 10, 1), 2_000, 0.7), 500, 8),
    "8-50-50-1": (Problem((8, 50, 50, 1), 1_000, 0.5), 200, 7),
}
SIDES: dict[str, dict[str, Any]] = {
    "credo": {"side": "credo"},
    "NumPyro": {"side": "parallel"},
    "blackjax": {"side": "blackjax", "chain_method": "threads"},
    "nutpie": {"side": "nutpie"},
}


def main(arguments: Sequence[str] = ()) -> None:
    """Make the runs that are missing, then print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks nuts", description=__doc__.splitlines()[0])
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args(list(arguments))
    sides = {name: side for name, side in SIDES.items() if name != "nutpie" or peers.interpreter() is not None}
    results, made = Results(options.out), dict[Fit, dict[str, Any]]()
    wanted = [
        Fit(name, side, seed) for name in options.networks.split(",") for seed in range(options.seeds) for side in sides
    ]
    for fit in track(wanted, "runs", console=console):
        problem, num, depth = NETWORKS[fit.name]
        settings = asdict(problem) | {"num": num, "depth": depth}
        settings = json.loads(json.dumps(settings | SIDES[fit.method] | {"seed": fit.split}))
        found = results.find(fit, settings)
        if found is None:
            found = _nutpie(problem, settings) if fit.method == "nutpie" else whole_run(settings)
            results.add(fit, settings, found)
        made[fit] = found
    _show(made, options.networks.split(","), list(sides), markdown=options.markdown)


def _nutpie(problem: Problem, settings: dict[str, Any]) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        data, functions = Path(folder) / "data.npz", Path(folder) / "functions.npy"
        x, y = problem.arrays()
        np.savez(data, x=x, y=y, probes=problem.probes())
        found = peers.measure("sampling_nutpie.py", str(data), str(functions), json.dumps(settings))
        agreement = convergence(np.load(functions))
        return found | {"ess": agreement.ess_bulk, "tail": agreement.ess_tail, "rhat": agreement.rhat}


def _show(made: dict[Fit, dict[str, Any]], names: list[str], sides: list[str], *, markdown: bool) -> None:
    """Medians over the seeds, and the ratio to the best of the peers."""
    columns = [f"{what}, {side}" for side in sides for what in ("seconds", "ESS/s")]
    table = new_table("NUTS, least effective draws of the functions", "network", *columns, "credo / best peer")
    ratios = []
    for name in names:
        runs = {side: [run for fit, run in made.items() if (fit.name, fit.method) == (name, side)] for side in sides}
        seconds = {side: float(np.median([run["seconds"] for run in own])) for side, own in runs.items()}
        rates = {side: float(np.median([run["ess"] / run["seconds"] for run in own])) for side, own in runs.items()}
        ratios.append(rates["credo"] / max(rate for side, rate in rates.items() if side != "credo"))
        cells = [cell for side in sides for cell in (f"{seconds[side]:.1f}", f"{rates[side]:.2f}")]
        table.add_row(name, *cells, f"{ratios[-1]:.2f}")
    show(table, markdown=markdown)
    console.print(f"credo / best peer: geometric mean {np.exp(np.mean(np.log(ratios))):.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
