"""Runs: a folder with all that it takes to use a fit, and to make it again."""

import shutil
import tomllib
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import tomli_w

import credo
from credo import _files
from credo._folders import locked
from credo._manifest import Manifest
from credo.inference.registry import METHODS
from credo.inference.settings import as_value, build, merged, parse, settings_of
from credo.inference.sgmcmc.schedules import Cosine
from credo.runs import Config, Run, simplified
from credo.runs import run as runs
from credo.runs.prior import prior_in_words, prior_of, unlabelled_in_words
from credo.tables.predictions import regrouped, write
from tests.kills import Killed, kill_at

QUICK = {"num_steps": 20}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def arrays():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 2))
    return x, x[:, 0] - 2 * x[:, 1] + 0.1 * rng.standard_normal(40)


@pytest.fixture(scope="module")
def table(folder, arrays):
    x, y = arrays
    path = folder / "train.csv"
    pl.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": y}).write_csv(path)
    return path


@pytest.fixture(scope="module")
def config(table):
    return Config(str(table), "y", network="mlp:4", method="map", settings=QUICK, seed=3)


@pytest.fixture(scope="module")
def run(folder, config):
    return Run.fit(config, folder / "run")


def same_draws(first, second):
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


def test_a_run_gives_the_bits_that_python_gives(run, arrays, table):
    model = credo.models.regression(credo.networks.MLP([4], 1))
    posterior = credo.fit(model, credo.Data(*arrays, standardise=True), credo.MAP(num_steps=20), seed=3)
    assert same_draws(run.posterior.theta, posterior.theta)
    scores = credo.evaluate(posterior, arrays).to_dict()
    assert run.evaluate(table).to_dict() == scores
    mean = pl.concat(list(run.predict(table)))["mean"].to_numpy()
    np.testing.assert_array_equal(mean, posterior.predict(arrays[0]).mean)


def test_a_run_is_loaded_as_it_was(run):
    again = Run.load(run.folder)
    assert again.config == run.config
    assert again.encoding == run.encoding
    assert same_draws(again.posterior.theta, run.posterior.theta)


def test_its_config_makes_it_again(run, folder):
    again = Run.fit(Config.read(run.folder / "config.toml"), folder / "again")
    assert again.config == run.config
    assert again.encoding == run.encoding
    assert same_draws(again.posterior.theta, run.posterior.theta)


def test_the_config_says_all(run, table):
    stored = tomllib.loads((run.folder / "config.toml").read_text())
    assert stored["data"] == str(table.resolve())
    assert (stored["target"], stored["task"], stored["method"], stored["seed"]) == ("y", "regression", "map", 3)
    assert stored["settings"]["num_steps"] == 20
    assert stored["settings"]["optimizer"] == "adam"
    assert len(stored["data_sha256"]) == 64


def test_an_old_config_knows_nothing_about_the_function(run, tmp_path):
    stored = tomllib.loads((run.folder / "config.toml").read_text())
    assert (stored["monotone"], stored["smooth"], stored["strength"]) == ({}, False, 1.0)
    old = {name: value for name, value in stored.items() if name not in ("monotone", "smooth", "strength")}
    (tmp_path / "old.toml").write_text(tomli_w.dumps(old))
    assert Config.read(tmp_path / "old.toml") == run.config


def test_what_is_known_about_the_function_is_a_prior_of_python(config, arrays, tmp_path):
    """Strengths are multiples of the usual ones."""
    run = Run.fit(replace(config, monotone={"b": "-"}, smooth=True, strength=2.0), tmp_path / "run")
    falling = credo.priors.consistent(None, credo.conditions.monotone({"b": "-"}), strength=2000.0)
    prior = credo.priors.consistent(falling, credo.conditions.smooth(), strength=20.0)
    model = credo.models.regression(credo.networks.MLP([4], 1), prior=prior)
    data = credo.Data(*arrays, standardise=True, names=["a", "b"])
    assert same_draws(run.posterior.theta, credo.fit(model, data, credo.MAP(num_steps=20), seed=3).theta)


