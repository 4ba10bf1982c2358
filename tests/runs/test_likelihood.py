"""The likelihood of a run: found from the target, or as requested; censored targets and several, from file to file."""

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from credo.cli import app
from credo.runs import Config, Run, prepare

RNG = np.random.default_rng(0)
N = 120
X = RNG.normal(size=N)
COLUMNS = {
    "x": X,
    "visits": RNG.poisson(np.exp(0.3 + 0.9 * X) * RNG.gamma(3.0, 1 / 3, N)),
    "days": np.exp(2 + 0.6 * X + 0.5 * RNG.normal(size=N)),
    "running": RNG.random(N) < 0.3,
    "height": X + RNG.normal(size=N),
    "colour": RNG.choice(["red", "green", "blue"], N),
    "stage": np.digitize(X + 0.5 * RNG.logistic(size=N), [-1.0, 0.0, 1.0]),
}
FAST = {"network": "table:2", "method": "map", "settings": {"num_steps": 60}}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("rooms") / "table.parquet"
    pl.DataFrame(COLUMNS).write_parquet(path)
    return str(path)


def config(table, target, **options):
    keep = {"x", *target.split(","), options.get("censored")}
    drop = tuple(name for name in COLUMNS if name not in keep)
    return Config(data=table, target=target, drop=drop, **FAST, **options)


@pytest.mark.parametrize(
    ("target", "likelihood", "model"),
    [
        ("visits", "counts", "counts"),
        ("days", "positive", "positive"),
        ("height", "any", "regression"),
        ("stage", "ordinal", "ordinal"),
        ("colour", "any", "classification"),
        ("height,days", "any", "regression"),
    ],
)
def test_what_the_target_holds_is_found_and_kept(table, target, likelihood, model):
    prepared = prepare(config(table, target))
    assert prepared.config.likelihood == likelihood
    assert prepared.model.config["model"] == model
    assert bool(prepared.config.found) == (likelihood != "any")
    # The settled config gives the same model again.
    assert prepare(prepared.config).model.config == prepared.model.config


@pytest.mark.parametrize(("target", "likelihood"), [("visits", "any"), ("visits", "positive"), ("stage", "counts")])
def test_what_is_requested_is_not_looked_for(table, target, likelihood):
    if likelihood == "positive":
        with pytest.raises(ValueError, match=r"y holds 0 in row .* credo.models.positive takes numbers above 0"):
            prepare(config(table, target, likelihood=likelihood))
        return
    prepared = prepare(config(table, target, likelihood=likelihood))
    assert (prepared.config.likelihood, prepared.config.found) == (likelihood, "")


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("visits", {"likelihood": "count"}, "likelihood"),
        ("colour", {"likelihood": "ordinal"}, "are text .* whose order the table does not say"),
        ("stage", {"likelihood": "ordinal", "task": "regression"}, "'ordinal', which is for classes"),
        ("stage", {"likelihood": "counts", "task": "classification"}, "'counts', which is for numbers"),
    ],
)
def test_a_likelihood_that_does_not_fit_is_refused(table, target, options, message):
    with pytest.raises(ValueError, match=message):
        prepare(config(table, target, **options))


def test_another_network_has_no_other_likelihood(table):
    other = {**FAST, "network": "mlp:5"}
    assert prepare(Config(data=table, target="visits", **other)).config.likelihood == "any"
    with pytest.raises(ValueError, match="which the model for tables has"):
        prepare(Config(data=table, target="visits", likelihood="counts", **other))


def test_an_empty_likelihood_of_an_earlier_version_is_any(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text('data = "t.csv"\nlikelihood = ""\n')
    assert Config.read(path).likelihood == "any"
    assert Config(data="t.csv").likelihood == "auto"


def test_a_censored_target_from_file_to_file(table, tmp_path):
    run = Run.fit(config(table, "days", censored="running"), tmp_path / "run", progress=False)
    again = Run.load(tmp_path / "run")
    assert again.config.censored == "running"
    assert again.config.likelihood == "positive"
    assert "only lower bounds" in again.config.found
    (predictions,) = again.predict(table)
    assert predictions["lower"].min() > 0
    scores = again.evaluate(table)
    assert scores.num_censored == COLUMNS["running"].sum()
    np.testing.assert_allclose(scores["lpd"].value, run.evaluate(table)["lpd"].value)
    # New rows need not say what is censored, but an evaluation must know.
    new = tmp_path / "new.csv"
    pl.DataFrame({"x": X[:3], "days": [1.0, 2.0, 3.0]}).write_csv(new)
    assert len(next(again.predict(new))) == 3
    with pytest.raises(ValueError, match=r"no column 'running' \(what says which targets are censored\)"):
        again.evaluate(new)


def shell(*command):
    """What a command says, in lines that are long enough."""
    done = CliRunner().invoke(app, list(command), env={"COLUMNS": "300"}, catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def test_the_shell_says_what_it_found(table, tmp_path):
    drop = ",".join(name for name in COLUMNS if name not in ("x", "visits"))
    asked = ["fit", table, "-t", "visits", "--drop", drop, "-n", "table:2", "-m", "map", "--set", "num_steps=60"]
    said = shell(*asked, "-o", str(tmp_path / "run"))
    assert "Likelihood: counts, found from the target: whole numbers from 0 on, and as counts" in said
    assert "Likelihood:" not in shell(*asked, "--likelihood", "any", "-o", str(tmp_path / "any"))


def test_several_targets_in_the_shell(table, tmp_path):
    drop = ",".join(name for name in COLUMNS if name not in ("x", "height", "days"))
    fit = ["fit", table, "-t", "height,days", "--drop", drop, "-n", "table:2", "-m", "map", "--set", "num_steps=60"]
    out, run = tmp_path / "out.csv", str(tmp_path / "run")
    predict = ["predict", run, table, "-o", str(out)]
    for command in ([*fit, "-o", run], predict, ["inspect", run], ["evaluate", run, table]):
        shell(*command)
    assert {"height_mean", "days_upper"} <= set(pl.read_csv(out).columns)
