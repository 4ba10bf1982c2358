"""`credo.evaluate` and `credo.compare`: one call, all scores, honest errors."""

import json

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

import credo
from credo.evaluation import IsotonicClasses, IsotonicQuantiles, Temperature, VectorScaling, accuracy, rmse
from credo.evaluation.metric import mean_of, resample, score
from tests.evaluation import exact
from tests.evaluation.synthetic import classes, regression
from tests.statistical.moments import sigmas


@pytest.fixture(scope="module")
def train() -> credo.Data:
    return exact.linear_data(60)


@pytest.fixture(scope="module")
def test_set() -> credo.Data:
    return exact.linear_data(200, seed=1)


def test_bootstrap_matches_the_standard_error_of_a_mean(seed: int) -> None:
    terms = np.random.default_rng(seed).normal(size=400)
    found = score(mean_of(terms), resample(400, 2000, seed=seed))
    assert found.value == pytest.approx(terms.mean())
    # The relative error of an sd from 2,000 values is 1/√4000.
    assert found.standard_error == pytest.approx(terms.std() / 20, rel=sigmas() / np.sqrt(4000))
    counts = resample(400, 5, seed=1)
    assert np.all(counts.sum(1) == 400)
    np.testing.assert_array_equal(counts, resample(400, 5, seed=1))


def test_bootstrap_covers_the_truth(seed: int) -> None:
    """The standard error of a metric that is no mean: RMSE over repeated test sets spreads by as much."""
    values, errors = np.array(
        [score(rmse.measure(*regression(150, seed=200 * seed + one)), resample(150, 100)) for one in range(200)]
    ).T
    # The relative error of an sd from 200 values is 1/√400; the bootstrap of 150 rows is off by some percent.
    assert np.std(values) == pytest.approx(np.mean(errors), rel=sigmas() / np.sqrt(400) + 0.05)


def test_regression_scores(train: credo.Data, test_set: credo.Data, seed: int) -> None:
    posterior = exact.posterior(train, seed=seed)
    scores = credo.evaluate(posterior, test_set)
    prediction = posterior.predict(test_set.x)
    assert scores.task == "regression"
    assert scores["rmse"].value == pytest.approx(np.sqrt(np.mean((prediction.mean - test_set.y) ** 2)), rel=1e-5)
    assert scores["lpd"].value == pytest.approx(prediction.log_prob(test_set.y).mean(), rel=1e-5)
    mean, covariance = exact.normal_posterior(train.x, train.y)
    sd = np.sqrt(np.einsum("ij,jk,ik->i", test_set.x, covariance, test_set.x) + exact.NOISE**2)
    assert scores["lpd"].value == pytest.approx(stats.norm.logpdf(test_set.y, test_set.x @ mean, sd).mean(), abs=0.01)
    assert set(scores.curves) == {"nssr", "quantile", "interval"}
    assert scores.confusion is None
    text = str(scores)
    assert "RMSE (cm)" in text
    assert "200 test rows" in text
    assert "best at 0.95" in text


def test_class_scores_and_plain_values() -> None:
    prediction, labels = classes(300, 7, sharpened=2.0)
    foreign = credo.from_probs(np.full((50, 7), 1 / 7))
    scores = credo.evaluate(prediction, labels, outside=foreign)
    assert scores["accuracy"].value == accuracy(prediction, labels)
    assert scores.confusion.sum() == 300
    assert "top_k" in scores.values
    assert scores.detection["entropy"].auroc > 0.95
    assert "AUROC" in str(scores)
    plain = json.loads(json.dumps(scores.to_dict(), allow_nan=False))
    assert plain["scores"]["ece"]["value"] == scores["ece"].value
    assert plain["calibration"]["confidence"]["direction"] == "overconfident"
    frame = scores.to_frame()
    assert frame.loc["accuracy", "value"] == scores["accuracy"].value
    assert frame.loc["ece", "better"] == "lower"
    assert "top_k" not in credo.evaluate(*classes(50, 5)).values


def test_same_seed_same_errors() -> None:
    case = regression(50)
    first, again, other = (credo.evaluate(*case, seed=seed)["rmse"].standard_error for seed in (0, 0, 1))
    assert first == again != other
    assert np.isnan(credo.evaluate(*case, num_resamples=0)["rmse"].standard_error)


def test_constant_uncertainty_has_no_correlation_and_is_still_json() -> None:
    scores = credo.evaluate(credo.from_normal(np.zeros(20), 1.0), np.linspace(-1, 1, 20))
    assert scores.to_dict()["scores"]["uncertainty_error_correlation"]["value"] is None


