"""Columns that give the target away are pointed out, and others are not."""

import warnings

import numpy as np
import polars as pl
import pytest

from credo import datasets
from credo.tables import read

NUM = 200
RNG = np.random.default_rng(0)
A, B, C = RNG.normal(size=(3, NUM))
LETTERS = RNG.choice(list("pqrst"), NUM)
SIDE = np.where(A > 0, "yes", "no")


def said(y, **columns):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        read(pl.DataFrame({**columns, "y": y}), target="y")
    return [str(one.message) for one in told]


@pytest.mark.parametrize(
    ("y", "columns", "words"),
    [
        (A, {"x": np.round(3 * A + 1, 3), "c": C}, "column 'x' gives 'y' away: the one is a line in the other"),
        (A, {"x": np.exp(A), "c": C}, "column 'x' gives 'y' away: the one rises or falls"),
        (A - 2 * B, {"a": A, "b": B, "c": C}, "columns 'a', 'b' give 'y' away: it is a sum of multiples of them"),
        (
            np.where(np.isin(LETTERS, ["p", "q"]), "u", "v"),
            {"x": LETTERS, "c": C},
            "column 'x' gives 'y' away: each of",
        ),
        (SIDE, {"x": A**3, "c": C}, "column 'x' gives 'y' away: its order is that of the classes"),
        (SIDE, {"x": [None if one == "yes" else "ill" for one in SIDE], "c": C}, "column 'x' gives 'y' away: each of"),
    ],
)
def test_a_column_that_gives_the_target_away_is_named(y, columns, words):
    (found,) = said(y, **columns)
    assert found.startswith(words)
    assert found.endswith("if that is not known before y is, leave it out (drop=…)")


@pytest.mark.parametrize(
    ("y", "columns"),
    [
        (A + 0.1 * B, {"x": A, "c": C}),
        (SIDE, {"x": A + 0.2 * B, "c": C}),
        (A[:6], {"x": np.exp(A[:6]), "c": C[:6]}),
        (["u", "v"] * 4, {"x": list("abcdabcd"), "c": C[:8]}),
    ],
    ids=["a good column", "a good score", "few rows in order", "few rows in levels"],
)
def test_a_column_that_only_helps_is_not(y, columns):
    assert said(y, **columns) == []


@pytest.mark.parametrize("name", ["wine", "breast_cancer", "diabetes", "iris"])
def test_honest_tables_are_not_blamed(name):
    data = datasets.load(name)
    y = data.y if data.classes is None else np.array(data.classes)[data.y]
    assert said(y, **{f"x{place}": column for place, column in enumerate(data.x.T)}) == []
