"""Proper scores and accuracy against scikit-learn, scipy and closed forms."""

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import integrate, stats
from sklearn import metrics

import credo
from credo.evaluation import accuracy, brier, confusion_matrix, crps, lpd, mae, nll, rmse, top_k
from credo.evaluation.scores import crps_normal, crps_samples
from credo.predictive import predictive
from tests.evaluation.synthetic import classes, regression
from tests.statistical.moments import assert_mean

RNG = np.random.default_rng(0)


def mixture(num: int = 40, draws: int = 9) -> tuple[credo.Predictive, np.ndarray, np.ndarray]:
    means = 2 * RNG.normal(size=(draws, num))
    return credo.from_normal(means, 0.3), means, RNG.normal(size=num)


def test_regression_scores_match_scikit_learn() -> None:
    prediction, y = regression(60)
    assert rmse(prediction, y) == pytest.approx(metrics.root_mean_squared_error(y, prediction.mean))
    assert mae(prediction, y) == pytest.approx(metrics.mean_absolute_error(y, prediction.mean))


def test_scores_of_vectors_average_over_outputs() -> None:
    means, y = RNG.normal(size=(1, 30, 2)), RNG.normal(size=(30, 2))
    prediction = credo.from_normal(means, 1.0)
    assert rmse(prediction, y) == pytest.approx(np.sqrt(np.mean((means[0] - y) ** 2)), rel=1e-5)
    assert lpd(prediction, y) == pytest.approx(stats.norm.logpdf(y, means[0]).sum(1).mean(), rel=1e-5)
    assert crps(prediction, y) == pytest.approx(crps_normal(means[0], np.ones(()), y).mean(), rel=1e-5)


def test_the_mean_over_draws_is_inside_the_logarithm() -> None:
    prediction, means, y = mixture()
    inside = np.log(stats.norm.pdf(y, means, 0.3).mean(0)).mean()
    assert lpd(prediction, y) == pytest.approx(inside, rel=1e-4)
    assert nll(prediction, y) == pytest.approx(-inside, rel=1e-4)
    assert stats.norm.logpdf(y, means, 0.3).mean() < inside - 1


def test_crps_of_a_normal_is_the_integral() -> None:
    def integral(mean: float, sd: float, y: float) -> float:
        return integrate.quad(lambda z: (stats.norm.cdf(z, mean, sd) - (z >= y)) ** 2, -30, 30, points=[y])[0]

    cases = [(0.0, 1.0, 0.3), (1.0, 0.5, -2.0), (-1.0, 3.0, 4.0)]
    expected = [integral(*case) for case in cases]
    mean, sd, y = np.array(cases).T
    np.testing.assert_allclose(crps_normal(mean, sd, y), expected, rtol=1e-6)


def test_crps_by_draws_agrees_with_the_closed_form(seed: int) -> None:
    prediction, y = regression(400, seed=seed)
    closed = crps_normal(prediction.mean, prediction.std, y)
    by_draws = crps_samples(stats.norm.rvs(prediction.mean, prediction.std, size=(500, 400), random_state=seed), y)
    assert_mean(by_draws - closed, 0.0)
    assert crps(prediction, y) == pytest.approx(closed.mean(), rel=1e-5)


def test_crps_of_a_mixture_is_the_integral() -> None:
    prediction, means, y = mixture(num=12)
    expected = [
        integrate.quad(
            lambda z, row=row: (stats.norm.cdf(z, means[:, row], 0.3).mean() - (z >= y[row])) ** 2,
            -12,
            12,
            points=[y[row]],
            limit=200,
        )[0]
        for row in range(12)
    ]
    assert crps(prediction, y, num_samples=4000) == pytest.approx(np.mean(expected), rel=0.03)


def test_crps_does_not_depend_on_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    prediction, _, y = mixture()
    whole = crps(prediction, y, num_samples=500)
    monkeypatch.setattr("credo.evaluation.scores.BYTES_PER_BLOCK", 4 * 500 * 7)
    assert crps(prediction, y, num_samples=500) == pytest.approx(whole, rel=0.1)
    with pytest.raises(ValueError, match="at least two samples"):
        crps(prediction, y, num_samples=1)


def test_class_scores_match_scikit_learn() -> None:
    prediction, labels = classes(200, 6)
    every = np.arange(6)
    assert accuracy(prediction, labels) == metrics.accuracy_score(labels, prediction.label)
    assert nll(prediction, labels) == pytest.approx(metrics.log_loss(labels, prediction.probs, labels=every), rel=1e-5)
    expected = metrics.top_k_accuracy_score(labels, prediction.probs, k=3, labels=every)
    assert top_k(prediction, labels, k=3) == pytest.approx(expected)
    np.testing.assert_array_equal(
        confusion_matrix(prediction, labels), metrics.confusion_matrix(labels, prediction.label, labels=every)
    )


def test_brier_sums_over_classes() -> None:
    prediction, labels = classes(200, 2)
    half = metrics.brier_score_loss(labels, prediction.probs[:, 1])
    assert brier(prediction, labels) == pytest.approx(2 * half, rel=1e-5)
    by_hand = credo.from_probs([[0.5, 0.3, 0.2]])
    assert brier(by_hand, [1]) == pytest.approx(0.25 + 0.49 + 0.04, rel=1e-5)


def test_nll_of_tiny_probabilities_is_finite() -> None:
    """Below 1e-38 a probability is zero in single precision; its logarithm must not be."""

    def program(x, y=None):
        slope = numpyro.sample("slope", dist.Normal(0, 1))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Bernoulli(logits=slope * x[:, 0]), obs=y)

    prediction = predictive(credo.Model(program), {"slope": np.ones(2, np.float32)}, np.array([[200.0]], np.float32))
    assert nll(prediction, np.array([0])) == pytest.approx(200.0, rel=1e-5)


def test_bad_input() -> None:
    prediction, labels = classes(10, 3)
    with pytest.raises(ValueError, match="y has shape"):
        accuracy(prediction, labels[:5])
    with pytest.raises(ValueError, match="integer class labels"):
        accuracy(prediction, labels.astype(float))
    with pytest.raises(ValueError, match="labels from 0 to 7"):
        accuracy(prediction, np.arange(10) % 8)
    with pytest.raises(ValueError, match="between 1 and 2"):
        top_k(prediction, labels, k=3)
    with pytest.raises(TypeError, match="the prediction of a regression"):
        rmse(prediction, labels)
    with pytest.raises(TypeError, match="the prediction of a classifier"):
        accuracy(*regression(5))
    with pytest.raises(ValueError, match="test set is empty"):
        nll(prediction[:0], labels[:0])
