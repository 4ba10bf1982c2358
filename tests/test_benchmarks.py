"""The bookkeeping of the benchmarks: results that survive a kill, options, published figures, tables of tiny runs."""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import __main__ as command
from benchmarks import (
    augmentation,
    blackjax_runs,
    compression,
    conditions,
    independent_normals,
    mcmc,
    noise,
    printing,
    published,
    sampling,
    side_by_side,
    uci,
)
from benchmarks.problems import Problem
from benchmarks.resumable import Fit, Results

import credo

FIT = Fit("yacht", "map", 0)
SETTINGS = {"method": {"num_steps": 10}}
TINY = Problem((1, 3, 1), 20)
SCORES = {"rmse": 1.0, "log_likelihood": -1.5, "seconds": 0.1}


def test_results_are_found_by_fit_and_settings(tmp_path: Path) -> None:
    path = tmp_path / "new" / "uci.jsonl"
    Results(path).add(FIT, SETTINGS, SCORES)
    again = Results(path)
    assert again.find(FIT, SETTINGS) == SCORES
    assert again.find(FIT, {"method": {"num_steps": 20}}) is None
    assert again.find(FIT._replace(split=1), SETTINGS) is None


def test_half_a_line_loses_one_result(tmp_path: Path) -> None:
    path = tmp_path / "uci.jsonl"
    results = Results(path)
    for split in range(3):
        results.add(FIT._replace(split=split), SETTINGS, SCORES)
    path.write_bytes(path.read_bytes()[:-10])
    Results(path).add(FIT._replace(split=3), SETTINGS, SCORES)
    found = [Results(path).find(FIT._replace(split=split), SETTINGS) for split in range(4)]
    assert found == [SCORES, SCORES, None, SCORES]


@pytest.mark.parametrize("name", uci.METHODS)
def test_settings_are_the_same_in_every_process(name: str) -> None:
    """A schedule or an optimiser that prints its address would make every fit look new."""
    first, second = (uci.settings_of(Fit("yacht", name, 0), credo.datasets.linear(num=40)) for _ in range(2))
    assert first == second
    assert " at 0x" not in str(first)


def test_a_run_continues_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = credo.datasets.linear(num=40)
    np.savez(tmp_path / "uci.npz", yacht_X=data.x, yacht_y=data.y)
    monkeypatch.setenv("CREDO_DATA", str(tmp_path))
    monkeypatch.setitem(uci.METHODS, "map", uci.Recipe("learned", lambda num_rows: credo.MAP(num_steps=num_rows)))
    out = tmp_path / "uci.jsonl"
    arguments = ["--sets", "yacht", "--methods", "map", "--out", str(out), "--splits"]
    uci.main([*arguments, "1"])
    uci.main([*arguments, "2"])
    rows = Results(out).rows
    assert [row["fit"] for row in rows] == [["yacht", "map", 0], ["yacht", "map", 1]]
    assert all(np.isfinite(value) for row in rows for value in row["scores"].values())
    shown = capsys.readouterr().out
    assert "deep ensembles" in shown
    assert "on how many sets" in shown
    uci.main([*arguments, "2", "--markdown"])
    assert "| map " in capsys.readouterr().out


