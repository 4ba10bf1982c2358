"""Calibration curves against exact cases, known laws, and models made wrong by a known factor."""

import numpy as np
import pytest
from scipy import stats
from sklearn.calibration import calibration_curve as sklearn_curve

import credo
from credo.evaluation.calibration import (
    CalibrationCurve,
    binary_curve,
    calibration_curve,
    calibration_curves,
    nssr_curve,
)
from credo.evaluation.residuals import nssr
from tests.evaluation.synthetic import classes, regression
from tests.statistical.moments import FALSE_FAILURE, assert_plausible, sigmas

COVARIANCE = np.array([[2.0, 0.9, 0.3], [0.9, 1.0, -0.2], [0.3, -0.2, 0.5]])


def vectors(num: int, *, spread: float = 0.0, seed: int = 0) -> tuple[credo.Predictive, np.ndarray]:
    """Three correlated outputs; the draws of the mean spread by `spread`, and y comes from the marginal."""
    rng = np.random.default_rng(seed)
    centre, root = rng.normal(size=(num, 3)), np.linalg.cholesky(COVARIANCE)
    draws = centre + spread * rng.normal(size=(60, num, 3))
    y = centre + spread * rng.normal(size=(num, 3)) + rng.normal(size=(num, 3)) @ root.T
    return credo.from_normal(draws, covariance=COVARIANCE), y


# -- binary events -----------------------------------------------------------------------------------------


def test_event_sets_by_hand() -> None:
    probs, happened = np.array([0.05, 0.15, 0.15, 0.55, 0.95]), np.array([0, 1, 0, 1, 1])
    window = binary_curve(probs, happened, delta=0.25)
    np.testing.assert_allclose(window.predicted, [np.mean([0.05, 0.15, 0.15]), 0.75])
    np.testing.assert_allclose(window.observed, [1 / 3, 1])
    np.testing.assert_array_equal(window.counts, [3, 2])
    below = binary_curve(probs, happened, delta=0.25, events="below")
    np.testing.assert_allclose(below.observed, [1 / 3, 3 / 5])
    np.testing.assert_allclose(below.predicted, [np.mean(probs[:3]), np.mean(probs)])
    above = binary_curve(probs, happened, delta=0.25, events="above")
    np.testing.assert_allclose(above.observed, [3 / 5, 1])
    assert window.auc == pytest.approx(0.5 + 0.5 * (1 / 3 - 0.35 / 3) + 0.5 * (1 - 0.75))
    assert window.distance == pytest.approx(np.sqrt(0.5 * (1 / 3 - 0.35 / 3) ** 2 + 0.5 * 0.25**2))


def test_windows_without_points_are_no_events() -> None:
    curve = binary_curve(np.array([0.02, 0.5, 1.0]), np.array([0, 1, 1]))
    np.testing.assert_allclose(curve.predicted, [0.02, 0.5, 1.0])
    np.testing.assert_allclose(curve.widths, 0.1)
    assert curve.auc == pytest.approx(0.5 + 0.1 * (-0.02 + 0.5))
    # A last window that would end beyond 1 is cut there.
    np.testing.assert_allclose(binary_curve(np.array([0.1, 0.99]), np.array([0, 1]), delta=0.15).widths, [0.3, 0.1])


def test_windows_match_scikit_learn() -> None:
    prediction, labels = classes(500, 2)
    curve = calibration_curve(prediction, labels)
    observed, predicted = sklearn_curve(labels, prediction.probs[:, 1], n_bins=10)
    np.testing.assert_allclose(curve.predicted, predicted, rtol=1e-6)
    np.testing.assert_allclose(curve.observed, observed, rtol=1e-6)


def assert_called_calibrated(curves: list[CalibrationCurve]) -> None:
    """Verdicts and bands err once in 20 data sets, as they say; areas by their own standard errors."""
    fewest = stats.binom.ppf(FALSE_FAILURE / 3, len(curves), 0.95)
    assert sum(curve.direction == "calibrated" for curve in curves) >= fewest
    assert sum(not curve.regions for curve in curves) >= fewest
    assert all(abs(curve.auc - 0.5) < sigmas(3 * len(curves)) * curve.auc_error for curve in curves)


@pytest.mark.parametrize("events", ["window", "below", "above"])
def test_calibrated_classifier_is_called_so(events: str, seed: int) -> None:
    sets = (classes(4000, 2, seed=20 * seed + number) for number in range(20))
    assert_called_calibrated([calibration_curve(*one, events=events) for one in sets])


def test_nested_events_against_p_itself_would_leave_the_diagonal(seed: int) -> None:
    """Read literally, [0, p] puts p̌ against p: the best of models would look underconfident there."""
    prediction, labels = classes(4000, 2, seed=seed)
    curve = calibration_curve(prediction, labels, events="below")
    levels = 0.1 * np.arange(1, 11)
    assert np.max(np.abs(curve.observed - curve.predicted)) < 0.05
    assert np.max(np.abs(curve.observed - levels)) > 0.2