def test_a_sign_in_a_config_is_plus_or_minus(config):
    with pytest.raises(ValueError, match=r"monotone.b must be '\+' or '-', got 1"):
        runs.prepare(replace(config, monotone={"b": 1}))


def test_directions_are_those_of_columns_and_of_the_second_class(tmp_path):
    """A date has a trend, beside which seasons are free; so is what says that a cell is missing."""
    path = tmp_path / "sales.csv"
    path.write_text("size,sold,bought\n1,2020-01-05,no\n,2020-02-03,yes\n3,2021-01-09,no\n4,2021-06-02,yes\n")
    prepared = runs.prepare(Config(str(path), "bought", network="linear", monotone={"size": "+", "sold": "-"}))
    (term,) = prior_of(prepared.config, prepared.encoding).terms
    assert term.condition == credo.conditions.monotone({"size": "+", "sold: years": "-"}, label=1)
    assert "the probability of bought 'yes' monotone in size (+), sold (−)" in prior_in_words(
        prepared.config, prepared.encoding
    )


def test_a_file_that_has_changed_is_refused(run, folder, table):
    other = folder / "other.csv"
    other.write_text(table.read_text().replace("y", "y", 1) + "1,2,3\n")
    changed = Config.read(run.folder / "config.toml")
    with pytest.raises(ValueError, match="its checksum differs"):
        runs.prepare(Config(**{**vars(changed), "data": str(other)}))


def test_a_folder_is_not_overwritten_unasked(run, config, folder):
    with pytest.raises(ValueError, match="holds a run already"):
        Run.fit(config, run.folder)
    (folder / "mine").mkdir()
    (folder / "mine" / "notes.txt").write_text("keep")
    with pytest.raises(ValueError, match="is not a run of credo"):
        Run.fit(config, folder / "mine")


def test_resume_returns_what_is_done_and_refuses_another(run, config):
    assert same_draws(Run.fit(config, run.folder, resume=True).posterior.theta, run.posterior.theta)
    with pytest.raises(ValueError, match="holds another run: its seed differ"):
        Run.fit(Config(**{**vars(config), "seed": 4}), run.folder, resume=True)


def test_overwrite_takes_the_old_run_away(run, config, folder):
    place = shutil.copytree(run.folder, folder / "twice")
    (place / "notes.txt").write_text("mine")
    Run.fit(Config(**{**vars(config), "seed": 5}), place, overwrite=True)
    assert Run.load(place).config.seed == 5
    assert (place / "notes.txt").exists()
    assert len(list(place.glob("*.safetensors"))) == 1


def test_a_run_at_work_is_not_overwritten(run, config):
    with locked(run.folder), pytest.raises(OSError, match="another process is at work"):
        Run.fit(config, run.folder, overwrite=True)
    assert Run.load(run.folder).config == run.config


def test_a_column_named_like_an_answer_cannot_be_kept(run, folder):
    (folder / "mean.csv").write_text("a,b,mean\n1,2,3\n")
    with pytest.raises(ValueError, match="'mean' cannot be kept"):
        list(run.predict(folder / "mean.csv", keep=["mean"]))


