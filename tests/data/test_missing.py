"""Missing targets: as users write them, as arrays hold them, and what rows without one still do."""

from dataclasses import replace

import numpy as np
import pandas
import polars
import pytest

from credo.data import Data, as_data, as_labels, datasets, is_observed
from credo.data.missing import MISSING_LABEL, filled

pytestmark = pytest.mark.quick

X = np.arange(12.0).reshape(6, 2)
LABELS = [0, None, 2, 1, None, 0]
OUTPUTS = np.array([[1.0, np.nan], [np.nan, np.nan], [3.0, 30.0], [4.0, np.nan], [np.nan, 50.0], [6.0, 60.0]])


@pytest.mark.parametrize(
    "y",
    [
        [1.5, None, 2.0],
        np.array([1.5, np.nan, 2.0]),
        np.ma.masked_array([1.5, 7.0, 2.0], [False, True, False]),
        pandas.Series([1.5, None, 2.0], dtype="Float64"),
        polars.Series([1.5, None, 2.0]),
    ],
    ids=["None", "NaN", "masked", "pandas", "polars"],
)
def test_numbers_may_be_missing_however_they_are_written(y):
    data = Data([1.0, 2.0, 3.0], y)
    np.testing.assert_array_equal(data.y, [1.5, np.nan, 2.0])
    np.testing.assert_array_equal(data.observed, [True, False, True])
    assert (data.size, data.num_labelled, data.has_gaps) == (3, 2, False)


@pytest.mark.parametrize(
    "y",
    [
        [1, None, 2],
        np.ma.masked_array([1, 7, 2], [False, True, False]),
        pandas.Series([1, None, 2], dtype="Int64"),
        polars.Series([1, None, 2]),
        np.array([1, MISSING_LABEL, 2]),
    ],
    ids=["None", "masked", "pandas", "polars", "own"],
)
def test_labels_may_be_missing_and_stay_labels(y):
    data = Data([1.0, 2.0, 3.0], y)
    assert data.y.dtype.kind == "i"
    np.testing.assert_array_equal(data.y, [1, MISSING_LABEL, 2])
    assert data.with_labels() is data


def test_whole_numbers_among_nan_are_labels_where_labels_are_wanted():
    y = np.array([1.0, np.nan, 2.0])
    data = Data([1.0, 2.0, 3.0], y, standardise=True)
    assert data.y.dtype.kind == "f"
    labelled = data.with_labels()
    np.testing.assert_array_equal(labelled.y, [1, MISSING_LABEL, 2])
    np.testing.assert_array_equal(labelled.batch().y, [1, 2])  # labels are never scaled
    np.testing.assert_array_equal(labelled.batch().x, data.batch().x)
    assert as_labels(np.array([1.0, 2.0])).dtype.kind == "f"  # nothing is missing: numbers stay numbers
    assert as_labels(np.array([1.5, np.nan])).dtype.kind == "f"
    assert Data([1.0, 2.0, 3.0], y, classes=["a", "b", "c"]).y.dtype.kind == "i"


def test_a_row_is_labelled_if_some_of_its_outputs_are_there():
    data = Data(X, OUTPUTS)
    np.testing.assert_array_equal(data.labelled, [True, False, True, True, True, True])
    assert (data.num_labelled, data.has_gaps) == (5, True)
    batch = data.batch()
    assert (batch.total, batch.x.shape, batch.y.shape) == (5, (5, 2), (5, 2))
    assert not data.select([1, 2, 5]).has_gaps  # a row without any target is no gap


def test_scaling_is_that_of_the_targets_that_are_there_and_of_all_inputs():
    scaling = Data(X, OUTPUTS, standardise=True).scaling
    np.testing.assert_allclose(scaling.y_mean, np.nanmean(OUTPUTS, axis=0))
    np.testing.assert_allclose(scaling.y_scale, np.nanstd(OUTPUTS, axis=0))
    np.testing.assert_allclose(scaling.x_mean, X.mean(axis=0))
    one = Data(X, OUTPUTS[:, 0], standardise=True).scaling
    np.testing.assert_allclose([one.y_mean, one.y_scale], [np.nanmean(OUTPUTS[:, 0]), np.nanstd(OUTPUTS[:, 0])])


