"""`credo distill`, `compress` and `simplify`: a run made simpler is a run that the other commands take."""

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
    assert "Prior: of the run that it was made from" in said
    assert str(run.resolve()) in json.loads(credo("inspect", small, "--json").stdout)["settings"]["made_from"]
    # 60 rows to learn from, and 30 without labels; a tenth is held out.
    assert Run.load(small).posterior.evidence.num_inputs == 9


def test_mistakes_are_explained(credo, run, small, houses, tmp_path):
    taken = credo("distill", run, "--out", small)
    assert taken.exit_code == 2
    assert "holds a run already" in taken.stderr
    itself = credo("distill", run, "--out", run, "--overwrite")
    assert "holds the run itself" in itself.stderr
    again = credo("fit", "--config", small / "config.toml", "--out", tmp_path / "again")
    assert "that of a simpler form" in again.stderr
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


@pytest.fixture(scope="module")
def sampled(credo, houses, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sampled") / "run"
    settings = ("--method", "sgld", "--set", "num_samples=100", "--set", "num_warmup=20", "--network", "mlp:4")
    result = credo("fit", houses / "train.csv", "--target", "price", "--out", folder, *settings)
    assert result.exit_code == 0, result.output
    return folder


def test_a_compressed_run_is_a_run(credo, sampled, houses, tmp_path):
    small = tmp_path / "small"
    result = credo("compress", sampled, "--to", "10%", "--out", small, "--json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert said["bytes_after"] <= 0.1 * said["bytes_before"]
    assert credo("predict", small, houses / "test.csv").exit_code == 0
    assert "-fold" in credo("inspect", small).stdout
    assert Run.load(small).posterior.num_bytes == said["bytes_after"]


def test_what_cannot_be_compressed_is_one_line(credo, run, sampled, tmp_path):
    larger = credo("compress", sampled, "--to", "200%", "--out", tmp_path / "a")
    assert larger.exit_code == 2
    assert "that would be no compression" in larger.stderr
    unknown = credo("compress", sampled, "--by", "corset", "--out", tmp_path / "a")
    assert "did you mean 'coreset'" in unknown.stderr
    point = credo("compress", run, "--out", tmp_path / "a")
    assert point.exit_code == 2
    assert "nothing fits" in point.stderr
    assert not (tmp_path / "a").exists()


@pytest.mark.full
def test_simplify_makes_a_table_a_picture_and_advice(credo, sampled, houses, tmp_path):
    result = credo("simplify", sampled, "--test", houses / "test.csv", "--budget", "20%", "--out", tmp_path, "--json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert set(said["options"]) == {"full", "last layer", "student", "coreset", "quantised"}
    assert said["recommended"] in said["options"]
    assert (tmp_path / "trade_off.png").stat().st_size > 0
    assert (tmp_path / "trade_off.csv").read_text().startswith("option,num_bytes")
