"""The commands on files: fit → predict → evaluate → report, compare and inspect."""

import json
import os

import numpy as np
import polars as pl
import pytest

import credo as package
from credo import tables
from credo.evaluation.compare import Comparison, Cost
from credo.runs import Run
from credo.runs.comparing import recommend
from tests.cli.conftest import QUICK


def test_fit_says_what_it_did(credo, houses, run, tmp_path):
    result = credo("fit", houses / "train.csv", "-t", "price", "-o", tmp_path / "run", *QUICK, "--verbose")
    assert result.exit_code == 0, result.output
    for words in (
        "60 rows",
        "text that hardly repeats",
        "category of 3 levels (Bern, Rome, Ulm)",
        "date, as years since",
        "missing: the median",
        "constant, always 'EUR'",
        "Task: regression",
        "Network: mlp:4",
        "Method: map, as requested",
        "num_steps = 20",
        "Verdict: usable",
        f"Saved in {tmp_path / 'run'}",
    ):
        assert words in result.stdout
    first, second = Run.load(run).posterior, Run.load(tmp_path / "run").posterior
    assert all(np.array_equal(first.theta[name], second.theta[name]) for name in first.theta)


def test_a_config_replaces_the_flags(credo, run, tmp_path):
    result = credo("fit", "--config", run / "config.toml", "--out", tmp_path / "same", "--json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert (said["method"], said["task"], said["rows"]) == ("map", "regression", 60)
    assert "Bern" in said["columns"]["city"]
    assert (tmp_path / "same" / "config.toml").read_text() == (run / "config.toml").read_text()
    first, second = Run.load(run).posterior, Run.load(tmp_path / "same").posterior
    assert all(np.array_equal(first.theta[name], second.theta[name]) for name in first.theta)


def test_flags_win_over_the_config(credo, run, tmp_path):
    config = ("--config", run / "config.toml", "--out", tmp_path / "run")
    assert credo("fit", *config, "--set", "num_steps=10", "--seed", "4", "--quiet").stdout == ""
    made = Run.load(tmp_path / "run").config
    assert (made.settings["num_steps"], made.seed, made.network) == (10, 4, "mlp:4")


def test_resume_needs_only_the_folder(credo, run):
    assert credo("fit", "--resume", "--out", run).exit_code == 0
    refused = credo("fit", "--config", run / "config.toml", "--out", run)
    assert refused.exit_code == 2
    assert "--overwrite" in refused.stderr


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_predict_writes_every_format(credo, houses, run, tmp_path, suffix):
    out = tmp_path / f"out{suffix}"
    result = credo("predict", run, houses / "test.csv", "-o", out, "--keep", "id,city")
    assert result.exit_code == 0, result.output
    assert "Predicted 30 rows" in result.stdout
    read = {".csv": pl.read_csv, ".parquet": pl.read_parquet, ".npz": lambda name: pl.DataFrame(dict(np.load(name)))}
    frame = read[suffix](out)
    assert frame.columns == ["id", "city", "mean", "sd", "epistemic_sd", "aleatoric_sd", "lower", "upper", "outside"]
    assert frame["id"][0] == "house 60"


def test_predict_speaks_to_pipes_and_machines(credo, houses, run):
    lines = credo("predict", run, houses / "test.csv", "--level", "0.5").stdout.splitlines()
    assert lines[0] == "mean,sd,epistemic_sd,aleatoric_sd,lower,upper,outside"
    assert len(lines) == 31
    rows = json.loads(credo("predict", run, houses / "test.csv", "--json").stdout)
    assert len(rows) == 30
    mean, *_, lower, upper, _ = map(float, lines[1].split(","))
    assert rows[0]["mean"] == mean
    assert rows[0]["lower"] < lower < upper < rows[0]["upper"]


def test_evaluate_writes_a_report_with_the_columns(credo, houses, run, tmp_path):
    result = credo("evaluate", run, houses / "test.csv", "--report", tmp_path / "report.html")
    assert result.exit_code == 0, result.output
    assert "RMSE" in result.stdout
    page = (tmp_path / "report.html").read_text()
    assert "<h2>Columns</h2>" in page
    assert "category of 3 levels (Bern, Rome, Ulm)" in page
    assert "constant, always" in page
    scores = json.loads(credo("evaluate", run, houses / "test.csv", "--json").stdout)
    assert scores["num_rows"] == 30


def test_rows_without_a_target_are_kept_as_unlabelled_and_not_judged(credo, houses, run, tmp_path):
    def emptied(name, num):
        """The table without the first prices."""
        frame = pl.read_csv(houses / name, infer_schema=False)
        prices = frame["price"].to_list()
        frame.with_columns(pl.Series("price", [None] * num + prices[num:])).write_csv(tmp_path / name)
        return tmp_path / name

    result = credo("fit", emptied("train.csv", 12), "--target", "price", "--out", tmp_path / "run", *QUICK, "--json")
    assert result.exit_code == 0, result.output
    fitted = json.loads(result.stdout)
    assert (fitted["rows"], fitted["unlabelled"]) == (48, 12)
    assert fitted["columns"]["price"].endswith("12 rows without it are unlabelled")
    test = emptied("test.csv", 10)
    assert "regression on 20 test rows (10 more have no target)" in credo("evaluate", run, test).stdout
    assert "Predicted 30 rows" in credo("predict", run, test, "-o", tmp_path / "out.csv").stdout
    nothing = credo("evaluate", run, emptied("test.csv", 30))
    assert nothing.exit_code == 2
    assert "has no row with a target 'price'" in nothing.stderr


def test_inspect_tells_what_a_run_is(credo, run):
    result = credo("inspect", run)
    assert result.exit_code == 0, result.output
    for words in ("fitted to 60 rows", "mlp:4", "category of 3 levels", "Verdict: usable"):
        assert words in result.stdout
    assert json.loads(credo("inspect", run, "--json").stdout)["finished"]


@pytest.fixture(scope="module")
def knowing(credo, houses):
    """Against the data: prices that fall with the size."""
    known = (
        "--monotone",
        "size:-,sold:+",
        "--smooth",
        "--strength",
        "100",
        "--method",
        "map",
        "--set",
        "num_steps=300",
    )
    table = ("fit", houses / "train.csv", "-t", "price", "--network", "mlp:4")
    result = credo(*table, *known, "-o", houses / "knowing")
    assert result.exit_code == 0, result.output
    assert (
        "Prior: weights N(0, 1²); price monotone in size (−), sold (+); smooth; 100 × the usual strength\n"
        in result.stdout
    )
    return houses / "knowing"


def test_what_is_known_decides_the_predictions(credo, knowing, tmp_path):
    rows = "".join(f"Rome,2021-06-01,{size},yes\n" for size in range(20, 150, 10))
    (tmp_path / "sizes.csv").write_text(f"city,sold,size,garden\n{rows}")
    assert credo("predict", knowing, tmp_path / "sizes.csv", "-o", tmp_path / "out.csv").exit_code == 0
    mean, scale = pl.read_csv(tmp_path / "out.csv")["mean"].to_numpy(), Run.load(knowing).posterior.scaling.y_scale
    # Per ten square metres; without the condition prices rise by a quarter of a standard deviation.
    assert np.diff(mean).max() < 0.02 * scale


def test_what_is_known_is_told_and_kept(credo, knowing, houses, tmp_path):
    assert (
        "Prior: weights N(0, 1²); price monotone in size (−), sold (+); smooth; 100 × the usual strength"
        in credo("inspect", knowing).stdout
    )
    assert credo("fit", "--resume", "--out", knowing).exit_code == 0
    assert credo("fit", "--config", knowing / "config.toml", "-o", tmp_path / "same").exit_code == 0
    first, second = Run.load(knowing).posterior, Run.load(tmp_path / "same").posterior
    assert all(np.array_equal(first.theta[name], second.theta[name]) for name in first.theta)
    report = ("evaluate", knowing, houses / "test.csv", "--report", tmp_path / "report.html")
    assert credo(*report).exit_code == 0
    assert "monotone(size −, sold: years +)" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_second_class_is_the_one_that_rises(credo, houses, tmp_path):
    table = ("fit", houses / "train.csv", "-t", "garden", "--drop", "id,currency", "-o", tmp_path / "run", *QUICK)
    result = credo(*table, "--monotone", "price:+", "--json")
    assert result.exit_code == 0, result.output
    words = "weights N(0, 1²); the probability of garden 'yes' monotone in price (+)"
    assert json.loads(result.stdout)["prior"] == words


def test_classes_keep_their_names(credo, tmp_path):
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", "blue"], 60)
    frame = pl.DataFrame({"a": rng.standard_normal(60) + (colour == "red"), "colour": colour})
    frame.write_parquet(tmp_path / "train.parquet")
    fitted = credo("fit", tmp_path / "train.parquet", "-t", "colour", "-o", tmp_path / "run", *QUICK)
    assert "multi-class of 3 classes (blue, green, red), since it holds text" in fitted.stdout
    out = tmp_path / "out.csv"
    assert credo("predict", tmp_path / "run", tmp_path / "train.parquet", "-o", out).exit_code == 0
    said = pl.read_csv(out)
    assert said.columns == ["p_blue", "p_green", "p_red", "label", "entropy", "mutual_information", "outside"]
    np.testing.assert_allclose(said.select("p_blue", "p_green", "p_red").sum_horizontal(), 1, rtol=1e-5)
    assert set(said["label"]) <= {"red", "green", "blue"}


def test_compare_recommends_one(credo, houses, tmp_path):
    result = credo(
        *("compare", houses / "train.csv", "-t", "price", "--methods", "map,mle", "--test", houses / "test.csv"),
        *("--network", "linear", "--monotone", "size:+", "--out", tmp_path),
    )
    assert result.exit_code == 0, result.output
    assert "price monotone in size (+)" in result.stdout
    assert "Recommended: " in result.stdout
    assert "[bold]" not in result.stdout
    assert (tmp_path / "comparison.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "comparison.csv").read_text().startswith("method,")


def test_the_cheapest_of_the_best_is_recommended():
    y = np.random.default_rng(0).standard_normal(200)
    scores = {
        name: package.evaluate(package.from_normal(mean, 1.0), y)
        for name, mean in (("slow", np.zeros(200)), ("quick", np.full(200, 0.02)), ("poor", np.full(200, 3.0)))
    }
    costs = {"slow": Cost(50.0, 1, 1), "quick": Cost(2.0, 1, 1), "poor": Cost(0.1, 1, 1)}
    advice = recommend(Comparison(scores, costs, by="rmse", columns=("rmse",)))
    assert advice.startswith("Recommended: quick.")
    assert "in 2 s against 50 s" in advice
    alone = {name: scores[name] for name in ("slow", "poor")}
    advice = recommend(Comparison(alone, costs, by="rmse", columns=("rmse",)))
    assert advice.startswith("Recommended: slow.")
    assert "no other comes within one standard error" in advice


uci = pytest.mark.skipif("CREDO_DATA" not in os.environ, reason="CREDO_DATA names no folder that holds uci.npz")


OTHERS = ("boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine")


@uci
@pytest.mark.parametrize("name", ["yacht", *(pytest.param(name, marks=pytest.mark.full) for name in OTHERS)])
def test_uci_scores_are_those_of_python_to_the_bit(credo, tmp_path, name):
    train, test = package.datasets.uci_split(package.datasets.uci(name), 0)
    for part, data in (("train", train), ("test", test)):
        columns = {f"x{place}": column for place, column in enumerate(data.x.T)}
        pl.DataFrame({**columns, "y": data.y}).write_csv(tmp_path / f"{part}.csv")
    options = ("--method", "map", "--set", "num_steps=50", "--network", "mlp:10", "--seed", 1)
    fitted = credo("fit", tmp_path / "train.csv", "-t", "y", "-o", tmp_path / "run", *options)
    assert fitted.exit_code == 0, fitted.output
    said = json.loads(credo("evaluate", tmp_path / "run", tmp_path / "test.csv", "--json").stdout)
    model = package.models.regression(package.networks.MLP([10], 1))
    posterior = package.fit(model, train, package.MAP(num_steps=50), seed=1)
    scores = package.evaluate(posterior, test).beside(package.evaluation.baselines(train, test))
    assert said == json.loads(json.dumps(scores.to_dict()))
    # A table that is read in Python is the same data again.
    np.testing.assert_array_equal(tables.read(tmp_path / "train.csv", target="y").batch().x, train.batch().x)
