"""The verdict of the example "sparse measure", in numbers and words, next to that of the paper."""

from collections.abc import Mapping

import numpy as np

from credo.evaluation.calibration import CalibrationCurve
from credo.examples import page
from credo.examples.sparse_data import CORRUPTED, Measure
from credo.examples.sparse_fits import BATCH_SIZE, LEARNING_RATE, NUM_DRAWS, Fit

PAPER_EPOCHS = 2000
# The broken output is found for certain from this probability on; and found if its probability is so many times that
# of any other.
CERTAIN, TIMES_OTHERS = 0.9, 2.0
# Where the curve of the paper crosses the diagonal, and how far off it a curve may be to count as on it.
CROSSING, ON_DIAGONAL = 0.7, 0.03

IN_PAPER = {
    "error": "about 0.4 over all outputs, 0.34 to 0.36 in reruns, and worst on the broken one",
    "outliers": "the broken output is found, p₃ → 1",
    "calibration": "above the diagonal up to 0.7 and below after, underconfident but for large errors; AUC about 0.58",
}
HEADER = ("RMSE", f"output {CORRUPTED}", f"p{chr(ord('₀') + CORRUPTED)}", "AUC")


def judged_error(fit: Fit) -> str:
    """How far off the mean is, and where most."""
    worst = int(np.argmax(fit.errors))
    where = "the broken one" if worst == CORRUPTED else f"number {worst}; on the broken one {fit.errors[CORRUPTED]:.2f}"
    return f"RMSE {fit.error:.2f} over all outputs, worst on {where} ({fit.errors[worst]:.2f})."


def judged_outliers(rates: np.ndarray) -> str:
    """Whether the broken output is found."""
    own, others = float(rates[CORRUPTED]), float(np.delete(rates, CORRUPTED).max())
    figures = f"its outlier probability is {own:.2f}, those of the others are at most {others:.2f}."
    if own >= CERTAIN and own > TIMES_OTHERS * others:
        return f"the broken output is found: {figures}"
    if own > TIMES_OTHERS * others:
        return f"the broken output is found, but not for certain: {figures}"
    return f"the broken output is not found: {figures}"


def judged_calibration(curve: CalibrationCurve) -> str:
    """On which side of the diagonal the curve is, below and above where the paper's crosses it."""
    sides = [_side(curve, low, high) for low, high in ((0.0, CROSSING), (CROSSING, 1.0))]
    return f"AUC {curve.auc:.2f}; {sides[0]} up to {CROSSING}, {sides[1]} after."


def _side(curve: CalibrationCurve, low: float, high: float) -> str:
    levels = np.linspace(low, high, 50)
    offset = float(np.mean(np.interp(levels, curve.predicted, curve.observed, left=0.0, right=1.0) - levels))
    if abs(offset) < ON_DIAGONAL:
        return "calibrated on average"
    return "underconfident (above the diagonal)" if offset > 0 else "overconfident (below the diagonal)"


def written(measure: Measure, found: Mapping[str, Mapping[str, Fit]], *, epochs: int, quick: bool) -> str:
    """The page of the example, in Markdown."""
    best = found["everything"]
    return "\n\n".join(
        [
            "# Sparse measure: nine outputs, few measurements, one broken sensor",
            _trained(measure, epochs),
            *(["**Far too little training (quick): the numbers mean nothing yet.**"] if quick else []),
            "## Verdict",
            "\n".join(_lines(name, fit) for name, fit in best.items()),
            "## What each part of the model is worth",
            *(f"{name}:\n\n{_ablations(name, found)}" for name in best),
            f"RMSE on {measure.test.size:,} test inputs, over all outputs and on the broken one; outlier probability "
            "of the broken output; AUC of the calibration curve of y.",
            "## Area under the calibration curve",
            _curves(best),
            "The test values have no noise. The last two rows leave it out of the prediction: their covariance is that "
            f"of the {NUM_DRAWS} draws alone, judged by the law of one that is known, and of one that is estimated.",
        ]
    )


def _trained(measure: Measure, epochs: int) -> str:
    share = np.mean(measure.train.observed)
    return (
        f"A new function; {measure.train.size:,} training inputs with {share:.0%} of their nine outputs measured, "
        f"output {CORRUPTED} by a broken sensor. {epochs:,} epochs (the paper: {PAPER_EPOCHS:,}) of batches of "
        f"{BATCH_SIZE}; Adam from {LEARNING_RATE:g} down to zero (the paper: constant); {NUM_DRAWS} draws."
    )


def _lines(name: str, fit: Fit) -> str:
    said = {
        "error": judged_error(fit),
        "outliers": judged_outliers(fit.rates) if fit.rates is not None else "no outlier model.",
        "calibration": judged_calibration(next(iter(fit.curves.values()))),
    }
    return "\n".join(f"- **{name}, {about}**: {text} *The paper:* {IN_PAPER[about]}." for about, text in said.items())


def _ablations(method: str, found: Mapping[str, Mapping[str, Fit]]) -> str:
    rows = [[case, *_cells(fits[method])] for case, fits in found.items() if method in fits]
    return page.table(["what the model knows", *HEADER], rows)


def _cells(fit: Fit) -> list[str]:
    rate = "–" if fit.rates is None else f"{fit.rates[CORRUPTED]:.2f}"
    auc = next(iter(fit.curves.values())).auc
    return [f"{fit.error:.3f}", f"{fit.errors[CORRUPTED]:.3f}", rate, f"{auc:.2f}"]


def _curves(fits: Mapping[str, Fit]) -> str:
    kinds = next(iter(fits.values())).curves
    rows = [
        [kind, *(f"{fit.curves[kind].auc:.2f}, {fit.curves[kind].direction}" for fit in fits.values())]
        for kind in kinds
    ]
    return page.table(["covariance and law", *fits], rows)
