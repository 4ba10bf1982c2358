"""A headline leads with the interval that was written, and contradicts none."""

import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import credo
from credo.data import Scaling
from credo.evaluation.coverage import Coverage, coverage_of_levels, in_words, levels_of
from credo.predictive import RegressionPredictive
from credo.typing import Array, Theta


def test_both_tails_are_counted() -> None:
    found = coverage_of_levels(np.array([0.01, 0.2, 0.5, 0.99, 0.999, np.nan]), 0.9)
    assert (found.below, found.above, found.share) == pytest.approx((0.2, 0.4, 0.4))


def test_chance_is_no_fault() -> None:
    assert str(Coverage(0.9, 0.85, 0.1, 0.05, 50)).endswith("as it should")
    assert str(Coverage(0.9, 0.85, 0.1, 0.05, 5000)).endswith("too narrow")


def test_heavy_tails_are_too_wide_in_the_middle_and_too_narrow_outside(seed: int) -> None:
    """A normal of the same sd as a t(3): its 50% interval holds 73%, its 99% interval 97.8%, of 20,000 rows to 0.3%."""
    y = stats.t.rvs(3, size=20_000, random_state=seed) / np.sqrt(3)
    said = in_words(stats.norm.cdf(y), 0.99)
    assert said.startswith("The 99% interval holds 9")
    assert "too narrow; the 50% interval is too wide" in said


def test_no_direction_stands_beside_an_interval_of_another(seed: int) -> None:
    y = stats.t.rvs(3, size=5_000, random_state=seed) / np.sqrt(3)
    scores = credo.evaluate(credo.from_normal(np.zeros(5_000), 1.0), y, num_resamples=0)
    assert scores.verdict.startswith("The 95% interval holds")
    assert scores.verdict in str(scores)
    # Of the whole curve the middle stands out; the sentence says that it is the middle.
    assert scores.curves["interval"].verdict.startswith("Underconfident at p̂ = ")


def test_the_levels_of_small_counts_are_uniform(seed: int) -> None:
    """Each tenth holds a tenth of 2,000 rows: χ² of nine degrees of freedom, which passes 33.7 once in 10,000 times."""
    rng = np.random.default_rng(seed)
    rates = rng.uniform(0.2, 2.0, 2000)
    x, draws = rates[:, None].astype(np.float32), {"factor": np.ones(1)}
    found = RegressionPredictive(_poisson, draws, x, weights=np.ones(1), scaling=Scaling())
    y = rng.poisson(rates)
    levels = levels_of(found, y)
    num = np.histogram(levels, 10, (0, 1))[0]
    assert np.sum((num - 200) ** 2 / 200) < 33.7
    assert np.sum((np.histogram(found.cdf(y), 10, (0, 1))[0] - 200) ** 2 / 200) > 33.7  # F(y) is not


def _poisson(theta: Theta, x: Array) -> dist.Distribution:
    return dist.Poisson(theta["factor"] * x[:, 0])