def test_compare_sorts_and_marks_the_best(train: credo.Data, test_set: credo.Data) -> None:
    # Fewer data make a worse posterior, and one draw a smaller one.
    few = exact.linear_data(4)
    posteriors = {"few": exact.posterior(few), "mode": exact.posterior(train, 1), "exact": exact.posterior(train)}
    found = credo.compare(posteriors, test_set)
    assert found.names[-1] == "few"
    lpds = [scores["lpd"].value for scores in found.scores.values()]
    assert lpds == sorted(lpds, reverse=True)
    assert found.winner("num_bytes") == "mode"
    assert found.winner("training_seconds") == "mode"
    assert found.costs["exact"].num_bytes == 2 * 500 * 3 * 4
    assert all(cost.microseconds_per_row > 0 for cost in found.costs.values())
    text = str(found)
    assert text.splitlines()[0].startswith("| method | log predictive density | RMSE (cm)")
    assert "**12 bytes**" in text
    console = Console(width=200, force_terminal=True, record=True)
    console.print(found)
    assert "sorted by lpd" in console.export_text()
    frame = found.to_frame()
    assert list(frame.index) == list(found.names)
    assert frame.loc["exact", "training_seconds"] == 1.5
    assert credo.compare(posteriors, test_set, by="rmse").by == "rmse"
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_target_is_best_when_met() -> None:
    scores = credo.evaluate(*regression(50))
    coverage = scores.metrics["coverage_95"]
    assert coverage.badness(0.95) < coverage.badness(0.99) < coverage.badness(0.5)


def test_bad_input(train: credo.Data, test_set: credo.Data) -> None:
    posterior = exact.posterior(train)
    with pytest.raises(ValueError, match="x"):
        credo.evaluate(posterior, (np.zeros((0, 3)), np.zeros(0)))
    with pytest.raises(ValueError, match="rows of shape"):
        credo.evaluate(posterior, (np.zeros((4, 2)), np.zeros(4)))
    with pytest.raises(ValueError, match="num_resamples"):
        credo.evaluate(posterior, test_set, num_resamples=-1)
    with pytest.raises(ValueError, match="one class only"):
        credo.evaluate(classes(20)[0], np.zeros(20, int))
    with pytest.raises(KeyError, match="no score 'rmsee'; there are"):
        credo.evaluate(posterior, test_set, num_resamples=0)["rmsee"]
    with pytest.raises(ValueError, match="at least one"):
        credo.compare({}, test_set)
    with pytest.raises(ValueError, match="by must be one of"):
        credo.compare({"exact": posterior}, test_set, by="lpdd", num_resamples=0)
    broken = exact.posterior(train)
    broken.theta["w"][:] = np.nan
    with pytest.raises(ValueError, match="not finite, first in row 0"):
        credo.evaluate(broken, test_set)


@pytest.mark.parametrize("how", ["temperature", "vector", "isotonic"])
def test_recalibrated_classes_are_judged_like_any_prediction(how: str, seed: int) -> None:
    held_out, test = (classes(1500, 3, sharpened=2.5, seed=2 * seed + part) for part in (0, 1))
    kinds = {"temperature": Temperature, "vector": VectorScaling, "isotonic": IsotonicClasses}
    mended = kinds[how].fit(*held_out)(test[0])
    before, after = credo.evaluate(*test), credo.evaluate(mended, test[1], outside=mended[:20])
    assert after["ece"].value < before["ece"].value / 2
    assert after["nll"].value < before["nll"].value
    assert before.calibration.direction == "overconfident"
    assert set(after.detection) == {"entropy", "mutual_information", "max_probability"}
    assert list(before) == list(after)


def test_recalibrated_regression_is_judged_like_any_prediction(seed: int) -> None:
    held_out, test = (regression(num, claimed=0.5, seed=2 * seed + part) for part, num in ((0, 1500), (1, 600)))
    mended = IsotonicQuantiles.fit(*held_out)(test[0])
    before, after = credo.evaluate(*test), credo.evaluate(mended, test[1])
    assert before.calibration.direction == "overconfident"
    # The rows that it was fitted to have errors too.
    both = np.sqrt(1 + 600 / 1500)
    error = both * after["calibration_auc"].standard_error
    assert abs(after["calibration_auc"].value - 0.5) < sigmas(2) * error < abs(before["calibration_auc"].value - 0.5)
    assert after["coverage_95"].value == pytest.approx(0.95, abs=sigmas(2) * both * np.sqrt(0.95 * 0.05 / 600))
    assert after["crps"].value < before["crps"].value
    assert after["lpd"].value > before["lpd"].value
