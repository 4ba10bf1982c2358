"""ROC-AUC, F1 and R² are those of scikit-learn, whatever the weights."""

import numpy as np
import pytest
from sklearn import metrics

from credo import evaluate, from_normal, from_probs
from credo.evaluation import f1, f1_macro, r2, roc_auc
from credo.evaluation.metric import resample

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, 90)
# Rounded, so that scores tie.
PROBS = np.round(RNG.dirichlet(np.ones(3), 90) + np.eye(3)[LABELS], 1) + 0.01
PROBS /= PROBS.sum(axis=1, keepdims=True)
TWO = PROBS[:, :2] / PROBS[:, :2].sum(axis=1, keepdims=True)
BINARY = LABELS % 2
Y = RNG.normal(size=(60, 2)) * [1, 50] + [1000, 3]
MEAN = Y + RNG.normal(size=(60, 2)) * [0.5, 30]


def test_they_agree_with_scikit_learn() -> None:
    many, two = from_probs(PROBS), from_probs(TWO)
    np.testing.assert_allclose(roc_auc(many, LABELS), metrics.roc_auc_score(LABELS, many.probs, multi_class="ovr"))
    np.testing.assert_allclose(roc_auc(two, BINARY), metrics.roc_auc_score(BINARY, two.probs[:, 1]))
    np.testing.assert_allclose(f1_macro(many, LABELS), metrics.f1_score(LABELS, many.label, average="macro"))
    np.testing.assert_allclose(f1(two, BINARY), metrics.f1_score(BINARY, two.label))
    both = from_normal(MEAN[None], 1.0)
    # Means come back in single precision: 1000 is known to 6e-5, and the targets differ by about 1.
    np.testing.assert_allclose(r2(both, Y), metrics.r2_score(Y, MEAN), rtol=1e-3)


@pytest.mark.parametrize("metric", [roc_auc, f1, f1_macro])
def test_weights_of_rows_are_counts(metric) -> None:
    weights = resample(90, 5)
    found = metric.measure(from_probs(TWO), BINARY)(weights.astype(float))
    for own, value in zip(weights, found, strict=True):
        rows = np.repeat(np.arange(90), own)
        np.testing.assert_allclose(value, metric(from_probs(TWO[rows]), BINARY[rows]))


def test_r2_of_a_resample_is_that_of_its_rows() -> None:
    weights = resample(60, 5)
    found = r2.measure(from_normal(MEAN[None], 1.0), Y)(weights.astype(float))
    for own, value in zip(weights, found, strict=True):
        rows = np.repeat(np.arange(60), own)
        np.testing.assert_allclose(value, r2(from_normal(MEAN[None, rows], 1.0), Y[rows]), rtol=1e-6)


def test_outputs_that_are_missing_are_left_out_of_r2() -> None:
    gaps = Y.copy()
    gaps[::3, 0] = np.nan
    there = ~np.isnan(gaps[:, 0])
    expected = (metrics.r2_score(Y[there, 0], MEAN[there, 0]) + metrics.r2_score(Y[:, 1], MEAN[:, 1])) / 2
    np.testing.assert_allclose(r2(from_normal(MEAN[None], 1.0), gaps), expected, rtol=1e-3)


def test_what_has_no_value() -> None:
    assert np.isnan(r2(from_normal([1.0, 2.0], 1.0), [3.0, 3.0]))
    assert np.isnan(roc_auc(from_probs([[0.5, 0.5]] * 2), [1, 1]))
    assert roc_auc(from_probs([[0.5, 0.5]] * 4), [0, 1, 0, 1]) == 0.5
    # A class that is neither there nor predicted has no F1, and does not count.
    assert f1_macro(from_probs([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]]), [0, 1]) == 1.0
    with pytest.raises(ValueError, match="use f1_macro"):
        f1(from_probs(PROBS), LABELS)


def test_they_are_among_the_scores() -> None:
    scores = evaluate(from_probs(TWO), BINARY)
    assert {"roc_auc", "f1", "f1_macro"} <= set(scores)
    assert 0 < scores["roc_auc"].standard_error < 0.2
    assert "f1" not in set(evaluate(from_probs(PROBS), LABELS))
    assert 0 < evaluate(from_normal(MEAN[None, :, 0], 0.5), Y[:, 0])["r2"].standard_error < 0.5


def test_every_score_says_what_it_means() -> None:
    for scores in (evaluate(from_probs(TWO), BINARY), evaluate(from_normal(MEAN[None, :, 0], 0.5), Y[:, 0])):
        assert all(scores.in_words(name) for name in scores)
    assert scores.in_words("coverage_95") == f"the 95% interval holds {scores['coverage_95'].value:.0%} of the targets"
