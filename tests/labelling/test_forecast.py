"""The forecast: what questions drawn by chance tell of the accuracy, and of the labels still needed."""

import numpy as np
import pytest

from credo.labelling.forecast import TOO_EARLY, Check, Law, curve, still_needed

NUM_CURVES = 60


def checks(rng: np.random.Generator, num: int, law: tuple[float, float, float]) -> list[Check]:
    """A question after every fifth label, right as often as the law says."""
    stays, error, exponent = law
    numbers = range(10, 10 + 5 * num, 5)
    return [Check(n, bool(rng.random() > stays + error * (n / 10) ** -exponent)) for n in numbers]


@pytest.mark.statistical
def test_nine_in_ten_bands_hold_the_accuracy(seed: int) -> None:
    """Of laws drawn from the prior, each band holds its truth with probability 0.9.

    Hits are Bin(60, 0.9): fewer than 44 or so have a probability of 2e-5, by its tail; a band of half the width holds
    about 0.6 of them.
    """
    rng = np.random.default_rng(seed)
    prior = Law.after([])
    hits = 0
    for _ in range(NUM_CURVES):
        place = rng.integers(len(prior.stays))
        law = prior.stays[place], prior.error[place], prior.exponent[place]
        last = curve(checks(rng, 40, law))[-1]
        truth = 1 - float(np.clip(law[0] + law[1] * (last.num_labels / 10) ** -law[2], 0, 1))
        hits += last.low - 1e-6 <= truth <= last.high + 1e-6
    assert hits >= 44


def test_too_early_with_few_questions() -> None:
    assert still_needed([Check(10, True)] * 9, 12) == TOO_EARLY
    assert curve([Check(10, True)] * 4) == ()


def test_a_model_that_is_nearly_always_right_needs_no_more() -> None:
    found = [Check(n, True) for n in range(10, 510, 5)]
    assert still_needed(found, 510).startswith("probably none")
    assert curve(found)[-1].low > 0.95


def test_a_model_that_guesses_needs_many_more() -> None:
    found = [Check(n, n % 10 == 0) for n in range(10, 310, 5)]
    assert still_needed(found, 310).startswith("at least")
    assert curve(found)[-1].high < 0.7


def test_an_estimate_has_two_ends_where_the_curve_is_steep() -> None:
    """Errors of 0.8 (n / 10)^−1 without any that stay reach 5 % after 160 labels."""
    rng = np.random.default_rng(0)
    wrong = [0.8 * (n / 10) ** -1.0 for n in range(10, 130)]
    found = [Check(n, bool(rng.random() > share)) for n, share in enumerate(wrong, start=10)]
    words = still_needed(found, 130)
    assert words.startswith("about")
    assert still_needed(found, 130, num_left=10) == "probably more for 95% right than the 10 that are left"


def test_the_curve_rises_and_bands_hold_their_middle() -> None:
    found = curve(checks(np.random.default_rng(1), 60, (0.02, 0.5, 0.8)))
    assert all(point.low <= point.accuracy <= point.high for point in found)
    assert np.all(np.diff([point.accuracy for point in found]) >= 0)
    assert len(found) == 20
