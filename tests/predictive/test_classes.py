"""Marginals of class labels against direct numpy computations over the draws."""

import numpy as np
import pytest
from scipy.special import softmax

from credo import random
from credo.predictive import ClassPredictive, predictive
from credo.predictive import rows as module
from tests.predictive.cases import DRAWS, MODELS, OUT, ROWS, THETA, WEIGHTS, X, functions_at
from tests.statistical.moments import assert_mean


@pytest.fixture(scope="module")
def categorical():
    return predictive(MODELS["categorical"], THETA, X, weights=WEIGHTS)


@pytest.fixture(scope="module")
def binary():
    return predictive(MODELS["binary"], THETA, X)


def entropy(probs):
    return -np.sum(probs * np.log(probs), axis=-1)


def test_categorical_probabilities_and_the_split_of_their_entropy(categorical):
    each = softmax(functions_at(), axis=-1)
    probs = np.average(each, axis=0, weights=WEIGHTS)
    assert isinstance(categorical, ClassPredictive)
    np.testing.assert_allclose(categorical.functions, each, rtol=1e-4)
    np.testing.assert_allclose(categorical.probs, probs, rtol=1e-4)
    np.testing.assert_array_equal(categorical.label, probs.argmax(1))
    np.testing.assert_allclose(categorical.entropy, entropy(probs), rtol=1e-4)
    np.testing.assert_allclose(categorical.aleatoric, WEIGHTS @ entropy(each), rtol=1e-4)
    np.testing.assert_allclose(categorical.mutual_information, entropy(probs) - WEIGHTS @ entropy(each), rtol=1e-3)
    np.testing.assert_allclose(categorical.epistemic + categorical.aleatoric, categorical.entropy, rtol=1e-5)
    spread = np.average((each - probs) ** 2, axis=0, weights=WEIGHTS) / (1 - np.sum(WEIGHTS**2))
    np.testing.assert_allclose(categorical.probs_std, np.sqrt(spread), rtol=1e-3)
    labels = np.arange(ROWS) % OUT
    np.testing.assert_allclose(categorical.log_prob(labels), np.log(probs[np.arange(ROWS), labels]), rtol=1e-4)


def test_a_binary_model_has_two_columns(binary, seed):
    each = 1 / (1 + np.exp(-functions_at()[..., 0]))
    both = np.stack([1 - each, each], -1)
    assert binary.functions.shape == (DRAWS, ROWS, 2)
    np.testing.assert_allclose(binary.probs, both.mean(0), rtol=1e-4)
    np.testing.assert_array_equal(binary.label, each.mean(0) > 0.5)
    np.testing.assert_allclose(binary.aleatoric, entropy(both).mean(0), rtol=1e-4)
    np.testing.assert_allclose(binary.log_prob(np.ones(ROWS, int)), np.log(each.mean(0)), rtol=1e-4)
    assert_mean(binary.samples(random.key(seed), 3000), each.mean(0))


def test_probabilities_do_not_depend_on_the_blocks(monkeypatch, categorical):
    monkeypatch.setattr(module, "MAX_ROWS_PER_BLOCK", 2)
    classes = predictive(MODELS["categorical"], THETA, X, weights=WEIGHTS)
    np.testing.assert_allclose(classes.probs, categorical.probs, rtol=1e-5)
    np.testing.assert_allclose(classes.functions, categorical.functions, rtol=1e-5)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros(ROWS), "integer class labels, got float64"),
        (np.full(ROWS, 3), "labels from 3 to 3, but there are 3 classes"),
        (np.zeros(ROWS - 1, int), r"y has shape \(6,\), but the prediction is of shape \(7,\)"),
    ],
)
def test_labels_that_do_not_fit_are_refused(categorical, labels, message):
    with pytest.raises(ValueError, match=message):
        categorical.log_prob(labels)