def test_an_unfinished_run_is_described_and_not_used(run, config, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        kill_at(patched, 5)
        with pytest.raises(Killed):
            Run.fit(config, tmp_path / "run")
    found = runs.describe(tmp_path / "run")
    assert not found["finished"]
    assert found["state"] == "not ended yet"
    with pytest.raises(ValueError, match="has not ended; fit it again with resume=True"):
        Run.load(tmp_path / "run")
    assert runs.describe(run.folder)["finished"]


@pytest.mark.parametrize("file", ["columns.json", "manifest.json", "arrays"])
def test_a_flipped_byte_is_noticed(run, tmp_path, file):
    place = shutil.copytree(run.folder, tmp_path / "run")
    path = next(place.glob(f"{file}*"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"damaged|not written by credo"):
        Run.load(place)


@pytest.fixture(scope="module")
def other_run(folder, config, arrays):
    """A run of another table with the same columns."""
    x, y = arrays
    pl.DataFrame({"a": x[:, 0] * 5 + 1, "b": x[:, 1], "y": -y}).write_csv(folder / "other_train.csv")
    return Run.fit(replace(config, data=str(folder / "other_train.csv")), folder / "other_run")


@pytest.mark.parametrize("file", ["columns.json", "config.toml"])
def test_a_file_of_another_run_is_refused(run, other_run, tmp_path, file):
    place = Path(shutil.copytree(run.folder, tmp_path / "run"))
    shutil.copy(other_run.folder / file, place / file)
    for use in (Run.load, runs.describe):
        with pytest.raises(credo.LoadError, match=f"{file} is damaged: it was altered .* or is of another run"):
            use(place)


@pytest.mark.parametrize("file", ["columns.json", "config.toml", "manifest.json"])
def test_a_file_that_is_missing_is_named(run, tmp_path, file):
    place = Path(shutil.copytree(run.folder, tmp_path / "run"))
    (place / file).unlink()
    with pytest.raises(credo.LoadError, match=file):
        Run.load(place)


def test_nothing_is_written_without_the_lock(config, tmp_path):
    """Two that begin in one folder must not each leave some of the files."""
    with locked(tmp_path / "run"), pytest.raises(OSError, match="another process is at work"):
        Run.fit(config, tmp_path / "run")
    assert list((tmp_path / "run").iterdir()) == []


def test_a_run_of_the_first_version_is_read_with_a_warning(run, tmp_path):
    place = Path(shutil.copytree(run.folder, tmp_path / "run"))
    held = Manifest.read(place)
    first = {**held.posterior, "arrays_sha256": held.files[held.posterior["arrays"]]}
    _files.write_json(place / "manifest.json", first | {"format": "credo-posterior", "format_version": 1})
    with pytest.warns(UserWarning, match="no checksum covers config.toml and columns.json"):
        again = Run.load(place)
    assert again.config == run.config
    assert same_draws(again.posterior.theta, run.posterior.theta)


def test_a_run_is_no_place_for_another_posterior(run, other_run):
    with pytest.raises(ValueError, match="holds a run, of which a posterior is only a part"):
        other_run.posterior.save(run.folder)


def test_a_simpler_run_is_there_whole_or_not_at_all(run, other_run, tmp_path, monkeypatch):
    """Killed at any write, where there was a run before that is whole, and where there was none that there is none."""
    monkeypatch.setattr(simplified, "compress", lambda posterior, *_, **__: posterior)
    for number in range(1, 20):
        new, old = tmp_path / f"new{number}", Path(shutil.copytree(other_run.folder, tmp_path / f"old{number}"))
        kills = 0
        for place, overwrite in ((new, False), (old, True)):
            with monkeypatch.context() as patched:
                kill_at(patched, number)
                try:
                    simplified.compressed(run, place, overwrite=overwrite)
                except Killed:
                    kills += 1
        if not kills:
            break
        assert Run.load(old).config in (other_run.config, replace(run.config, made_from=str(run.folder.resolve())))
        assert simplified.compressed(run, new, overwrite=runs.is_run(new)).config == Run.load(new).config
    assert number > 4


def test_predictions_come_in_batches_of_one_size(run, table, monkeypatch):
    whole = pl.concat(list(run.predict(table, keep=["y"])))
    monkeypatch.setattr(runs, "BATCH_ROWS", 16)
    parts = list(run.predict(table, keep=["y"]))
    assert [len(part) for part in parts] == [16, 16, 8]
    assert whole["y"].equals(pl.concat(parts)["y"])
    np.testing.assert_allclose(pl.concat(parts)["upper"], whole["upper"], rtol=1e-5)
    assert (whole["lower"] < whole["mean"]).all()
    np.testing.assert_allclose(whole["sd"] ** 2, whole["epistemic_sd"] ** 2 + whole["aleatoric_sd"] ** 2)


def test_regrouping_keeps_every_row():
    batches = [(pl.DataFrame({"n": range(a, b)}), np.arange(a, b)[:, None]) for a, b in ((0, 3), (3, 4), (4, 11))]
    groups = list(regrouped(batches, 4))
    assert [len(x) for _, x in groups] == [4, 4, 3]
    np.testing.assert_array_equal(np.concatenate([x[:, 0] for _, x in groups]), np.arange(11))
    assert pl.concat([frame for frame, _ in groups])["n"].to_list() == list(range(11))


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_predictions_are_written_in_every_format(tmp_path, suffix):
    frames = [pl.DataFrame({"file": ["a", "b"], "mean": [1.5, 2.5]}), pl.DataFrame({"file": ["c"], "mean": [3.5]})]
    path = tmp_path / f"out{suffix}"
    assert write(frames, path) == 3
    read = {".csv": pl.read_csv, ".parquet": pl.read_parquet, ".npz": lambda name: pl.DataFrame(dict(np.load(name)))}
    assert read[suffix](path).rows() == [("a", 1.5), ("b", 2.5), ("c", 3.5)]
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_writer_leaves_nothing(tmp_path):
    def frames():
        yield pl.DataFrame({"mean": [1.5]})
        raise ValueError("row 2")

    with pytest.raises(ValueError, match="row 2"):
        write(frames(), tmp_path / "out.csv")
    assert not list(tmp_path.iterdir())


# -- settings ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_the_settings_of_every_method_survive_toml(name):
    method = METHODS[name]()
    text = tomli_w.dumps({"settings": settings_of(method)})
    assert build(name, as_value(tomllib.loads(text)["settings"])) == method


def test_methods_and_schedules_within_methods_survive_toml():
    method = credo.DeepEnsemble(credo.MAP(num_steps=7, learning_rate=Cosine(0.01, 7)), members=3)
    text = tomli_w.dumps({"settings": settings_of(method)})
    assert build("ensemble", as_value(tomllib.loads(text)["settings"])) == method


def test_settings_from_text():
    settings = merged(parse("members=3"), merged(parse("method.num_steps=9"), parse("method.batch_size=8")))
    assert build("ensemble", settings) == credo.DeepEnsemble(credo.MAP(num_steps=9, batch_size=8), members=3)
    assert build("nuts", parse("start=map")).start == credo.MAP()
    assert build("swag", parse("rank=none")).rank is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("num_step=3", "no setting 'num_step'; did you mean 'num_steps'"),
        ("num_steps=many", "num_steps is 2000 by default, and cannot be 'many'"),
        ("num_steps", "written name=value"),
        ("learning_rate.schedule=cosin", "did you mean 'cosine'"),
        ("learning_rate.schedule=cosine", "a cosine schedule has the settings first, num_steps"),
        ("optimizer.rate=1", "has no settings of its own"),
        ("batch_size=2020-01-01", "cannot be datetime.date"),
        ("num_steps=3\npatience=5", "cannot be '3"),
        ("num_steps=" + "[" * 5000, "cannot be"),
    ],
)
def test_settings_that_do_not_fit_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        build("map", parse(text))


