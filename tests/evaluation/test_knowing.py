"""Selective prediction and detection of foreign inputs, against scikit-learn, scipy and plain loops."""

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics

import credo
from credo.evaluation import detect, detections, risk_coverage, risk_coverage_area, uncertainty
from credo.evaluation import uncertainty_error_correlation as correlation
from tests.evaluation.synthetic import classes, regression, softmax
from tests.statistical.moments import sigmas

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("case", [classes(150), regression(150)])
def test_risk_coverage_matches_a_loop(case: tuple) -> None:
    prediction, y = case
    curve = risk_coverage(prediction, y)
    order = np.argsort(uncertainty(prediction), kind="stable")
    loss = (prediction.label != y) * 1.0 if curve.risk_name == "error rate" else (prediction.mean - y) ** 2
    for kept in (1, 10, 75, 150):
        assert curve.coverage[kept - 1] == pytest.approx(kept / 150)
        assert curve.risk[kept - 1] == pytest.approx(np.mean(loss[order[:kept]]), rel=1e-5)
    assert risk_coverage_area(prediction, y) == pytest.approx(curve.area)
    assert np.all(curve.oracle <= curve.risk + 1e-9)
    assert curve.excess_area > 0


def test_useful_uncertainty_lowers_the_area(seed: int) -> None:
    prediction, labels = classes(3000, seed=seed)
    error = np.mean(prediction.label != labels)
    assert risk_coverage_area(prediction, labels) < 0.6 * error
    blurred = credo.from_probs(0.5 * prediction.probs + 0.5 * np.eye(4)[prediction.label])
    noisy = np.where(np.random.default_rng(seed).random((3000, 1)) < 0.5, prediction.probs, blurred.probs)
    assert risk_coverage_area(prediction, labels) < risk_coverage_area(credo.from_probs(noisy), labels)


def test_correlation_is_spearman(seed: int) -> None:
    prediction, y = regression(2000, seed=seed)
    expected = stats.spearmanr(prediction.variance, (prediction.mean - y) ** 2).statistic
    assert correlation(prediction, y) == pytest.approx(expected, rel=1e-6)
    # The sd of log sd is 0.3, that of log z² is 2.2: the correlation is 0.25, and known to 1/√2000.
    assert correlation(prediction, y) > 0.25 - sigmas() / np.sqrt(2000)
    assert np.isnan(correlation(credo.from_normal(np.zeros(9), 1.0), np.arange(9.0)))


@pytest.mark.parametrize("by", ["entropy", "mutual_information", "max_probability"])
def test_detection_matches_scikit_learn(by: str) -> None:
    logits = RNG.normal(size=(6, 300, 4))
    inside, outside = credo.from_probs(softmax(3 * logits[:, :200])), credo.from_probs(softmax(logits[:, 200:]))
    values = np.concatenate([uncertainty(inside, by), uncertainty(outside, by)])
    foreign = np.repeat([0, 1], [200, 100])
    found = detect(inside, outside, by)
    assert found.auroc == pytest.approx(metrics.roc_auc_score(foreign, values))
    assert found.aupr == pytest.approx(metrics.average_precision_score(foreign, values))
    # At the threshold that finds 95 of the 100 foreign inputs.
    threshold = np.sort(values[200:])[5]
    assert found.fpr95 == pytest.approx(np.mean(values[:200] >= threshold))
    assert found.by in str(found)


def test_detection_by_epistemic_variance() -> None:
    inside = credo.from_normal(0.1 * RNG.normal(size=(20, 50)), 1.0)
    outside = credo.from_normal(2.0 * RNG.normal(size=(20, 60)), 1.0)
    assert set(detections(inside, outside)) == {"epistemic", "variance"}
    assert detect(inside, outside).by == "epistemic"
    assert detect(inside, outside).auroc == 1.0
    swapped = detect(outside, inside)
    assert swapped.auroc == 0.0
    assert swapped.fpr95 == 1.0


def test_standard_error_of_the_auroc(seed: int) -> None:
    """Hanley and McNeil's formula is near the spread over repeated data sets."""
    rng = np.random.default_rng(seed)

    def area() -> tuple[float, float]:
        low, high = (1 / (1 + np.exp(-rng.normal(shift, 1, 80))) for shift in (-1.5, -0.5))
        inside, outside = (credo.from_probs(np.stack([1 - p / 2, p / 2], 1)) for p in (low, high))
        found = detect(inside, outside)
        return found.auroc, found.auroc_error

    areas, errors = np.array([area() for _ in range(100)]).T
    # The relative error of an sd from 100 values is 1/√200.
    assert np.std(areas) == pytest.approx(np.mean(errors), rel=sigmas() / np.sqrt(200))


def test_bad_input() -> None:
    prediction, labels = classes(10)
    with pytest.raises(ValueError, match="entropy"):
        risk_coverage(prediction, labels, by="entrop")
    with pytest.raises(ValueError, match="outside holds no rows"):
        detect(prediction, prediction[:0])
    with pytest.raises(TypeError, match="inside is a"):
        detect(prediction, regression(5)[0])
    with pytest.raises(ValueError, match="variance"):
        uncertainty(regression(5)[0], "entropy")
