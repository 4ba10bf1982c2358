"""`credo distill`: a student of a run is a run that the other commands take."""

import json

import pytest

from credo.runs import Run


@pytest.fixture(scope="module")
def small(credo, run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("small") / "small"
    result = credo("distill", run, "--out", folder, "--network", "mlp:4", "--unlabelled", run.parent / "test.csv")
    assert result.exit_code == 0, result.output
    for words in ("Network: mlp:4,tanh", "held-out inputs: KL to the teacher", "Health:", f"Saved in {folder}"):
        assert words in result.stdout
    return folder


def test_a_student_is_a_run(credo, run, small, houses):
    ours, theirs = (
        json.loads(credo("predict", folder, houses / "test.csv", "--json").stdout) for folder in (small, run)
    )
    assert [row.keys() for row in ours] == [row.keys() for row in theirs]
    assert credo("evaluate", small, houses / "test.csv").exit_code == 0
    said = credo("inspect", small).stdout
    assert "Prior: of the teacher" in said
    assert str(run.resolve()) in json.loads(credo("inspect", small, "--json").stdout)["settings"]["teacher"]
    # 60 rows to learn from, and 30 without labels; a tenth is held out.
    assert Run.load(small).posterior.evidence.num_inputs == 9


def test_mistakes_are_explained(credo, run, small, houses, tmp_path):
    taken = credo("distill", run, "--out", small)
    assert taken.exit_code == 2
    assert "holds a run already" in taken.stderr
    itself = credo("distill", run, "--out", run, "--overwrite")
    assert "holds the teacher" in itself.stderr
    again = credo("fit", "--config", small / "config.toml", "--out", tmp_path / "again")
    assert "that of a student" in again.stderr
    missing = credo("distill", run, "--out", tmp_path / "other", "--data", tmp_path / "none.csv")
    assert missing.exit_code == 2
    assert "none.csv" in missing.stderr


def test_the_table_of_the_run_must_be_the_one(credo, houses, run, tmp_path):
    table, folder = tmp_path / "train.csv", tmp_path / "run"
    table.write_bytes((houses / "train.csv").read_bytes())
    fitted = credo("fit", table, "-t", "price", "-o", folder, "--method", "map", "--set", "num_steps=20", "-n", "mlp:4")
    assert fitted.exit_code == 0
    table.write_text(table.read_text().replace("Bern", "Rome", 1))
    changed = credo("distill", folder, "--out", tmp_path / "small")
    assert "its checksum differs; pass a table with inputs: --data" in changed.stderr
    table.unlink()
    assert (
        "does not exist; pass a table with inputs: --data" in credo("distill", folder, "-o", tmp_path / "small").stderr
    )
