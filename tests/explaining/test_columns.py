"""What stands for a column, and how it is called."""

import numpy as np

from credo.data import Data
from credo.explaining.columns import MAX_SETTINGS, Columns, over_draws


def columns(x: np.ndarray, names: list[str], of: list[str] | None = None) -> Columns:
    return Columns.of(Data(x, np.zeros(len(x)), names=names, columns=of), np.asarray(x, float))


def test_settings_of_numbers_are_spread_over_their_ranks() -> None:
    x = np.random.default_rng(0).exponential(size=(200, 1))
    settings = columns(x, ["age"]).settings("age")[:, 0]
    assert len(settings) == MAX_SETTINGS
    assert settings[0] == x.min()
    assert settings[-1] == x.max()
    ranks = np.searchsorted(np.sort(x[:, 0]), settings)
    assert np.ptp(np.diff(ranks)) <= 1
    few = columns(np.array([[3.0], [1.0], [3.0], [2.0]]), ["rooms"])
    assert few.settings("rooms")[:, 0].tolist() == [1, 2, 3]
    assert few.is_ordered("rooms")


def test_cells_that_are_missing_are_no_point_of_the_curve() -> None:
    size = np.random.default_rng(0).normal(size=100)
    missing = np.arange(100) % 5 == 0
    x = np.column_stack([np.where(missing, 0.5, size), missing])
    settings = columns(x, ["size", "size is missing"], ["size", "size"]).settings("size")
    assert not settings[:, 1].any()
    assert len(np.unique(settings[:, 0])) == len(settings)


def test_the_most_frequent_levels_of_many() -> None:
    level = np.concatenate([np.arange(30), np.repeat(np.arange(10, 22), 2)])
    x = np.eye(30)[level]
    found = columns(x, [f"city={number}" for number in range(30)], ["city"] * 30)
    assert [found.in_words("city", one) for one in found.settings("city")] == [str(one) for one in range(10, 22)]


def test_words() -> None:
    names = ["city=Bern", "city=Rome", "city is missing", "size", "size is missing", "sex=male", "age"]
    of = ["city"] * 3 + ["size"] * 2 + ["sex", "age"]
    found = columns(np.random.default_rng(0).normal(size=(5, 7)), names, of)

    def said(name: str, *values: float) -> str:
        return found.in_words(name, np.array(values, float))

    assert [said("city", 0, 1, 0), said("city", 0, 0, 1), said("city", 0, 0, 0)] == ["Rome", "missing", "none of them"]
    assert [said("size", 2.5, 0), said("size", 1, 0), said("size", 7, 1)] == ["2.5", "1", "missing"]
    assert [said("sex", 1), said("sex", 0), said("age", 40)] == ["male", "not male", "40"]


def test_names_that_are_not_unique_are_kept_apart() -> None:
    x = np.random.default_rng(0).normal(size=(5, 2))
    assert list(columns(x, ["a", "a"])) == ["a (1)", "a (2)"]


def test_a_constant_column_does_not_vary() -> None:
    assert columns(np.array([[1.0, 2.0], [1.0, 3.0]]), ["a", "b"]).varying == ("b",)


def test_weights_of_draws_count() -> None:
    mean, sd = over_draws(np.array([1.0, 2.0, 5.0]), np.array([0.25, 0.5, 0.25]))
    assert mean == 2.5
    np.testing.assert_allclose(sd**2, 2.25 / (1 - 0.375))
    assert over_draws(np.array([3.0]), np.ones(1))[1] == 0
