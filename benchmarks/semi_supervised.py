"""Few labels: the three ways of `credo.models.semi_supervised` beside the plain model.

    python -m benchmarks semi_supervised
    python -m benchmarks semi_supervised --figure docs/images

Two moons with two labels of each class, and digits with 50 labels, drawn at random; scores are of new rows. Settings
were chosen on seeds below 1,000 and are judged on those from 1,000.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import credo
from benchmarks.printing import console, new_table

FIRST_SEED, NUM_MOONS, NUM_DIGITS = 1000, 20, 5
# The way that is judged on its worst set, too.
NUM_GRAPHS = 60
WAYS = ("plain", "condition", "graph", "pseudo_labels")
MOONS_NET = credo.networks.MLP([50], out=2)
DIGITS_NET = credo.networks.MLP([100], out=10)


class Problem(NamedTuple):
    """Rows of which few are labelled, and new ones."""

    data: credo.Data
    test: credo.Data


def moons(seed: int, num: int = 300, num_labels: int = 2) -> Problem:
    """Two half circles with two labels of each class."""
    whole, test = credo.datasets.moons(num, seed=seed), credo.datasets.moons(1000, seed=seed + 1_000_000)
    rng = np.random.default_rng(seed)
    known = np.concatenate([rng.choice(np.flatnonzero(whole.y == c), num_labels, replace=False) for c in (0, 1)])
    return Problem(_few_known(whole, known), test)


def digits(seed: int, num_labels: int = 50) -> Problem:
    """Images of digits, 1,297 with 50 labels among them, and 500 new ones."""
    whole, test = credo.datasets.load("digits", standardise=True).split(500 / 1797, seed=seed)
    known = np.random.default_rng(seed).choice(whole.size, num_labels, replace=False)
    return Problem(_few_known(whole, known), test)


def model_of(way: str, net: Any) -> credo.Model:
    """One of the ways, or the plain model."""
    if way == "plain":
        return credo.models.classification(net)
    return credo.models.semi_supervised(net, way)  # type: ignore[arg-type]


def scores(problem: Problem, model: credo.Model, method: Any, seed: int) -> tuple[float, float]:
    """Accuracy and mean log probability of the labels of new rows."""
    posterior = credo.fit(model, problem.data, method, seed=seed, progress=False)
    probs = np.asarray(posterior.predict(problem.test.x).probs)
    right = probs[np.arange(len(probs)), problem.test.y]
    return float(np.mean(probs.argmax(axis=1) == problem.test.y)), float(np.mean(np.log(right)))


def table(title: str, make: Callable[[int], Problem], net: Any, runs: Sequence[tuple[str, Any, int]]) -> None:
    """Means over seeds; a run is a way, a method, and the number of its seeds."""
    shown = new_table(title, "way", "method", "sets", "accuracy", "least", "at 97%", "log probability")
    for way, method, num in runs:
        seeds = range(FIRST_SEED, FIRST_SEED + num)
        found = np.array([scores(make(seed), model_of(way, net), method, seed) for seed in seeds])
        right, log_p = found.T
        name = method if isinstance(method, str) else type(method).__name__
        cells = f"{right.mean():.1%}", f"{right.min():.1%}", f"{np.mean(right >= 0.97):.0%}", f"{log_p.mean():.3f}"
        shown.add_row(way, name, str(num), *cells)
    console.print(shown)


def figure(folder: str) -> None:
    """The plain model and the graph, on one set of moons."""
    import matplotlib.pyplot as plt

    problem = moons(FIRST_SEED)
    panels, axes = ("plain", "graph"), plt.subplots(1, 2, figsize=(8, 3.2), sharey=True, layout="constrained")[1]
    grid = np.stack(np.meshgrid(np.linspace(-1.5, 2.5, 120), np.linspace(-1.2, 1.7, 90)), axis=-1)
    known = problem.data.labelled
    for way, ax in zip(panels, axes, strict=True):
        posterior = credo.fit(model_of(way, MOONS_NET), problem.data, "auto", seed=0, progress=False)
        one = np.asarray(posterior.predict(grid.reshape(-1, 2)).probs)[:, 1].reshape(grid.shape[:2])
        surface = ax.contourf(grid[..., 0], grid[..., 1], one, np.linspace(0, 1, 11), cmap="RdBu_r", alpha=0.6)
        ax.contour(grid[..., 0], grid[..., 1], one, [0.5], colors="black", linewidths=1)
        ax.scatter(*problem.data.x[~known].T, s=5, color="0.35", linewidths=0)
        colours = np.where(problem.data.y[known] == 1, "firebrick", "royalblue")
        ax.scatter(*problem.data.x[known].T, s=90, c=colours, edgecolor="black")
        right = np.mean(np.asarray(posterior.predict(problem.test.x).probs).argmax(axis=1) == problem.test.y)
        ax.set_title(f"{'4 labels alone' if way == 'plain' else '4 labels and the graph of 296 rows'}: {right:.1%}")
    plt.colorbar(surface, ax=axes, label="probability of the second moon")
    plt.savefig(Path(folder) / "semi-supervised-moons.png", dpi=80)
    plt.close()


def main(options: Sequence[str] = ()) -> None:
    """Both tables, or the figure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks semi_supervised")
    parser.add_argument("--figure", metavar="FOLDER", help="draw the moons there, and nothing else")
    asked = parser.parse_args(options)
    if asked.figure:
        figure(asked.figure)
        return
    on_moons = [(way, credo.MAP(), NUM_GRAPHS if way == "graph" else NUM_MOONS) for way in WAYS]
    others = [("graph", method, NUM_MOONS // 4) for method in ("auto", credo.DeepEnsemble(), credo.BayesByBackprop())]
    table("300 moons, 4 labels", moons, MOONS_NET, [*on_moons, *others])
    table("1,297 digits, 50 labels", digits, DIGITS_NET, [(way, credo.MAP(), NUM_DIGITS) for way in WAYS])


def _few_known(whole: credo.Data, known: np.ndarray) -> credo.Data:
    labels = np.full(whole.size, np.nan)
    labels[known] = whole.y[known]
    return credo.Data(whole.x, labels, standardise=whole.standardise)


if __name__ == "__main__":
    main()
