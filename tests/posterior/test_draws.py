"""Draws: sampling by weight, single draws, ArviZ, and what the diagnostics say of good and bad chains."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import credo
from credo import random
from credo.diagnostics import Status
from credo.diagnostics._arviz import arviz
from credo.diagnostics.chains import convergence, ebfmi
from credo.posterior import Draws, Provenance
from credo.predictive import streaming
from tests.statistical.moments import assert_plausible

X = np.linspace(-1, 1, 10)
NUM_CHAINS, NUM_DRAWS = 4, 300


@pytest.fixture(scope="module")
def good() -> Draws:
    """Independent draws of a linear model with learned noise."""
    model = credo.models.regression(credo.networks.MLP([], out=1)).bind((X, X))
    rng = np.random.default_rng(0)
    theta = {
        name: rng.normal(size=(NUM_CHAINS, NUM_DRAWS, *leaf.shape)).astype(np.float32)
        for name, leaf in model.template.items()
    }
    infos = {
        "log_joint": rng.normal(size=(NUM_CHAINS, NUM_DRAWS)),
        "acceptance": np.full((NUM_CHAINS, NUM_DRAWS), 0.8),
        "diverged": np.zeros((NUM_CHAINS, NUM_DRAWS), bool),
        "energy": rng.normal(size=(NUM_CHAINS, NUM_DRAWS)),
    }
    provenance = Provenance(credo.NUTS().to_config(), seed=0, seconds=1.0, num_data=10)
    return Draws(model, theta, provenance, infos=infos, probes=X[:, None])


def changed(posterior: Draws, change) -> Draws:
    return replace(posterior, theta={name: change(leaf.copy()) for name, leaf in posterior.theta.items()})


# --- draws


def test_sample_draws_by_weight(good, seed):
    weights = np.zeros((NUM_CHAINS, NUM_DRAWS))
    weights[1, 2], weights[3, 4] = 0.25, 0.75
    drawn = replace(good, weights=weights).sample(random.key(seed), 2000)
    slope = good.theta["head.kernel"]
    assert drawn["head.kernel"].shape == (2000, 1, 1)
    share = np.mean(drawn["head.kernel"][:, 0, 0] == slope[3, 4, 0, 0])
    assert np.isin(drawn["head.kernel"].ravel(), [slope[1, 2].item(), slope[3, 4].item()]).all()
    assert_plausible(stats.binomtest(round(share * 2000), 2000, 0.75).pvalue)


def test_weights_count_in_predictions(good):
    weights = np.zeros((NUM_CHAINS, NUM_DRAWS))
    weights[1, 2] = 1.0
    mean = replace(good, weights=weights).predict(X).mean
    slope, offset = good.theta["head.kernel"][1, 2].item(), good.theta["head.bias"][1, 2].item()
    np.testing.assert_allclose(mean, slope * X + offset, rtol=1e-5, atol=1e-6)


def test_draws_in_the_units_of_the_program(good):
    draw, everything = good.draw(5, chain=2), good.constrained()
    for name, leaf in good.theta.items():
        assert everything[name].shape == leaf.shape
        np.testing.assert_allclose(draw[name], everything[name][2, 5], rtol=1e-6)
    np.testing.assert_array_equal(draw["head.kernel"], good.theta["head.kernel"][2, 5])
    np.testing.assert_allclose(everything["noise"], np.exp(good.theta["noise"]), rtol=1e-5)
    np.testing.assert_array_equal(good.draw(-1)["head.bias"], good.theta["head.bias"][0, -1])


@pytest.mark.parametrize(("index", "chain"), [(NUM_DRAWS, 0), (0, NUM_CHAINS), (-NUM_DRAWS - 1, 0)])
def test_missing_draws_are_refused(good, index, chain):
    with pytest.raises(ValueError, match=r"4 chain\(s\) of 300"):
        good.draw(index, chain)


@pytest.mark.parametrize("num", [0, -1])
def test_counts_are_checked(good, num):
    with pytest.raises(ValueError, match="num must be at least 1"):
        good.sample(random.key(0), num)
    with pytest.raises(ValueError, match="num_draws must be at least 1"):
        good.predict(X, num_draws=num)


def test_fewer_draws_on_request(good):
    assert good.predict(X, num_draws=7).num_draws == 7
    assert good.predict(X, num_draws=10**6).num_draws == NUM_CHAINS * NUM_DRAWS


def test_to_arviz(good):
    inference = good.to_arviz()
    assert set(inference.posterior.data_vars) == {"head.kernel", "head.bias", "noise"}
    assert inference.posterior["head.kernel"].shape == (4, 300, 1, 1)
    assert inference.posterior["head.kernel"].dims[:2] == ("chain", "draw")
    assert (inference.posterior["noise"].values > 0).all()
    assert set(inference.sample_stats.data_vars) == {"lp", "acceptance_rate", "diverging", "energy"}
    assert inference.sample_stats["diverging"].dtype == bool


def test_arviz_is_imported_quietly():
    script = "import credo.diagnostics.chains"
    command = [sys.executable, "-W", "error::FutureWarning", "-c", script]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stderr == ""


# --- diagnostics


def test_good_chains_are_trusted(good):
    diagnostics = good.diagnostics
    assert diagnostics.advice == ()
    assert diagnostics.status is Status.GREEN
    assert diagnostics.verdict.startswith("The chains agree about the functions")
    assert diagnostics.functions.rhat < 1.01
    assert diagnostics.functions.ess_bulk > 800
    assert "acceptance 0.80, divergences 0, E-BFMI" in str(diagnostics)
    assert diagnostics.to_dict()["verdict"] == diagnostics.verdict


def test_a_chain_elsewhere_is_noticed(good):
    def shift(leaf: np.ndarray) -> np.ndarray:
        leaf[2] += 3.0
        return leaf

    diagnostics = changed(good, shift).diagnostics
    assert "the chains disagree about the functions" in diagnostics.verdict
    assert diagnostics.functions.rhat > 1.2


def test_one_chain_is_not_enough(good):
    single = changed(good, lambda leaf: leaf[:1])
    single = replace(single, infos={name: values[:1] for name, values in good.infos.items()})
    assert "one chain cannot tell" in single.diagnostics.verdict


def test_slow_chains_are_told_to_draw_more(good):
    """Draws that are hardly independent are thinned: more of them kept would take memory for nothing."""
    walk = changed(good, lambda leaf: np.cumsum(leaf, axis=1) / 10)
    assert walk.diagnostics.functions.ess_bulk < 100
    assert "another run would move the predictions by" in walk.diagnostics.verdict
    assert walk.diagnostics.status is Status.RED
    assert walk.diagnostics.remedy["thin"] > 1
    assert "num_samples" not in walk.diagnostics.remedy


@pytest.mark.parametrize("where", ["one place", "a place for each chain"])
def test_frozen_draws_are_noticed(good, where):
    def freeze(leaf: np.ndarray) -> np.ndarray:
        return np.broadcast_to(leaf[:1, :1] if where == "one place" else leaf[:, :1], leaf.shape)

    assert "the draws never moved" in changed(good, freeze).diagnostics.verdict


def test_a_frozen_chain_among_moving_ones_is_named(good):
    def freeze(leaf: np.ndarray) -> np.ndarray:
        leaf[1] = leaf[1, :1]
        return leaf

    assert "chain(s) 1 never moved" in changed(good, freeze).diagnostics.verdict


def test_divergences_and_low_ebfmi_are_told(good):
    diverged, energy = good.infos["diverged"].copy(), np.cumsum(good.infos["energy"], axis=1)
    diverged[0, :12] = True
    verdict = replace(good, infos=good.infos | {"diverged": diverged, "energy": energy}).diagnostics.verdict
    assert "12 divergent trajectories (1.0%); set target_acceptance=0.95" in verdict
    assert "is low: heavy tails" in verdict


@pytest.mark.parametrize("num_draws", [1, 3])
def test_too_few_draws_are_no_point_estimate(good, num_draws):
    infos = {name: values[:, :num_draws] for name, values in good.infos.items()}
    few = replace(changed(good, lambda leaf: leaf[:, :num_draws]), infos=infos)
    assert "too little to judge by" in few.diagnostics.verdict


def test_a_point_estimate_says_so(good):
    point = replace(changed(good, lambda leaf: leaf[:1, :1]), infos={})
    assert point.diagnostics.verdict.startswith("A point estimate")


def test_ebfmi_is_that_of_arviz(good):
    energy = np.cumsum(good.infos["energy"], axis=1)
    np.testing.assert_allclose(ebfmi(energy), arviz.bfmi(energy), rtol=1e-10)


def test_convergence_reports_the_worst_quantity(good):
    draws = np.random.default_rng(1).normal(size=(4, 200, 3))
    draws[0, :, 1] += 2.0
    alone = convergence(draws[..., 1:2])
    assert convergence(draws).rhat == pytest.approx(alone.rhat)
    assert convergence(draws).num_quantities == 3


def test_posteriors_of_one_model_share_compiled_predictions() -> None:
    model = credo.models.regression(credo.networks.MLP([3], out=1))
    x = np.linspace(-1, 1, 9)
    first, second = (credo.fit(model, (x, x), credo.MAP(num_steps=2), seed=seed) for seed in (0, 1))
    _ = first.predict(x).mean
    num_programs = streaming.fold._cache_size()
    assert not np.array_equal(first.predict(x).mean, second.predict(x).mean)
    assert streaming.fold._cache_size() == num_programs
