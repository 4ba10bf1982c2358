"""Whole runs of samplers in new processes, credo's beside blackjax's on the same log density."""

import json
import sys
from typing import Any

import numpy as np

from benchmarks.blackjax_runs import CHAIN_METHODS
from benchmarks.tables import console, new_table
from benchmarks.timing import in_new_process

SEEDS = (0, 1, 2)


def whole_run(settings: dict[str, Any]) -> dict[str, float]:
    """A whole run in a new process, with the settings of `benchmarks.whole_run`."""
    return in_new_process([sys.executable, "-W", "ignore", "-m", "benchmarks.whole_run", json.dumps(settings)])


def beside(title: str, settings: dict[str, Any]) -> None:
    """Credo's run, and those of blackjax with either chain method, in turns; of the second seed on with the faster.

    What warm-up took is told by its share of the gradients, which all cost the same.
    """
    columns = ("seed", "seconds", "compiling", "gradients, warm-up + draws", "gradients/s")
    table = new_table(
        title, "what", *columns, "worst R-hat", "least ESS", "ESS/s", "after warm-up", "ESS/1,000 gradients"
    )
    sides = {"credo": settings}
    for chain_method in CHAIN_METHODS:
        sides[f"blackjax, {chain_method}"] = settings | {"side": "blackjax", "chain_method": chain_method}
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
    for seed in SEEDS:
        for name, own in sides.items():
            run = _with_rates(whole_run(own | {"seed": seed}))
            runs[name].append(run)
            table.add_row(name, str(seed), *_figures(run))
        if seed == SEEDS[0]:
            slower = max(list(sides)[1:], key=lambda name: runs[name][0]["seconds"])
            del sides[slower]
    console.print(table)
    ours, theirs = (runs[name] for name in sides)
    ratios = {what: _median(ours, what) / _median(theirs, what) for what in RATES}
    console.print(
        "credo beside blackjax, medians: " + ", ".join(f"{ratio:.2f} of its {what}" for what, ratio in ratios.items())
    )


RATES = ("gradients/s", "ESS/s", "ESS/s after warm-up", "ESS per gradient")


def _with_rates(run: dict[str, float]) -> dict[str, float]:
    running = run["seconds"] - run["compiling"]
    gradients = run["warmup_gradients"] + run["gradients"]
    rates = (
        gradients / running,
        run["ess"] / run["seconds"],
        run["ess"] / (running * run["gradients"] / gradients),
        run["ess"] / run["gradients"],
    )
    return run | dict(zip(RATES, rates, strict=True))


def _figures(run: dict[str, float]) -> list[str]:
    return [
        f"{run['seconds']:.1f}",
        f"{run['compiling']:.1f}",
        f"{run['warmup_gradients']:,} + {run['gradients']:,}",
        f"{run['gradients/s']:,.0f}",
        f"{run['rhat']:.3f}",
        f"{run['ess']:.0f}",
        f"{run['ESS/s']:.2f}",
        f"{run['ESS/s after warm-up']:.2f}",
        f"{1e3 * run['ESS per gradient']:.2f}",
    ]


def _median(runs: list[dict[str, float]], what: str) -> float:
    return float(np.median([run[what] for run in runs]))
