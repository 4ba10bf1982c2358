"""A constant and a line, beside which scores stand."""

import json

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge, LogisticRegression

from credo import Data, evaluate, from_normal
from credo.evaluation import baselines

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3)) * [1, 10, 100]
Y = X @ [1.0, 0.1, 0.0] + 0.5 * RNG.normal(size=120)
TRAIN, TEST = Data(X[:80], Y[:80]), Data(X[80:], Y[80:])


def test_of_a_regression() -> None:
    found = baselines(TRAIN, TEST, num_resamples=0)
    assert list(found) == ["constant", "linear"]
    error = np.sqrt(np.mean((TEST.y - TRAIN.y.mean()) ** 2))
    np.testing.assert_allclose(found["constant"]["rmse"].value, error, rtol=1e-5)
    line = BayesianRidge().fit((X[:80] - X[:80].mean(0)) / X[:80].std(0), Y[:80])
    ours = line.predict((X[80:] - X[:80].mean(0)) / X[:80].std(0))
    np.testing.assert_allclose(found["linear"]["rmse"].value, np.sqrt(np.mean((ours - TEST.y) ** 2)), rtol=1e-5)
    assert found["linear"]["crps"].value < found["constant"]["crps"].value


def test_of_classes() -> None:
    labels = (Y > 0).astype(int) + (Y > 1)
    train, test = Data(X[:80], labels[:80]), Data(X[80:], labels[80:])
    found = baselines(train, test, num_resamples=0)
    shares = (np.bincount(train.y) + 1) / 83
    np.testing.assert_allclose(found["constant"]["nll"].value, -np.log(shares[test.y]).mean(), rtol=1e-5)
    scale = X[:80].mean(0), X[:80].std(0)
    line = LogisticRegression(max_iter=1000).fit((X[:80] - scale[0]) / scale[1], train.y)
    expected = line.score((X[80:] - scale[0]) / scale[1], test.y)
    np.testing.assert_allclose(found["linear"]["accuracy"].value, expected)


@pytest.mark.parametrize("labels", [np.zeros(80, int), np.where(np.arange(80) < 40, 0, 2)])
def test_classes_that_nobody_has_seen_are_possible(labels: np.ndarray) -> None:
    train = Data(X[:80], labels, classes=["a", "b", "c"])
    found = baselines(train, Data(X[80:], np.arange(40) % 3), num_resamples=0)
    assert np.isfinite(found["constant"]["nll"].value)


def test_gaps_and_several_outputs() -> None:
    both = np.column_stack([Y, -3 * Y + RNG.normal(size=120)])
    both[::4, 0] = np.nan
    both[::5] = np.nan
    found = baselines(Data(X[:80], both[:80]), Data(X[80:], both[80:]), num_resamples=0)
    assert found["linear"]["r2"].value > 0.5 > found["constant"]["r2"].value


def test_scores_beside_them() -> None:
    prediction = from_normal(TEST.y + 0.1, 0.2)
    scores = evaluate(prediction, TEST.y, num_resamples=10).beside(baselines(TRAIN, TEST, num_resamples=0))
    headings, (first, *_) = scores.cells()
    assert headings == ["score", "value", "standard error", "constant", "linear", "good is", "in plain words"]
    assert first[0] == "RMSE"
    assert first[3] == f"{scores.baselines['constant']['rmse'].value:.4g}"
    assert "constant" in str(scores)
    assert list(scores.to_frame().columns) == ["label", "value", "standard_error", "constant", "linear", "better"]
    assert set(json.loads(json.dumps(scores.to_dict()))["baselines"]) == {"constant", "linear"}
    assert "constant" not in str(evaluate(prediction, TEST.y, num_resamples=0))
