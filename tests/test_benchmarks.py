"""The bookkeeping of the benchmarks: results that survive a kill, options, published figures."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks import __main__ as command
from benchmarks import published, uci

import credo

FIT = uci.Fit("yacht", "map", 0)
SETTINGS = {"method": {"num_steps": 10}}
SCORES = {"rmse": 1.0, "log_likelihood": -1.5, "seconds": 0.1}


def test_results_are_found_by_fit_and_settings(tmp_path: Path) -> None:
    path = tmp_path / "new" / "uci.jsonl"
    uci.Results(path).add(FIT, SETTINGS, SCORES)
    again = uci.Results(path)
    assert again.find(FIT, SETTINGS) == SCORES
    assert again.find(FIT, {"method": {"num_steps": 20}}) is None
    assert again.find(FIT._replace(split=1), SETTINGS) is None


def test_half_a_line_loses_one_result(tmp_path: Path) -> None:
    path = tmp_path / "uci.jsonl"
    results = uci.Results(path)
    for split in range(3):
        results.add(FIT._replace(split=split), SETTINGS, SCORES)
    path.write_bytes(path.read_bytes()[:-10])
    uci.Results(path).add(FIT._replace(split=3), SETTINGS, SCORES)
    found = [uci.Results(path).find(FIT._replace(split=split), SETTINGS) for split in range(4)]
    assert found == [SCORES, SCORES, None, SCORES]


@pytest.mark.parametrize("name", uci.METHODS)
def test_settings_are_the_same_in_every_process(name: str) -> None:
    """A schedule or an optimiser that prints its address would make every fit look new."""
    first, second = (uci.settings_of(uci.Fit("yacht", name, 0), credo.datasets.linear(num=40)) for _ in range(2))
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
    rows = uci.Results(out).rows
    assert [row["fit"] for row in rows] == [["yacht", "map", 0], ["yacht", "map", 1]]
    assert all(np.isfinite(value) for row in rows for value in row["scores"].values())
    shown = capsys.readouterr().out
    assert "deep ensembles" in shown
    assert "of 1 sets" in shown
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
