"""Runs that go on learning: what they say, what they refuse, and folders that are always whole."""

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from credo import LoadError
from credo.cli import app
from credo.runs import Config, Run, describe, updated
from tests.kills import Killed, kill_at

VI = {"method": "bayes_by_backprop", "settings": {"num_steps": 300}, "network": "linear"}
POINTS = {"method": "map", "settings": {"num_steps": 50}, "network": "linear"}


def rows(num, seed, *, slope=2.0, classes=("cold", "hot")):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=num)
    kind = np.array(classes)[(a > 0).astype(int)]
    return pl.DataFrame(
        {"a": a, "b": rng.choice(["red", "blue"], num), "y": slope * a + rng.normal(size=num), "kind": kind}
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("updates")
    rows(120, 0).write_csv(place / "train.csv")
    rows(60, 1).write_csv(place / "new.csv")
    rows(60, 2, slope=-8.0).write_csv(place / "changed.csv")
    rows(60, 3, classes=("cold", "warm")).write_csv(place / "warm.csv")
    return place


@pytest.fixture(scope="module")
def fitted(folder):
    return Run.fit(Config(str(folder / "train.csv"), "y", drop=("kind",), **VI), folder / "run", progress=False)


@pytest.fixture
def run(fitted, tmp_path):
    return Path(shutil.copytree(fitted.folder, tmp_path / "run"))


def test_a_run_learns_new_rows_and_goes_on_from_disk(folder, run):
    after = updated(run, folder / "new.csv")
    (learned,) = after.updates
    assert (learned.num_rows, learned.rang, learned.new_classes) == (60, False, ())
    assert learned.drift == "no change seen in 60 rows"
    assert learned.log_score < learned.log_score_after
    again = Run.load(run)
    assert again.updates == after.updates
    assert again.posterior.provenance.num_data == again.encoding.num_rows == 180
    np.testing.assert_array_equal(
        pl.concat(list(again.predict(folder / "new.csv")))["mean"],
        pl.concat(list(after.predict(folder / "new.csv")))["mean"],
    )
    last = updated(run, folder / "changed.csv").updates[-1]
    assert last.rang
    assert last.drift.startswith("rang at row")
    assert len(describe(run)["updates"]) == 2


def test_new_classes_are_learned_where_that_is_wanted(folder, tmp_path):
    config = Config(str(folder / "train.csv"), "kind", drop=("y",), **VI)
    place = Run.fit(config, tmp_path / "run", progress=False).folder
    with pytest.raises(ValueError, match=r"has the class 'warm' in 'kind'.*it has cold, hot.*new_classes=True"):
        updated(place, folder / "warm.csv")
    after = updated(place, folder / "warm.csv", new_classes=True)
    assert after.updates[-1].new_classes == ("warm",)
    loaded = Run.load(place)
    assert loaded.encoding.target.labels == ("cold", "hot", "warm")
    assert loaded.config.task == "multi-class"
    assert pl.concat(list(loaded.predict(folder / "warm.csv"))).columns[:3] == ["p_cold", "p_hot", "p_warm"]


def test_draws_of_many_numbers_go_on_by_their_weights(folder, tmp_path):
    settings = {"num_samples": 60, "num_warmup": 60, "num_chains": 2, "batch_size": 60, "step_size": 1e-4}
    config = Config(str(folder / "train.csv"), "y", drop=("kind",), network="mlp:8", method="sgld", settings=settings)
    place = Run.fit(config, tmp_path / "run", progress=False).folder
    rows(3, 5).write_csv(tmp_path / "few.csv")
    before, after = Run.load(place).posterior, updated(place, tmp_path / "few.csv").posterior
    np.testing.assert_array_equal(before.theta["head.bias"], after.theta["head.bias"])
    assert len(np.unique(after.weights)) > 10


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda frame: frame.drop("a"), {}, "has no column 'a'"),
        (lambda frame: frame.drop("y"), {}, "has no column 'y'"),
        (lambda frame: frame.with_columns(b=pl.lit("green")), {}, "green"),
        (lambda frame: frame.with_columns(y=pl.lit("much")), {}, "'y' is 'much' in row 1, not a number"),
        (lambda frame: frame.with_columns(y=pl.lit(None)), {}, "no row with a target 'y'"),
        (lambda frame: frame.clear(), {}, "row"),
        (lambda frame: frame, {"forgetting": 2.0}, "forgetting must be at most 1"),
    ],
    ids=["column", "target", "category", "text", "unlabelled", "empty", "forgetting"],
)
def test_what_cannot_be_learned_leaves_the_run_as_it_was(folder, run, tmp_path, change, options, message):
    change(pl.read_csv(folder / "new.csv")).write_csv(tmp_path / "bad.csv")
    before = (run / "manifest.json").read_bytes()
    with pytest.raises(ValueError, match=message):
        updated(run, tmp_path / "bad.csv", **options)
    assert (run / "manifest.json").read_bytes() == before