def test_distance_goes_to_zero_with_more_points(seed: int) -> None:
    few, many = (calibration_curve(*classes(num, 2, seed=seed)).distance for num in (200, 20000))
    assert many < 0.03
    assert many < few / 3


@pytest.mark.parametrize("num_classes", [2, 4])
@pytest.mark.parametrize(("sharpened", "direction"), [(2.0, "overconfident"), (0.5, "underconfident")])
def test_direction_of_classifiers(num_classes: int, sharpened: float, direction: str, seed: int) -> None:
    curves = calibration_curves(*classes(3000, num_classes, sharpened=sharpened, seed=seed))
    assert set(curves) == {"confidence", "pooled", *(f"class {label}" for label in range(num_classes))}
    for curve in curves.values():
        assert curve.direction == direction
        assert direction in curve.verdict.lower()
        assert curve.regions
        assert all(region.direction == direction for region in curve.regions)


def test_pooled_and_one_against_the_rest_are_binary_problems() -> None:
    prediction, labels = classes(300, 3)
    one = calibration_curve(prediction, labels, of=2)
    np.testing.assert_array_equal(one.observed, binary_curve(prediction.probs[:, 2], labels == 2).observed)
    pooled = calibration_curve(prediction, labels, of="pooled")
    assert pooled.counts.sum() == 900
    assert pooled.histogram.sum() == 900


def test_band_holds_a_calibrated_curve_as_often_as_it_says(seed: int) -> None:
    """Both bands are for whole curves: 95% of calibrated models stay inside, or a little more."""
    num = 200
    inside = {
        kind: np.mean([not calibration_curve(*make(150, seed=num * seed + one)).regions for one in range(num)])
        for kind, make in (("classes", lambda n, seed: classes(n, 2, seed=seed)), ("regression", regression))
    }
    for share in inside.values():
        assert share >= stats.binom.ppf(FALSE_FAILURE / 2, num, 0.95) / num
    # Not so wide that nothing could leave it.
    assert calibration_curve(*regression(600, claimed=0.5, seed=seed)).regions
    assert calibration_curve(*classes(600, 2, sharpened=3.0, seed=seed)).regions


# -- regression --------------------------------------------------------------------------------------------


def test_regression_curve_by_hand() -> None:
    prediction = credo.from_normal(np.zeros(3), 1.0)
    y = np.array([0.5, -2.0, 1.0])
    curve = calibration_curve(prediction, y)
    np.testing.assert_allclose(curve.predicted, stats.chi2.cdf([0.25, 1.0, 4.0], 1), rtol=1e-6)
    np.testing.assert_allclose(curve.observed, [1 / 3, 2 / 3, 1])


def test_observed_probability_as_printed_fails(seed: int) -> None:
    """The paper prints the share of p̂ⱼ ≥ p̂ᵢ: a calibrated model would run down the other diagonal."""
    curve = calibration_curve(*regression(2000, seed=seed))
    printed = 1 - curve.observed + 1 / 2000
    assert np.max(np.abs(curve.observed - curve.predicted)) < 0.05
    assert np.max(np.abs(printed - (1 - curve.predicted))) < 0.05
    assert np.max(np.abs(printed - curve.predicted)) > 0.9


@pytest.mark.parametrize("of", ["nssr", "quantile", "interval"])
def test_calibrated_regression(of: str, seed: int) -> None:
    sets = (regression(3000, seed=20 * seed + number) for number in range(20))
    assert_called_calibrated([calibration_curve(*one, of=of) for one in sets])
    assert calibration_curve(*regression(30000, seed=seed), of=of).distance < 0.01


@pytest.mark.parametrize("of", ["nssr", "quantile", "interval"])
@pytest.mark.parametrize(("claimed", "direction"), [(0.6, "overconfident"), (1.6, "underconfident")])
def test_direction_of_regressions(of: str, claimed: float, direction: str, seed: int) -> None:
    curve = calibration_curve(*regression(1000, claimed=claimed, seed=seed), of=of)
    assert curve.direction == direction
    assert curve.regions
    assert all(region.direction == direction for region in curve.regions)


def test_auc_of_a_known_mistake(seed: int) -> None:
    """With sd too small by c, AUC = 1 − E[χ²₁-cdf(z²/c²)] = 1 − E|2Φ(z/c) − 1|, z standard normal."""
    claimed = 0.5
    grid = stats.norm.ppf((np.arange(20000) + 0.5) / 20000)
    expected = 1 - np.mean(np.abs(2 * stats.norm.cdf(grid / claimed) - 1))
    curve = calibration_curve(*regression(5000, claimed=claimed, seed=seed))
    assert curve.auc == pytest.approx(expected, abs=sigmas() * curve.auc_error)


def test_nssr_with_a_known_covariance_follows_chi_squared(seed: int) -> None:
    values, note = nssr(*vectors(2000, seed=seed))
    assert note == ""
    assert_plausible(stats.kstest(values, stats.chi2(3).cdf).pvalue)


