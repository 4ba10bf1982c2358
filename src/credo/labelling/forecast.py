"""How well the model does, from questions drawn by chance, and how many labels are probably still needed.

    P(wrong after n labels) = min(e · (n / 10)^−b, 1)

the power law of learning curves (Hestness et al., "Deep learning scaling is predictable, empirically", 2017). e, the
error after ten labels, and b have flat priors on a grid, the checks are independent hits and misses, and the posterior
on the grid says when the error will have come down to what is wanted: no fit by eye, and its uncertainty for free.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import beta

from credo.labelling.cards import CurvePoint

# Nine in ten.
LOW, HIGH = 0.05, 0.95
# An accuracy is that of so many checks, the last ones: the model gets better meanwhile.
WINDOW, MIN_CHECKS = 20, 5
TARGET = 0.95
# Exponents of published learning curves lie between 0.07 and 0.5; with few labels they are steeper.
EXPONENTS = np.linspace(0.02, 1.5, 75)
ERRORS = np.linspace(0.01, 0.99, 99)
AFTER = 10.0
# An estimate whose ends are further apart than this, in labels in all, is none.
MAX_RATIO = 10.0
TOO_EARLY = "too early to tell"


class Check(NamedTuple):
    """A question that was drawn by chance: how many labels there were before it, and whether the model was right."""

    num_labels: int
    is_hit: bool


def curve(checks: Sequence[Check]) -> tuple[CurvePoint, ...]:
    """The accuracy on the last checks over the number of labels; the ends are quantiles of Jeffreys' posterior.

    >>> curve([Check(number, True) for number in range(5)])[0].accuracy
    1.0
    """
    points = []
    for end in range(MIN_CHECKS, len(checks) + 1):
        last = checks[max(0, end - WINDOW) : end]
        hits = sum(check.is_hit for check in last)
        low, high = beta.ppf([LOW, HIGH], hits + 0.5, len(last) - hits + 0.5)
        points.append(CurvePoint(last[-1].num_labels, hits / len(last), float(low), float(high)))
    return tuple(points)


def still_needed(checks: Sequence[Check], num_labels: int, *, target: float = TARGET) -> str:
    """How many more labels it probably takes to be right so often, in words.

    Arguments:
        num_labels: that there are.
        target: the accuracy to reach.

    >>> still_needed([], 3)
    'too early to tell'
    """
    if len(checks) < 2 * MIN_CHECKS:
        return TOO_EARLY
    low, middle, high = labels_in_all(checks, target=target)
    if middle <= num_labels:
        return f"probably none: {target:.0%} seem to be reached"
    if not high <= MAX_RATIO * max(low, num_labels):
        return TOO_EARLY
    fewest, likely, most = (round(max(number - num_labels, 0)) for number in (low, middle, high))
    return f"about {likely:,} more for {target:.0%} right, probably between {fewest:,} and {most:,}"


def labels_in_all(checks: Sequence[Check], *, target: float) -> tuple[float, float, float]:
    """Quantiles of the number of labels after which the model is right so often: low, middle and high."""
    errors, exponents = np.meshgrid(ERRORS, EXPONENTS)
    logs = np.zeros(errors.shape)
    for num, is_hit in checks:
        wrong = np.minimum(errors * (max(num, 1) / AFTER) ** -exponents, 1 - 1e-9)
        logs += np.log(1 - wrong if is_hit else wrong)
    needed = np.log(AFTER) + np.log(errors / (1 - target)) / exponents
    order = np.argsort(needed, axis=None)
    shares = np.exp(logs - logs.max()).ravel()[order].cumsum()
    places = np.searchsorted(shares, np.array([LOW, 0.5, HIGH]) * shares[-1])
    low, middle, high = np.exp(np.minimum(needed.ravel()[order][places], np.log(1e12)))
    return float(low), float(middle), float(high)