def test_a_table_is_learned_once(folder, run):
    with pytest.raises(ValueError, match=r"has learned .*train.csv already"):
        updated(run, folder / "train.csv")
    updated(run, folder / "new.csv")
    with pytest.raises(ValueError, match=r"already.*pass again=True"):
        updated(run, folder / "new.csv")
    assert len(updated(run, folder / "new.csv", again=True).updates) == 2


def test_what_is_no_run_is_refused(folder, tmp_path):
    with pytest.raises(LoadError, match="is not a run"):
        updated(tmp_path, folder / "new.csv")


# -- runs that cannot go on by themselves -------------------------------------------------------------------------


@pytest.fixture
def points(folder, tmp_path):
    """A run of points, and copies of its tables that a test may spoil."""
    for name in ("train.csv", "new.csv", "changed.csv"):
        shutil.copy(folder / name, tmp_path)
    return Run.fit(Config(str(tmp_path / "train.csv"), "y", **POINTS), tmp_path / "run", progress=False).folder


def test_points_are_fitted_again_to_all_tables(folder, points):
    updated(points, points.parent / "new.csv")
    after = updated(points, points.parent / "changed.csv")
    assert after.posterior.provenance.num_data == after.encoding.num_rows == 240
    assert after.updates[-1].rang
    assert all("MAP leaves no distribution" in one for one in describe(points)["updates"])
    every = [pl.read_csv(folder / name) for name in ("train.csv", "new.csv", "changed.csv")]
    pl.concat(every).write_csv(points.parent / "all.csv")
    whole = Run.fit(Config(str(points.parent / "all.csv"), "y", **POINTS), points.parent / "whole", progress=False)
    found, expected = (pl.concat(list(one.predict(folder / "new.csv")))["mean"] for one in (after, whole))
    np.testing.assert_array_equal(found, expected)


def test_draws_that_are_left_without_weight_are_made_anew(folder, tmp_path):
    settings = {"num_samples": 30, "num_warmup": 30, "num_chains": 2, "batch_size": 60, "step_size": 1e-4}
    config = Config(str(folder / "train.csv"), "y", drop=("kind",), network="mlp:8", method="sgld", settings=settings)
    place = Run.fit(config, tmp_path / "run", progress=False).folder
    said = CliRunner().invoke(app, ["update", str(place), str(folder / "changed.csv")])
    assert said.exit_code == 0, said.output
    assert "Fitted again to all 2 tables, since the new rows leave" in said.output
    after = Run.load(place)
    assert after.posterior.provenance.num_data == 180
    np.testing.assert_array_equal(after.posterior.weighted_draws(0)[1], 1 / 60)


def test_a_fit_that_cannot_be_made_again_leaves_the_run_as_it_was(points):
    first, new = points.parent / "train.csv", points.parent / "new.csv"
    before, content = (points / "manifest.json").read_bytes(), first.read_bytes()

    def refused(says, **options):
        with pytest.raises(ValueError, match=rf"MAP leaves no distribution.* Nor can it be fitted again: .*{says}"):
            updated(points, new, **options)
        assert (points / "manifest.json").read_bytes() == before

    refused("forgets nothing, and forgetting is 0.5", forgetting=0.5)
    first.write_bytes(content + b"1.0,red,2.0,hot\n")
    refused("train.csv, which it has learned, has changed since")
    first.unlink()
    refused("train.csv, which it has learned, is not there any more")
    first.write_bytes(content)
    assert updated(points, new).encoding.num_rows == 180


# -- whole folders ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method", [VI, pytest.param(POINTS, marks=pytest.mark.full)], ids=["goes on", "is fitted again"]
)
def test_killed_at_any_write_the_old_run_or_the_new_one_is_there(folder, tmp_path, monkeypatch, method):
    fitted = Run.fit(Config(str(folder / "train.csv"), "y", drop=("kind",), **method), tmp_path / "run", progress=False)
    whole = None
    for number in range(1, 30):
        place = Path(shutil.copytree(fitted.folder, tmp_path / f"run{number}"))
        with monkeypatch.context() as patched:
            kill_at(patched, number)
            try:
                whole = updated(place, folder / "new.csv")
            except Killed:
                assert len(Run.load(place).updates) in (0, 1)
                continue
        break
    assert whole is not None
    assert number > 4
    # What was killed before it counted is learned as if nothing had been.
    assert updated(tmp_path / "run1", folder / "new.csv").updates == whole.updates


def test_from_the_shell(folder, run):
    def credo(*arguments):
        return CliRunner().invoke(app, [str(one) for one in arguments])

    said = credo("update", run, folder / "new.csv")
    assert said.exit_code == 0, said.output
    assert "before it was learned" in said.output
    assert "Drift: no change seen in 60 rows" in said.output
    assert "knows 180 rows now" in said.output
    refused = credo("update", run, folder / "new.csv")
    assert refused.exit_code != 0
    assert "--again" in refused.output
    found = json.loads(credo("update", run, folder / "changed.csv", "--json", "--forgetting", "0.5").stdout)
    assert found["rang"]
    assert "Learned since" in credo("inspect", run).output
