"""The likelihood that suits a target, from its values and from held-out rows."""

import numpy as np
import pytest
from scipy import stats

import credo
from credo.models.found import ANY, found, held_out_scores
from credo.models.table import table

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 2))
F = 0.5 + 0.7 * X[:, 0]
SIMULATED = {
    "counts": RNG.poisson(np.exp(F) * RNG.gamma(4.0, 0.25, 300)).astype(float),
    "positive": 1000 * np.exp(F + 0.5 * RNG.normal(size=300)),
    "shares": RNG.beta(2 / (1 + np.exp(-2 * F)), 2 / (1 + np.exp(2 * F))).clip(1e-3, 0.999),
    "ordinal": np.digitize(2 * F + RNG.logistic(size=300), [-2.0, -1.0, 0.0, 1.0, 2.0, 3.0])[:100],
}


def of(y, **options):
    return found(credo.Data(X[: len(y)], y, standardise=True, **options))


@pytest.mark.parametrize("kind", SIMULATED)
def test_what_was_simulated_is_found(kind):
    answer = of(SIMULATED[kind])
    assert answer.likelihood == kind
    assert "times as probable" in answer.why


@pytest.mark.parametrize(
    ("y", "why"),
    [
        (F + RNG.normal(size=300), ""),
        # Marks scatter less than counts.
        (
            np.clip(np.round(60 + 10 * X[:, 0] + 2 * RNG.normal(size=300)), 0, 100),
            "whole numbers from 0 on, but as ",
        ),
        # Heights are above 0, and not skewed.
        (170 + 7 * X[:, 0] + 5 * RNG.standard_t(3, size=300), "numbers above 0, but as skewed numbers"),
        # A class that is told by its number is not between its neighbours.
        (np.array([1, 0, 2])[np.digitize(3 * X[:, 0] + RNG.logistic(size=300), [-2.0, 2.0])], "grades 0 to 2, but as"),
        ((X[:, 0] > 0).astype(int), ""),
        (SIMULATED["counts"][:12], "12 rows are too few"),
        (np.column_stack([F, F]), ""),
    ],
)
def test_what_is_none_of_these_stays(y, why):
    answer = of(y)
    assert answer.likelihood == ANY
    assert why in answer.why
    assert bool(why) == bool(answer.why)


def test_durations_that_have_not_ended_are_positive():
    assert of(SIMULATED["positive"], censored=X[:, 1] > 0).likelihood == "positive"
    assert of(F, censored=X[:, 1] > 0).likelihood == ANY


def test_scores_are_log_densities_in_the_units_of_y():
    """Of rows that a constant describes: close to the log-normal that they were drawn from, whatever the unit."""
    y = np.exp(0.5 * RNG.normal(size=300))
    data, larger = (credo.Data(X, unit * y, standardise=True) for unit in (1, 1000))
    expected = stats.lognorm(0.5).logpdf(y).mean()
    assert held_out_scores(data, "positive").mean() == pytest.approx(expected, abs=0.05)
    assert held_out_scores(larger, "positive").mean() == pytest.approx(expected - np.log(1000), abs=0.05)


def test_the_model_of_tables_takes_what_is_found():
    data = credo.Data(X, SIMULATED["counts"], standardise=True)
    assert table(data, likelihood="auto").config["model"] == "counts"
    assert table(data, likelihood="any").config["model"] == table(data).config["model"] == "regression"
    with pytest.raises(ValueError, match="likelihood"):
        table(data, likelihood="count")
