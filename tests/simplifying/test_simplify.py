"""`credo.simplify`: what is measured, what is recommended, and what is said of ways that are not open."""

from dataclasses import replace

import numpy as np
import pytest

import credo
from credo.simplifying import distill
from credo.simplifying.simplify import Judge, best_network, spread_out
from credo.simplifying.trade_off import FULL, Option, TradeOff, epistemic_error

FULL_OPTION = Option(1_000_000, 200.0, -1.0, 0.0, 0.0, 0.0, 0.95)
STUDENT = Option(10_000, 2.0, -1.005, 0.005, 0.002, 0.08, 0.94)
CORESET = Option(20_000, 8.0, -1.001, 0.001, 0.001, 0.05, 0.95)
BLIND = Option(5_000, 1.0, -1.0, 0.0, 0.001, 0.9, 0.6)
POOR = Option(1_000, 1.0, -1.5, 0.5, 0.01, 0.1, 0.9)


def made(**options: Option) -> TradeOff:
    return TradeOff({FULL: FULL_OPTION, **options}, {}, num_rows=100)


@pytest.fixture(scope="module")
def posterior() -> credo.Draws:
    model = credo.models.regression(credo.networks.MLP([6], out=1), noise=0.1)
    method = credo.MCLMC(num_samples=100, num_warmup=200, num_chains=2)
    return credo.fit(model, credo.datasets.gap(), method, progress=False)


@pytest.fixture(scope="module")
def result(posterior: credo.Draws) -> TradeOff:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(distill, "MAX_STEPS", distill.MIN_STEPS)
        return credo.simplify(posterior, credo.datasets.gap(), budget="30%", progress=False)


def test_the_fastest_that_keeps_what_is_known_is_recommended():
    assert made(student=STUDENT, coreset=CORESET).recommended == "student"


def test_error_bars_that_are_lost_are_not_recommended_for_a_good_log_score():
    assert made(blind=BLIND, coreset=CORESET).recommended == "coreset"


def test_a_budget_rules_out_what_is_larger():
    cheap = replace(made(coreset=CORESET, poor=POOR), budget=2_000)
    assert cheap.recommended == "poor"
    assert cheap.recommendation.startswith("Nothing within 2 kB keeps all that is known. The best is poor")


def test_nothing_may_fit():
    assert "Nothing fits into 10 bytes" in replace(made(student=STUDENT), budget=10).recommendation


def test_without_anything_good_the_posterior_stays_as_it_is():
    assert made(poor=POOR, blind=BLIND).recommended == FULL


def test_the_table_and_the_frame_say_the_same():
    result = made(student=STUDENT)
    assert "| student | 10 kB | 2 µs | -1.005 | +0.0050 ± 0.0020 | 8% | 0.940 |" in str(result)
    assert result.to_frame().loc["student", "lost"] == 0.005
    assert result.to_dict()["recommended"] == "student"


def test_an_option_that_is_not_there_is_refused():
    with pytest.raises(KeyError, match="did you mean 'student'"):
        replace(made(), posteriors={"student": None})["studnet"]


def test_epistemic_error_is_relative_to_the_root_mean_square():
    full = np.array([1.0, 3.0])
    assert epistemic_error(full, full) == 0
    assert epistemic_error(2 * full, full) == pytest.approx(1)


def test_every_way_is_measured(result: TradeOff, posterior: credo.Draws):
    assert list(result.options) == [FULL, "last layer", "student", "coreset", "quantised"]
    assert result.options[FULL].lost == 0
    assert result.options[FULL].epistemic_error == 0
    assert result.budget == int(0.3 * posterior.num_bytes)
    assert result.options["coreset"].num_bytes <= result.budget
    assert abs(result.options["quantised"].lost) < 0.01
    assert isinstance(result["student"], credo.Student)
    assert result.recommendation in str(result)


def test_foreign_inputs_are_told_by_the_epistemic_part(result: TradeOff):
    # Far outside the data the functions of the posterior go apart, and those of fewer bits with them.
    assert result.options[FULL].auroc > 0.7
    assert abs(result.options["quantised"].auroc - result.options[FULL].auroc) < 0.02


def test_a_worse_posterior_is_seen_to_be_worse(posterior: credo.Draws):
    data = credo.datasets.gap()
    one = replace(posterior, theta={name: leaf[:1, :1] for name, leaf in posterior.theta.items()}, infos=None)
    judged = Judge(posterior, data, spread_out(data.x, 0))(one)
    assert judged.epistemic_error == pytest.approx(1)
    assert not judged.keeps


def test_the_network_of_a_last_layer_is_the_most_probable(posterior: credo.Draws):
    data = credo.datasets.gap()
    best = best_network(posterior, data)
    batch = data.batch()
    joint = [
        float(posterior.model.log_joint({name: leaf[chain, index] for name, leaf in posterior.theta.items()}, batch))
        for chain, index in [(0, 0), (0, 50), (1, 99)]
    ]
    assert float(posterior.model.log_joint({n: leaf[0, 0] for n, leaf in best.theta.items()}, batch)) >= max(joint)


def test_ways_that_are_not_open_say_why():
    data = credo.Data(np.linspace(-1, 1, 30)[:, None], np.linspace(-1, 1, 30))
    model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.1)
    posterior = credo.fit(model, data, credo.ClosedForm(), progress=False)
    ways = ["last layer", "coreset", "quantised"]
    result = credo.simplify(posterior, data, ways=ways, progress=False)
    assert set(result.left_out) == {"last layer", "coreset", "quantised"}
    assert "small already" in result.left_out["coreset"]
    assert result.recommended == FULL


def test_a_way_that_there_is_not_is_refused(posterior: credo.Draws):
    with pytest.raises(ValueError, match="did you mean 'student'"):
        credo.simplify(posterior, credo.datasets.gap(), ways=["studnet"])
