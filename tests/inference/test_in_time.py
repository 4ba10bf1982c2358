"""Chains that fit into a time."""

import numpy as np
import pytest

import credo
from credo.inference import auto, in_time
from credo.inference.auto import choose
from credo.inference.in_time import GRADIENTS_PER_STEP, LEAST_STEPS, chains_within, gradient_measured

DATA = credo.Data(np.random.default_rng(0).normal(size=(40, 2)), np.arange(40.0) ** 0.5, standardise=True)
MODEL = credo.models.table(DATA, "table:3")


@pytest.mark.parametrize("seconds", [5.0, 20.0, 100.0])
def test_they_take_what_there_is(seconds):
    chains = chains_within(seconds, 1e-4)
    steps = chains.num_chains * (chains.num_warmup + chains.num_samples * chains.thin)
    # Thinning is rounded to whole steps.
    np.testing.assert_allclose(GRADIENTS_PER_STEP * steps * 1e-4, seconds, rtol=0.1)


def test_more_chains_come_first_then_longer_ones():
    lengths = [(chains.num_chains, chains.num_warmup) for chains in (chains_within(s, 1e-3) for s in (40, 128, 400))]
    assert [num for num, _ in lengths] == [4, 8, 8]
    assert lengths[2][1] > lengths[1][1]


def test_too_short_for_chains():
    assert chains_within(4 * (LEAST_STEPS - 1) * GRADIENTS_PER_STEP * 1e-3, 1e-3) is None


def test_the_default_model_of_tables_is_sampled(monkeypatch):
    choice = choose(MODEL, DATA)
    assert isinstance(choice.method, credo.MCLMC)
    assert choice.method.start == "prior"
    assert "chains of MCLMC" in choice.why
    monkeypatch.setattr(auto, "MAX_SECONDS_OF_CHAINS", 1.0)
    choice = choose(MODEL, DATA)
    assert isinstance(choice.method, credo.DeepEnsemble)
    assert choice.validation == auto.HELD_OUT


def test_a_budget_is_measured_on_this_machine(monkeypatch):
    assert 0 < gradient_measured(MODEL, DATA) < 1
    monkeypatch.setattr(auto, "gradient_measured", lambda model, data: 1e-4)
    monkeypatch.setattr(in_time, "available_cores", lambda: 2)
    short, long = (choose(MODEL, DATA, budget=seconds) for seconds in (12, 60))
    assert long.method.num_warmup > short.method.num_warmup
    assert "in 60 s" in long.why
    assert isinstance(choose(MODEL, DATA, budget=1).method, credo.DeepEnsemble)


def test_long_trainings_stop_by_rows_held_out_and_short_ones_settle(monkeypatch):
    """Whatever the number of steps, the rate falls to zero at the last, and a quarter without improvement is enough."""
    monkeypatch.setattr(auto, "MAX_SECONDS_OF_CHAINS", 1.0)
    monkeypatch.setattr(in_time, "available_cores", lambda: 2)
    for per_gradient, budget, expected in [
        (1e-4, None, auto.MAX_STEPS),
        (1.0, 60, auto.MIN_STEPS),
        (5e-3, 208, 8_000),
        (1e-6, 1e4, auto.MAX_STEPS),
    ]:
        monkeypatch.setattr(auto, "gradient_measured", lambda model, data, seconds=per_gradient: seconds)
        monkeypatch.setattr(auto, "chains_within", lambda seconds, per_gradient: None)
        choice = choose(MODEL, DATA, budget=budget)
        training = choice.method.method
        assert training.num_steps == expected
        assert f"at most {expected:,} steps" in choice.why
        assert training.patience * training.check_every == expected * auto.PATIENCE
        assert float(training.learning_rate(training.num_steps)) == pytest.approx(0, abs=1e-6)


def test_a_budget_is_for_auto_and_for_tables():
    with pytest.raises(ValueError, match="budget is for method='auto'"):
        credo.fit(MODEL, DATA, credo.MAP(), budget=10)
    with pytest.raises(ValueError, match="budget"):
        credo.fit(MODEL, DATA, budget=-1)
    with pytest.raises(ValueError, match=r"credo\.models\.table"):
        credo.fit(credo.models.regression(credo.networks.MLP([3], 1)), DATA, budget=10)


def test_an_ensemble_that_stops_early_holds_rows_back(monkeypatch):
    monkeypatch.setattr(auto, "MAX_SECONDS_OF_CHAINS", 1.0)
    monkeypatch.setattr(auto, "MIN_STEPS", 20)
    monkeypatch.setattr(auto, "NUM_EPOCHS", 1)
    posterior = credo.fit(MODEL, DATA)
    assert posterior.provenance.num_data == 36
