"""Runs of tables whose rows belong together, and decisions of least cost."""

import numpy as np
import polars as pl
import pytest

from credo.runs import Config, Run, prepare

NUM = 90
TABLE = pl.DataFrame(
    {
        "patient": [f"p{n % 18}" for n in range(NUM)],
        "n": [1 + n % 2 for n in range(NUM)],
        "x": np.sin(np.arange(NUM)),
        "state": ["sick" if np.sin(n) + np.cos(3 * n) > 0.5 else "well" for n in range(NUM)],
    }
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("roles")
    TABLE.write_csv(folder / "train.csv")
    settings = {"num_steps": 50, "batch_size": 16}
    config = Config(
        str(folder / "train.csv"),
        "state",
        group="patient",
        counts="n",
        method="map",
        network="linear",
        settings=settings,
    )
    prepared = prepare(config)
    assert prepared.data.names == ("x",)
    held_out = prepared.data.split(0.2)[1]
    assert sum(patient in set(held_out.groups) for patient in TABLE["patient"]) == held_out.size
    return prepared.fit(folder / "run")


def test_a_run_keeps_what_rows_are(run):
    again = Run.load(run.folder)
    assert (again.config.group, again.config.counts) == ("patient", "n")
    assert again.encoding == run.encoding


def test_decisions_cost_least(run, tmp_path):
    TABLE.select("x").write_csv(tmp_path / "new.csv")
    (said,) = run.predict(tmp_path / "new.csv", cost="sick->well:10")
    sick = said["p_sick"].to_numpy()
    # Ten times the probability of the one against that of the other.
    expected = np.minimum(10 * sick, 1 - sick)
    np.testing.assert_allclose(said["expected_cost"], expected, rtol=1e-5)
    np.testing.assert_array_equal(said["decision"], np.where(10 * sick < 1 - sick, "well", "sick"))
    with pytest.raises(ValueError, match="cost names 'ill'"):
        next(run.predict(tmp_path / "new.csv", cost="ill->well:10"))


def test_noise_is_that_of_each_rows_precision(tmp_path):
    """A typical row has w = 2, the geometric mean; one that says nothing is predicted like it."""
    table = TABLE.with_columns(w=pl.Series([1.0, 4.0] * (NUM // 2)), z=pl.Series(np.cos(np.arange(NUM)))).drop("state")
    table.write_csv(tmp_path / "train.csv")
    config = Config(
        str(tmp_path / "train.csv"), "z", precisions="w", method="map", network="linear", settings={"num_steps": 50}
    )
    run = prepare(config).fit(tmp_path / "run")
    new = pl.DataFrame({"patient": ["p1"] * 3, "n": [1] * 3, "x": [0.5] * 3, "w": [2.0, 8.0, 0.5]})
    (told,) = run.predict(new, keep=["x"])
    (plain,) = run.predict(new.drop("w"))
    assert told.columns[0] == "x"
    assert "w" not in told.columns
    np.testing.assert_allclose(told["aleatoric_sd"], plain["aleatoric_sd"] * np.array([1, 0.5, 2]), rtol=1e-4)
    assert run.test_data(table).precisions is not None
    with pytest.raises(ValueError, match="'w', the precisions, holds -1 in row 2"):
        next(run.predict(new.with_columns(w=pl.Series([1.0, -1.0, 1.0]))))
