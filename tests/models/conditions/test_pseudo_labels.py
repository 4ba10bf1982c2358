"""Pseudo-labels against the noisy-label likelihood written out, and simple models that cannot give them."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

import credo
from credo import conditions
from credo.models.conditions import Plain

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2)).astype(np.float32)
LABELS = [*RNG.permutation([0, 1, 2] * 4).tolist(), *[None] * 18]
W = RNG.normal(size=(2, 3))


def total(condition, data, function):
    rows, constants = condition.prepare_data(data)
    return float(condition(Plain(function), rows, **constants).sum())


def test_classes_are_noisy_labels_with_a_known_rate():
    simple = KNeighborsClassifier(4)
    x = X / X.std(axis=0)
    told = KNeighborsClassifier(4).fit(x[:12], np.array(LABELS[:12], int)).predict_proba(x[12:])
    exps = np.exp(X[12:] @ W)
    p = exps / exps.sum(axis=1, keepdims=True)
    expected = 0.0
    for row in range(18):
        label, c = told[row].argmax(), min(told[row].max(), 0.99)
        # The sum over the true label of p(true) · p(told | true).
        expected += np.log(sum(p[row, true] * (c if true == label else (1 - c) / 2) for true in range(3)))
    np.testing.assert_allclose(
        total(conditions.pseudo_labels(simple), credo.Data(X, LABELS), lambda x: x @ W), -expected, rtol=1e-4
    )
    assert not hasattr(simple, "classes_")  # the user's object is not fitted


def test_numbers_have_the_simple_models_spread():
    y = np.where(np.arange(30) < 12, 50 + 10 * X[:, 0], np.nan)
    process = GaussianProcessRegressor(alpha=0.1, optimizer=None, normalize_y=True)
    x = X / X.std(axis=0)
    mean, std = (
        GaussianProcessRegressor(alpha=0.1, optimizer=None, normalize_y=True)
        .fit(x[:12], y[:12])
        .predict(x[12:], return_std=True)
    )
    found = total(conditions.pseudo_labels(process), credo.Data(X, y, standardise=True), lambda x: x @ W[:, :1])
    np.testing.assert_allclose(found, np.sum((X[12:] @ W[:, 0] - mean) ** 2 / (2 * std**2)), rtol=1e-3)


def test_by_default_labels_travel_along_the_graph():
    moons = credo.datasets.moons(200, noise=0.05, seed=1)
    known = np.isin(np.arange(200), [20, 120])
    _, constants = conditions.pseudo_labels().prepare_data(
        credo.Data(moons.x, np.where(known, moons.y, np.nan)).with_labels()
    )
    assert np.mean(constants["labels"] == moons.y[~known]) > 0.97


def test_a_default_for_numbers():
    y = np.where(np.arange(30) < 20, np.sin(X[:, 0]), np.nan)
    _, constants = conditions.pseudo_labels().prepare_data(credo.Data(X, y))
    away = (constants["targets"][:, 0] - np.sin(X[20:, 0])) * np.sqrt(constants["precision"][:, 0])
    assert np.sqrt(np.mean(away**2)) < 3
    assert np.abs(constants["targets"][:, 0] - np.sin(X[20:, 0])).mean() < np.abs(np.sin(X[20:, 0])).mean() / 2


@pytest.mark.parametrize(
    ("simple", "y", "complaint"),
    [
        (LinearSVC(), LABELS, "LinearSVC has no predict_proba"),
        (Ridge(), [0.5] * 10 + [1.0] * 10 + [None] * 10, "return_std=True"),
    ],
)
def test_simple_models_must_say_how_sure_they_are(simple, y, complaint):
    with pytest.raises(ValueError, match=complaint):
        conditions.pseudo_labels(simple).prepare_data(credo.Data(X, y))


@pytest.mark.parametrize("simple", ["knn", KNeighborsClassifier])
def test_what_is_no_simple_model(simple):
    with pytest.raises(ValueError, match="simple is"):
        conditions.pseudo_labels(simple)


def test_a_simple_model_of_the_users_is_not_stored():
    config = conditions.pseudo_labels(KNeighborsClassifier(3)).to_config()
    with pytest.raises(ValueError, match="KNeighborsClassifier"):
        conditions.from_config(config)
    assert conditions.from_config(conditions.pseudo_labels().to_config()) == conditions.pseudo_labels()