@pytest.mark.parametrize("y", [[0, 1], [0.5, 1.5], [[0.5, 1.0], [1.5, 2.0]]], ids=["labels", "numbers", "outputs"])
def test_unlabelled_inputs_are_rows_without_a_target(y):
    data = Data(X[:2], y, unlabelled=X[2:], standardise=True)
    assert (data.size, data.num_labelled) == (6, 2)
    np.testing.assert_array_equal(data.x, X)
    np.testing.assert_allclose(data.scaling.x_mean, X.mean(axis=0))
    np.testing.assert_array_equal(data.only_labelled().y, y)
    assert len(data.batch().x) == data.batch().total == 2


def test_the_rows_that_are_left_know_what_they_miss():
    data = Data(X, LABELS, classes=["a", "b", "c"])
    assert data.observed.sum() == 4  # computed once, and anew for other rows:
    assert data.select([0, 1]).num_labelled == 1
    train, test = data.partition([0, 1, 2], [3, 4, 5])
    assert (train.num_labelled, test.num_labelled) == (2, 2)
    again = replace(data, standardise=True)
    np.testing.assert_array_equal(again.y, data.y)
    assert (again.num_labelled, as_data(data, standardise=True).num_labelled) == (4, 4)
    assert data.only_labelled().only_labelled().size == 4


@pytest.mark.parametrize("stratify", [False, True])
def test_splits_keep_the_share_of_rows_without_a_target(stratify):
    y = np.where(np.arange(100) % 5 == 0, MISSING_LABEL, np.arange(100) % 2)
    train, test = Data(np.arange(100.0), y).split(0.25, stratify=stratify)
    assert (test.size, test.num_labelled, train.num_labelled) == (25, 20, 60)
    if stratify:
        assert np.bincount(test.only_labelled().y).tolist() == [10, 10]


def test_a_split_has_a_target_on_both_sides():
    train, test = Data([0.0, 1.0], [1.0, 2.0], unlabelled=np.arange(40.0)).split(0.1)
    assert (train.num_labelled, test.num_labelled) == (1, 1)


def test_it_says_how_many_rows_have_no_target():
    assert repr(Data(X, LABELS)) == "Data(6 rows, 2 unlabelled; x: shape (2,); y: labels 0 to 2)"
    assert "5 rows;" in repr(Data(X, LABELS).only_labelled().select([0, 1, 2, 3, 3]))
    assert "unlabelled" not in repr(datasets.moons())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": [None] * 6}, "all targets are missing"),
        ({"y": np.full(6, np.nan)}, "all targets are missing"),
        ({"y": np.full(6, MISSING_LABEL)}, "all targets are missing"),
        ({"y": np.ma.masked_all(6)}, "all targets are missing"),
        ({"y": np.column_stack([np.ones(6), np.full(6, np.nan)])}, "no value in column 1"),
        ({"y": [1.0, np.inf, np.nan, 1.0, 1.0, 1.0]}, r"infinite.*\(1 of 6\).*row 1"),
        ({"y": ["a", None, "b", "a", "b", "a"]}, "encode text"),
        ({"y": LABELS, "unlabelled": np.ones((3, 3))}, r"unlabelled has rows of shape \(3,\), and x of \(2,\)"),
        ({"y": LABELS, "unlabelled": [[1.0, np.nan]]}, r"unlabelled has values.*row 0, column 1 \(b\)"),
        ({"y": LABELS, "unlabelled": np.ones((0, 2))}, "unlabelled has shape"),
        ({"y": [[1, None], [2, 3]]}, "x has 6 rows and y has 2"),
    ],
)
def test_what_cannot_be_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Data(X, names=["a", "b"], **arguments)


def test_arrays_without_gaps_are_handed_on_as_they_are():
    for y in (np.arange(3), np.ones(3), np.array([True, False])):
        assert filled(y) is y
        assert is_observed(y).all()
