"""Calibration errors against plain loops over bins, exact cases, and the curve they summarise."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

import credo
from credo.evaluation import (
    adaptive_error,
    calibration_auc,
    calibration_curve,
    calibration_distance,
    coverage,
    ece,
    mce,
    quantile_error,
    sharpness,
    static_error,
    thresholded_error,
)
from tests.evaluation.synthetic import classes, regression
from tests.statistical.moments import sigmas


def gaps(predicted: np.ndarray, happened: np.ndarray, bins: list[np.ndarray]) -> list[tuple[float, float]]:
    """The weight of each bin and |mean predicted − mean happened|, the plain way."""
    total = sum(len(rows) for rows in bins)
    return [(len(rows) / total, abs(np.mean(predicted[rows]) - np.mean(happened[rows]))) for rows in bins if len(rows)]


def equal_width(probs: np.ndarray, num: int) -> list[np.ndarray]:
    edges = np.linspace(0, 1, num + 1)
    return [np.flatnonzero((probs >= low) & ((probs < high) | (high == 1))) for low, high in pairwise(edges)]


def test_ece_and_mce_match_a_loop() -> None:
    prediction, labels = classes(400, sharpened=2.0)
    confidence = prediction.probs.max(1)
    parts = gaps(confidence, prediction.label == labels, equal_width(confidence, 15))
    assert ece(prediction, labels) == pytest.approx(sum(weight * gap for weight, gap in parts), rel=1e-5)
    assert mce(prediction, labels) == pytest.approx(max(gap for _, gap in parts), rel=1e-5)


def test_class_wise_errors_match_a_loop() -> None:
    prediction, labels = classes(330, sharpened=2.0)
    probs = prediction.probs
    static, adaptive, thresholded = [], [], []
    for label in range(4):
        column, happened = probs[:, label], labels == label
        static.append(sum(w * g for w, g in gaps(column, happened, equal_width(column, 15))))
        order = np.argsort(column)
        adaptive.append(np.mean([g for _, g in gaps(column, happened, np.array_split(order, 15))]))
        kept = order[column[order] > 0.1]
        thresholded.append(sum(w * g for w, g in gaps(column, happened, np.array_split(kept, 5))))
    assert static_error(prediction, labels) == pytest.approx(np.mean(static), rel=1e-5)
    assert adaptive_error(prediction, labels) == pytest.approx(np.mean(adaptive), rel=1e-5)
    # np.array_split fills its first bins, ranks fill evenly: up to a row's worth apart.
    expected = pytest.approx(np.mean(thresholded), rel=0.05)
    assert thresholded_error(prediction, labels, num_bins=5, threshold=0.1) == expected


def test_threshold_leaves_out_classes_that_are_never_likely() -> None:
    probs = np.tile([0.699, 0.3, 0.001], (10, 1))
    labels = np.array([0] * 7 + [1] * 3)
    two = [abs(0.699 - 0.7), abs(0.3 - 0.3)]
    assert thresholded_error(credo.from_probs(probs), labels, num_bins=1) == pytest.approx(np.mean(two), abs=1e-6)


def test_errors_of_a_calibrated_model_are_small_and_of_a_wrong_one_not(seed: int) -> None:
    for error in (ece, static_error, adaptive_error, thresholded_error):
        assert error(*classes(20000, seed=seed)) < 0.02
        assert error(*classes(20000, sharpened=3.0, seed=seed)) > 0.05


@pytest.mark.parametrize("case", [classes(500, 2), classes(500, 5), regression(300), regression(300, claimed=0.5)])
def test_summaries_are_those_of_the_curve(case: tuple) -> None:
    curve = calibration_curve(*case)
    assert calibration_auc(*case) == pytest.approx(curve.auc, abs=1e-6)
    assert calibration_distance(*case) == pytest.approx(curve.distance, abs=1e-6)


def test_quantile_error_is_the_distance_of_the_quantile_curve() -> None:
    case = regression(300, claimed=0.5)
    assert quantile_error(*case) == pytest.approx(calibration_curve(*case, of="quantile").distance, abs=1e-6)


@pytest.mark.parametrize("claimed", [0.5, 1.0])
def test_coverage_is_that_of_the_interval(claimed: float, seed: int) -> None:
    prediction, y = regression(2000, claimed=claimed, seed=seed)
    lower, upper = prediction.interval(0.9)
    assert coverage(prediction, y, 0.9) == pytest.approx(np.mean((lower <= y) & (y <= upper)), abs=1e-3)
    truth = 1 - 2 * stats.norm.cdf(stats.norm.ppf(0.05) * claimed)
    assert coverage(prediction, y, 0.9) == pytest.approx(truth, abs=sigmas() * np.sqrt(truth * (1 - truth) / 2000))


def test_sharpness_is_the_root_mean_variance() -> None:
    prediction, y = regression(100)
    assert sharpness(prediction, y) == pytest.approx(np.sqrt(np.mean(prediction.variance)))


def test_bad_input() -> None:
    prediction, labels = classes(20)
    for error in (ece, mce, static_error, adaptive_error, thresholded_error, calibration_auc):
        with pytest.raises(ValueError, match="one class only"):
            error(prediction, np.ones(20, int))
    with pytest.raises(ValueError, match="num_bins"):
        ece(prediction, labels, num_bins=0)
    with pytest.raises(ValueError, match="num_bins"):
        adaptive_error(prediction, labels, num_bins=0)
    with pytest.raises(ValueError, match="threshold"):
        thresholded_error(prediction, labels, threshold=1.0)
    with pytest.raises(ValueError, match="level"):
        coverage(*regression(5), level=1.5)
