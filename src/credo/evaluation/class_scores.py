"""ROC-AUC and F1: what a classifier gets right whatever the threshold, and at the most probable class."""

from typing import Any

import numpy as np

from credo.evaluation.checks import checked
from credo.evaluation.metric import Measure, metric
from credo.predictive import ClassPredictive


@metric(
    "ROC-AUC",
    better="higher",
    words="of two rows of different classes, the right one gets more probability in {value:.0%} of cases",
)
def roc_auc(predictive: ClassPredictive, y: Any) -> Measure:
    """P(p̂ₖ of a row of class k > p̂ₖ of another row), ties counting half: the area under the ROC curve.

    Of more than two classes the average over each against the rest, without those that no row or every row is of; nan
    where all rows are of one class.

    >>> from credo import from_probs
    >>> roc_auc(from_probs([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3], [0.2, 0.8]]), [0, 0, 1, 1])
    0.75
    """
    labels = checked(predictive, y, ClassPredictive)
    num_classes = predictive.probs.shape[1]
    kinds = [1] if num_classes == 2 else np.unique(labels).tolist()
    areas = [_area(predictive.probs[:, kind], labels == kind) for kind in kinds]
    return lambda weights: _mean_of_known([area(weights) for area in areas])


def _area(scores: np.ndarray, positive: np.ndarray) -> Measure:
    """Mann and Whitney's: Σ over positives of the negatives below, and half of those at the same score."""
    order = np.argsort(scores, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(scores[order]) > 0))

    def measure(weights: np.ndarray) -> np.ndarray:
        ordered = weights[:, order]
        ups, downs = (np.add.reduceat(ordered * of, starts, axis=1) for of in (positive[order], ~positive[order]))
        won = np.sum(ups * (np.cumsum(downs, axis=1) - downs / 2), axis=1)
        with np.errstate(invalid="ignore"):
            return won / (ups.sum(axis=1) * downs.sum(axis=1))

    return measure


@metric(
    "F1 of class 1",
    better="higher",
    words="precision and recall of class 1 are {value:.0%} in harmonic mean",
)
def f1(predictive: ClassPredictive, y: Any) -> Measure:
    """2 TP / (2 TP + FP + FN) of class 1 of two: the harmonic mean of precision and recall.

    >>> from credo import from_probs
    >>> round(f1(from_probs([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]]), [0, 1, 1]), 3)
    0.667
    """
    labels = checked(predictive, y, ClassPredictive)
    if predictive.probs.shape[1] != 2:
        raise ValueError(f"f1 is of two classes, and there are {predictive.probs.shape[1]}; use f1_macro")
    shares = _harmonic(predictive, labels)
    return lambda weights: shares(weights)[:, 1]


@metric("F1, mean of classes", better="higher", words="precision and recall of a class are {value:.0%} on average")
def f1_macro(predictive: ClassPredictive, y: Any) -> Measure:
    """The F1 of each class against the rest, averaged over those that are there or are predicted.

    >>> import credo
    >>> round(credo.evaluation.f1_macro(credo.from_probs([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]]), [0, 1, 1]), 3)
    0.667
    """
    shares = _harmonic(predictive, checked(predictive, y, ClassPredictive))
    return lambda weights: _mean_of_known(list(shares(weights).T))


def _harmonic(predictive: ClassPredictive, labels: np.ndarray) -> Measure:
    """F1 of each class, (resamples, classes); nan of one that is neither there nor predicted."""
    num_classes, predicted = predictive.probs.shape[1], predictive.label

    def counts(weights: np.ndarray, which: np.ndarray) -> np.ndarray:
        return np.stack([np.bincount(which, own, num_classes) for own in weights])

    def measure(weights: np.ndarray) -> np.ndarray:
        right = counts(weights * (labels == predicted), labels)
        with np.errstate(invalid="ignore"):
            return 2 * right / (counts(weights, labels) + counts(weights, predicted))

    return measure


def _mean_of_known(values: list[np.ndarray]) -> np.ndarray:
    """The mean over classes of one number per resample, without those that have none."""
    table = np.stack(values)
    known = np.isfinite(table)
    with np.errstate(invalid="ignore"):
        return np.where(known, table, 0.0).sum(axis=0) / np.where(known.any(axis=0), known.sum(axis=0), np.nan)
