"""Whole runs of samplers in new processes, credo's beside blackjax's on the same log density."""

import json
import sys
from typing import Any

import numpy as np

from benchmarks.blackjax_runs import CHAIN_METHODS
from benchmarks.printing import console, new_table
from benchmarks.timing import in_new_process

SEEDS = (0, 1, 2)


def whole_run(settings: dict[str, Any]) -> dict[str, Any]:
    """A whole run in a new process, with the settings of `benchmarks.whole_run`."""
    return in_new_process([sys.executable, "-W", "ignore", "-m", "benchmarks.whole_run", json.dumps(settings)])


def beside(title: str, settings: dict[str, Any], reference: dict[str, Any]) -> None:
    """Credo's run, and those of blackjax with either chain method, in turns; from the second seed on with the faster.

    What warm-up took is told by its share of the gradients, which all cost the same. Effective draws of another density
    are worth nothing: the sds of the functions stand beside those of a reference, a run of NUTS (medians over inputs).
    """
    columns = ("seed", "seconds", "compiling", "warm-up + gradients", "per second", "R-hat", "ESS", "tail", "sd / NUTS")
    table = new_table(title, "what", *columns, *RATES[1:])
    sds = np.array(whole_run(reference)["sds"])
    sides = {"credo": settings}
    for chain_method in CHAIN_METHODS:
        sides[f"blackjax, {chain_method}"] = settings | {"side": "blackjax", "chain_method": chain_method}
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
    for seed in SEEDS:
        for name, own in sides.items():
            run = whole_run(own | {"seed": seed})
            runs[name].append(run | {"sds": float(np.median(run["sds"] / sds))})
            table.add_row(name, str(seed), *_figures(runs[name][-1]))
        if seed == SEEDS[0]:
            slower = max(list(sides)[1:], key=lambda name: runs[name][0]["seconds"])
            del sides[slower]
    console.print(table)
    ours, theirs = (_rates(_pooled(runs[name])) for name in sides)
    ratios = (f"{ours[what] / theirs[what]:.2f} of its {what}" for what in RATES)
    console.print(f"credo beside blackjax, shortest times and medians of ESS: {', '.join(ratios)}")


RATES = ("gradients/s", "ESS/s", "ESS/s drawing", "ESS/1k gradients")


def _rates(run: dict[str, float]) -> dict[str, float]:
    running = run["seconds"] - run["compiling"]
    gradients = run["warmup_gradients"] + run["gradients"]
    rates = (
        gradients / running,
        run["ess"] / run["seconds"],
        run["ess"] / (running * run["gradients"] / gradients),
        1e3 * run["ess"] / run["gradients"],
    )
    return dict(zip(RATES, rates, strict=True))


def _figures(run: dict[str, float]) -> list[str]:
    per_second, *rates = _rates(run).values()
    gradients = f"{run['warmup_gradients'] / 1e3:,.0f}k + {run['gradients'] / 1e3:,.0f}k"
    times = (f"{run['seconds']:.1f}", f"{run['compiling']:.1f}", gradients, f"{per_second:,.0f}")
    draws = (f"{run['rhat']:.3f}", f"{run['ess']:.0f}", f"{run['tail']:.0f}", f"{run['sds']:.2f}")
    return [*times, *draws, *(f"{rate:.2f}" for rate in rates)]


def _pooled(runs: list[dict[str, float]]) -> dict[str, float]:
    """The times of the shortest run, when the machine was least disturbed; medians of all else."""
    fastest = min(runs, key=lambda run: run["seconds"])
    medians = {name: float(np.median([run[name] for run in runs])) for name in fastest}
    return medians | {name: fastest[name] for name in ("seconds", "compiling")}
