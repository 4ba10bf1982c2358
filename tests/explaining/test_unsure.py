"""The uncertainty of a row, divided: exact where it is a sum, and by halves where two columns go together."""

import numpy as np

from credo.data import Data
from credo.explaining.columns import Columns
from credo.explaining.unsure import unsure_row

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
COLUMNS = Columns.of(Data(X, np.zeros(40), names=["a", "b", "c"]), X)


def parts_at(x: np.ndarray) -> np.ndarray:
    """a² is epistemic, and 5 + b c aleatoric."""
    return np.stack([x[:, 0] ** 2, 5 + x[:, 1] * x[:, 2]], axis=1)


def found(num_walks: int):
    return unsure_row(parts_at, COLUMNS, X[7], parts_at(X[7:8])[0], parts_at(X), index=7, num_walks=num_walks)


def test_the_shares_are_those_of_shapley() -> None:
    row, typical = found(80), parts_at(X).mean(axis=0)
    a, b, c = X[7]
    np.testing.assert_allclose(row.typical, typical, rtol=1e-12)
    np.testing.assert_allclose(row.because["a"], [a**2 - typical[0], 0], atol=1e-12)
    # b first, and it meets the other's c; b last, and it meets its own: each in half of the orders.
    np.testing.assert_allclose(row.because["b"][1], np.mean((b - X[:, 1]) * (c + X[:, 2]) / 2), atol=1e-12)
    np.testing.assert_allclose(row.because["c"][1], np.mean((c - X[:, 2]) * (b + X[:, 1]) / 2), atol=1e-12)


def test_they_add_up_however_few_walks_there_are() -> None:
    for num_walks in (2, 3, 9):
        row = found(num_walks)
        total = np.array(row.typical) + np.sum(list(row.because.values()), axis=0)
        np.testing.assert_allclose(total, [row.epistemic, row.aleatoric], rtol=1e-12)
        sums = [sum(parts) for parts in row.because.values()]
        assert sums == sorted(sums, reverse=True)


def test_a_single_column_has_all_of_it() -> None:
    alone = Columns.of(Data(X[:, :1], np.zeros(40)), X[:, :1])
    both = np.stack([X[:, 0] ** 2, np.ones(40)], axis=1)
    row = unsure_row(parts_at, alone, X[3, :1], both[3], both, index=3, num_walks=4)
    np.testing.assert_allclose(row.because["x1"], np.array([row.epistemic, 1.0]) - row.typical)
