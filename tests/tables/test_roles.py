"""Columns that say what rows are to each other: groups, times, and how often each was seen."""

import numpy as np
import polars as pl
import pytest

from credo.tables import Encoding, read

NUM = 120
TABLE = pl.DataFrame(
    {
        "patient": [f"p{n % 24}" for n in range(NUM)],
        "day": [f"2020-{1 + n % 12:02}-01" for n in range(NUM)],
        "n": [1 + n % 3 for n in range(NUM)],
        "x": np.sin(np.arange(NUM)),
        "y": np.cos(np.arange(NUM)),
    }
)


def test_roles_are_no_inputs_and_reach_the_data(tmp_path):
    encoding = Encoding.learn(TABLE, "y", roles={"group": "patient", "time": "day", "counts": "n"})
    data = encoding.training_data(TABLE)
    assert data.names == ("x",)
    assert data.groups.tolist() == TABLE["patient"].to_list()
    np.testing.assert_array_equal(data.counts, TABLE["n"])
    assert len(set(data.times)) == 12
    said = dict(encoding.says)
    assert said["patient"].startswith("group: 24 of them, of 5 to 5 rows")
    assert said["day"].startswith("time, 2020-01-01 to 2020-12-01")
    assert said["n"].startswith("counts, 1 to 3")
    encoding.save(tmp_path / "columns.json")
    assert Encoding.load(tmp_path / "columns.json") == encoding
    # A test table needs none of them.
    assert encoding.data(TABLE.drop("patient", "day", "n")).groups is None


def test_means_of_the_target_are_those_of_other_groups():
    """A category whose levels are the groups themselves tells nothing of a group that is left out."""
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(150), 6)
    y = rng.normal(size=150)[patient]
    columns = {"who": [f"p{n}" for n in patient], "code": [f"c{n}" for n in patient], "z": rng.normal(size=900)}
    table = pl.DataFrame({**columns, "y": y + rng.normal(size=900)})
    data = read(table, target="y", roles={"group": "who"})
    effects = data.x[:, data.names.index("code: mean of y")]
    assert np.ptp(effects) < 1e-6


@pytest.mark.parametrize(
    ("roles", "words"),
    [
        ({"group": "x"}, "'x' is another one in every row: each group has one row"),
        ({"group": "always"}, "'always' is the same everywhere"),
        ({"time": "patient"}, "'patient' cannot order the rows in time: it holds words"),
        ({"counts": "patient"}, "'patient' cannot count how often rows were seen"),
        ({"counts": "negative"}, "'negative', the counts, holds -1 in row 3"),
        ({"counts": "gap"}, "'gap', the counts, holds nothing in row 2"),
        (
            {"groups": "patient"},
            "role must be one of group, time, counts, precisions, got 'groups'; did you mean 'group'",
        ),
        ({"group": "patent"}, "no column 'patent' .the group.*did you mean 'patient'"),
    ],
)
def test_what_cannot_be_a_role_is_refused(roles, words):
    table = TABLE.with_columns(
        always=pl.lit("a"),
        negative=pl.Series([1, 1, -1] + [1] * (NUM - 3)),
        gap=pl.Series([1, None] + [1] * (NUM - 2)),
    )
    with pytest.raises(ValueError, match=words):
        read(table, target="y", roles=roles)


def test_a_column_with_a_role_cannot_be_left_out():
    with pytest.raises(ValueError, match="'patient' is the group, and cannot be left out"):
        read(TABLE, target="y", roles={"group": "patient"}, drop=["patient"])


def test_precisions_are_told_in_units_of_a_typical_row(tmp_path):
    table = TABLE.with_columns(w=pl.Series([1.0, 4.0] * (NUM // 2)))
    encoding = Encoding.learn(table, "y", roles={"precisions": "w"})
    data = encoding.training_data(table)
    np.testing.assert_allclose(data.precisions[:2], [0.5, 2.0])
    assert "w" not in data.names
    assert dict(encoding.says)["w"].startswith("precisions w, 1 to 4: the noise of a row has the variance σ²/w")
    encoding.save(tmp_path / "columns.json")
    assert Encoding.load(tmp_path / "columns.json") == encoding
    assert encoding.data(table.drop("w")).precisions is None


@pytest.mark.parametrize(
    ("cells", "target", "words"),
    [
        ([1.0, 1.0, -1.0], "y", "'w', the precisions, holds -1 in row 3; write w of the variance σ²/w of its noise"),
        ([1.0, 0.0, 1.0], "y", "'w', the precisions, holds 0 in row 2"),
        ([1.0, None, 1.0], "y", "'w', the precisions, holds nothing in row 2"),
        (["1", "high", "2"], "y", "'w' cannot say how precisely rows were measured: it holds words, such as 'high'"),
        ([1.0, 2.0, 1.0], "patient", "precisions: 'w' is about noise of numbers, and 'patient' is multi-class"),
    ],
)
def test_what_is_no_precision_is_refused(cells, target, words):
    table = TABLE.with_columns(w=pl.Series(cells * (NUM // 3)))
    with pytest.raises(ValueError, match=words):
        read(table, target=target, roles={"precisions": "w"})
