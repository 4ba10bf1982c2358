"""The contract that every registered method keeps. A new method adds one row to `TINY`."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import credo
from credo import _html, testing
from credo.inference.engine import driver
from credo.inference.engine.stages import FitStages
from credo.inference.registry import METHODS
from credo.predictive import first_rows
from tests.kills import fit_through_kills, write_at_every_chunk

pytestmark = pytest.mark.quick

# Settings that finish at once. Point estimates start at the prior or use minibatches, so that the seed matters to
# them; samplers thin, so that a chunk's records and steps differ.
TINY = {
    "mle": {"num_steps": 20, "start": "prior"},
    "map": {"num_steps": 20, "batch_size": 7},
    "metropolis": {"num_samples": 8, "num_warmup": 10, "num_chains": 2, "thin": 3},
    "hmc": {"num_samples": 6, "num_warmup": 8, "num_chains": 2, "thin": 2, "max_leapfrogs": 8},
    "nuts": {"num_samples": 6, "num_warmup": 8, "num_chains": 2, "thin": 2, "max_depth": 3},
    "mclmc": {"num_samples": 6, "num_warmup": 8, "num_chains": 2, "thin": 2},
    "parallel_tempering": {"num_samples": 6, "num_warmup": 8, "num_chains": 2, "num_temperatures": 3},
    "sgld": {"num_samples": 6, "num_warmup": 8, "num_chains": 2, "thin": 2, "batch_size": 7},
    "sghmc": {"num_samples": 6, "num_warmup": 4, "num_chains": 2, "thin": 2, "num_cycles": 2, "restart": "prior"},
    "sgnht": {"num_samples": 6, "num_warmup": 8, "num_chains": 2, "thin": 2, "batch_size": 7},
    "swag": {"num_steps": 25, "num_warmup": 5, "collect_every": 2, "rank": 3, "batch_size": 7},
    "mc_dropout": {"num_steps": 20, "batch_size": 7},
    "laplace": {"training": credo.MAP(num_steps=20, batch_size=7)},
    "closed_form": {"num_steps": 20, "num_samples": 50},
    "bayes_by_backprop": {"num_steps": 20, "batch_size": 7},
    "ivon": {"num_steps": 20, "batch_size": 7},
    "deep_ensemble": {"method": credo.BayesByBackprop(num_steps=20, batch_size=7), "members": 3},
}
# Of the weights, for a method that takes only some.
PRIORS = {"closed_form": {"hidden.*": "point", "head.*": credo.priors.normal()}}


@pytest.fixture(scope="module", params=sorted(METHODS))
def name(request) -> str:
    if request.param not in TINY:
        pytest.fail(f"the method {request.param!r} is registered and has no row in TINY")
    return request.param


@pytest.fixture(scope="module")
def case(name) -> testing.Case:
    return testing.Case(METHODS[name](**TINY[name]), PRIORS.get(name))


def test_every_row_is_a_registered_method():
    assert TINY.keys() == METHODS.keys()


@pytest.mark.parametrize("check", testing.CHECKS, ids=lambda check: check.__name__)
def test_contract(case, check):
    check(case)


def test_a_notebook_shows_the_posterior_and_what_it_predicts(case):
    posterior, prediction = case.posterior, case.posterior.predict(case.data.x)
    assert _html.safe(posterior.diagnostics.verdict) in posterior._repr_html_()
    assert prediction._repr_html_().count("<tr>") == 1 + first_rows.NUM_ROWS


def test_draws_are_in_chains(case):
    posterior, plan = case.posterior, case.method.plan()
    if not isinstance(posterior, credo.Draws) or isinstance(case.method, credo.ClosedForm):
        pytest.skip("not a posterior of draws in chains")
    point_estimate = isinstance(case.method, credo.MAP)
    axes = (1, 1) if point_estimate else (plan.num_chains, plan.num_records_in_all)
    assert posterior.theta.keys() == posterior.model.template.keys()
    for name, leaf in posterior.theta.items():
        assert leaf.shape == axes + posterior.model.template[name].shape
        assert np.isfinite(leaf).all()
    figures = posterior.trace if point_estimate else posterior.infos
    assert all(figure.shape == (axes[0], plan.num_records_in_all) for figure in figures.values())
    assert np.isfinite(figures["log_joint"]).all()
    assert case.method.describe(case.model, case.data).num_bytes == posterior.num_bytes + case.method.extra_bytes(14)


def test_killed_run_goes_on_to_the_same_bits(case, tmp_path, monkeypatch):
    write_at_every_chunk(monkeypatch)
    found, num_kills = fit_through_kills(monkeypatch, tmp_path, case.fit, every=3)
    assert num_kills >= 1
    assert testing.same_bits(found, case.posterior)
    assert testing.same_bits(credo.load(tmp_path), case.posterior)


@pytest.mark.full
def test_result_does_not_depend_on_the_chunk_size(case):
    bound = case.model.bind(case.data)
    outcome = driver.run(case.method, bound, case.data.batch(), seed=testing.SEED, records_per_chunk=1)
    one_by_one = case.method.posterior(bound, replace(outcome, stages=FitStages()))
    assert testing.same_bits(one_by_one.placed(case.data), case.posterior)


@dataclass(frozen=True)
class Careless(credo.MAP):
    """Says that it is another."""

    def to_config(self):
        return super().to_config() | {"name": "MAP"}


def test_a_method_that_breaks_the_contract_is_told_which_part():
    with pytest.raises(AssertionError, match="name of the class"):
        testing.check_method(Careless(num_steps=5))
