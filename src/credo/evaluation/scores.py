"""Accuracy and proper scores: is the network right, and how much probability does it give to the truth?

A proper score is best, on average, for the true distribution only (Gneiting and Raftery, 2007). All are averages over
test rows, in the user's units.
"""

from typing import Any

import numpy as np
from scipy import stats

from credo import random
from credo._blocks import each_row
from credo.data import is_observed
from credo.evaluation.checks import checked, judged
from credo.evaluation.metric import Measure, mean_by_row, mean_of, mean_of_outputs, metric
from credo.predictive import ClassPredictive, Predictive, RegressionPredictive

# 1,000 samples give the CRPS of one row to about 2%; errors of rows average out.
NUM_SAMPLES = 1000
# Most bytes that the samples of a block of rows may take.
BYTES_PER_BLOCK = 2**26


@metric(
    "log predictive density",
    better="higher",
    words="log density of the truth: to be compared with others on the same rows",
    censored=True,
)
def lpd(predictive: Predictive, y: Any) -> Measure:
    """log p(y | x, D) = log Σᵢ wᵢ p(y | x, thetaᵢ), in nats per row: the mean over draws is inside the logarithm.

    Of a censored row it is log P(Y ≥ y | x, D).

    >>> from credo import from_probs
    >>> round(lpd(from_probs([[0.5, 0.5], [0.25, 0.75]]), [0, 1]), 3)
    -0.49
    """
    return mean_of(predictive.log_prob(checked(predictive, y)))


@metric("NLL", better="lower", words="the same with the other sign", censored=True)
def nll(predictive: Predictive, y: Any) -> Measure:
    """−log p(y | x, D), in nats per row: the cross-entropy of a classifier.

    >>> import credo
    >>> round(credo.evaluation.nll(credo.from_probs([[0.5, 0.5], [0.25, 0.75]]), [0, 1]), 3)
    0.49
    """
    return mean_of(-predictive.log_prob(checked(predictive, y)))


# -- regression --------------------------------------------------------------------------------------------


@metric("RMSE", better="lower", unit="y", words="a prediction is off by {value:.3g}{unit}, and large errors count most")
def rmse(predictive: RegressionPredictive, y: Any) -> Measure:
    """√ mean (ŷ − y)², over rows and outputs, of the predictive mean ŷ.

    >>> from credo import from_normal
    >>> round(rmse(from_normal([1.0, 2.0], 1.0), [1.0, 4.0]), 3)
    1.414
    """
    targets = checked(predictive, y, RegressionPredictive)
    squares = mean_of_outputs((predictive.mean - targets) ** 2, targets)
    return lambda weights: np.sqrt(squares(weights))


@metric("MAE", better="lower", unit="y", words="a prediction is off by {value:.3g}{unit} on average")
def mae(predictive: RegressionPredictive, y: Any) -> Measure:
    """Mean |ŷ − y|, over rows and outputs, of the predictive mean ŷ.

    >>> import credo
    >>> credo.evaluation.mae(credo.from_normal([1.0, 2.0], 1.0), [1.5, 4.0])
    1.25
    """
    targets = checked(predictive, y, RegressionPredictive)
    return mean_of_outputs(np.abs(predictive.mean - targets), targets)


