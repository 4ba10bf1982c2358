"""Targets that are missing: every score and curve is that of the rows, and of the outputs, that are there."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from credo import from_normal, from_probs
from credo.data.missing import MISSING_LABEL
from credo.evaluation import (
    calibration_curves,
    compare,
    conformal,
    confusion_matrix,
    crps,
    evaluate,
    lpd,
    mae,
    nssr,
    quantile_error,
    recalibrate,
    risk_coverage,
    rmse,
    sharpness,
)
from credo.evaluation.evaluate import CLASS_METRICS, REGRESSION_METRICS
from credo.evaluation.metric import resample
from credo.evaluation.residuals import nssr_probabilities
from credo.evaluation.scores import crps_normal

RNG = np.random.default_rng(0)
NUM = 40
THERE = RNG.random(NUM) < 0.7
MEAN, STD = RNG.normal(size=NUM), RNG.uniform(0.5, 2.0, NUM)
Y = MEAN + STD * RNG.normal(size=NUM)
PROBS = RNG.dirichlet(np.ones(3), NUM)
LABELS = RNG.integers(0, 3, NUM)
NUMBERS, CLASSES = from_normal(MEAN, STD), from_probs(PROBS)
NUMBERS_THERE, CLASSES_THERE = from_normal(MEAN[THERE], STD[THERE]), from_probs(PROBS[THERE])


@pytest.mark.parametrize("name", REGRESSION_METRICS)
def test_scores_of_numbers_are_those_of_the_rows_that_have_one(name):
    metric = REGRESSION_METRICS[name]
    np.testing.assert_allclose(metric(NUMBERS, np.where(THERE, Y, np.nan)), metric(NUMBERS_THERE, Y[THERE]), rtol=1e-6)


@pytest.mark.parametrize("name", CLASS_METRICS)
def test_scores_of_labels_are_those_of_the_rows_that_have_one(name):
    metric, expected = CLASS_METRICS[name], CLASS_METRICS[name](CLASSES_THERE, LABELS[THERE])
    listed = [int(label) if there else None for label, there in zip(LABELS, THERE, strict=True)]
    for y in (np.where(THERE, LABELS, np.nan), np.where(THERE, LABELS, MISSING_LABEL), listed):
        assert metric(CLASSES, y) == expected


def test_resamples_are_of_the_rows_that_have_a_target():
    resamples = resample(THERE.sum(), 20)
    found = rmse.score(NUMBERS, np.where(THERE, Y, np.nan), resamples)
    np.testing.assert_allclose(found, rmse.score(NUMBERS_THERE, Y[THERE], resamples), rtol=1e-6)
    with pytest.raises(ValueError, match=f"resamples have {NUM} rows, and {THERE.sum()} have a target"):
        rmse.score(NUMBERS, np.where(THERE, Y, np.nan), resample(NUM, 20))


def test_curves_and_counts_are_of_the_rows_that_have_a_target():
    labels = np.where(THERE, LABELS, MISSING_LABEL)
    np.testing.assert_array_equal(confusion_matrix(CLASSES, labels), confusion_matrix(CLASSES_THERE, LABELS[THERE]))
    for prediction, y, there, expected in (
        (CLASSES, labels, CLASSES_THERE, LABELS[THERE]),
        (NUMBERS, np.where(THERE, Y, np.nan), NUMBERS_THERE, Y[THERE]),
    ):
        assert len(risk_coverage(prediction, y).risk) == THERE.sum()
        curves, alone = calibration_curves(prediction, y), calibration_curves(there, expected)
        for name, curve in alone.items():
            np.testing.assert_allclose(curves[name].observed, curve.observed, rtol=1e-5)


def test_evaluate_says_what_it_judged():
    scores = evaluate(NUMBERS, np.where(THERE, Y, np.nan), num_resamples=5)
    num = int(THERE.sum())
    assert (scores.num_rows, scores.num_skipped, scores.of) == (num, NUM - num, "y")
    assert str(scores).startswith(f"regression on {num} test rows ({NUM - num} more have no target)\n")
    assert scores.to_dict()["num_skipped"] == NUM - num
    assert "no target" not in str(evaluate(NUMBERS, Y, num_resamples=0))
    with pytest.raises(ValueError, match="all targets are missing"):
        evaluate(NUMBERS, np.full(NUM, np.nan))
    with pytest.raises(ValueError, match="of is 'y', and a prediction is of one site"):
        evaluate(NUMBERS, Y, of="y")


# -- several outputs -----------------------------------------------------------------------------------------

MEANS = RNG.normal(size=(NUM, 2))
COVARIANCE = np.array([[1.0, 0.6], [0.6, 2.0]])
PAIRS = MEANS + RNG.multivariate_normal(np.zeros(2), COVARIANCE, NUM)
GAPS = RNG.random((NUM, 2)) < 0.4
PARTLY = np.where(GAPS, np.nan, PAIRS)
OUTPUTS = from_normal(MEANS[None], np.sqrt(np.diag(COVARIANCE)))
CORRELATED = from_normal(MEANS[None], covariance=COVARIANCE)


def test_each_output_counts_where_it_is_there():
    residuals, std = (MEANS - PAIRS)[~GAPS], np.broadcast_to(np.sqrt(np.diag(COVARIANCE)), GAPS.shape)[~GAPS]
    levels = np.sort(stats.norm.cdf(-residuals / std))
    expected = {
        rmse: np.sqrt(np.mean(residuals**2)),
        mae: np.mean(np.abs(residuals)),
        crps: np.mean(crps_normal(MEANS[~GAPS], std, PAIRS[~GAPS])),
        sharpness: np.sqrt(np.mean(std**2)),
        REGRESSION_METRICS["coverage_50"]: np.mean(np.abs(2 * levels - 1) <= 0.5),
    }
    for metric, value in expected.items():
        np.testing.assert_allclose(metric(OUTPUTS, PARTLY), value, rtol=1e-5)
    observed, around = np.arange(1, len(levels) + 1) / len(levels), np.concatenate([[0.0], levels, [1.0]])
    squared = np.sum((observed - levels) ** 2 * (around[2:] - around[:-2]) / 2)
    np.testing.assert_allclose(quantile_error(OUTPUTS, PARTLY), np.sqrt(squared), rtol=1e-4)
    some = ~GAPS.all(axis=1)
    np.testing.assert_array_equal(np.isnan(OUTPUTS[some].cdf(PARTLY[some])), GAPS[some])


@pytest.mark.parametrize("kind", ["independent", "correlated"])
def test_the_density_and_the_nssr_are_those_of_the_outputs_that_are_there(kind):
    prediction = {"independent": OUTPUTS, "correlated": CORRELATED}[kind]
    covariance = COVARIANCE if kind == "correlated" else np.diag(np.diag(COVARIANCE))
    densities, lengths, levels = [], [], []
    for mean, y, gaps in zip(MEANS, PAIRS, GAPS, strict=True):
        if not gaps.all():
            own = covariance[np.ix_(~gaps, ~gaps)]
            away = (mean - y)[~gaps]
            densities.append(stats.multivariate_normal.logpdf(away, np.zeros(len(away)), own))
            lengths.append(away @ np.linalg.solve(own, away))
            levels.append(stats.chi2.cdf(lengths[-1], len(away)))
    np.testing.assert_allclose(lpd(prediction, PARTLY), np.mean(densities), rtol=1e-5)
    some = ~GAPS.all(axis=1)
    np.testing.assert_allclose(prediction[some].log_prob_by_draw(PARTLY[some])[0], densities, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(nssr(prediction, PARTLY)[0], lengths, rtol=1e-3)
    np.testing.assert_allclose(nssr_probabilities(prediction, PARTLY)[0], levels, rtol=1e-3)


def test_a_density_of_nothing_is_refused():
    with pytest.raises(ValueError, match="1 rows of y have no target, the first is row 2"):
        NUMBERS.log_prob(np.where(np.arange(NUM) == 2, np.nan, Y))
    with pytest.raises(ValueError, match="1 rows of y have no target, the first is row 2"):
        CLASSES.log_prob(np.where(np.arange(NUM) == 2, MISSING_LABEL, LABELS))
    with pytest.raises(ValueError, match="infinite"):
        lpd(NUMBERS, np.where(THERE, Y, np.inf))


# -- held-out rows -------------------------------------------------------------------------------------------

INPUTS = np.arange(NUM, dtype=float)[:, None]


def posterior_of(values, predicts="y"):
    """A posterior that looks its predictions up, whatever site they are said to be of."""
    return SimpleNamespace(
        predict=lambda x, num_draws=None: values[x[:, 0].astype(int)],
        about=lambda site: posterior_of(values, site),
        model=SimpleNamespace(predicts=predicts),
        provenance=SimpleNamespace(seconds=1.0),
        num_bytes=0,
    )


@pytest.mark.parametrize("how", ["temperature", "isotonic"])
def test_recalibration_looks_at_rows_that_have_a_target(how):
    posterior, y = posterior_of(CLASSES), np.where(THERE, LABELS, np.nan)
    found = recalibrate(posterior, (INPUTS, y), how).predict(INPUTS).probs
    np.testing.assert_array_equal(
        found, recalibrate(posterior, (INPUTS[THERE], LABELS[THERE]), how).predict(INPUTS).probs
    )


def test_conformal_sets_count_the_rows_that_have_all_targets():
    posterior, y = posterior_of(OUTPUTS), PARTLY
    whole = ~GAPS.any(axis=1)
    sets = conformal(posterior, (INPUTS, y), level=0.8)
    alone = conformal(posterior, (INPUTS[whole], PAIRS[whole]), level=0.8)
    assert (sets.num_data, sets.threshold) == (alone.num_data, alone.threshold) == (whole.sum(), sets.threshold)
    assert sets.coverage(INPUTS, y) == alone.coverage(INPUTS[whole], PAIRS[whole])
    with pytest.raises(ValueError, match="each misses some of its targets"):
        conformal(posterior, (INPUTS[:2], [[1.0, None], [None, 1.0]]), level=0.5)


# -- what is judged ------------------------------------------------------------------------------------------


def test_scores_say_which_site_they_judge():
    posterior = posterior_of(CLASSES, "clean")
    scores = evaluate(posterior, (INPUTS, LABELS), num_resamples=0)
    assert scores.of == scores.to_dict()["of"] == "clean"
    assert str(scores).splitlines()[1] == "judged: clean (y was observed)"
    assert evaluate(posterior, (INPUTS, LABELS), num_resamples=0, of="y").of == "y"
    sharper = recalibrate(posterior, (INPUTS, LABELS))
    assert sharper.about("clean") is sharper
    with pytest.raises(ValueError, match=r"fitted to predictions of 'clean'; recalibrate posterior.about\('y'\)"):
        sharper.predict(INPUTS, of="y")


def test_a_comparison_says_which_sites_it_judged():
    posteriors = {"plain": posterior_of(CLASSES), "noisy": posterior_of(CLASSES, "clean")}

    def title(**options):
        data = (INPUTS, np.where(THERE, LABELS, np.nan))
        (table,) = compare(posteriors, data, num_resamples=0, **options).__rich_console__(None, None)
        return table.title

    skipped = f"{THERE.sum()} test rows ({NUM - THERE.sum()} more have no target), sorted by lpd"
    assert title() == f"{skipped}; judged: y of plain, clean of noisy"
    assert title(of="clean") == f"{skipped}; judged: clean"
    assert title(of="y") == skipped
