"""Sparse measure: nine outputs, of which three in ten are measured, one of them by a broken sensor. Which one?

Paper, "Practical Example II: Sparse measure" of the supplement. What is known goes into the model: that one output is
broken, the subspace that the function stays close to, and the law of its slopes. The last layers are stochastic, by
variational inference and by dropout.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib import pyplot

import credo
from credo.examples import page, sparse_verdict
from credo.examples.sparse_data import CORRUPTED, SIZE, Measure, simulated
from credo.examples.sparse_fits import CASES, Fit, fit_all
from credo.plot.outputs import outputs
from credo.plot.slopes import slopes


@dataclass(frozen=True)
class Sizes:
    """How much to compute: passes over the training rows, these rows, and the cases to compare."""

    epochs: int = 300
    num_train: int = 1000
    cases: tuple[str, ...] = tuple(CASES)


QUICK = Sizes(epochs=4, num_train=100, cases=("everything", "without all three"))


def main(out: Path, *, full: bool = False, quick: bool = False, seed: int = 0) -> list[Path]:
    """Simulate, fit every case by both methods, draw and judge; returns the files written.

    Arguments:
        out: folder for the figures and the verdict.
        full: as many epochs as in the paper, 2,000.
        quick: far too little training, just to see that it works.
        seed: of the function, its measurements and the fits.
    """
    out.mkdir(parents=True, exist_ok=True)
    sizes = QUICK if quick else Sizes(epochs=sparse_verdict.PAPER_EPOCHS) if full else Sizes()
    measure = simulated(seed, num_train=sizes.num_train)
    found = fit_all(measure, sizes.cases, sizes.epochs, seed)
    page.say("Drawing …")
    draw(measure, found["everything"], out)
    return page.finish(out, sparse_verdict.written(measure, found, epochs=sizes.epochs, quick=quick))


def draw(measure: Measure, fits: Mapping[str, Fit], out: Path) -> None:
    """The four figures of the model that knows everything."""
    for name, fit in fits.items():
        grid = pyplot.figure(figsize=(9, 8), layout="constrained").subplots(3, 3)
        for output, ax in enumerate(grid.flat):
            credo.plot.observed(fit.answer, measure.test, output=output, ax=ax)
            ax.set_title(f"output {output}" + (", broken in training" if output == CORRUPTED else ""), fontsize=9)
            if output > 0:
                ax.get_legend().remove()
        credo.plot.save(grid[0, 0], out / f"predictions-{'dropout' if 'dropout' in name else 'vi'}.png")

    above, below = pyplot.figure(figsize=(6.4, 5.6), layout="constrained").subplots(2, 1)
    errors = {name: fit.errors for name, fit in fits.items()}
    rates = {name: fit.rates for name, fit in fits.items() if fit.rates is not None}
    outputs(errors, label="RMSE on test inputs", marked=CORRUPTED, ax=above)
    outputs(rates, label="outlier probability", marked=CORRUPTED, ax=below)
    credo.plot.save(above, out / "outputs.png")

    row = pyplot.figure(figsize=(5 * len(fits), 4.4), layout="constrained").subplots(1, len(fits))
    for ax, (name, fit) in zip(row, fits.items(), strict=True):
        credo.plot.calibration(fit.curves, ax=ax).set_title(name)
    credo.plot.save(row[0], out / "calibration.png")

    ratios = {"the function": _ratios(measure.test.x, measure.test.y)}
    ratios |= {name: _ratios(measure.test.x, fit.answer.mean) for name, fit in fits.items()}
    credo.plot.save(slopes(ratios, (SIZE, SIZE)), out / "slopes.png")


def _ratios(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """‖Δy‖²/‖Δx‖² of each row and the next, which are independent of each other."""
    dx, dy = (np.sum((values - np.roll(values, 1, axis=0)) ** 2, axis=1) for values in (x, y))
    return dy / dx
