"""Missing targets: what rows with some of their targets are worth, and what it costs to leave the others out.

    python -m benchmarks missing

Three columns of the diabetes set are predicted from the other eight, and half of the training targets are taken away at
random. The same network is fitted to the rows that have all three, to all that is left, and to all there was; test
targets are complete. Then the time of a gradient, with and without gaps.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import credo
from benchmarks.printing import console, new_table
from benchmarks.timing import best_of
from credo import random

# Cholesterol and blood sugar, beside the progression of the disease.
TARGETS = ("s1", "s6")
SHARE, NUM_SPLITS, NUM_ROUNDS = 0.5, 10, 20
NUM_ROWS, NUM_INPUTS, NUM_OUTPUTS = 10_000, 20, 8
NOISES: dict[str, Any] = {"independent": 0.5, "correlated": "full"}


def main() -> None:
    """Both tables."""
    worth()
    cost()


def worth() -> None:
    """Test error and coverage over random splits, in standard deviations of the targets."""
    scores: dict[str, list[tuple[float, float]]] = {name: [] for name in ("complete rows", "all that is left", "all")}
    for seed in range(NUM_SPLITS):
        for name, scored in _scores(seed).items():
            scores[name].append(scored)
    table = new_table(f"{SHARE:.0%} of three targets missing, {NUM_SPLITS} splits", "what", "RMSE", "coverage of 95%")
    for name, rows in scores.items():
        error = np.std(rows, axis=0, ddof=1) / np.sqrt(NUM_SPLITS)
        table.add_row(name, *(f"{m:.3f} ± {e:.3f}" for m, e in zip(np.mean(rows, axis=0), error, strict=True)))
    console.print(table)


def _scores(seed: int) -> dict[str, tuple[float, float]]:
    rng = np.random.default_rng(seed)
    diabetes = credo.datasets.load("diabetes")
    assert diabetes.names is not None
    chosen = np.isin(diabetes.names, TARGETS)
    y = np.column_stack([diabetes.x[:, chosen], diabetes.y])
    x, y = diabetes.x[:, ~chosen], (y - y.mean(axis=0)) / y.std(axis=0)
    test = rng.random(len(x)) < 0.25
    left = np.where(rng.random(y.shape) < SHARE, np.nan, y)
    whole = ~np.isnan(left).any(axis=1)
    parts = {
        "complete rows": (x[~test & whole], left[~test & whole]),
        "all that is left": (x[~test], left[~test]),
        "all": (x[~test], y[~test]),
    }
    scaling = credo.Data(*parts["all"], standardise=True).scaling
    model = credo.models.regression(credo.networks.MLP([20], out=3), prior=credo.priors.fan_in())
    found = {}
    for name, part in parts.items():
        posterior = credo.fit(model, credo.Data(*part).with_scaling(scaling), credo.Laplace(), seed=seed)
        scores = credo.evaluate(posterior, (x[test], y[test]), num_resamples=0)
        found[name] = scores["rmse"].value, scores["coverage_95"].value
    return found


def cost() -> None:
    """Seconds of a gradient of the log joint, with a tenth of the targets missing and with none."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(NUM_ROWS, NUM_INPUTS)), rng.normal(size=(NUM_ROWS, NUM_OUTPUTS))
    partly = np.where(rng.random(y.shape) < 0.1, np.nan, y)
    table = new_table(
        f"a gradient, {NUM_ROWS:,} rows, {NUM_OUTPUTS} outputs", "what", "none missing", "a tenth", "ratio"
    )
    for name, noise in NOISES.items():
        model = credo.models.regression(credo.networks.MLP([50, 50], out=NUM_OUTPUTS), noise=noise)
        sides = {key: _gradient(model, credo.Data(x, values)) for key, values in (("none", y), ("gaps", partly))}
        none, gaps = best_of(NUM_ROUNDS, sides).values()
        table.add_row(f"{name} noise", f"{1e3 * none:.1f} ms", f"{1e3 * gaps:.1f} ms", f"{gaps / none:.2f}")
    console.print(table)


def _gradient(model: credo.Model, data: credo.Data) -> Callable[[], Any]:
    bound, batch = model.bind(data), data.batch()
    theta = bound.initial_theta(random.key(0))
    compiled = jax.jit(jax.grad(bound.log_joint))
    return lambda: compiled(theta, batch)
