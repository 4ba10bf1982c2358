"""Recalibration against simulated truths, the identities of a prediction, and bad input."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_softmax, softmax
from sklearn.isotonic import IsotonicRegression

from credo import random
from credo.evaluation.recalibration import (
    IsotonicClasses,
    IsotonicQuantiles,
    Recalibrated,
    Temperature,
    VectorScaling,
    recalibrate,
)
from credo.predictive.tabulated import from_normal, from_probs
from tests.statistical.moments import FALSE_FAILURE, assert_mean, assert_plausible, sigmas

NUM = 4000
TRUE_NLL = 0.5 * np.log(2 * np.pi) + 0.5


def claimed(num, std=0.5):
    """Two draws that agree on nothing but their average: an epistemic share to keep track of."""
    return from_normal(np.array([[-0.1], [0.1]]).repeat(num, axis=1), std)


@pytest.fixture(scope="module")
def quantiles(seed):
    """Claims half the spread that y ~ N(0, 1) has."""
    return IsotonicQuantiles.fit(claimed(NUM), np.random.default_rng(seed).normal(size=NUM))


@pytest.fixture(scope="module")
def calibrated(quantiles):
    return quantiles(claimed(1000))


# -- regression --------------------------------------------------------------------------------------------


def test_an_overconfident_regression_is_calibrated_on_fresh_data(calibrated, seed):
    fresh = np.random.default_rng(seed + 1000).normal(size=1000)
    assert stats.kstest(claimed(1000).cdf(fresh), "uniform").pvalue < 1e-10
    # The distance of two empirical distribution functions, and the cells' width.
    off = stats.kstest(calibrated.cdf(fresh), "uniform").statistic
    assert off < stats.kstwobign.isf(FALSE_FAILURE / 4) * np.sqrt(1 / 1000 + 1 / NUM) + 0.01
    # Mean and sd of 4,000 normal numbers, and what the cells between the quantiles add.
    np.testing.assert_allclose(calibrated.mean, 0.0, atol=sigmas(4) / np.sqrt(NUM) + 0.01)
    np.testing.assert_allclose(calibrated.std, 1.0, rtol=sigmas(4) / np.sqrt(2 * NUM) + 0.02)
    # log p(y) of a standard normal has the standard deviation √½, and K cells cost K/2n nats.
    assert -calibrated.log_prob(fresh).mean() == pytest.approx(TRUE_NLL, abs=sigmas(4) * np.sqrt(0.5 / 1000) + 0.02)


@pytest.mark.parametrize("std", [0.02, 0.2, 3.0])
def test_any_wrong_scale_is_mended_even_where_single_precision_sees_no_tail(std, seed):
    y, fresh = np.random.default_rng(seed).normal(size=(2, 2000))
    base = from_normal(np.zeros(2000), std)
    after = IsotonicQuantiles.fit(base, y)(base)
    # The standard error of an sd from 2,000 rows, and what the cells between the quantiles add.
    assert after[:1].std[0] == pytest.approx(1.0, abs=sigmas(3) / np.sqrt(2 * 2000) + 0.03)
    assert -after.log_prob(fresh).mean() == pytest.approx(TRUE_NLL, abs=sigmas(3) * np.sqrt(0.5 / 2000) + 0.03)
    # The law of the distance between two empirical distribution functions.
    off = np.abs(np.sort(after.cdf(fresh)) - np.arange(1, 2001) / 2000).max()
    assert off < stats.kstwobign.isf(FALSE_FAILURE / 3) * np.sqrt(2 / 2000)


def test_heavy_tails_are_learned_from_the_rows_in_them(seed):
    law, rng = stats.t(3), np.random.default_rng(seed)

    def regrets() -> list[float]:
        y, fresh = law.rvs(size=(2, NUM), random_state=rng)
        base = from_normal(np.zeros(NUM), law.std())
        after = IsotonicQuantiles.fit(base, y)(base)
        return [law.logpdf(fresh).mean() - prediction.log_prob(fresh).mean() for prediction in (base, after)]

    # 0.204 ± 0.067 and 0.016 ± 0.006 for one set of rows: both bounds are four standard errors of eight or more away.
    before, after = np.mean([regrets() for _ in range(8)], axis=0)
    assert before > 0.1
    assert after < 0.03


def test_a_bias_and_an_input_dependent_mean_are_mended(seed):
    rng = np.random.default_rng(seed)
    f, fresh_f = 5 * rng.normal(size=(2, NUM))
    map = IsotonicQuantiles.fit(from_normal(f + 1, 0.7), f + rng.normal(size=NUM))
    after = map(from_normal(fresh_f + 1, 0.7))
    np.testing.assert_allclose(after.mean, fresh_f, atol=0.08)
    np.testing.assert_allclose(after.std, 1.0, rtol=0.05)
    np.testing.assert_allclose(after[[3, 5]].mean, after.mean[[3, 5]], rtol=1e-4)


def test_the_density_is_that_of_the_distribution_function_and_integrates_to_one(quantiles):
    grid = np.linspace(-8, 8, 20001)
    after = quantiles(claimed(len(grid)))
    density, cdf = np.exp(after.log_prob(grid)), after.cdf(grid)
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=2e-3)
    assert np.all(np.diff(cdf) >= 0)
    inside = np.abs(grid) < 2
    between = np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(grid)) - np.diff(cdf).cumsum()
    assert np.abs(between[inside[1:]]).max() < 2e-3


def test_quantiles_invert_the_distribution_function_and_intervals_are_quantiles(calibrated):
    few = calibrated[:3]
    levels = np.array([[0.001, 0.025, 0.3], [0.5, 0.9, 0.999]])
    found = few.quantile(levels)
    assert found.shape == (2, 3, 3)
    for level, y in zip(levels.ravel(), found.reshape(-1, 3), strict=True):
        np.testing.assert_allclose(few.cdf(y), level, rtol=2e-3)
    lower, upper = few.interval(0.95)
    np.testing.assert_allclose([lower, upper], few.quantile([0.025, 0.975]))
    np.testing.assert_allclose(upper - lower, 2 * 1.96, rtol=0.05)


def test_moments_are_those_of_the_samples_and_uncertainties_add_up(calibrated, seed):
    few = calibrated[:4]
    drawn = few.samples(random.key(seed), 20_000)
    assert drawn.shape == (20_000, 4)
    # Moments are sums over a grid.
    assert_mean(drawn, few.mean, slack=1e-3)
    assert_mean((drawn - few.mean) ** 2, few.variance, slack=2e-3)
    assert_plausible(stats.kstest([few.cdf(row)[0] for row in drawn[:400]], "uniform").pvalue)
    np.testing.assert_allclose(few.epistemic + few.aleatoric, few.variance)
    np.testing.assert_allclose(few.epistemic / few.variance, few.base.epistemic / few.base.variance, rtol=1e-5)
    assert few.covariance.shape == (4, 1, 1)
    np.testing.assert_allclose(few.covariance[:, 0, 0], few.std**2)
    np.testing.assert_array_equal(few.functions, few.base.functions)


def test_samples_keep_the_dependence_between_rows(quantiles, seed):
    far = from_normal(np.array([[-5.0], [5.0]]).repeat(2, axis=1), 0.1)
    drawn = quantiles(far).samples(random.key(seed), 500)
    assert np.corrcoef(drawn.T)[0, 1] > 0.9  # drawn row by row it would be 0; some levels near a half change the mode


def test_a_calibrated_prediction_stays_as_it_was(seed):
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=(3, NUM))  # a mixture of three draws, from which y comes
    y = mean[rng.integers(3, size=NUM), np.arange(NUM)] + 0.5 * rng.normal(size=NUM)
    base = from_normal(mean, 0.5)
    after = IsotonicQuantiles.fit(base, y)(base)[:200]
    base = base[:200]
    np.testing.assert_allclose(after.mean, base.mean, atol=0.12)
    np.testing.assert_allclose(after.log_prob(y[:200]).mean(), base.log_prob(y[:200]).mean(), atol=0.05)
    exact = IsotonicQuantiles(stats.norm.ppf([0.2, 0.6]), stats.norm.ppf([0.2, 0.6]))(base)
    np.testing.assert_allclose(exact.mean, base.mean, atol=0.01)
    # Σ w = 1/3 each: the prediction reports the unbiased spread of its draws, a distribution has the plain one.
    plain = base.functions.var(axis=0) + 0.25
    np.testing.assert_allclose(exact.variance, plain, rtol=5e-3)
    np.testing.assert_allclose(exact.quantile(0.9), base.quantile(0.9), atol=5e-3)
    np.testing.assert_allclose(exact.log_prob(y[:200]), base.log_prob(y[:200]), atol=1e-3)


def test_the_map_is_isotonic_regression_of_the_empirical_distribution_to_within_a_knot(quantiles, seed):
    y = np.random.default_rng(seed).normal(size=NUM)
    levels = np.sort(claimed(NUM).cdf(y).astype(np.float64))
    isotonic = IsotonicRegression().fit(levels, np.arange(1, NUM + 1) / NUM).predict(levels)
    own = stats.norm.cdf(quantiles.scores(stats.norm.ppf(np.clip(levels, 1e-7, 1 - 1e-7))))
    num_parts = len(quantiles.observed) - 1
    assert num_parts == np.ceil(2 * NUM**0.4)
    assert np.abs(own - isotonic).max() <= 1 / num_parts + 1 / NUM
    np.testing.assert_allclose(quantiles.inverse(quantiles.scores([-9.0, 0.1, 9.0])), [-9.0, 0.1, 9.0])


@pytest.mark.parametrize(
    ("base", "y", "error", "message"),
    [
        (from_normal(np.zeros((1, 30, 2)), 1.0), np.zeros((30, 2)), ValueError, "one output"),
        (from_normal(np.zeros(14), 1.0), np.arange(14.0), ValueError, "at least 15 rows, got 14"),
        (from_normal(np.zeros(50), 1.0), np.ones(50), ValueError, "take 1 different values"),
        (from_normal(np.zeros(50), 1.0), np.arange(50.0) % 3, ValueError, "take 3 different values"),
        (from_probs([[0.5, 0.5]] * 50), np.zeros(50, int), TypeError, "got ClassPredictive"),
    ],
)
def test_bad_input_of_quantiles(base, y, error, message):
    with pytest.raises(error, match=message):
        IsotonicQuantiles.fit(base, y)


def test_a_map_is_for_its_own_kind_and_used_once(calibrated, quantiles):
    with pytest.raises(ValueError, match="already recalibrated"):
        quantiles(calibrated)
    with pytest.raises(TypeError, match="the prediction of a regression"):
        quantiles(from_probs([[0.5, 0.5]]))
    with pytest.raises(TypeError, match="the prediction of a classifier"):
        Temperature(2.0)(claimed(3))
    with pytest.raises(ValueError, match="between 0 and 1"):
        calibrated.quantile(1.0)


# -- classes -----------------------------------------------------------------------------------------------


def simulated(seed, transform, num=6000, num_classes=3, num_draws=2):
    """Claimed probabilities, and labels from log p_true = normalised transform(log p_claimed)."""
    rng = np.random.default_rng(seed)
    centre = 2 * rng.normal(size=(1, num, num_classes))
    draws = softmax(centre + 0.5 * rng.normal(size=(num_draws, num, num_classes)), axis=-1)
    logs = np.log(draws.mean(0))
    true = softmax(transform(logs), axis=-1)
    labels = (true.cumsum(1) > rng.uniform(size=(num, 1))).argmax(1)
    return from_probs(draws), labels, true


@pytest.mark.parametrize("temperature", [0.5, 2.5])
def test_temperature_is_recovered_and_leaves_the_labels(temperature, seed):
    base, labels, _ = simulated(seed, lambda logs: logs / temperature)
    map = Temperature.fit(base, labels)
    # The observed information about b = 1/T is the variance of the logits under p'.
    logs, probs = np.log(base.probs), map(base).probs
    information = np.sum(probs * logs**2) - np.sum(np.sum(probs * logs, axis=1) ** 2)
    assert abs(1 / map.temperature - 1 / temperature) < sigmas() / np.sqrt(information)
    assert sigmas() / np.sqrt(information) < 0.15 / temperature  # a test that could tell
    np.testing.assert_array_equal(map(base).label, base.label)


def test_vector_scaling_is_recovered_at_the_optimum(seed):
    scales, shifts = np.array([0.5, 1.0, 1.8]), np.array([0.8, -0.5, -0.3])
    base, labels, true = simulated(seed, lambda logs: scales * logs + shifts, num=20_000)
    map = VectorScaling.fit(base, labels)
    np.testing.assert_allclose(map.scales, scales, atol=0.15)
    np.testing.assert_allclose(map.shifts - map.shifts.mean(), shifts - shifts.mean(), atol=0.15)
    assert map.shifts.sum() == pytest.approx(0.0, abs=1e-3)  # the ridge picks one of all equivalent shifts
    assert np.abs(map(base).probs - true).mean() < 0.01
    # At the optimum the mean predicted probability of each class is its frequency.
    np.testing.assert_allclose(map(base).probs.mean(0), np.bincount(labels) / len(labels), atol=1e-5)


def crooked(logs):
    """A miscalibration that no temperature describes."""
    return 0.3 * logs + 0.7 * np.tanh(logs + 1)


@pytest.mark.parametrize("num_classes", [2, 3])
def test_isotonic_classes_are_monotone_and_better_on_fresh_data(num_classes, seed):
    # Isotonic regression errs by num^(−1/3), which is here some 0.4 of what it mends.
    base, labels, _ = simulated(seed, crooked, num=20_000, num_classes=num_classes)
    fresh, fresh_labels, true = simulated(seed + 1000, crooked, num=20_000, num_classes=num_classes)
    map = IsotonicClasses.fit(base, labels)
    after = map(fresh)
    np.testing.assert_allclose(after.probs.sum(1), 1.0)
    assert len(map.curves) == (1 if num_classes == 2 else 3)
    for predicted, observed in map.curves:
        assert np.all(np.diff(predicted) > 0)
        assert np.all(np.diff(observed) >= 0)
        assert observed[0] >= 1 / 20_002
        assert observed[-1] <= 1 - 1 / 20_002
    assert after.log_prob(fresh_labels).mean() > fresh.log_prob(fresh_labels).mean() + 0.01
    assert np.abs(after.probs - true).mean() < 0.6 * np.abs(fresh.probs - true).mean()


@pytest.mark.parametrize("kind", [Temperature, VectorScaling, IsotonicClasses])
@pytest.mark.parametrize("num_classes", [2, 3])
def test_what_every_map_of_classes_keeps(kind, num_classes, seed):
    base, labels, _ = simulated(seed, lambda logs: 0.4 * logs, num=1500, num_classes=num_classes)
    after = kind.fit(base, labels)(base)
    assert after.log_prob(labels).mean() > base.log_prob(labels).mean()
    np.testing.assert_allclose(after.entropy, -np.sum(after.probs * np.log(after.probs), axis=1))
    np.testing.assert_allclose(after.epistemic + after.aleatoric, after.entropy)
    assert np.all(after.aleatoric >= 0)
    assert np.all(after.epistemic <= base.epistemic + 1e-9)
    np.testing.assert_array_equal(after.probs_std, base.probs_std)
    np.testing.assert_allclose(after.log_prob(labels), np.log(after.probs)[np.arange(1500), labels], rtol=1e-9)
    rows = [7, 3]
    np.testing.assert_allclose(after[rows].probs, after.probs[rows], rtol=1e-5)
    frequency = (after[rows].samples(random.key(seed), 4000)[..., None] == np.arange(num_classes)).mean(0)
    error = np.sqrt(after.probs[rows] * (1 - after.probs[rows]) / 4000)
    # Counts of a rare class are Poisson's: some more of them than a normal law has.
    assert np.all(np.abs(frequency - after.probs[rows]) < sigmas(error.size) * error + 5 / 4000)


def test_a_sharper_map_cannot_leave_more_mutual_information_than_entropy():
    base = from_probs([[[0.9, 0.1]], [[0.2, 0.8]]])
    after = Temperature(0.01)(base)
    assert base.mutual_information[0] > 0.1
    np.testing.assert_allclose(after.mutual_information, after.entropy)


@pytest.mark.parametrize("kind", [Temperature, VectorScaling, IsotonicClasses])
def test_certain_predictions_that_fail_stay_finite(kind):
    base = from_probs([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]] * 4)
    after = kind.fit(base, [0, 1, 2] * 3 + [1, 1, 2])(base)
    assert np.all(np.isfinite(after.log_prob([2, 2, 1] * 4)))
    assert np.all(np.isfinite(after.entropy))


@pytest.mark.parametrize("kind", [Temperature, VectorScaling, IsotonicClasses])
def test_bad_input_of_class_maps(kind):
    base = from_probs([[0.5, 0.5]] * 4)
    with pytest.raises(TypeError, match="got RegressionPredictive"):
        kind.fit(claimed(4), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="one class only"):
        kind.fit(base, [1, 1, 1, 1])
    with pytest.raises(ValueError, match="labels from 0 to 2"):
        kind.fit(base, [0, 1, 2, 1])
    if kind is not Temperature:
        with pytest.raises(ValueError, match="fitted to 2 classes, but the prediction has 3"):
            _ = kind.fit(base, [0, 1, 0, 1])(from_probs([[0.2, 0.3, 0.5]])).probs


# -- posteriors --------------------------------------------------------------------------------------------

X = np.linspace(-1, 1, 200)[:, None]
REGRESSION = SimpleNamespace(
    predict=lambda x, num_draws=None: from_normal(x[:, 0], 0.5),
    model="model",
    provenance="provenance",
    diagnostics="diagnostics",
    num_bytes=8,
    sample=lambda key, num: {"w": np.ones(num)},
)
CLASSES = SimpleNamespace(
    predict=lambda x, num_draws=None: from_probs(np.exp(log_softmax(np.c_[x * 0, 9 * x], axis=1)))
)


@pytest.mark.parametrize(
    ("posterior", "how", "kind"),
    [
        (REGRESSION, None, IsotonicQuantiles),
        (REGRESSION, "isotonic", IsotonicQuantiles),
        (CLASSES, None, Temperature),
        (CLASSES, "isotonic", IsotonicClasses),
        (CLASSES, "vector", VectorScaling),
        (CLASSES, VectorScaling, VectorScaling),
    ],
)
def test_recalibrate_chooses_the_map_and_predicts_through_it(posterior, how, kind, seed):
    rng = np.random.default_rng(seed)
    y = (X[:, 0] + rng.normal(size=200)) if posterior is REGRESSION else (X[:, 0] > rng.uniform(-1, 1, 200)).astype(int)
    after = recalibrate(posterior, (X, y), how)
    assert isinstance(after, Recalibrated)
    assert isinstance(after.map, kind)
    assert after.predict(X, num_draws=1).log_prob(y).mean() > posterior.predict(X).log_prob(y).mean() + 0.05


def test_a_recalibrated_posterior_stands_for_its_posterior():
    after = Recalibrated(REGRESSION, IsotonicQuantiles(np.array([-1.0, 1.0]), np.array([-0.5, 0.5])))
    assert (after.model, after.provenance, after.diagnostics) == ("model", "provenance", "diagnostics")
    assert after.num_bytes == 8
    assert after.sample(random.key(0), 3)["w"].shape == (3,)
    np.testing.assert_allclose(after.predict(X).std, 1.0, rtol=1e-3)
    assert not hasattr(after, "save")


def test_unknown_and_unfit_maps():
    with pytest.raises(ValueError, match="got 'temprature'; did you mean 'temperature'"):
        recalibrate(REGRESSION, (X, X[:, 0]), "temprature")
    with pytest.raises(TypeError, match="got RegressionPredictive"):
        recalibrate(REGRESSION, (X, X[:, 0]), "temperature")