def test_nssr_equals_the_plain_formula() -> None:
    prediction, y = vectors(20, spread=0.7)
    residuals = prediction.mean - y
    expected = [r @ np.linalg.inv(c) @ r for r, c in zip(residuals, prediction.covariance, strict=True)]
    np.testing.assert_allclose(nssr(prediction, y)[0], expected, rtol=1e-4)


def test_both_parts_of_the_covariance_are_in_the_curve(seed: int) -> None:
    """A wide posterior: without the epistemic or without the aleatoric part the law does not hold."""
    prediction, y = vectors(2000, spread=1.2, seed=seed)
    full = nssr_curve(prediction, y)
    assert stats.kstest(full.predicted, "uniform").statistic < 0.05
    aleatoric = credo.from_normal(prediction.mean[None], covariance=COVARIANCE)
    epistemic = credo.from_normal(prediction.mean[None], covariance=1.2**2 * np.eye(3))
    for part in (aleatoric, epistemic):
        curve = nssr_curve(part, y)
        assert stats.kstest(curve.predicted, "uniform").pvalue < 1e-12
        assert curve.direction == "overconfident"


def test_few_draws_need_hotelling(seed: int) -> None:
    """A covariance of 12 draws in 3 dimensions is far from known: χ² is too narrow, the exact law is not."""
    rng = np.random.default_rng(seed)
    draws, y = rng.normal(size=(12, 3000, 3)), rng.normal(size=(3000, 3))
    prediction = credo.from_normal(draws, 1e-3)
    exact = nssr_curve(prediction, y, law="hotelling")
    assert_plausible(stats.kstest(exact.predicted, "uniform").pvalue)
    assert nssr_curve(prediction, y).direction == "overconfident"


def test_values_without_noise_are_judged_by_the_draws_alone(seed: int) -> None:
    """The function itself has no noise: with that of the model around it, the curve would be underconfident."""
    rng = np.random.default_rng(seed)
    draws, y = rng.normal(size=(40, 3000, 3)), rng.normal(size=(3000, 3))
    prediction = credo.from_normal(draws, 0.8)
    np.testing.assert_allclose(prediction.epistemic_covariance[7], np.cov(draws[:, 7].T), rtol=1e-4, atol=1e-5)
    exact = nssr_curve(prediction, y, law="hotelling", noise=False)
    assert_plausible(stats.kstest(exact.predicted, "uniform").pvalue)
    assert nssr_curve(prediction, y, noise=False).direction == "overconfident"
    assert nssr_curve(prediction, y, law="hotelling").direction == "underconfident"
    alone = nssr_curve(credo.from_normal(draws[..., 0], 0.8), y[:, 0], law="hotelling", noise=False)
    assert_plausible(stats.kstest(alone.predicted, "uniform").pvalue)


def test_a_model_that_is_never_right_has_no_area_under_its_curve() -> None:
    """All p̂ are rounded to one: none of the residuals is as short as it should be."""
    curve = nssr_curve(credo.from_normal(np.zeros(400), 1e-3), np.ones(400))
    np.testing.assert_array_equal(curve.predicted, 1.0)
    assert curve.auc < 0.01
    assert curve.direction == "overconfident"


def test_singular_covariance_gets_a_ridge_and_says_so() -> None:
    rng = np.random.default_rng(9)
    same = rng.normal(size=(200, 50, 1))
    prediction = credo.from_normal(np.concatenate([same, same], axis=-1), 1e-6)
    values, note = nssr(prediction, np.zeros((50, 2)))
    assert "50 of 50 rows was singular" in note
    assert np.all(np.isfinite(values))
    assert note in str(nssr_curve(prediction, np.zeros((50, 2))))


# -- bad input ---------------------------------------------------------------------------------------------


def test_bad_input() -> None:
    prediction, labels = classes(50, 3)
    with pytest.raises(ValueError, match="one class only"):
        calibration_curve(prediction, np.zeros(50, int))
    with pytest.raises(ValueError, match="a class from 0 to 2"):
        calibration_curve(prediction, labels, of=3)
    with pytest.raises(ValueError, match="delta must lie"):
        calibration_curve(prediction, labels, delta=0.0)
    with pytest.raises(ValueError, match="events must be"):
        calibration_curve(prediction, labels, events="around")
    with pytest.raises(ValueError, match="level must lie"):
        calibration_curve(prediction, labels, level=1.0)
    prediction, y = regression(10)
    with pytest.raises(ValueError, match="'nssr', 'quantile' or 'interval'"):
        calibration_curve(prediction, y, of="confidence")
    with pytest.raises(ValueError, match="law must be"):
        nssr_curve(prediction, y, law="normal")
    with pytest.raises(ValueError, match="more draws than outputs"):
        nssr_curve(prediction, y, law="hotelling")
    with pytest.raises(ValueError, match="all targets are missing"):
        calibration_curve(prediction, np.full(10, np.nan))
