"""Compressed posteriors: 1,000 draws in a fiftieth of their bytes, by every compressor, on several posteriors.

    python -m benchmarks compression
    python -m benchmarks compression --seed 1001 --posteriors gap,sheet --cache /tmp/posteriors --markdown

For each posterior: what is lost of the full one at inputs that no compressor has seen, and on held-out targets, where
it has some; seconds to compress; rows predicted per second. Beside the compressors stand the first K draws and K draws
at random, as many and in as many bits as the best coreset has. Settings were chosen with seed 0.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import credo
from benchmarks.printing import new_table, show
from benchmarks.timing import seconds
from credo.posterior import Quantised
from credo.simplifying.compressors import COMPRESSORS
from credo.simplifying.reference import Reference

TO = "2%"
NUM_ROWS_TIMED = 20_000
# Values of y for each held-out row: where few rows are held out, chance decides otherwise.
NUM_TARGETS = 64


class Problem(NamedTuple):
    """A model, its data, a sampler of 1,000 draws, and what it is to be judged on.

    Arguments:
        inputs: what compressors are given.
        held_out: other inputs, and their targets where there are some.
    """

    model: credo.Model
    data: credo.Data
    method: Any
    inputs: np.ndarray
    held_out: np.ndarray
    targets: np.ndarray | None


def gap(seed: int) -> Problem:
    """A network 1-50-1 on the curve with a gap; inputs reach half as far beyond the data as these are wide."""
    data, test = credo.datasets.gap(seed=seed), credo.datasets.gap(500, seed=seed + 1_000_000)
    grid = np.random.default_rng(seed).uniform(-1.5, 1.5, (500, 1))
    model = credo.models.regression(credo.networks.MLP([50], out=1))
    inputs = np.concatenate([data.x, grid])
    return Problem(model, data, credo.NUTS(num_samples=250, num_warmup=500, num_chains=4), inputs, test.x, test.y)


def boston(seed: int) -> Problem:
    """50 units on the houses of Boston, on one of the standard splits: not number 0, which settings were chosen on."""
    data, test = credo.datasets.uci_split(credo.datasets.uci("boston"), seed % 19 + 1)
    model = credo.models.regression(credo.networks.MLP([50], out=1))
    return Problem(model, data, credo.NUTS(num_samples=250, num_warmup=500, num_chains=4), data.x, test.x, test.y)


def digits(units: int, method: Any) -> Callable[[int], Problem]:
    """A classifier 64-units-10 of images of digits, of which 500 are held out."""

    def problem(seed: int) -> Problem:
        data, test = credo.datasets.load("digits", standardise=True).split(500 / 1797, seed=seed)
        model = credo.models.classification(credo.networks.MLP([units], out=10))
        return Problem(model, data, method, data.x, test.x, test.y)

    return problem


def sheet(seed: int) -> Problem:
    """The folded sheet of paper, whose posterior has two modes and their mirror images."""
    rng = np.random.default_rng(seed)
    inputs, held_out = rng.uniform(-1.5, 1.5, (2, 500, 2))
    method = credo.ParallelTempering(num_samples=125, thin=8, num_warmup=1000, num_chains=8, min_beta=0.01)
    return Problem(credo.models.paperfold(), credo.datasets.paperfold(), method, inputs, held_out, None)


SGLD = credo.SGLD(num_samples=250, num_chains=4)
PROBLEMS: dict[str, Callable[[int], Problem]] = {
    "gap": gap,
    "boston": boston,
    "sheet": sheet,
    "digits-30": digits(30, SGLD),
    "digits-100": digits(100, SGLD),
    "digits-wide": digits(30, credo.MCLMC(num_samples=250, num_chains=4)),
}
TITLES = {
    "gap": "NUTS, gap, 1-50-1",
    "boston": "NUTS, Boston, 13-50-1",
    "sheet": "tempering, paperfold, 8 weights",
    "digits-30": "SGLD, digits, 64-30-10",
    "digits-100": "SGLD, digits, 64-100-10",
    "digits-wide": "MCLMC, digits, 64-30-10",
}


def posterior_of(problem: Problem, seed: int, folder: Path | None) -> Any:
    """The posterior, fitted once where there is a folder to keep it in."""
    if folder is not None and folder.exists():
        return credo.load(folder, model=problem.model)
    posterior = credo.fit(problem.model, problem.data, problem.method, seed=seed, progress=False)
    if folder is not None:
        posterior.save(folder)
    return posterior


class Figures(NamedTuple):
    """One row of the table."""

    num_bytes: int
    loss: Any
    lost_on_targets: float | None
    seconds: float
    rows_per_second: float


def judged(problem: Problem, posterior: Any, small: Any, reference: Reference, took: float) -> Figures:
    """What a smaller posterior loses on what is held out, and how fast it predicts."""
    lost = None
    if problem.targets is not None:
        full, own = (one.predict(problem.held_out).log_prob(problem.targets) for one in (posterior, small))
        lost = float(np.mean(full - own))
    return Figures(small.num_bytes, reference.loss(small), lost, took, rows_per_second(small, problem.held_out))


def rows_per_second(posterior: Any, x: np.ndarray) -> float:
    """Of the mean or the class probabilities, at the second call."""
    rows = x[np.arange(NUM_ROWS_TIMED) % len(x)]

    def answer() -> np.ndarray:
        prediction = posterior.predict(rows)
        return prediction.probs if hasattr(type(prediction), "probs") else prediction.mean

    answer()
    return NUM_ROWS_TIMED / min(seconds(answer) for _ in range(2))


def controls(posterior: Any, best: Any, seed: int) -> dict[str, Any]:
    """As many draws as the best coreset has, stored as it stores them: the first ones, and random ones."""
    stored, num = posterior, best.num_draws
    if isinstance(best, Quantised):
        stored = Quantised.of(posterior, "int8" if next(iter(best.codes.values())).dtype == np.int8 else "bf16")
    whole = posterior.num_chains * posterior.num_draws
    rows = {"first draws": np.arange(num), "random draws": np.random.default_rng(seed).permutation(whole)[:num]}
    return {name: stored.chosen(own, np.full(num, 1 / num)) for name, own in rows.items()}


def table(name: str, seed: int, cache: str | None, by: Sequence[str]) -> Any:
    """All compressors on one posterior."""
    problem = PROBLEMS[name](seed)
    posterior = posterior_of(problem, seed, Path(cache) / f"{name}-{seed}" if cache else None)
    reference = Reference(posterior, problem.held_out, seed + 7, NUM_TARGETS)
    options = {"inputs": problem.inputs, "data": problem.data, "seed": seed}
    began = time.perf_counter()
    chosen: Any = credo.compress(posterior, TO, **options)
    default = time.perf_counter() - began
    columns = ("bytes", "nats", "nats, targets", "mean, sds", "epistemic sd", "median", "90%", "seconds", "rows/s")
    shown = new_table(f"{TITLES[name]}: 1,000 draws, {posterior.num_bytes / 1e3:,.0f} kB", "what", *columns)
    shown.add_row(
        "full", f"{posterior.num_bytes:,}", *["–"] * 7, f"{rows_per_second(posterior, problem.held_out):,.0f}"
    )
    shown.add_row(
        *_cells(
            f"by default: {chosen.provenance.compression.by}", judged(problem, posterior, chosen, reference, default)
        )
    )
    for trial in by:
        began = time.perf_counter()
        try:
            small = credo.compress(posterior, TO, by=trial, **options)
        except ValueError as reason:
            shown.add_row(trial, *["–"] * 9)
            print(f"{name}: {trial}: {reason}")
            continue
        shown.add_row(*_cells(trial, judged(problem, posterior, small, reference, time.perf_counter() - began)))
    if hasattr(chosen, "num_draws"):
        for what, small in controls(posterior, chosen, seed).items():
            shown.add_row(*_cells(f"{chosen.num_draws} {what}", judged(problem, posterior, small, reference, 0.0)))
    return shown


def _cells(name: str, row: Figures) -> list[str]:
    loss = row.loss
    shares = (f"{share:.1%}" for share in (loss.epistemic, loss.epistemic_median, loss.epistemic_90))
    targets = "–" if row.lost_on_targets is None else f"{row.lost_on_targets:.4f}"
    times = (f"{row.seconds:.1f}", f"{row.rows_per_second:,.0f}")
    return [name, f"{row.num_bytes:,}", f"{loss.nats:.4f}", targets, f"{loss.mean:.3f}", *shares, *times]


def main(options: Sequence[str] = ()) -> None:
    """A table for each posterior."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks compression")
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--posteriors", default=",".join(PROBLEMS), help="which, with commas between")
    parser.add_argument("--by", default=",".join(COMPRESSORS), help="which compressors, with commas between")
    parser.add_argument("--cache", help="a folder that posteriors are kept in")
    parser.add_argument("--markdown", action="store_true", help="tables for a document")
    asked = parser.parse_args(options)
    for name in asked.posteriors.split(","):
        show(table(name, asked.seed, asked.cache, [one for one in asked.by.split(",") if one]), markdown=asked.markdown)


if __name__ == "__main__":
    main()
