"""May the uncertainties be trusted? Against the exact leave-one-out answer, and case by case."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import credo
from credo.diagnostics.status import Answer, Status
from credo.evaluation.calibrated import Calibration, held_out_calibration, left_out_calibration
from credo.evaluation.check import Check, check
from credo.evaluation.loo import left_out_weights
from tests.evaluation import exact

GOOD = Answer("mixing", Status.GREEN, "the chains agree")
LOST = replace(GOOD, status=Status.RED)


@pytest.fixture(scope="module")
def data() -> credo.Data:
    return exact.linear_data(60)


def found(share: float, num_rows: int, task: str = "regression", due: float = 0.9) -> Calibration:
    error = float(np.sqrt(due * (1 - due) / num_rows))
    return Calibration(
        task=task,
        how="rows",
        num_rows=num_rows,
        due=due,
        share=share,
        error=error,
        below=1 - share,
        above=0.0,
        log_score=0.0,
    )


def test_levels_are_those_of_a_refit_without_each_row(data: credo.Data, seed: int) -> None:
    """4,000 draws, of which leaving a row out weighs some more than others: levels are exact to some hundredths."""
    posterior = exact.posterior(data, 2000, seed)
    weights, _, scores = left_out_weights(posterior, data)
    levels = np.sum(weights * posterior.predict(data.x).cdf_by_draw(data.y), axis=0)
    for row in range(data.size):
        rest = np.arange(data.size) != row
        mean, covariance = exact.normal_posterior(data.x[rest], data.y[rest])
        law = stats.norm(data.x[row] @ mean, np.sqrt(data.x[row] @ covariance @ data.x[row] + exact.NOISE**2))
        assert levels[row] == pytest.approx(law.cdf(data.y[row]), abs=0.05)
        assert scores[row] == pytest.approx(law.logpdf(data.y[row]), abs=0.1)


def test_a_posterior_that_is_right_is_green(data: credo.Data) -> None:
    verdict = check(exact.posterior(data), data)
    assert verdict.status is Status.GREEN
    assert [answer.question for answer in verdict.answers] == ["mixing", "precision", "calibration"]
    assert "each predicted without itself" in str(verdict)
    assert verdict.call == ""


def test_a_noise_that_is_far_too_small_is_red(data: credo.Data) -> None:
    """The model says 0.5 and the rows have 1.5."""
    noisy = data.with_targets(data.x @ [1.0, -0.5, 0.25] + 1.5 * np.random.default_rng(0).normal(size=60))
    verdict = check(exact.posterior(noisy), noisy)
    assert verdict.status is Status.RED
    assert "too narrow" in verdict.verdict


@pytest.mark.parametrize(
    ("share", "num_rows", "status"),
    [
        (0.91, 100, Status.GREEN),
        (0.86, 1000, Status.GREEN),
        (0.83, 1000, Status.AMBER),
        (0.965, 1000, Status.AMBER),
        (0.78, 1000, Status.RED),
        (0.99, 1000, Status.RED),
        (0.85, 20, Status.AMBER),  # who could tell?
        (0.30, 20, Status.RED),
    ],
)
def test_the_status_of_an_interval(share: float, num_rows: int, status: Status) -> None:
    assert found(share, num_rows).status is status


@pytest.mark.parametrize(("share", "status"), [(0.88, Status.GREEN), (0.83, Status.AMBER), (0.7, Status.RED)])
def test_the_status_of_labels(share: float, status: Status) -> None:
    assert found(share, 1000, "classification").status is status


def test_intervals_that_hold_are_usable_whatever_the_chains_say() -> None:
    good, bad = found(0.9, 200), found(0.5, 200)
    unknown = Answer("calibration", None, "unknown")
    for chains, calibration, status in [
        (GOOD, good.answer, Status.GREEN),
        (LOST, good.answer, Status.AMBER),
        (GOOD, bad.answer, Status.RED),
        (GOOD, unknown, Status.AMBER),
        (LOST, unknown, Status.RED),
    ]:
        assert Check((chains, calibration), None, {"name": "MAP"}).status is status


def test_classes_are_judged_by_their_confidence() -> None:
    rng = np.random.default_rng(0)
    probs = rng.uniform(0.6, 1.0, 2000)
    prediction = credo.from_probs(np.column_stack([1 - probs, probs]))
    assert held_out_calibration(prediction, (rng.uniform(size=2000) < probs).astype(int)).status is Status.GREEN
    too_sure = held_out_calibration(prediction, (rng.uniform(size=2000) < 0.6).astype(int))
    assert too_sure.status is Status.RED
    assert "too sure" in too_sure.says


def test_draws_that_few_rows_decide_are_not_judged() -> None:
    few = exact.linear_data(3)
    extreme = credo.Data(10 * few.x, few.y + 50.0)
    assert "decide the fit too much" in str(left_out_calibration(exact.posterior(extreme), extreme))


def test_an_approximation_with_many_parameters_is_not_believed_unseen() -> None:
    model = credo.models.regression(credo.networks.MLP([20], out=1))
    rows, new = credo.datasets.gap(num=6), credo.datasets.gap(num=100, seed=1)
    posterior = credo.fit(model, rows, credo.MAP(num_steps=5), progress=False)
    unseen = check(posterior, rows)
    assert (unseen.status, unseen.call) == (Status.RED, 'credo.fit(model, data, "auto")')
    assert check(posterior, held_out=new).calibration is not None


def test_it_can_be_stored(data: credo.Data) -> None:
    verdict = check(exact.posterior(data), data)
    stored = json.loads(json.dumps(verdict.to_dict()))
    assert (stored["status"], stored["verdict"]) == ("green", verdict.verdict)
    assert Check.from_dict(stored) == verdict


def test_without_rows_there_is_nothing_to_judge(data: credo.Data) -> None:
    with pytest.raises(ValueError, match="pass the rows of the fit"):
        check(exact.posterior(data))
