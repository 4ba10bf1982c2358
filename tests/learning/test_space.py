"""Bounds and points: what they stand for as coordinates, and what is refused."""

import numpy as np
import pytest

from credo.learning.space import Space

BOUNDS = {"rate": (1e-4, 1.0, "log"), "layers": (1, 3, "integer"), "width": (8, 512, "log integer"), "kind": ["a", "b"]}
POINT = {"rate": 0.01, "layers": 2, "width": 64, "kind": "b"}


def test_points_come_back_from_coordinates():
    space = Space.of(BOUNDS)
    (found,) = space.decode(space.encode([POINT]))
    assert {**found, "rate": pytest.approx(found["rate"])} == POINT
    assert type(found["layers"]) is int


def test_equal_ratios_are_equally_far_apart_in_a_log_range():
    rows = Space.of({"rate": (1e-4, 1.0, "log")}).encode([{"rate": rate} for rate in (1e-4, 1e-2, 1.0)])
    np.testing.assert_allclose(rows[:, 0], [-1, 0, 1], atol=1e-12)


def test_every_whole_number_and_option_has_the_same_room():
    space = Space.of({"layers": (1, 3, "integer"), "kind": ["a", "b"]})
    points = space.decode(np.random.default_rng(0).uniform(-1, 1, (3000, space.width)))
    counts = np.unique([point["layers"] for point in points], return_counts=True)[1]
    # Five standard deviations of a count of 3,000 with probability 1/3.
    np.testing.assert_allclose(counts, 1000, atol=5 * np.sqrt(3000 * 2 / 9))
    assert 0.4 < np.mean([point["kind"] == "a" for point in points]) < 0.6


def test_snapped_rows_are_points():
    space = Space.of(BOUNDS)
    rows = space.snapped(np.random.default_rng(0).uniform(-2, 2, (20, space.width)))
    np.testing.assert_allclose(space.snapped(rows), rows, atol=1e-12)
    assert space.continuous.tolist() == [True, False, False, False, False]
    assert Space.of({"layers": (1, 3, "integer"), "kind": ["a", "b"]}).num_points == 6


def test_points_are_plain_numbers_in_a_file():
    space = Space.of({"kind": [None, (1, 2)], "rate": (0.0, 1.0)})
    point = {"kind": (1, 2), "rate": 0.1}
    assert space.from_plain(space.to_plain(point)) == point


def test_lists_of_pairs_make_arrays():
    space = Space.of([[-5, 10], (0.0, 15.0)])
    np.testing.assert_allclose(space.decode(space.encode([[1.0, 2.0]]))[0], [1.0, 2.0])


@pytest.mark.parametrize(
    ("bounds", "complaint"),
    [
        ({}, "bounds is empty"),
        (3, "bounds is 3; pass"),
        ({"a": (1.0, 0.0)}, r"bounds\['a'\] goes from 1 to 0"),
        ({"a": (0.0, np.inf)}, "finite"),
        ({"a": (0.0, 1.0, "log")}, "positive"),
        ({"a": (0.5, 3, "integer")}, "whole numbers"),
        ({"a": (0.0, 1.0, "logg")}, "did you mean 'log'"),
        ({"a": ("x", "y")}, "options as a list"),
        ({"a": ["x"]}, "at least two options"),
        ({"a": ["x", "x"]}, "'x' twice"),
        ({"a": 3}, r"bounds\['a'\] is 3"),
        ([("x", "y", "z", "w")], r"bounds\[0\]"),
    ],
)
def test_bounds_that_are_none_are_refused(bounds, complaint):
    with pytest.raises(ValueError, match=complaint):
        Space.of(bounds)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"rate": 2.0}, "'rate' is 2.0, outside of 0.0001 to 1"),
        ({"layers": 1.5}, "no whole number"),
        ({"kind": "c"}, "the options are 'a', 'b'"),
        ({"rate": "fast"}, "no number"),
        ({"more": 1}, "a value for each of rate, layers, width, kind"),
    ],
)
def test_points_outside_are_refused(change, complaint):
    with pytest.raises(ValueError, match=complaint):
        Space.of(BOUNDS).encode([POINT | change])


def test_arrays_of_another_length_are_refused():
    with pytest.raises(ValueError, match="pass 2 numbers"):
        Space.of([(0, 1), (0, 1)]).encode([[0.5]])