def test_any_text_is_a_setting_or_refused():
    """Of every setting of every method: no error but the one that says what is wrong."""
    texts = ("", "none", "true", "-1", "nan", "9" * 400, "2020-01-01", "['a']", "{}", "{name='map'}", "{schedule=3}")
    refused = 0
    for name, method in METHODS.items():
        for item in fields(method):
            for text in texts:
                try:
                    build(name, parse(f"{item.name}={text}"))
                except ValueError:
                    refused += 1
    assert refused > 1000


def test_steps_beyond_what_can_be_numbered():
    with pytest.raises(ValueError, match="at most 2,147,483,647 can be numbered"):
        credo.NUTS(num_samples=2_000_000_000, thin=2).plan()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data = 'a.csv'\nsed = 1\n", "unknown 'sed'; did you mean 'seed'"),
        ("seed = 1\n", "which table"),
        ("data = 'a.csv'\nseed = 'one'\n", "seed cannot be 'one'"),
        ("data = 'a.csv'\nmonotone = 'size:+'\n", "monotone cannot be 'size:.'"),
        ("data = 'a.csv'\nsmooth = 3\n", "smooth cannot be 3"),
        ("data = \n", "is not TOML"),
    ],
)
def test_configs_that_are_none_are_refused(tmp_path, text, message):
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(ValueError, match=message):
        Config.read(tmp_path / "c.toml")


