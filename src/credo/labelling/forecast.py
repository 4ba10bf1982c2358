"""How well the model does, from questions drawn by chance, and how many labels are probably still needed.

    P(wrong after n labels) = min(c + e · (n / 10)^−b, 1)

the power law of learning curves, with errors that stay however many labels there are (Hestness et al., "Deep learning
scaling is predictable, empirically", 2017). The questions are independent hits and misses, and the posterior of c, e
and b is computed on a grid: it tells the accuracy so far and when there will be enough, each with its uncertainty.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from credo.labelling.cards import CurvePoint

# Nine in ten.
LOW, MIDDLE, HIGH = 0.05, 0.5, 0.95
TARGET = 0.95
# Fewer questions tell nothing, and a curve of more points is not smoother.
MIN_CHECKS, MAX_POINTS = 5, 20
# The grid, of even weight. Published exponents lie between 0.07 and 0.5; with few labels, well chosen, they are larger.
STAYS = np.array([0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3])
ERRORS = np.linspace(0.02, 1.0, 25)
EXPONENTS = np.linspace(0.05, 1.5, 25)
AFTER = 10.0
# What lies so many times beyond the labels that there are cannot be told from them.
MAX_RATIO = 10.0
TOO_EARLY = "too early to tell"


class Check(NamedTuple):
    """A question that was drawn by chance: how many labels there were before it, and whether the model was right."""

    num_labels: int
    is_hit: bool


class Law(NamedTuple):
    """The power law at every point of the grid, and the probability of each."""

    stays: np.ndarray
    error: np.ndarray
    exponent: np.ndarray
    probability: np.ndarray

    @classmethod
    def after(cls, checks: Sequence[Check]) -> "Law":
        """The posterior after some questions."""
        stays, error, exponent = (axis.ravel() for axis in np.meshgrid(STAYS, ERRORS, EXPONENTS))
        law, logs = cls(stays, error, exponent, np.ones(stays.size)), np.zeros(stays.size)
        for check in checks:
            wrong = law.wrong(check.num_labels)
            logs += np.log(1 - wrong if check.is_hit else wrong)
        weights = np.exp(logs - logs.max())
        return law._replace(probability=weights / weights.sum())

    def wrong(self, num_labels: int) -> np.ndarray:
        """P(wrong) after so many labels."""
        falling = self.error * (max(num_labels, 1) / AFTER) ** -self.exponent
        return np.clip(self.stays + falling, 1e-6, 1 - 1e-6)

    def quantiles(self, values: np.ndarray) -> np.ndarray:
        """Low, middle and high of what depends on the law."""
        order = np.argsort(values)
        places = np.searchsorted(self.probability[order].cumsum(), [LOW, MIDDLE, HIGH])
        return values[order][np.minimum(places, len(values) - 1)]

    def enough(self, target: float) -> np.ndarray:
        """After how many labels the model is right so often; infinite where it never is."""
        left = 1 - target - self.stays
        with np.errstate(divide="ignore", over="ignore"):
            needed = AFTER * (self.error / np.maximum(left, 0.0)) ** (1 / self.exponent)
        return np.where(left > 0, needed, np.inf)


def curve(checks: Sequence[Check]) -> tuple[CurvePoint, ...]:
    """The accuracy over the number of labels, as all questions drawn by chance tell it.

    >>> curve([Check(number, True) for number in range(5)])[-1].accuracy > 0.5
    True
    """
    return _curve(tuple(checks)) if len(checks) >= MIN_CHECKS else ()


# Asked for at every answer, and changed by one in five.
@lru_cache(maxsize=16)
def _curve(checks: tuple[Check, ...]) -> tuple[CurvePoint, ...]:
    law = Law.after(checks)
    ends = np.linspace(checks[0].num_labels, checks[-1].num_labels, MAX_POINTS).round().astype(int)
    bands = [(int(num), law.quantiles(1 - law.wrong(num))) for num in np.unique(ends)]
    return tuple(CurvePoint(num, float(middle), float(low), float(high)) for num, (low, middle, high) in bands)


def still_needed(
    checks: Sequence[Check], num_labels: int, *, num_left: float = math.inf, target: float = TARGET
) -> str:
    """How many more labels it probably takes to be right so often, in words.

    Arguments:
        num_labels: that there are.
        num_left: items that may still be labelled.
        target: the accuracy to reach.

    >>> still_needed([], 3)
    'too early to tell'
    """
    if len(checks) < 2 * MIN_CHECKS:
        return TOO_EARLY
    low, middle, high = _in_all(tuple(checks), target)
    if middle <= num_labels:
        return f"probably none: {target:.0%} right seems to be reached"
    fewest, likely, most = (f"{max(number - num_labels, 0.0):,.0f}" for number in (low, middle, high))
    known = MAX_RATIO * num_labels
    if middle > known:
        return f"at least {fewest} more for {target:.0%} right, perhaps many more" if low > num_labels else TOO_EARLY
    if middle - num_labels > num_left:
        return f"probably more for {target:.0%} right than the {num_left:,} that are left"
    if high > known:
        least = f", at least {fewest}" if low > num_labels else ""
        return f"about {likely} more for {target:.0%} right{least}; how many at most is {TOO_EARLY}"
    return f"about {likely} more for {target:.0%} right, probably between {fewest} and {most}"


@lru_cache(maxsize=16)
def _in_all(checks: tuple[Check, ...], target: float) -> tuple[float, float, float]:
    law = Law.after(checks)
    low, middle, high = law.quantiles(law.enough(target))
    return float(low), float(middle), float(high)
