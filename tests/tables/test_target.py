"""Targets of tables: several at once, some of them censored, classes in an order."""

import numpy as np
import polars as pl
import pytest

import credo
from credo.data import Data
from credo.tables.encoding import Encoding
from credo.tables.predictions import prediction_frame
from credo.tables.target import Target

ROWS = {
    "size": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    "price": [1.5, 2.5, 3.5, None, 5.5, 6.5],
    "days": [10.0, 20.5, 30.0, None, 50.0, 60.0],
    "running": ["yes", "no", "No", None, "YES", "n"],
    "grade": ["low", "mid", "top", "low", "mid", "top"],
}


@pytest.fixture
def table(tmp_path):
    """Rows in a .parquet file, with other columns in the place of some."""

    def make(**columns):
        path = tmp_path / "rooms.parquet"
        pl.DataFrame({**ROWS, **columns}).write_parquet(path)
        return path

    return make


# -- several -----------------------------------------------------------------------------------------------


def test_several_targets_are_columns_of_y(table):
    path = table()
    encoding = Encoding.learn(path, "price, days", drop=["running", "grade"])
    assert encoding.target.columns == ("price", "days")
    assert encoding.names == ("size",)
    assert (encoding.num_rows, encoding.num_without_target) == (5, 1)
    data = encoding.data(path)
    np.testing.assert_array_equal(data.y[:2], [[1.5, 10.0], [2.5, 20.5]])
    assert data.labelled.tolist() == [True, True, True, False, True, True]
    assert Encoding.from_dict(encoding.to_dict()) == encoding
    assert dict(encoding.says)["price, days"].startswith("target: regression of 2 targets together")


def test_a_name_with_a_comma_is_one_column(table):
    assert Encoding.learn(table(**{"a,b": ROWS["size"]}), "a,b").target.columns == ("a,b",)


def test_predictions_of_several_targets_have_their_names():
    target = Target("price", "regression", also=(Target("days", "regression"),))
    frame = prediction_frame(credo.from_normal([[[1.0, 2.0], [3.0, 4.0]]], 0.5), target)
    assert frame.columns[:2] == ["price_mean", "price_sd"]
    assert len(frame.columns) == 12
    assert frame["days_mean"].to_list() == [2.0, 4.0]
    assert frame["days_lower"].max() < 4
    assert frame["days_upper"].min() > 2


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            "price,grade",
            r"all of them are numbers, and 'price' is regression.* 'grade' is multi-class",
        ),
        ("price,prize", r"has no column 'prize' \(the target\)"),
        ("price,price", "names a column twice"),
    ],
)
def test_targets_that_do_not_go_together_are_refused(table, target, message):
    with pytest.raises(ValueError, match=message):
        Encoding.learn(table(), target)


# -- censored ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [ROWS["running"], [1, 0, 0, None, 1, 0], ["1", "0", "0", "", "1", "0"]])
def test_what_is_censored_comes_from_its_column(table, cells):
    path = table(running=cells)
    encoding = Encoding.learn(path, "days", censored="running", drop=["price"])
    data = encoding.data(path)
    assert data.censored.tolist() == [True, False, False, False, True, False]
    assert not any("running" in name for name in encoding.names)
    assert "running says where it is only a lower bound" in encoding.target.says
    assert Encoding.from_dict(encoding.to_dict()) == encoding


@pytest.mark.parametrize(
    ("cells", "found"),
    [(["yes", "no", "perhaps", None, "no", "no"], "'perhaps' in row 3"), ([1, 0, 0, 0, 2, 0], "2 in row 5")],
)
def test_a_column_that_says_something_else_is_refused(table, cells, found):
    path = table(running=cells)
    with pytest.raises(
        ValueError, match=rf"'running' says which targets are censored, and holds {found}; it must hold"
    ):
        Encoding.learn(path, "days", censored="running").data(path)


def test_a_row_that_does_not_say_whether_it_is_censored_is_refused(table):
    path = table(running=["yes", None, "no", None, "no", "no"])
    with pytest.raises(ValueError, match="holds None in row 2"):
        Encoding.learn(path, "days", censored="running").data(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"target": "days", "censored": "days"},
            "'days' is the target, and cannot be the column of what is censored too",
        ),
        ({"target": "days", "censored": "runs"}, r"no column 'runs' \(the column of what is censored\)"),
        ({"target": "days", "censored": "running", "drop": ["running"]}, "cannot be left out"),
        ({"target": "grade", "censored": "running"}, "about one target of numbers, and 'grade' is multi-class"),
        ({"target": "days,price", "censored": "running"}, "there are several"),
    ],
)
def test_a_censoring_column_that_cannot_be_is_refused(table, options, message):
    with pytest.raises(ValueError, match=message):
        Encoding.learn(table(), **options)


# -- ordered -----------------------------------------------------------------------------------------------


def test_an_ordered_category_keeps_its_order(table):
    grades = pl.Series(ROWS["grade"], dtype=pl.Enum(["top", "mid", "low", "none"]))
    path = table(grade=grades)
    encoding = Encoding.learn(path, "grade")
    assert encoding.target.labels == ("top", "mid", "low")
    assert encoding.target.is_ordered
    assert isinstance(encoding.data(path), Data)
    assert not Encoding.learn(table(), "grade").target.is_ordered
    assert Encoding.learn(table(grade=[1, 2, 3, 1, 2, 3]), "grade", task="classification").target.is_ordered
