"""`credo explain`, and `credo evaluate` beside baselines, recalibrated, and with conformal sets."""

import json

import pytest

from credo.examples import table
from credo.runs import Run


@pytest.fixture(scope="module")
def held_out(tmp_path_factory):
    """Rows like those of the test table, and no row of the training table."""
    folder = tmp_path_factory.mktemp("held_out")
    table.main(folder, num_train=40, num_test=60)
    return folder / "test.csv"


def test_importance_by_column(credo, run, houses, tmp_path):
    said = credo("explain", run, houses / "test.csv", "--rows", 2, "--out", tmp_path / "pictures")
    assert said.exit_code == 0, said.output
    for words in ("How much R² falls when a column is shuffled", "in plain words", "Row ", "importance.png"):
        assert words in said.stdout
    names = {path.name for path in (tmp_path / "pictures").iterdir()}
    assert {"importance.png", "dependence-1.png"} < names
    assert sum(name.startswith("row-") for name in names) == 2
    found = json.loads(credo("explain", run, houses / "test.csv", "--rows", 0, "--json").stdout)
    columns = {column.name for column in Run.load(run).encoding.columns if column.names}
    assert set(found["importance"]) == columns, "numbers of one column are one"
    assert found["rows"] == []


def test_what_cannot_be_explained_is_said_in_one_line(credo, run, houses, tmp_path):
    wrong = credo("explain", run, houses / "test.csv", "--rows", -1)
    assert wrong.exit_code == 2
    assert "num_rows is -1" in wrong.stderr
    (tmp_path / "file").write_text("")
    assert "--out names a folder" in credo("explain", run, houses / "test.csv", "--out", tmp_path / "file").stderr


def test_scores_stand_beside_a_constant_and_a_line(credo, run, houses, monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")  # no heading is broken
    said = credo("evaluate", run, houses / "test.csv")
    for words in ("constant", "linear", "in plain words", "R²", "of the variance"):
        assert words in said.stdout
    found = json.loads(credo("evaluate", run, houses / "test.csv", "--json").stdout)
    assert found["baselines"]["constant"].keys() == found["scores"].keys()


def test_without_the_table_of_the_fit_there_are_no_baselines(credo, run, houses, tmp_path):
    moved = houses / "train.csv"
    moved.rename(tmp_path / "train.csv")
    try:
        said = credo("evaluate", run, houses / "test.csv")
    finally:
        (tmp_path / "train.csv").rename(moved)
    assert said.exit_code == 0
    assert "No baselines: " in said.stdout
    assert "does not exist" in said.stdout


@pytest.fixture(scope="module")
def calibrated(credo, run, houses, held_out, tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibrated") / "run"
    options = ("--recalibrate", held_out, "--conformal", 0.8, "--out", folder, "--unknown", "missing")
    said = credo("evaluate", run, houses / "test.csv", *options)
    assert said.exit_code == 0, said.output
    for words in ("Recalibrated: ", "Conformal sets of 80%, from 30 rows", f"Saved in {folder}"):
        assert words in said.stdout
    return folder


def test_a_calibrated_run_predicts_as_it_was_judged(credo, run, calibrated, houses):
    ours, before = (
        json.loads(credo("predict", one, houses / "test.csv", "--json").stdout) for one in (calibrated, run)
    )
    assert ours[0]["mean"] != before[0]["mean"]
    assert set(ours[0]) - set(before[0]) == {"conformal_lower", "conformal_upper"}
    assert all(row["conformal_lower"] <= row["conformal_upper"] for row in ours)
    loaded = Run.load(calibrated)
    data = loaded.test_data(houses / "test.csv", unknown="missing")
    assert [row["mean"] for row in ours] == loaded.posterior.predict(data.x).mean.tolist()
    assert credo("inspect", calibrated).exit_code == 0


def test_what_a_calibrated_run_cannot_do(credo, run, calibrated, houses, held_out, tmp_path):
    for command in (
        ("distill", calibrated, "--out", tmp_path / "small"),
        ("update", calibrated, held_out),
        ("evaluate", calibrated, houses / "test.csv", "--recalibrate", held_out),
    ):
        said = credo(*command)
        assert said.exit_code == 2
        assert "is calibrated already" in said.stderr
    assert "pass --recalibrate or --conformal" in credo("evaluate", run, held_out, "--out", tmp_path / "x").stderr
    assert "level" in credo("evaluate", run, held_out, "--conformal", 1.5, "--unknown", "missing").stderr


def test_help_shows_switches_as_switches(credo, monkeypatch):
    for width in ("80", "120"):
        monkeypatch.setenv("COLUMNS", width)
        for command in ("fit", "predict", "evaluate", "explain", "compare", "label"):
            said = credo(command, "--help").stdout
            assert "bool" not in said
            assert "--no-" not in said
            assert max(map(len, said.splitlines())) <= int(width)
        assert "bool" not in credo("--help").stdout
        assert "[default: auto]" in credo("fit", "--help").stdout