def test_it_says_what_becomes_of_rows_without_a_target(config):
    data = credo.Data([1.0, 2.0, 3.0], [1.0, None, None])
    assert unlabelled_in_words(data, config) == (
        "2 rows have no target: their inputs scale the columns, and the likelihood leaves them out."
    )
    assert "the prior's conditions look at them" in unlabelled_in_words(data, replace(config, smooth=True))
    assert unlabelled_in_words(data.select([0, 1]), config).startswith("1 row has no target")
    assert unlabelled_in_words(data.only_labelled(), config) == ""


def test_rows_outside_the_training_rows_are_marked_and_told_of_once(run, folder):
    path = folder / "far.csv"
    pl.DataFrame({"a": [0.0, 1e4, 0.0], "b": [0.0, 0.0, 1e3]}).write_csv(path)
    with pytest.warns(UserWarning, match=r"outside the training range: 2 of 3 rows .* the furthest is row 2") as told:
        found = pl.concat(list(run.predict(path)))
    assert len(told) == 1
    assert found["outside"][0] == 0
    assert (found["outside"][1:] > 100).all()


def test_a_verdict_is_kept_with_the_run_and_names_the_command(config, table, tmp_path):
    """Of too short chains; that of another posterior would not be believed."""
    settings = {"num_samples": 20, "num_warmup": 5, "max_depth": 2}
    own = replace(config, network="linear", method="nuts", settings=settings)
    run = Run.fit(own, tmp_path / "run")
    assert run.verdict == Run.load(run.folder).verdict
    assert runs.describe(run.folder)["status"] == run.verdict.status
    assert [answer.question for answer in run.verdict.answers][-1] == "calibration"
    changes = " ".join(f"--set {name}={value}" for name, value in run.verdict.remedy.items())
    command = f"credo fit --config {run.folder / 'config.toml'} {changes} --out {run.folder} --overwrite"
    assert (run.to_mend[0] == f"To mend it: {command}") == bool(changes)
    (run.folder / "verdict.json").write_text("{}")
    with pytest.raises(_files.LoadError, match=r"verdict.json is damaged"):
        Run.load(run.folder)


def test_a_likelihood_is_that_of_the_model_for_tables(tmp_path):
    """Few whole numbers would be classes; to name what they count makes them numbers."""
    path = tmp_path / "visits.csv"
    path.write_text("hour,visits\n" + "".join(f"{row / 7},{row % 4}\n" for row in range(60)))
    prepared = runs.prepare(Config(str(path), "visits", likelihood="counts"))
    assert prepared.model.config["model"] == "counts"
    assert prepared.encoding.target.task == "regression"
    with pytest.raises(ValueError, match="leave out the network"):
        runs.prepare(Config(str(path), "visits", likelihood="counts", network="mlp:4"))
    with pytest.raises(ValueError, match="the task is classes"):
        runs.prepare(Config(str(path), "visits", likelihood="counts", task="multi-class"))
    with pytest.raises(ValueError, match="between 0 and 1"):
        runs.prepare(Config(str(path), "visits", likelihood="shares"))


def test_a_short_budget_takes_a_small_network(tmp_path):
    path = tmp_path / "line.csv"
    path.write_text("x,y\n" + "".join(f"{row},{2 * row + 0.5}\n" for row in range(30)))
    assert runs.prepare(Config(str(path), "y", budget=10)).config.network == "table:20"
    assert runs.prepare(Config(str(path), "y")).config.network == "table"
