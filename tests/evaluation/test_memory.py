"""Many rows of many classes are judged within a small multiple of what their probabilities take."""

import tracemalloc

import numpy as np
import pytest

import credo
from credo.evaluation.calibration import binary_curve
from credo.evaluation.calibration_error import thresholded_error
from credo.predictive import ClassPredictive


@pytest.fixture(scope="module")
def many_classes() -> tuple[ClassPredictive, np.ndarray]:
    rng = np.random.default_rng(0)
    scores = np.exp(2 * rng.normal(size=(2000, 100)))
    return credo.from_probs((scores / scores.sum(1, keepdims=True)).astype(np.float32)), rng.integers(0, 100, 2000)


def test_evaluation_takes_a_small_multiple_of_the_probabilities(many_classes, monkeypatch) -> None:
    prediction, labels = many_classes
    monkeypatch.setattr("credo._blocks.NUMBERS_PER_SLICE", 2**14, raising=False)
    credo.evaluate(prediction[:10], labels[:10], num_resamples=0)  # what is imported for the first time
    taken = prediction.probs.nbytes
    tracemalloc.start()
    try:
        credo.evaluate(prediction, labels, num_resamples=2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # One matrix of rows × bins for each class would be sixty times as much.
    assert peak < 12 * taken


def test_a_curve_does_not_depend_on_the_slices(monkeypatch) -> None:
    rng = np.random.default_rng(1)
    predicted = rng.uniform(size=1000)
    happened = rng.uniform(size=1000) < predicted
    whole = binary_curve(predicted, happened, events="below")
    monkeypatch.setattr("credo._blocks.NUMBERS_PER_SLICE", 64)
    sliced = binary_curve(predicted, happened, events="below")
    for name in ("predicted", "observed", "counts", "lower", "upper", "bias", "bias_error", "auc_error", "histogram"):
        np.testing.assert_allclose(getattr(sliced, name), getattr(whole, name), rtol=1e-12, err_msg=name)


def test_probabilities_that_all_lie_below_the_threshold_have_no_thresholded_error() -> None:
    prediction = credo.from_probs(np.full((4, 200), 1 / 200))
    assert np.isnan(thresholded_error(prediction, [0, 1, 2, 3]))
