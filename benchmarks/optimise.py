"""Few evaluations of a dear function: credo.optimise beside random search and a Gaussian process.

    python -m benchmarks optimise [--functions branin,digits] [--searches credo,gp,random] [--seeds 10]
        [--evaluations 50] [--markdown] [--pictures docs/images] [--out results.jsonl]

The Gaussian process is scikit-learn's (Matérn 5/2, a length for each input, noise learned, two starts) with expected
improvement over the best value, searched by the same candidates. All begin with points of their own. Settings of
credo.optimise were chosen on camel, levy and rosenbrock, seeds from 100 on; they are not among the functions shown.
"""

import argparse
import json
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm, qmc
from sklearn.datasets import load_digits
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

import credo
from benchmarks.printing import new_table, show
from credo.learning.search import candidates
from credo.learning.space import Space

POWERS = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
PLACES = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
POWERS_3 = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
PLACES_3 = 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]])
HEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
NOISE = 0.2


class Problem(NamedTuple):
    """A function to minimise, its least value, and the standard deviation of the noise that is added."""

    function: Callable[[np.ndarray], float]
    bounds: list[tuple[Any, ...]]
    least: float
    noise: float = 0.0


def branin(x: np.ndarray) -> float:
    a, b = x
    return (b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10


def hartmann3(x: np.ndarray) -> float:
    return -HEIGHTS @ np.exp(-np.sum(POWERS_3 * (x - PLACES_3) ** 2, axis=1))


def hartmann6(x: np.ndarray) -> float:
    return -HEIGHTS @ np.exp(-np.sum(POWERS * (x - PLACES) ** 2, axis=1))


def ackley(x: np.ndarray) -> float:
    return -20 * np.exp(-0.2 * np.sqrt(np.mean(x**2))) - np.exp(np.mean(np.cos(2 * np.pi * x))) + 20 + np.e


@cache
def digits_error(log_c: float, log_gamma: float) -> float:
    x, y = load_digits(return_X_y=True)
    return 100 * (1 - cross_val_score(SVC(C=10**log_c, gamma=10**log_gamma), x[:600] / 16, y[:600], cv=3).mean())


PROBLEMS = {
    "branin": Problem(branin, [(-5.0, 10.0), (0.0, 15.0)], 0.397887),
    "hartmann3": Problem(hartmann3, [(0.0, 1.0)] * 3, -3.86278),
    "hartmann6": Problem(hartmann6, [(0.0, 1.0)] * 6, -3.32237),
    "ackley5": Problem(ackley, [(-32.768, 32.768)] * 5, 0.0),
    "noisy hartmann3": Problem(hartmann3, [(0.0, 1.0)] * 3, -3.86278, NOISE),
    # Nobody knows the least error in per cent, so it is shown as it is.
    "digits": Problem(lambda x: digits_error(*map(float, x)), [(-3.0, 3.0), (-5.0, 1.0)], 0.0),
}


def main(arguments: Sequence[str] = ()) -> None:
    """A table of medians, and pictures where they are asked for."""
    options = _options(arguments)
    found: dict[str, dict[str, np.ndarray]] = {}
    for name in options.functions:
        found[name] = {kind: _regrets(name, kind, options) for kind in options.searches}
    middle, end = min(20, options.evaluations), options.evaluations
    table = new_table(
        f"distance to the optimum, median of {options.seeds} seeds (quartiles)",
        "function",
        "evaluations",
        *options.searches,
    )
    for name, by_kind in found.items():
        for number in dict.fromkeys((middle, end)):
            table.add_row(name, str(number), *(_cell(regrets[:, number - 1]) for regrets in by_kind.values()))
    show(table, markdown=options.markdown)
    if options.pictures is not None:
        for name, by_kind in found.items():
            curves = {kind: list(regrets) for kind, regrets in by_kind.items()}
            path = options.pictures / f"optimise-{name.replace(' ', '-')}.png"
            credo.plot.save(credo.plot.optimisation(curves, optimum=0.0), path)
        credo.plot.save(credo.plot.belief(_noisy_search()), options.pictures / "optimise-belief.png")


def _noisy_search() -> credo.Optimum:
    """Of a function of one number with two valleys."""
    rng = np.random.default_rng(0)

    def function(x: dict[str, float]) -> float:
        return float(np.sin(5 * x["dose"]) + 0.5 * x["dose"] + 0.1 * rng.standard_normal())

    return credo.optimise(function, {"dose": (0.0, 3.0)}, num_evaluations=15)


def _cell(regrets: np.ndarray) -> str:
    low, middle, high = np.quantile(regrets, [0.25, 0.5, 0.75])
    return f"{middle:.3g} ({low:.2g}–{high:.2g})"


def _regrets(name: str, kind: str, options: argparse.Namespace) -> np.ndarray:
    """How far the best point so far is from the optimum, (seeds, evaluations); what was done before is found again."""
    known = _known(options.out)
    rows = []
    for seed in range(options.seeds):
        key = (name, kind, seed, options.evaluations)
        if key not in known:
            known[key] = _search(PROBLEMS[name], SEARCHES[kind], seed, options.evaluations).tolist()
            if options.out is not None:
                with options.out.open("a") as file:
                    file.write(json.dumps([*key, known[key]]) + "\n")
        rows.append(known[key])
    return np.array(rows)


def _known(path: Path | None) -> dict[tuple[Any, ...], Any]:
    if path is None or not path.exists():
        return {}
    return {tuple(row[:4]): row[4] for row in map(json.loads, path.read_text().splitlines())}


def _search(problem: Problem, search: Callable[..., np.ndarray], seed: int, num: int) -> np.ndarray:
    """How far the best of the first points that a search asks is from the optimum: true values, without noise."""
    rng, true = np.random.default_rng((seed, 1)), []

    def function(x: np.ndarray) -> float:
        true.append(problem.function(np.asarray(x)))
        return float(true[-1] + problem.noise * rng.standard_normal())

    search(function, problem, seed, num)
    return np.minimum.accumulate(true) - problem.least


def by_credo(function: Callable[..., float], problem: Problem, seed: int, num: int, **settings: Any) -> None:
    credo.optimise(function, problem.bounds, num_evaluations=num, seed=seed, **settings)


def by_random(function: Callable[..., float], problem: Problem, seed: int, num: int) -> None:
    low, high = np.array(problem.bounds, float).T
    for point in low + np.random.default_rng(seed).random((num, len(low))) * (high - low):
        function(point)


def by_gp(function: Callable[..., float], problem: Problem, seed: int, num: int) -> None:
    space, rng = Space.of(problem.bounds), np.random.default_rng(seed)
    rows = 2 * qmc.Sobol(space.width, rng=seed).random_base2(4)[: max(4, space.width + 1)] - 1
    values = [function(point) for point in space.decode(rows)]
    kernel = ConstantKernel() * Matern(np.ones(space.width), nu=2.5) + WhiteKernel(1e-3, (1e-8, 1.0))
    while len(values) < num:
        process = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=1, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # lengths at the border of what is allowed
            process.fit(rows, values)
        tried = candidates(space, rows[np.argsort(values)[:5]], rng)
        mean, sd = process.predict(tried, return_std=True)
        gain = np.min(process.predict(rows)) - mean
        score = gain * norm.cdf(gain / sd) + sd * norm.pdf(gain / sd)
        rows = np.concatenate([rows, tried[[np.argmax(score)]]])
        values.append(function(space.decode(rows[-1:])[0]))


SEARCHES: dict[str, Callable[..., Any]] = {"credo": by_credo, "gp": by_gp, "random": by_random}


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    def names(known: dict[str, Any]) -> Callable[[str], list[str]]:
        def parsed(text: str) -> list[str]:
            chosen = text.split(",")
            unknown = [name for name in chosen if name not in known]
            if unknown:
                raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(known)}")
            return chosen

        return parsed

    parser = argparse.ArgumentParser(prog="python -m benchmarks optimise")
    parser.add_argument("--functions", type=names(PROBLEMS), default=list(PROBLEMS))
    parser.add_argument("--searches", type=names(SEARCHES), default=list(SEARCHES))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--evaluations", type=int, default=50)
    parser.add_argument("--out", type=Path, help="a file that keeps results: what it holds is not done again")
    parser.add_argument("--pictures", type=Path, help="a folder for the pictures")
    parser.add_argument("--markdown", action="store_true", help="tables to put into a document")
    return parser.parse_args(arguments)
