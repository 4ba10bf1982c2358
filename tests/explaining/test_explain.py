"""Importance, dependence and unsure rows against functions that are known."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_friedman1

import credo
from credo.predictive.tabulated import from_normal, from_probs
from tests.evaluation import exact


def friedman(seed: int) -> credo.Explanation:
    """Ten columns, of which the first five matter: 10 sin(π x₁x₂) + 20 (x₃ − ½)² + 10 x₄ + 5 x₅."""
    x, y = make_friedman1(500, noise=1.0, random_state=seed)
    train, test = credo.Data(x[:300], y[:300], standardise=True), credo.Data(x[300:], y[300:])
    model = credo.models.regression(credo.networks.MLP([20], out=1))
    return credo.explain(credo.fit(model, train, credo.Laplace(), seed=seed, progress=False), test)


REAL, IDLE = {"x1", "x2", "x3", "x4", "x5"}, ("x6", "x7", "x8", "x9", "x10")


def test_of_friedman_the_five_that_matter_come_first() -> None:
    found = friedman(0)
    assert set(list(found.importance)[:5]) == REAL
    assert all(found.importance[name].matters for name in REAL)
    # Variances of the parts: 25 of x₁ and x₂ together, 8.3 of x₄, 2.2 of x₃, 2.1 of x₅.
    assert next(iter(found.importance)) in ("x1", "x2", "x4")
    assert set(list(found.importance)[3:5]) == {"x3", "x5"}
    # Normal errors are all within 3.5 of them in 99.8% of cases.
    scores = [found.importance[name].mean / found.importance[name].standard_error for name in IDLE]
    assert np.max(np.abs(scores)) < 3.5
    assert set(found.dependence) >= REAL
    linear, bent = found.dependence["x4"], found.dependence["x3"]
    # A line, and a parabola around ½: what the prior takes off their height, it leaves in their shape.
    assert np.corrcoef(linear.at, linear.mean[:, 0])[0, 1] > 0.98
    assert np.corrcoef((bent.at - 0.5) ** 2, bent.mean[:, 0])[0, 1] > 0.9
    assert 0.25 < bent.at[np.argmin(bent.mean)] < 0.75


@pytest.mark.full
def test_columns_that_do_not_matter_are_within_two_standard_errors_of_zero() -> None:
    """Of 50, a binomial of 95% is below 42 once in two thousand cases."""
    found = [friedman(seed).importance[name] for seed in range(10) for name in IDLE]
    assert sum(abs(one.mean) < 2 * one.standard_error for one in found) >= 42


def test_importance_and_dependence_of_a_linear_function_are_those_of_each_draw() -> None:
    train, test = exact.linear_data(60), exact.linear_data(40, seed=1)
    posterior = exact.posterior(train, num_draws=30)
    found = credo.explain(posterior, test, num_draws=1000)
    w = posterior.theta["w"].reshape(-1, 3).astype(np.float64)
    for place, name in enumerate(("x1", "x2", "x3")):
        curve = found.dependence[name]
        # The curves of several columns are over the first of the same rows in random order.
        slope = (curve.mean[-1, 0] - curve.mean[0, 0]) / (curve.at[-1] - curve.at[0])
        np.testing.assert_allclose(slope, w[:, place].mean(), atol=1e-4)
        # Twice the variance of the column: of rows that lend and of rows that borrow.
        expected = 2 * np.mean(w[:, place] ** 2) * test.x[:, place].var() / test.y.var()
        one = found.importance[name]
        assert abs(one.mean - expected) < 4 * one.standard_error
        assert 0 < one.sd < one.standard_error
    rising = found.dependence["x1"]
    assert np.all(rising.lower < rising.mean)
    assert np.all(rising.upper > rising.mean)


def test_a_draw_is_one_function_over_a_curve() -> None:
    """Of y = w x alone the curve is w v: its sd is that of w, times v."""
    posterior, x = exact.posterior(exact.linear_data(20), num_draws=50), np.zeros((30, 3))
    x[:, 0] = np.linspace(-2, 3, 30)
    curve = credo.explain(posterior, (x, x[:, 0]), num_rows=0).dependence["x1"]
    w = posterior.theta["w"].reshape(-1, 3)[:, 0]
    np.testing.assert_allclose(curve.mean[:, 0], w.mean() * curve.at, atol=1e-5)
    np.testing.assert_allclose(curve.sd[:, 0], w.std(ddof=1) * np.abs(curve.at), rtol=1e-4, atol=1e-6)


class Counted:
    """A posterior that counts the rows that it predicts."""

    def __init__(self, posterior: Any) -> None:
        self.posterior, self.num_rows = posterior, 0
        self.model, self.seen = posterior.model, []

    def predict(self, x: np.ndarray, *, num_draws: int) -> Any:
        self.num_rows += len(x)
        self.seen.append(x)
        return self.posterior.predict(x, num_draws=num_draws)


@pytest.mark.parametrize(("num_rows", "num_columns"), [(25, 2), (60, 12), (3000, 4)])
def test_it_costs_at_most_twenty_predictions_of_the_table(num_rows: int, num_columns: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(num_rows, num_columns))
    model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.5)
    data = credo.Data(x, x[:, 0] + 0.5 * rng.normal(size=num_rows))
    counted = Counted(credo.fit(model, data, credo.ClosedForm()))
    found = credo.explain(counted, data)
    assert counted.num_rows <= 20 * num_rows
    assert len(found.rows) == 5
    assert next(iter(found.importance)) == "x1"


def tabulated(mean: Any) -> Any:
    """A posterior that answers with a table of the given functions of x, (draws, rows)."""
    return SimpleNamespace(predict=lambda x, num_draws: mean(np.asarray(x)))


def test_numbers_of_one_column_are_shuffled_together() -> None:
    rng = np.random.default_rng(0)
    city, size = rng.integers(0, 3, 80), rng.normal(size=80)
    x = np.column_stack([np.eye(3)[city], size, size > 1])
    names = ["city=Bern", "city=Rome", "city=Ulm", "size", "size is missing"]
    data = credo.Data(x, x[:, 0] + x[:, 1], names=names, columns=["city"] * 3 + ["size"] * 2)
    seen = []

    def known(x: np.ndarray) -> Any:
        seen.append(x)
        return from_normal(np.stack([x[:, 0] + x[:, 1]] * 2), 0.1)

    found = credo.explain(tabulated(known), data)
    assert list(found.importance) == ["city", "size"]
    assert found.importance["size"].mean == 0.0
    assert found.importance["city"].matters
    assert found.dependence["city"].settings == ("Bern", "Rome", "Ulm")
    np.testing.assert_allclose(found.dependence["city"].mean[:, 0], [1, 1, 0], atol=1e-6)  # single precision
    assert all(np.all(one[:, :3].sum(axis=1) == 1) for one in seen), "a row is in one city"
    together = {tuple(row) for row in x[:, 3:]}
    assert all(tuple(row) in together for one in seen for row in one[:, 3:]), "a flag stays with its number"
    assert found.rows[0].values["city"] in ("Bern", "Rome", "Ulm")


def test_classes_are_explained_by_their_probabilities() -> None:
    x = np.random.default_rng(0).normal(size=(100, 2))
    p = 1 / (1 + np.exp(-3 * x[:, 0]))

    def known(x: np.ndarray) -> Any:
        p = 1 / (1 + np.exp(-np.array([[2.5], [3.5]]) * x[:, 0]))
        return from_probs(np.stack([1 - p, p], axis=2))

    labels = (np.random.default_rng(1).uniform(size=100) < p).astype(int)
    found = credo.explain(tabulated(known), credo.Data(x, labels, classes=["no", "yes"]))
    assert list(found.importance) == ["x1", "x2"]
    assert found.importance["x2"].mean == 0
    assert found.classes == ("no", "yes")
    assert np.all(np.diff(found.dependence["x1"].mean[:, 1]) > 0)
    # The entropy is greatest where x₁ is about 0, and x₁ alone says so.
    assert abs(float(found.rows[0].values["x1"])) < 0.2
    np.testing.assert_allclose(found.rows[0].because["x2"], 0, atol=1e-6)


def test_rows_without_a_target_are_left_out_of_importance_alone() -> None:
    data = exact.linear_data(40)
    gaps = data.with_targets(np.where(np.arange(40) < 15, np.nan, data.y))
    found = credo.explain(exact.posterior(exact.linear_data(30, seed=2)), gaps)
    assert found.num_rows == 25
    assert len({row.index for row in found.rows}) == 5


def test_a_recalibrated_posterior_is_explained_as_it_was() -> None:
    data = exact.linear_data(60)
    posterior = exact.posterior(data)
    recalibrated = credo.recalibrate(posterior, exact.linear_data(60, seed=1))
    ours, theirs = (credo.explain(one, data).to_dict() for one in (posterior, recalibrated))
    assert ours == theirs
    assert ours == credo.explain(posterior, data, seed=0).to_dict(), "the same seed gives the same bits"


def test_what_is_said() -> None:
    found = credo.explain(exact.posterior(exact.linear_data(60)), exact.linear_data(60, seed=1))
    assert "How much R² falls when a column is shuffled, on 60 rows" in str(found)
    assert "matters most" in str(found)
    assert str(found.rows[0]).startswith(f"row {found.rows[0].index + 1}: ")
    assert list(found.to_frame().columns) == ["mean", "sd", "standard_error"]
    stored = found.to_dict()
    assert stored["rows"][0]["row"] == found.rows[0].index + 1
    assert len(stored["dependence"]["x1"]["upper"]) == len(stored["dependence"]["x1"]["settings"]) == 12


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ((np.zeros((5, 4, 4)), np.arange(5.0)), r"rows of shape \(4, 4\)"),
        ((np.random.default_rng(0).normal(size=(9, 3)), np.ones(9)), "the same in all rows"),
        ((np.zeros((1, 3)), [1.0]), "at least 2"),
    ],
)
def test_what_cannot_be_explained_is_refused_in_words(data: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        credo.explain(exact.posterior(exact.linear_data(20)), data)


def test_a_number_of_rows_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="num_rows is -1"):
        credo.explain(exact.posterior(exact.linear_data(20)), exact.linear_data(20), num_rows=-1)
