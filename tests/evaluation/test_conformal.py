"""Conformal sets against the exact law of their coverage, for predictors that are badly wrong."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from credo.evaluation.conformal import _adaptive, _shares, _threshold, conformal
from credo.predictive.tabulated import from_normal, from_probs
from tests.statistical.moments import assert_plausible, sigmas

NUM_SETS = 200
NUM_FRESH = 500
PROBS = np.array([0.6, 0.25, 0.15])


def wrong_normal(x):
    """y is 2x + noise of spread 0.3 + |x|; this has another slope, a shift, and too small a noise."""
    return from_normal(np.stack([x[:, 0] + 1, x[:, 0] + 1.3]), 0.2)


def wrong_classes(x):
    """Labels follow PROBS whatever x is; this is sure of a class that x picks."""
    logits = 3 * np.stack([x[:, 0], -x[:, 0], x[:, 0] ** 2 - 1], axis=1)
    return from_probs(np.exp(logits) / np.exp(logits).sum(1, keepdims=True))


def wrong_box(x):
    """Two outputs in units a thousand times apart."""
    return from_normal(np.stack([x[:, 0], 1000 * x[:, 0]], axis=1)[None], np.array([0.5, 500.0]))


def without_noise(x):
    """Single precision takes the noise for zero."""
    return from_normal(x[:, 0], 1e-30)


def draw(rng, score, num):
    x = rng.normal(size=(num, 1))
    if score in ("adaptive", "threshold"):
        return x, rng.choice(3, num, p=PROBS)
    return x, 2 * x[:, 0] + (0.3 + np.abs(x[:, 0])) * rng.normal(size=num)


def posterior_of(score):
    return SimpleNamespace(predict=wrong_classes if score in ("adaptive", "threshold") else wrong_normal)


def coverages(score, num, level, seed, num_sets=NUM_SETS):
    """Of fresh data, for many sets of held-out rows."""
    rng = np.random.default_rng(seed)
    return np.array(
        [
            conformal(posterior_of(score), draw(rng, score, num), level=level, score=score).coverage(
                *draw(rng, score, NUM_FRESH)
            )
            for _ in range(num_sets)
        ]
    )


def errors_away(found, rank, num):
    """How many standard errors the mean coverage is from k/(n + 1): given the rows it is Beta(k, n + 1 − k)."""
    law = stats.beta(rank, num + 1 - rank)
    variance = law.var() + (law.mean() * (1 - law.mean()) - law.var()) / NUM_FRESH
    return (found.mean() - law.mean()) / np.sqrt(variance / len(found))


@pytest.mark.parametrize(
    "score", ["scaled", "adaptive", *(pytest.param(name, marks=pytest.mark.full) for name in ("quantile", "threshold"))]
)
def test_coverage_follows_its_exact_law_though_the_model_is_wrong(score, seed):
    found = coverages(score, 39, 0.8, seed)
    assert abs(errors_away(found, 32, 39)) < sigmas(2)
    spread = found.var() / (stats.beta(32, 8).var() + 0.8 * 0.2 / NUM_FRESH)
    # A variance from 200 values of a law that is nearly normal.
    assert abs(spread - 1) < sigmas(2) * np.sqrt(2 / NUM_SETS)


def test_the_naive_rank_is_caught(monkeypatch, seed):
    assert abs(errors_away(coverages("scaled", 9, 0.85, seed, num_sets=80), 9, 9)) < sigmas()
    monkeypatch.setattr(sys.modules[conformal.__module__], "_rank", lambda num, level: int(np.ceil(num * level)))
    naive = coverages("scaled", 9, 0.85, seed, num_sets=80)
    assert naive.mean() < 0.83
    assert errors_away(naive, 9, 9) < -sigmas()


def test_shares_in_the_order_of_the_rows_would_be_caught(seed):
    """Rows that are predicted one by one get the sets that they get together."""
    rng = np.random.default_rng(seed)
    sets = conformal(posterior_of("adaptive"), draw(rng, "adaptive", 99), level=0.8)
    x, _ = draw(rng, "adaptive", 40)
    together = sets.labels(x)
    np.testing.assert_array_equal(together, np.concatenate([sets.labels(row[None]) for row in x]))
    np.testing.assert_array_equal(together[::-1], sets.labels(x[::-1].astype(np.float64)))
    shares = _shares(rng.normal(size=(2000, 1)), seed=3)
    assert_plausible(stats.kstest(shares, "uniform").pvalue)
    again = draw(np.random.default_rng(seed), "adaptive", 99)
    other = conformal(posterior_of("adaptive"), again, level=0.8, seed=1)
    x, _ = draw(rng, "adaptive", 1000)
    assert np.any(other.labels(x) != sets.labels(x))


@pytest.mark.parametrize("score", ["scaled", "quantile", "adaptive", "threshold"])
def test_the_sets_hold_what_the_coverage_counts(score):
    rng = np.random.default_rng(2)
    sets = conformal(posterior_of(score), draw(rng, score, 199), level=0.9, score=score)
    x, y = draw(rng, score, 300)
    if score in ("adaptive", "threshold"):
        labels = sets.labels(x)
        assert labels.shape == (300, 3)
        assert labels.dtype == bool
        held = labels[np.arange(300), y]
        assert sets.mean_size(x) == pytest.approx(labels.sum(1).mean())
    else:
        lower, upper = sets.interval(x)
        held = (lower <= y) & (y <= upper)
        assert sets.mean_size(x) == pytest.approx(np.mean(upper - lower))
    assert sets.coverage(x, y) == held.mean()


def test_scores_by_hand():
    probs = np.array([[0.2, 0.5, 0.3]])
    np.testing.assert_allclose(_adaptive(probs, np.array([0.5])), [[0.9, 0.25, 0.65]])
    np.testing.assert_allclose(_threshold(probs, np.array([0.5])), [[0.8, 0.5, 0.7]])
    normal = SimpleNamespace(predict=lambda x: from_normal(x[:, 0], 2.0))
    x, y = np.zeros((9, 1)), np.array([1.0, -2, 3, -4, 5, -6, 7, -8, 9])
    assert conformal(normal, (x, y), level=0.7).threshold == pytest.approx(7 / 2)  # k = ⌈10 · 0.7⌉ = 7
    edge = 2 * stats.norm.ppf(0.85)
    sets = conformal(normal, (x, y), level=0.7, score="quantile")
    assert sets.threshold == pytest.approx(7 - edge, rel=1e-4)
    np.testing.assert_allclose(sets.interval([0.0, 1.0]), [[-7, -6], [7, 8]], rtol=1e-4)


def test_intervals_that_were_too_wide_shrink_to_a_point_at_most():
    """The 70 % interval of the rows is ± 104; y is within 1 of its middle, or exactly there."""
    rows = SimpleNamespace(predict=lambda x: from_normal(np.zeros(len(x)), np.where(x[:, 0] > 0, 100.0, 1.0)))
    sets = conformal(rows, (np.ones((9, 1)), np.zeros(9)), level=0.7, score="quantile")
    lower, upper = sets.interval([[1.0], [-1.0]])
    np.testing.assert_allclose([lower, upper], 0.0, atol=1e-3)
    assert np.all(lower <= upper)


@pytest.mark.parametrize("score", ["scaled", "quantile"])
def test_a_box_holds_all_outputs_at_once(score, seed):
    rng = np.random.default_rng(seed)

    def rows(num):
        x = rng.normal(size=(num, 1))
        return x, x * [1, 1000] + rng.normal(size=(num, 2)) * [1, 1000]

    sets = conformal(SimpleNamespace(predict=wrong_box), rows(999), level=0.9, score=score)
    x, y = rows(4000)
    lower, upper = sets.interval(x)
    assert lower.shape == (4000, 2)
    held = (lower <= y) & (y <= upper)
    assert sets.coverage(x, y) == held.all(axis=1).mean()
    assert held.all(axis=1).mean() == pytest.approx(0.9, abs=sigmas() * np.sqrt(0.09 / 999 + 0.09 / 4000))
    assert np.all(held.mean(axis=0) < 0.99)  # neither output's unit has taken over
    assert sets.mean_size(x).shape == (2,)


def test_bad_input():
    rng = np.random.default_rng(4)
    normal, classes = posterior_of("scaled"), posterior_of("adaptive")
    numbers, labels = draw(rng, "scaled", 20), draw(rng, "adaptive", 20)
    with pytest.raises(ValueError, match=r"a level of 0\.9 needs at least 9 held-out rows, got 8"):
        conformal(normal, (numbers[0][:8], numbers[1][:8]), level=0.9)
    assert conformal(normal, (numbers[0][:9], numbers[1][:9]), level=0.9).num_data == 9
    for level in (0, 1, 90):
        with pytest.raises(ValueError, match="level must lie between 0 and 1"):
            conformal(normal, numbers, level=level)
    with pytest.raises(ValueError, match="did you mean 'scaled'"):
        conformal(normal, numbers, score="scale")
    with pytest.raises(ValueError, match="'adaptive' or 'threshold'"):
        conformal(classes, labels, score="scaled")
    with pytest.raises(TypeError, match="use interval"):
        conformal(normal, numbers).labels(numbers[0])
    with pytest.raises(TypeError, match="use labels"):
        conformal(classes, labels).interval(labels[0])
    with pytest.raises(ValueError, match="labels from 0 to 3"):
        conformal(classes, labels).coverage(labels[0], np.arange(20) % 4)
    with pytest.raises(ValueError, match="standard deviation of some rows is zero"):
        conformal(SimpleNamespace(predict=without_noise), numbers)
