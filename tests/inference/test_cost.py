"""What a fit will cost, known before it starts."""

from pathlib import Path

import numpy as np
import pytest

import credo
from credo.inference import cost
from credo.inference.cost import Cost, Measured

DATA = credo.datasets.gap()
MODEL = credo.models.regression(credo.networks.MLP([10], out=1), noise=0.1)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "SECONDS_MEASURED", 0.02)
    monkeypatch.setattr(cost, "machine", lambda: (1e-5, 1e-9))


def of_one_run(measured: Measured, *, rows: int = 1000, rows_per_step: int = 1000) -> Cost:
    needs = credo.SGLD(num_samples=10).describe(MODEL, DATA)
    return Cost("SGLD", "", needs, rows, rows_per_step, ((100, 4, measured),))


def test_counts_and_memory_are_those_of_the_fit() -> None:
    method = credo.SGLD(num_samples=10, num_warmup=5, thin=2, num_chains=2, batch_size=20)
    found = credo.plan(MODEL, DATA, method)
    assert found.num_gradients == 2 * (5 + 20)
    assert (found.rows, found.rows_per_step) == (DATA.size, 20)
    assert found.needs == method.describe(MODEL, DATA)
    assert found.at().num_bytes == found.needs.total_bytes
    for said in ("memory: ", "gradients of 20 of 100 rows", "on this machine", "100 × the weights"):
        assert said in str(found)


def test_a_search_for_where_to_start_is_counted() -> None:
    method = credo.MCLMC(num_samples=5, num_warmup=5, num_chains=2, start=credo.MAP(num_steps=30))
    found = credo.plan(MODEL, DATA, method)
    assert [(steps, chains) for steps, chains, _ in found.runs] == [(30, 2), (method.plan().num_steps, 2)]


def test_trajectories_are_counted_in_gradients() -> None:
    found = credo.plan(MODEL, DATA, credo.NUTS(num_samples=20, num_warmup=20, num_chains=1))
    assert found.num_gradients > 40


def test_seconds_grow_as_the_equation_says() -> None:
    measured = Measured(compiling=1.0, per_step=0.01, gradients=1.0, at_once=2, keeps_draws=True)
    found = of_one_run(measured)
    assert found.seconds == pytest.approx(1 + 2 * 100 * 0.01)
    assert found.at(draws=10).seconds == pytest.approx(1 + 2 * 1000 * 0.01)
    assert found.at(chains=2).seconds == pytest.approx(1 + 4 * 100 * 0.01)
    # All but the overhead grows with rows and weights.
    grown = 1 + 2 * 100 * (1e-5 + 3 * (0.01 - 1e-5))
    assert found.at(rows=3).seconds == found.at(weights=3).seconds == pytest.approx(grown)
    assert found.at(draws=10).num_bytes == pytest.approx(found.needs.passing_bytes + 10 * found.needs.num_bytes)
    # Of minibatches, more rows take no more time.
    assert of_one_run(measured, rows=10_000).at(rows=3).seconds == of_one_run(measured, rows=10_000).seconds


def test_a_step_too_short_to_tell_grows_as_this_machine_does() -> None:
    found = of_one_run(Measured(0.0, per_step=1.5e-5, gradients=1.0, at_once=4, keeps_draws=False))
    work = 1e-9 * found.needs.num_parameters * 1000
    assert found.at(rows=101).seconds == pytest.approx(100 * (1.5e-5 + 100 * work))


def test_what_cannot_fit_is_refused_with_what_would() -> None:
    with pytest.raises(ValueError, match=r"SGLD would need .* num_samples=\d+ would fit"):
        credo.plan(MODEL, DATA, credo.SGLD(num_samples=10**9, num_chains=1, thin=1, num_warmup=0))
    assert not of_one_run(Measured(0.0, 1e-3, 1.0, 4, True)).at(draws=1e9).fits


def test_rows_in_files_are_planned_as_they_are_fitted(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.column_stack([DATA.x, DATA.y]))
    files = credo.Data.open(tmp_path / "rows.npy")
    assert credo.plan(MODEL, files, credo.MAP(num_steps=10, batch_size=20)).num_gradients == 10
    with pytest.raises(ValueError, match="takes all rows in each step"):
        credo.plan(MODEL, files, credo.NUTS())