@metric("R²", better="higher", words="{value:.0%} of the variance is explained; a constant explains nothing")
def r2(predictive: RegressionPredictive, y: Any) -> Measure:
    """1 − Σ (ŷ − y)² / Σ (y − ȳ)², averaged over outputs: 1 if all is explained, 0 for the mean of the test rows.

    >>> from credo import from_normal
    >>> round(r2(from_normal([1.0, 2.0, 3.0], 1.0), [1.0, 2.0, 4.0]), 3)
    0.786
    """
    targets = checked(predictive, y, RegressionPredictive).astype(np.float64).reshape(len(predictive), -1)
    there = is_observed(targets)
    errors = np.where(there, (predictive.mean.reshape(targets.shape) - targets) ** 2, 0.0)
    # Centred, since the difference of two large sums would lose its digits.
    centred = np.where(there, targets - np.nanmean(targets, axis=0), 0.0)

    def measure(weights: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = weights @ centred**2 - (weights @ centred) ** 2 / (weights @ there)
            return np.mean(1 - weights @ errors / np.where(spread > 0, spread, np.nan), axis=1)

    return measure


@metric(
    "CRPS", better="lower", unit="y", words="like an average error of {value:.3g}{unit}, if the uncertainty counts too"
)
def crps(predictive: RegressionPredictive, y: Any, *, num_samples: int = NUM_SAMPLES, seed: int = 0) -> Measure:
    """Continuous ranked probability score ∫ (F(z) − I(y ≤ z))² dz = E|Y − y| − ½ E|Y − Y′|, over rows and outputs.

    In closed form if the marginal is normal, otherwise from samples.

    Arguments:
        num_samples: per row; not used for normal marginals.

    >>> import credo
    >>> round(credo.evaluation.crps(credo.from_normal([0.0], 1.0), [0.0]), 3)  # (√2 − 1)/√π
    0.234
    """
    targets = checked(predictive, y, RegressionPredictive)
    if predictive.is_normal:
        return mean_of_outputs(crps_normal(predictive.mean, predictive.std, targets), targets)
    size = max(1, BYTES_PER_BLOCK // (4 * num_samples * max(1, targets[0].size)))
    blocks = [slice(first, first + size) for first in range(0, len(targets), size)]
    key = random.key(seed)
    values = [crps_samples(predictive[rows].samples(key, num_samples), targets[rows]) for rows in blocks]
    return mean_of_outputs(np.concatenate(values), targets)


def crps_normal(mean: np.ndarray, std: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The CRPS of N(mean, std²): std · [z (2Φ(z) − 1) + 2φ(z) − 1/√π], z = (y − mean) / std."""
    z = (y - mean) / std
    return std * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))


def crps_samples(samples: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The CRPS from samples (num, …) of Y, unbiased: mean |Yᵢ − y| − Σᵢⱼ |Yᵢ − Yⱼ| / (2 n (n − 1))."""
    num = len(samples)
    if num < 2:
        raise ValueError(f"the CRPS needs at least two samples, got {num}")
    ordered = np.sort(samples.astype(np.float64), axis=0)
    # Σᵢ<ⱼ (Y₍ⱼ₎ − Y₍ᵢ₎) counts the k-th smallest 2k − n − 1 times: sorting replaces all pairs.
    coefficients = 2 * np.arange(1, num + 1) - num - 1
    return np.mean(np.abs(ordered - y), axis=0) - np.tensordot(coefficients, ordered, axes=1) / (num * (num - 1))


def squared_errors(predictive: RegressionPredictive, y: Any) -> np.ndarray:
    """(ŷ − y)² of each row, averaged over the outputs that are there."""
    targets = checked(predictive, y, RegressionPredictive)
    return mean_by_row((predictive.mean - targets) ** 2, targets)


# -- classes -----------------------------------------------------------------------------------------------


@metric("accuracy", better="higher", words="{value:.0%} of the labels are right")
def accuracy(predictive: ClassPredictive, y: Any) -> Measure:
    """The share of rows whose most probable class is the right one.

    >>> import credo
    >>> credo.evaluation.accuracy(credo.from_probs([[0.9, 0.1], [0.6, 0.4]]), [0, 1])
    0.5
    """
    labels = checked(predictive, y, ClassPredictive)
    return mean_of(predictive.label == labels)


@metric("top-k accuracy", better="higher", words="{value:.0%} of the classes are among the first five guesses")
def top_k(predictive: ClassPredictive, y: Any, *, k: int = 5) -> Measure:
    """The share of rows whose class is among the k most probable ones.

    >>> import credo
    >>> credo.evaluation.top_k(credo.from_probs([[0.5, 0.3, 0.2], [0.1, 0.3, 0.6]]), [1, 0], k=2)
    0.5
    """
    labels = checked(predictive, y, ClassPredictive)
    num_classes = predictive.probs.shape[1]
    if not 1 <= k < num_classes:
        raise ValueError(f"k must lie between 1 and {num_classes - 1} for {num_classes} classes, got {k}")

    def is_among(probs: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return np.any(np.argsort(-probs, axis=1, kind="stable")[:, :k] == labels[:, None], axis=1)

    return mean_of(each_row(is_among, predictive.probs, labels))


@metric(
    "Brier score", better="lower", words="squared error of the probabilities: 0 if sure and right, 2 if sure and wrong"
)
def brier(predictive: ClassPredictive, y: Any) -> Measure:
    """Σₖ (p̂ₖ − I(y = k))², summed over classes (Brier, 1950): from 0 to 2; twice the one-class form for two classes.

    >>> import credo
    >>> round(credo.evaluation.brier(credo.from_probs([[0.5, 0.5], [1.0, 0.0]]), [0, 0]), 3)
    0.25
    """
    labels = checked(predictive, y, ClassPredictive)

    def of_rows(probs: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return np.sum((probs - (np.arange(probs.shape[1]) == labels[:, None])) ** 2, axis=1)

    return mean_of(each_row(of_rows, predictive.probs, labels))


def confusion_matrix(predictive: ClassPredictive, y: Any) -> np.ndarray:
    """Counts of rows by true class (row) and predicted label (column).

    >>> import credo
    >>> print(credo.evaluation.confusion_matrix(credo.from_probs([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]]), [0, 1, 1]))
    [[1 0]
     [1 1]]
    """
    predictive, y = judged(predictive, y)
    labels = checked(predictive, y, ClassPredictive)
    num_classes = predictive.probs.shape[1]
    return np.bincount(labels * num_classes + predictive.label, minlength=num_classes**2).reshape(num_classes, -1)
