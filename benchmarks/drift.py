"""The drift alarm on streams: how often it rings where nothing changes, and how soon where something does.

    python -m benchmarks drift [--streams 40] [--rows 1000] [--rate 1e-5]

A linear regression in five inputs learns a stream in batches, exactly. After half of the rows something changes, or
nothing does. A fixed logistic regression meets labels of a hyperplane that turns by 180° in 1,000 rows. Beside it the
Page–Hinkley test of the log score, with the thresholds that are usual for it: it knows no rate.
"""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import special

import credo
from benchmarks.printing import new_table, show

NUM_INPUTS, BATCH, NUM_DRAWS = 5, 50, 50
# Page–Hinkley: what is tolerated of a row, and the sum at which it rings.
TOLERATED, THRESHOLD = 0.005, 50.0


class Stream(NamedTuple):
    """What changes, and the noise that the model assumes, of a true one of 1."""

    changes: str
    assumed: float = 1.0


STREAMS = {
    "nothing": Stream("nothing"),
    "nothing; the model's noise is a tenth too small": Stream("nothing", 0.9),
    "nothing; the model's noise is a fifth too small": Stream("nothing", 0.8),
    "inputs move by two standard deviations": Stream("inputs"),
    "the slopes, all at once": Stream("slopes"),
    "the noise doubles": Stream("noise"),
    "the noise doubles; a tenth too small before": Stream("noise", 0.9),
    "the slopes turn by 180° in 1,000 rows": Stream("rotation"),
    "a hyperplane turns by 180° in 1,000 rows": Stream("hyperplane"),
}
# In these the alarm has no reason to ring.
QUIET = ("nothing", "inputs")


def batches(stream: Stream, num_rows: int, seed: int) -> Iterator[tuple[Any, np.ndarray]]:
    """Predictions of each batch by what was learned before it, and its targets."""
    rng = np.random.default_rng(seed)
    x, slopes = rng.normal(size=(num_rows, NUM_INPUTS)), rng.normal(size=NUM_INPUTS)
    after = np.arange(num_rows) >= num_rows // 2
    if stream.changes == "inputs":
        x[after] += 2
    if stream.changes == "hyperplane":
        slopes *= 3 / np.linalg.norm(slopes)
        labels = (rng.random(num_rows) < special.expit(_outputs(x, slopes, "rotation", rng))).astype(np.int32)
        for rows in _parts(num_rows):
            chance = special.expit(x[rows] @ slopes)
            yield credo.from_probs(np.column_stack([1 - chance, chance])), labels[rows]
        return
    noise = np.where(after & (stream.changes == "noise"), 2.0, 1.0)
    y = _outputs(x, slopes, stream.changes, rng) + noise * rng.normal(size=num_rows)
    precision, linear = np.eye(NUM_INPUTS), np.zeros(NUM_INPUTS)
    for rows in _parts(num_rows):
        root = np.linalg.cholesky(np.linalg.inv(precision))
        draws = np.linalg.solve(precision, linear) + rng.normal(size=(NUM_DRAWS, NUM_INPUTS)) @ root.T
        yield credo.from_normal(draws @ x[rows].T, stream.assumed), y[rows]
        precision = precision + x[rows].T @ x[rows] / stream.assumed**2
        linear = linear + x[rows].T @ y[rows] / stream.assumed**2


def _parts(num_rows: int) -> list[slice]:
    return [slice(first, first + BATCH) for first in range(0, num_rows, BATCH)]


def _outputs(x: np.ndarray, slopes: np.ndarray, changes: str, rng: np.random.Generator) -> np.ndarray:
    """x · slopes, which change after half of the rows."""
    other = rng.normal(size=NUM_INPUTS)
    since = np.clip(np.arange(len(x)) - len(x) // 2, 0, None)[:, None]
    if changes == "slopes":
        return np.sum(x * np.where(since > 0, other, slopes), axis=1)
    other -= other @ slopes / (slopes @ slopes) * slopes
    other *= np.linalg.norm(slopes) / np.linalg.norm(other)
    angle = np.pi * since / 1_000 if changes == "rotation" else 0.0
    return np.sum(x * (np.cos(angle) * slopes + np.sin(angle) * other), axis=1)


def rings(stream: Stream, num_rows: int, seed: int, rate: float) -> tuple[float, float]:
    """The row at which the alarm rings first, and that of Page–Hinkley; infinite where they do not."""
    alarm, scores = credo.DriftAlarm(rate, seed=seed), []
    for predictive, targets in batches(stream, num_rows, seed):
        alarm = alarm.watch(predictive, targets)
        scores.append(predictive.log_prob(targets))
    return (alarm.rings[0].row if alarm.rings else np.inf), _page_hinkley(np.concatenate(scores))


def _page_hinkley(scores: np.ndarray) -> float:
    """The first row at which the log scores have fallen by the threshold below their running mean, in sum."""
    means = np.cumsum(scores) / np.arange(1, len(scores) + 1)
    sums = np.cumsum(means - scores - TOLERATED)
    risen = np.flatnonzero(sums - np.minimum.accumulate(sums) > THRESHOLD)
    return float(risen[0] + 1) if len(risen) else np.inf


def main(options: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=40)
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--rate", type=float, default=1e-5)
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args(options)
    change = given.rows // 2
    table = new_table(
        f"{given.streams} streams of {given.rows:,} rows, in batches of {BATCH}; what changes, changes at row {change}",
        "what",
        "false alarms",
        "delay, median",
        "delay, 90%",
        "Page–Hinkley: false alarms",
        "delay, median",
    )
    for name, stream in STREAMS.items():
        found = np.array([rings(stream, given.rows, seed, given.rate) for seed in range(given.streams)])
        last = np.inf if stream.changes in QUIET else change
        is_false = found <= last if np.isfinite(last) else np.isfinite(found)
        cells = [f"{is_false[:, 0].mean():.0%}"]
        if np.isfinite(last):
            late, other = (found[~is_false[:, index], index] - change for index in (0, 1))
            median = f"{np.median(other):.0f}" if len(other) else "–"
            cells += [f"{np.median(late):.0f}", f"{np.quantile(late, 0.9, method='higher'):.0f}"]
            cells += [f"{is_false[:, 1].mean():.0%}", median]
        else:
            cells += ["–", "–", f"{is_false[:, 1].mean():.0%}", "–"]
        table.add_row(name, *cells)
    show(table, markdown=given.markdown)


if __name__ == "__main__":
    main()
