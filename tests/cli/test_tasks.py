"""Tasks from the shell: each level of a column is one, and a level that nobody has seen is a new one."""

import numpy as np
import polars as pl
import pytest

from credo.runs import Run, prepare

SETTINGS = ("--method", "map", "--set", "num_steps=20", "--network", "linear")


@pytest.fixture(scope="module")
def schools(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("schools"), np.random.default_rng(0)
    for name, levels in (("train", ["Ulm", "Bern", "7"]), ("new", ["Bern", "Oslo"])):
        school, hours = np.repeat(levels, 6), rng.uniform(size=6 * len(levels))
        score = hours + 0.1 * rng.normal(size=len(hours))
        pl.DataFrame({"school": school, "hours": hours, "score": score}).write_csv(folder / f"{name}.csv")
    return folder


def test_levels_of_a_column_are_tasks_and_others_new_ones(credo, schools):
    files = schools / "train.csv", "-o", schools / "run"
    fitted = credo("fit", *files, "-t", "score", "--task-column", "school", *SETTINGS)
    assert fitted.exit_code == 0, fitted.output
    assert "task, 3 of them (7, Bern, Ulm)" in fitted.stdout
    assert "linear, 1 input" in fitted.stdout
    assert "a head for each school" in fitted.stdout
    run = Run.load(schools / "run")
    assert run.posterior.model.template["head.bias.z"].shape == (4, 1)
    with pytest.warns(UserWarning, match="school 'Oslo' was not there at fit: a new task"):
        (said,) = run.predict(schools / "new.csv", keep=["school", "hours"])
    hours = said["hours"].cast(float).to_numpy()
    expected = run.posterior.predict(np.column_stack([hours, np.repeat([1, -1], 6)])).mean
    np.testing.assert_allclose(said["mean"].to_numpy(), expected, rtol=1e-5)
    judged = credo("evaluate", schools / "run", schools / "new.csv")
    assert judged.exit_code == 0, judged.output
    assert "RMSE" in judged.output
    pl.DataFrame({"hours": hours}).write_csv(schools / "plain.csv")
    with pytest.warns(UserWarning, match="a new task"):  # a table need not say whose rows they are
        (alone,) = run.predict(schools / "plain.csv")
    np.testing.assert_array_equal(alone["mean"].to_numpy()[6:], said["mean"].to_numpy()[6:])
    again = prepare(run.config)
    assert again.config == run.config
    assert again.encoding == run.encoding


def test_a_column_that_cannot_name_tasks_is_refused(credo, schools):
    (schools / "gap.csv").write_text("school,hours,score\na,1,2\n,2,3\nb,3,5\n", encoding="utf-8")
    for file, column, words in (("gap.csv", "school", "1 cells are missing"), ("train.csv", "scool", "'school'?")):
        result = credo("fit", schools / file, "-t", "score", "--task-column", column, "-o", schools / "no", *SETTINGS)
        assert result.exit_code != 0
        assert words in result.output