def test_without_data_a_message(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("CREDO_DATA", raising=False)
    uci.main(["--sets", "yacht"])
    assert "CREDO_DATA" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--sets", "bostom"], ["--methods", "hmm"], ["--splits", "0"]])
def test_unknown_options_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        uci.main(arguments)


def test_published_figures_cover_the_benchmark() -> None:
    for reported in (published.RMSE, published.LOG_LIKELIHOOD):
        for source in (published.PBP, published.DROPOUT, published.TUNED_DROPOUT, published.ENSEMBLES):
            assert tuple(reported[source]) == published.SETS


@pytest.mark.parametrize(
    ("words", "complaint"),
    [(["speed"], "no benchmark 'speed'"), (["vi", "--fast"], "options"), (["uci", "vi", "--sets", "yacht"], "alone")],
)
def test_command_line_complaints(words: list[str], complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", *words])
    with pytest.raises(SystemExit, match=complaint):
        command.main()


def test_options_reach_their_benchmark() -> None:
    root = Path(__file__).parent.parent
    run = [sys.executable, "-m", "benchmarks", "uci", "--help"]
    result = subprocess.run(run, capture_output=True, text=True, cwd=root, check=True)
    assert "--methods" in result.stdout


@pytest.mark.parametrize(
    ("sampler", "chain_method"),
    [
        (partial(blackjax_runs.nuts, num=20, depth=2), "threads"),
        (partial(blackjax_runs.mclmc, warmup=60, draws=20, thin=3), "axis"),
    ],
)
def test_blackjax_draws_from_the_same_density(sampler: Any, chain_method: str) -> None:
    target = blackjax_runs.Target.of(TINY.model(), TINY.arrays())
    theta = target.model.sample_prior(credo.random.key(0), 2)
    positions = target.positions(theta)
    for index, position in enumerate(positions):
        own = {name: leaf[index] for name, leaf in theta.items()}
        expected = target.model.log_joint(own, target.batch)
        np.testing.assert_allclose(target.log_density(target.batch)(position), expected, rtol=1e-5)
    chains = blackjax_runs.run_chains(sampler, target, positions, seed=0, chain_method=chain_method)
    assert chains.draws.shape == (2, 20, TINY.num_parameters)
    assert np.all(np.isfinite(chains.draws))
    assert np.all(np.asarray(chains.gradients) > 0)
    if sampler.func is blackjax_runs.mclmc:
        # Tuning gets the steps that were asked for, of two gradients each.
        assert chains.warmup_gradients.tolist() == [120, 120]
    assert target.functions(chains.draws, TINY.probes()).shape == (2, 20, len(TINY.probes()))


def test_whole_runs_beside_blackjax(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The slower chain method is left out after the first seed."""
    asked: list[tuple[str, int]] = []

    def run(settings: dict[str, Any]) -> dict[str, Any]:
        name = settings.get("chain_method", "credo")
        asked.append((name, settings["seed"]))
        seconds = {"credo": 2.0, "threads": 3.0, "axis": 4.0}[name]
        return {
            "seconds": seconds,
            "compiling": 1.0,
            "warmup_gradients": 100,
            "gradients": 300,
            "ess": 30.0,
            "tail": 20.0,
            "rhat": 1.0,
            "sds": [0.5, 2.0, 1.0] if name == "credo" else [0.25, 1.0, 3.0],
        }

    monkeypatch.setattr(side_by_side, "whole_run", run)
    monkeypatch.setattr(side_by_side, "SEEDS", (0, 1))
    mcmc.beside_blackjax()
    reference = ("credo", mcmc.REFERENCE_SEED)
    assert asked == [reference, ("credo", 0), ("threads", 0), ("axis", 0), ("credo", 1), ("threads", 1)] * len(
        mcmc.WHOLE_RUNS
    )
    shown = capsys.readouterr().out
    assert "2.00 of its gradients/s, 1.50 of its ESS/s, 2.00 of its ESS/s drawing" in shown
    assert [row.split("│")[10].strip() for row in shown.splitlines() if "blackjax, axis" in row] == ["0.50"] * 3


@pytest.mark.full
@pytest.mark.parametrize(
    "settings",
    [
        {"side": "credo", "num": 10, "depth": 2},
        {"side": "blackjax", "num": 10, "depth": 2, "chain_method": "threads"},
        {
            "side": "blackjax",
            "members": 4,
            "draws": 10,
            "thin": 2,
            "warmup": 60,
            "training_steps": 3,
            "chain_method": "axis",
        },
    ],
)
def test_a_whole_run_tells_its_gradients(settings: dict[str, Any]) -> None:
    run = side_by_side.whole_run({"sizes": TINY.sizes, "num_data": TINY.num_data} | settings)
    assert 0 < run["compiling"] < run["seconds"]
    assert min(run["warmup_gradients"], run["gradients"], run["ess"]) > 0


@pytest.mark.full
def test_tables_of_tiny_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(mcmc, "LEAPFROGS", ((TINY, 2, 2, 1.3),))
    monkeypatch.setattr(mcmc, "NUM_ROUNDS", 1)
    monkeypatch.setattr(sampling, "MICROCANONICAL_STEPS", ((TINY, 5),))
    monkeypatch.setattr(sampling, "NUM_ROUNDS", 1)
    monkeypatch.setattr(independent_normals, "DIMENSIONS", (2,))
    monkeypatch.setattr(independent_normals, "NUM_DRAWS", 20)
    for table in (mcmc.leapfrogs, sampling.microcanonical_steps, independent_normals.main):
        table()
    shown = capsys.readouterr().out
    assert shown.count("blackjax / credo") == 2
    assert "independent normals" in shown


@pytest.mark.full
def test_table_of_noise(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(noise, "LAYERS", ((3, 2),))
    monkeypatch.setattr(noise, "NUM_ROUNDS", 1)
    monkeypatch.setattr(noise, "NUM_COMPILED", 1)
    monkeypatch.setattr(noise, "NUM_ROWS", (300,))
    noise.numbers()
    noise.minibatches()
    shown = capsys.readouterr().out
    assert "unsafe_rbg, JAX's inverse" in shown
    assert "batch of 128" in shown


def test_what_generators_promise() -> None:
    """JAX's documentation says that rbg is not itself under vmap, and does not vouch for the folds of unsafe_rbg."""
    held = {
        name: {question for question, holds in noise.PROPERTIES.items() if holds(key(0))}
        for name, key in noise.GENERATORS.items()
    }
    assert held["credo's hash"] == held["threefry2x32"] == set(noise.PROPERTIES)
    assert held["unsafe_rbg"] < held["rbg"] < set(noise.PROPERTIES)


def test_tables_of_augmentation(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    few = {"flip": augmentation.TRANSFORMS["flip"]}
    tiny = {"NETWORKS": {"64-3-10": (8, [3])}, "NUM_ROWS": 200, "NUM_STEPS": 4, "NUM_ROUNDS": 1, "TRANSFORMS": few}
    for name, value in {**tiny, "SEEDS": (0,)}.items():
        monkeypatch.setattr(augmentation, name, value)
    monkeypatch.setattr(augmentation, "accuracies", lambda seed: (85.0, 91.0))
    monkeypatch.setattr(augmentation, "with_pretexts", lambda seed: [80.0, 84.0, 86.0])
    augmentation.main()
    shown = capsys.readouterr().out
    assert "flip" in shown
    assert "6.0" in shown
    assert "with masked" in shown


def test_table_of_conditions(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    few = {name: conditions.CONDITIONS[name] for name in ("plain", "bounded")}
    tiny = {"NETWORKS": {"20-3-1": [3]}, "NUM_ROWS": 300, "NUM_STEPS": 4, "NUM_ROUNDS": 1, "CONDITIONS": few}
    for name, value in tiny.items():
        monkeypatch.setattr(conditions, name, value)
    conditions.steps()
    assert "bounded" in capsys.readouterr().out
    assert conditions.peak_of_fit(8, 40) > 0


def test_compressors_stand_beside_draws_that_were_not_chosen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = credo.datasets.gap(30)
    inputs, held_out = np.linspace(-1, 1, 40)[:, None], np.linspace(-0.9, 0.9, 15)[:, None]
    model = credo.models.regression(credo.networks.MLP([3], out=1))
    method = credo.SGLD(num_samples=300, num_warmup=10)
    tiny = compression.Problem(model, data, method, inputs, held_out, None)
    monkeypatch.setitem(compression.PROBLEMS, "gap", lambda seed: tiny)
    monkeypatch.setattr(compression, "NUM_ROWS_TIMED", 20)
    monkeypatch.setattr(compression, "TO", "10%")
    compression.main(["--posteriors", "gap", "--by", "int8,coreset", "--markdown"])
    shown = capsys.readouterr().out
    assert "all draws take" in shown
    assert all(what in shown for what in ("by default: ", "| coreset ", "first draws", "random draws"))


def test_tables_are_kept_with_their_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printing, "_TABLES", [])
    table = printing.new_table("Times", "method", "ratio")
    table.add_row("map", "1.0")
    printing.keep(tmp_path / "which.json", "python -m benchmarks which")
    kept = json.loads((tmp_path / "which.json").read_text(encoding="utf-8"))
    assert kept["command"] == "python -m benchmarks which"
    assert all(kept[what] for what in ("date", "machine"))
    assert kept["tables"] == [{"title": "Times", "columns": ["method", "ratio"], "rows": [["map", "1.0"]]}]
    printing.keep(tmp_path / "nothing.json", "python -m benchmarks nothing")
    assert not (tmp_path / "nothing.json").exists()  # tables are kept once
