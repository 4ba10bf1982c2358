"""Calibration in one number: summaries of the curve, binned errors of classifiers, coverage of regressions.

Binned errors follow Nixon et al., "Measuring calibration in deep learning" (2019); the quantile error and sharpness
Kuleshov et al. (2018).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from credo._checks import require_fraction
from credo.data import is_observed
from credo.evaluation.calibration import class_events, windows
from credo.evaluation.checks import checked, several_classes
from credo.evaluation.coverage import levels_of
from credo.evaluation.metric import Measure, mean_of_outputs, metric
from credo.evaluation.residuals import nssr_probabilities
from credo.predictive import ClassPredictive, Predictive, RegressionPredictive

NUM_BINS = 15  # Guo et al. (2017)

# Weights (resamples, rows) → p̂ and p̌ of the events under them, each (resamples, events).
Events = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


# -- the curve's summaries ---------------------------------------------------------------------------------


@metric(
    "calibration AUC",
    better=0.5,
    words="0.5 if probabilities are right on average, to either side if they are not",
    censored=True,
)
def calibration_auc(predictive: Predictive, y: Any) -> Measure:
    """∫ p̌ dp̂ of the calibration curve: 0.5 if calibrated on average, for regression less if overconfident.

    >>> import credo
    >>> round(credo.evaluation.calibration_auc(credo.from_normal([0.0] * 4, 0.1), [-1.0, -0.5, 0.5, 1.0]), 2)
    0.25
    """
    events, widths = _curve(predictive, y)

    def measure(weights: np.ndarray) -> np.ndarray:
        predicted, observed = events(weights)
        return 0.5 + (observed - predicted) @ widths

    return measure


@metric(
    "calibration distance", better="lower", words="probabilities miss what happens by {value:.1%} or so", censored=True
)
def calibration_distance(predictive: Predictive, y: Any) -> Measure:
    """√∫ (p̌ − p̂)² dp̂ of the calibration curve: 0 if calibrated everywhere.

    >>> import credo
    >>> prediction = credo.from_probs([[0.75, 0.25]] * 4)
    >>> credo.evaluation.calibration_distance(prediction, [0, 1, 0, 0])  # class 1 in one of four rows, as predicted
    0.0
    """
    return _distance(*_curve(predictive, y))


@metric(
    "quantile error", better="lower", words="predicted quantiles miss their level by {value:.1%} or so", censored=True
)
def quantile_error(predictive: RegressionPredictive, y: Any) -> Measure:
    """√ mean (p − share of y below the p-quantile)² over all levels p: the distance of the quantile curve.

    >>> import credo
    >>> round(credo.evaluation.quantile_error(credo.from_normal([0.0] * 4, 1.0), [5.0, 6.0, 7.0, 8.0]), 2)  # all above
    0.53
    """
    targets = checked(predictive, y, RegressionPredictive)
    return _distance(*_uniform(levels_of(predictive, targets).reshape(len(targets), -1)))


def _distance(events: Events, widths: np.ndarray) -> Measure:
    def measure(weights: np.ndarray) -> np.ndarray:
        predicted, observed = events(weights)
        return np.sqrt((observed - predicted) ** 2 @ widths)

    return measure


def _curve(predictive: Predictive, y: Any) -> tuple[Events, np.ndarray]:
    """The events of `calibration_curve` with its default settings."""
    targets = checked(predictive, y)
    if isinstance(predictive, RegressionPredictive):
        is_censored = predictive.parted(targets)[1] is not None
        levels = levels_of(predictive, targets) if is_censored else nssr_probabilities(predictive, targets)[0]
        return _uniform(levels[:, None])
    several_classes(targets)
    return _windows(*class_events(predictive, targets, None)[:2])


def _windows(predicted: np.ndarray, happened: np.ndarray) -> tuple[Events, np.ndarray]:
    """Points whose predicted probabilities lie in one window make an event."""
    window, widths = windows(predicted)
    seen = np.unique(window)
    member = (window[:, None] == seen).astype(float)
    gaps, hits = member * predicted[:, None], member * happened[:, None]

    def events(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        counts = np.maximum(weights @ member, 1e-9)
        return weights @ gaps / counts, weights @ hits / counts

    return events, widths[seen]


def _uniform(levels: np.ndarray) -> tuple[Events, np.ndarray]:
    """The distribution function of levels (rows, outputs) that a calibrated model makes uniform; NaN are left out."""
    num_outputs = levels.shape[1]
    order = np.argsort(levels.ravel(), kind="stable")[: np.sum(is_observed(levels))]  # NaN are last
    predicted = levels.ravel()[order]
    last = np.searchsorted(predicted, predicted, side="right") - 1
    around = np.concatenate([[0.0], predicted, [1.0]])

    def events(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        total = np.cumsum(weights[:, order // num_outputs], axis=1)
        return predicted, total[:, last] / total[:, -1:]

    return events, (around[2:] - around[:-2]) / 2


# -- classes -----------------------------------------------------------------------------------------------


@metric("ECE", better="lower", words="the confidence of the labels is off by {value:.1%} on average")
def ece(predictive: ClassPredictive, y: Any, *, num_bins: int = NUM_BINS) -> Measure:
    """Expected calibration error Σ_b n_b/N · |accuracy − confidence|, of the most probable class, in equal bins.

    >>> from credo import from_probs
    >>> round(ece(from_probs([[0.2, 0.8]] * 4), [1, 1, 0, 0]), 3)
    0.3
    """
    confidence, correct = _confidence(predictive, y)
    return _binned_error(confidence, correct, _equal_width(confidence, num_bins))


@metric("MCE", better="lower", words="the confidence of the labels is off by {value:.1%} where it is worst")
def mce(predictive: ClassPredictive, y: Any, *, num_bins: int = NUM_BINS) -> Measure:
    """Maximum calibration error max_b |accuracy − confidence| over the bins of the ECE that are not empty.

    >>> import credo
    >>> round(credo.evaluation.mce(credo.from_probs([[0.2, 0.8]] * 4 + [[0.0, 1.0]] * 4), [1, 1, 0, 0] + [1] * 4), 2)
    0.3
    """
    confidence, correct = _confidence(predictive, y)
    member = _members(_equal_width(confidence, num_bins))
    gaps = member * (confidence - correct)[:, None]

    def measure(weights: np.ndarray) -> np.ndarray:
        counts = weights @ member
        return np.max(np.abs(weights @ gaps) / np.where(counts > 0, counts, np.inf), axis=1)

    return measure


@metric("class-wise ECE", better="lower", words="the probability of a class is off by {value:.1%} on average")
def static_error(predictive: ClassPredictive, y: Any, *, num_bins: int = NUM_BINS) -> Measure:
    """Static calibration error: the ECE of each class against the rest, averaged over classes (SCE).

    >>> import credo
    >>> round(credo.evaluation.static_error(credo.from_probs([[0.2, 0.8]] * 4), [1, 1, 0, 0]), 2)
    0.3
    """
    return _class_average(predictive, y, lambda probs: _equal_width(probs, num_bins))


@metric("adaptive ECE", better="lower", words="the same, in groups of equally many rows")
def adaptive_error(predictive: ClassPredictive, y: Any, *, num_bins: int = NUM_BINS) -> Measure:
    """As the class-wise ECE, in bins that hold equally many rows each (ACE).

    >>> import credo
    >>> round(credo.evaluation.adaptive_error(credo.from_probs([[0.2, 0.8]] * 4), [1, 1, 0, 0], num_bins=2), 2)
    0.5
    """
    return _class_average(predictive, y, lambda probs: _equal_mass(probs, num_bins))


@metric("thresholded ECE", better="lower", words="the same, of probabilities above 1% alone")
def thresholded_error(
    predictive: ClassPredictive, y: Any, *, num_bins: int = NUM_BINS, threshold: float = 0.01
) -> Measure:
    """As the adaptive ECE, but only of probabilities above a threshold: tiny ones are many and say little (TACE).

    >>> import credo
    >>> prediction = credo.from_probs([[0.995, 0.005], [0.9, 0.1]])
    >>> round(credo.evaluation.thresholded_error(prediction, [0, 1], num_bins=1), 3)
    0.674
    """
    if not 0 <= threshold < 1:
        raise ValueError(f"threshold must lie between 0 and 1, got {threshold}")
    return _class_average(predictive, y, lambda probs: _equal_mass(probs, num_bins, probs > threshold))


def _confidence(predictive: ClassPredictive, y: Any) -> tuple[np.ndarray, np.ndarray]:
    labels = checked(predictive, y, ClassPredictive)
    several_classes(labels)
    confidence, correct, _ = class_events(predictive, labels, "confidence")
    return confidence, correct


def _class_average(predictive: ClassPredictive, y: Any, binned: Callable[[np.ndarray], np.ndarray]) -> Measure:
    labels = checked(predictive, y, ClassPredictive)
    several_classes(labels)
    # Of each class only the bins are kept, in few bytes: who belongs to which bin would be a matrix for each.
    bins = [_in_few_bytes(binned(probs)) for probs in predictive.probs.T]
    counted = [label for label, own in enumerate(bins) if np.any(own >= 0)]

    def measure(weights: np.ndarray) -> np.ndarray:
        total = np.zeros(len(weights))
        for label in counted:
            total += _binned_error(predictive.probs[:, label], labels == label, bins[label])(weights)
        return total / len(counted) if counted else np.full(len(weights), np.nan)

    return measure


def _in_few_bytes(bins: np.ndarray) -> np.ndarray:
    return bins.astype(np.min_scalar_type(-1 - int(bins.max(initial=0))))


def _binned_error(predicted: np.ndarray, happened: np.ndarray, bins: np.ndarray) -> Measure:
    """Σ_b n_b/n · |mean predicted − mean happened|; rows in bin −1 are left out of the n."""
    member = _members(bins)
    gaps = member * (predicted - happened)[:, None]
    counted = bins >= 0
    return lambda weights: np.abs(weights @ gaps).sum(1) / np.maximum(weights @ counted, 1e-9)


def _members(bins: np.ndarray) -> np.ndarray:
    return (bins[:, None] == np.arange(bins.max() + 1)).astype(float)


def _equal_width(probs: np.ndarray, num_bins: int) -> np.ndarray:
    if num_bins < 1:
        raise ValueError(f"num_bins must be at least 1, got {num_bins}")
    return np.minimum((probs * num_bins).astype(int), num_bins - 1)


def _equal_mass(probs: np.ndarray, num_bins: int, counted: np.ndarray | None = None) -> np.ndarray:
    """The bin of each row by its rank; −1 for rows that do not count."""
    if num_bins < 1:
        raise ValueError(f"num_bins must be at least 1, got {num_bins}")
    rows = np.arange(len(probs)) if counted is None else np.flatnonzero(counted)
    bins = np.full(len(probs), -1)
    bins[rows[np.argsort(probs[rows], kind="stable")]] = np.arange(len(rows)) * num_bins // max(len(rows), 1)
    return bins


# -- regression --------------------------------------------------------------------------------------------


def coverage_of(level: float) -> Any:
    """The metric for the share of targets inside the central interval of a level; best if equal to it."""
    require_fraction(level=level)

    @metric(
        f"coverage of {level:.0%} intervals",
        better=level,
        words=f"the {level:.0%} interval holds {{value:.0%}} of the targets",
        censored=True,
    )
    def coverage(predictive: RegressionPredictive, y: Any) -> Measure:
        targets = checked(predictive, y, RegressionPredictive)
        # y is inside the central interval exactly where its probability level is: no quantile has to be solved for.
        inside = np.abs(2 * levels_of(predictive, targets) - 1) <= level
        return mean_of_outputs(inside, targets)

    return coverage


def coverage(predictive: RegressionPredictive, y: Any, level: float = 0.95) -> float:
    """The share of targets inside the central interval that should hold a share `level` of them.

    >>> import credo
    >>> credo.evaluation.coverage(credo.from_normal([0.0] * 4, 1.0), [-3.0, -1.0, 1.0, 1.5], level=0.9)
    0.75
    """
    return coverage_of(level)(predictive, y)


@metric(
    "sharpness",
    better="lower",
    unit="y",
    words="the predicted sd is {value:.3g}{unit}: narrow is good where it is right",
    censored=True,
)
def sharpness(predictive: RegressionPredictive, y: Any) -> Measure:
    """√ mean predictive variance, where there is a target: how narrow the predictions are, whatever it is.

    >>> import credo
    >>> round(credo.evaluation.sharpness(credo.from_normal([0.0, 5.0], 0.5), [0.1, 7.0]), 3)
    0.5
    """
    targets = checked(predictive, y, RegressionPredictive)
    squares = mean_of_outputs(predictive.variance, targets)
    return lambda weights: np.sqrt(squares(weights))
