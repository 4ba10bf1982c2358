"""The drift alarm: fair bets, a rate that it keeps, and changes that it hears."""

import json

import numpy as np
import pytest
from scipy import stats

import credo
from credo.learning import drift
from credo.learning.drift import EXPONENTS, OWN_WORD, DriftAlarm, tail_probability


def standard(num):
    """A prediction that is right about standard normal targets, of which more data would take nothing away."""
    return credo.from_normal(np.zeros(num), 1.0)


def test_bets_are_fair():
    """∫ ε p^(ε − 1) dp = 1, and less where a bet is only placed in part."""
    ranks = (np.arange(200_000) + 0.5) / 200_000
    bets = EXPONENTS * ranks[:, None] ** (EXPONENTS - 1)
    # The midpoint rule is off by the part of the pole at zero.
    np.testing.assert_allclose(bets[:, 4:].mean(axis=0), 1, atol=2e-3)
    assert (np.sqrt(bets).mean(axis=0) < 1).all()


def test_tails_of_a_right_model_are_uniform(seed):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(4), size=4000)
    labels = (rng.random((4000, 1)) > probs.cumsum(axis=1)).sum(axis=1).clip(max=3)
    pairs = rng.normal(size=(4000, 2))
    cases = (
        (credo.from_probs(probs), labels),
        (standard(4000), rng.normal(size=4000)),
        (credo.from_normal(np.zeros((1, 4000, 2)), 1.0), pairs),
    )
    for predictive, targets in cases:
        found = np.sort(tail_probability(predictive, targets, rng.random(4000)))
        # Kolmogorov–Smirnov: P(distance > 2.2/√n) = 2 exp(−2 · 2.2²) = 1e-4.
        assert np.abs(found - (np.arange(4000) + 0.5) / 4000).max() < 2.2 / np.sqrt(4000)


def test_a_missing_output_tells_nothing():
    predictive = credo.from_normal(np.zeros((1, 2, 2)), 1.0)
    found = tail_probability(predictive, np.array([[1.96, np.nan], [1.96, 0.0]]), np.zeros(2))
    np.testing.assert_allclose(found, [0.05, 1 - 0.95**2], atol=1e-4)


def test_it_keeps_its_rate(seed):
    """At a rate of 1e-3 at most 0.3 of 300 rows ring: of 60 streams at most 34 do with probability 1 − 1e-5."""
    streams = np.random.default_rng(seed).normal(size=(60, 300))
    rang = [DriftAlarm(1e-3, seed=one).watch(standard(300), y).rang for one, y in enumerate(streams)]
    assert sum(rang) <= 34


@pytest.mark.parametrize("too_small", [0.9, 0.8])
def test_a_model_that_is_too_sure_of_itself_does_not_ring_it(seed, too_small):
    """Once its own word is history, the chance of a false alarm is at most 1,500 · 1e-6."""
    y = np.random.default_rng(seed).normal(size=1500)
    assert not DriftAlarm(rate=1e-6).watch(credo.from_normal(np.zeros(1500), too_small), y).rang


@pytest.mark.parametrize("kind", ["mean", "noise"])
def test_it_rings_after_a_change_and_not_before(seed, kind):
    """Within 200 rows: the median delay is 20 rows, and none of 1,000 streams took 110."""
    y = np.random.default_rng(seed).normal(size=700)
    y[500:] = y[500:] + 1.5 if kind == "mean" else 2 * y[500:]
    alarm = DriftAlarm().watch(standard(700), y)
    first = alarm.rings[0]
    assert 500 < first.row <= 700
    assert abs(first.since - 500) < 60
    assert first.surprise > 0.2
    assert str(alarm).startswith(f"rang at row {first.row}: since about row {first.since}")


def test_after_it_has_rung_the_new_world_is_the_usual_one(seed):
    """The chance of a second alarm is at most 1,000 · 1e-8."""
    y = 3 + np.random.default_rng(seed).normal(size=1000)
    alarm = DriftAlarm(rate=1e-8).watch(standard(1000), y)
    assert len(alarm.rings) == 1


def test_classes_that_change_their_meaning_ring_it(seed):
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=600)
    probs = np.full((600, 3), 0.05)
    probs[np.arange(600), truth] = 0.9
    labels = np.where(rng.random(600) < 0.9, truth, (truth + rng.integers(1, 3, size=600)) % 3)
    labels[400:] = (labels[400:] + 1) % 3
    (first, *_) = DriftAlarm().watch(credo.from_probs(probs), labels).rings
    assert 400 < first.row < 460


def test_rows_of_a_batch_share_what_the_model_does_not_know(seed, monkeypatch):
    """A level that the model is unsure of, three standard deviations from its mean, is no change of the world."""
    rng = np.random.default_rng(seed)
    levels = stats.norm.ppf((np.arange(100) + 0.5) / 100)
    unsure = credo.from_normal(levels[:, None] * np.ones((1, 200)), 0.1)
    y = 3 + 0.1 * rng.normal(size=200)
    alarm = DriftAlarm().watch(unsure, y)
    assert not alarm.rang
    # 200 / (1 + 200 V) with V = 1, that of half of a squared normal number in units of its variance.
    assert sum(alarm.counts) < OWN_WORD + 2
    monkeypatch.setattr(drift, "independence", lambda predictive: 1.0)
    assert DriftAlarm().watch(unsure, y).rang


def test_it_goes_on_from_what_was_written_down():
    y = np.random.default_rng(0).normal(size=200)
    y[100:] *= 4
    first = DriftAlarm(seed=-3).watch(standard(100), y[:100])
    again = DriftAlarm.from_dict(json.loads(json.dumps(first.to_dict())))
    assert again == first
    assert sum(first.counts) == 100 + OWN_WORD
    one, other = (alarm.watch(standard(100), y[100:]) for alarm in (first, again))
    assert one == other
    assert one.rang


def test_rows_without_a_target_are_left_out():
    y = np.zeros(5)
    y[2] = np.nan
    assert DriftAlarm().watch(standard(5), y).num_rows == 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: DriftAlarm(rate=0), "rate must lie between 0 and 1, got 0"),
        (lambda: DriftAlarm().watch(standard(3), np.zeros(4)), r"y has shape \(4,\), but the prediction is of shape"),
        (lambda: DriftAlarm().watch(standard(3)[:0], np.zeros(0)), "empty"),
        (lambda: DriftAlarm.from_dict({"num_rows": -1}), "the alarm is damaged"),
        (lambda: DriftAlarm.from_dict({"counts": [1]}), "the alarm is damaged"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
