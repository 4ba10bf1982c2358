"""What is known of a function, as a prior: the same network with and without a condition, on four problems.

Paper, "Prior with a consistency condition". A function that rises (synthetic, and scikit-learn's diabetes), an even one
of which there are fifty rows, and an oscillation of which there are eight points and a differential equation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import credo
from credo.examples import conditions_verdict, page
from credo.examples.conditions_problems import Fits, Problem, diabetes, even, fits, oscillator, rising
from credo.plot.beside import beside

PROBLEMS: dict[str, Callable[[int], Problem]] = {
    "rising": rising,
    "diabetes": diabetes,
    "even": even,
    "oscillator": oscillator,
}
# The lines along which functions are drawn: x₁ of `even` while x₂ is 1 and the others are 0.
NUM_POINTS = 121
LINES = {
    "rising": np.linspace(-3, 3, NUM_POINTS)[:, None],
    "even": np.linspace(-2, 2, NUM_POINTS)[:, None] * np.eye(6)[0] + np.eye(6)[1],
    "oscillator": np.linspace(0, 6, NUM_POINTS)[:, None],
}
LABELS = {"rising": ("x", "y"), "even": ("x₁", "y"), "oscillator": ("t", "y")}
WORDS = {"rising": "rises", "even": "is even", "oscillator": "obeys its equation"}


@dataclass(frozen=True)
class Sizes:
    """How much to compute: draws and steps of warm-up of two chains, and doublings of a trajectory."""

    num_samples: int = 300
    num_warmup: int = 300
    max_depth: int = 9

    @property
    def method(self) -> credo.NUTS:
        return credo.NUTS(
            num_samples=self.num_samples, num_warmup=self.num_warmup, num_chains=2, max_depth=self.max_depth
        )


QUICK = Sizes(num_samples=10, num_warmup=10, max_depth=3)


def main(out: Path, *, num_sets: int = 1, quick: bool = False, seed: int = 0) -> list[Path]:
    """Fit every problem with and without its condition, draw and judge; returns the files written.

    Arguments:
        out: folder for the figures and the verdict.
        num_sets: data sets of each problem, over which figures are averaged; the first of them is drawn.
        quick: far too few draws, just to see that it works.
    """
    out.mkdir(parents=True, exist_ok=True)
    sizes = QUICK if quick else Sizes()
    figures: dict[str, list[tuple[dict[str, float], dict[str, float]]]] = {name: [] for name in PROBLEMS}
    for name, make in PROBLEMS.items():
        for number in range(num_sets):
            page.say(f"Fitting: {name}, data set {number + 1} of {num_sets} …")
            problem = make(seed + number)
            found = fits(problem, sizes.method, seed + number)
            figures[name].append(conditions_verdict.measured(name, problem, found))
            if number == 0 and name in LINES:
                draw(name, problem, found, out / f"{name}.png")
    return page.finish(out, conditions_verdict.written(figures, quick=quick))


def draw(name: str, problem: Problem, found: Fits, file: Path) -> None:
    """Functions of the plain network beside those of the network with the condition."""
    line = LINES[name]
    drawn = {
        "plain": conditions_verdict.functions(found.plain, line),
        f"knowing that it {WORDS[name]}": conditions_verdict.functions(found.conditioned, line),
    }
    x = line[:, 0]
    truth = None if problem.truth is None else problem.truth(line)
    # Rows of six inputs are not on the line.
    data = problem.train if problem.train.x.shape[1] == 1 else None
    credo.plot.save(beside(x, drawn, truth=truth, data=data, labels=LABELS[name])[0], file)
