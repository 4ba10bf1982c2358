"""How much the intervals hold: the share of targets inside them, beside the share that is due, in words."""

import math
from typing import NamedTuple

import numpy as np

from credo.data import is_observed
from credo.predictive import RegressionPredictive

# The intervals that are looked at, and how many binomial sds one must be off to be called so: 1 in 20 times for the
# one that was written, 1 in 20 times for any of the others (Bonferroni: 2.58 sds is 1 in 100).
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
SDS, SDS_OF_MANY = 1.96, 2.58
# Multiples of the golden section, modulo 1, fill the unit interval evenly, however many there are.
GOLDEN_SECTION = (math.sqrt(5) - 1) / 2


def levels_of(predictive: RegressionPredictive, y: np.ndarray) -> np.ndarray:
    """How far up in its law each target lies, (rows, output…): uniform if the model is right.

        F(y),    and of whole numbers    F(y − 1) + u (F(y) − F(y − 1)),    u between 0 and 1

    F(y) alone would lie high in every row of small counts. A censored target lies anywhere above its bound, so that it
    gets F(y) + u (1 − F(y)). u depends on the place of the row, so that the same rows
    have the same levels: Czado, Gneiting and Held, "Predictive model assessment for count data" (2009).
    """
    values, censored = predictive.parted(predictive.targets(y))
    below = predictive.cdf(np.asarray(values, np.float64) - 1) if predictive.is_discrete else None
    return placed(predictive.cdf(values), below, censored)


def placed(above: np.ndarray, below: np.ndarray | None, censored: np.ndarray | None) -> np.ndarray:
    """The levels of targets from F(y), F(y − 1) of whole numbers, and which are censored."""
    places = np.arange(1, len(above) + 1).reshape(-1, *(1,) * (above.ndim - 1))
    shares = GOLDEN_SECTION * places % 1
    levels = above if below is None else below + shares * (above - below)
    return levels if censored is None else np.where(censored, above + shares * (1 - above), levels)


class Coverage(NamedTuple):
    """What the central interval of one level holds.

    Arguments:
        level: the probability that it should hold.
        share: of the targets that are inside; `below` and `above` are those that are not.
        num_rows: that were judged.

    >>> print(Coverage(0.95, 0.898, 0.07, 0.032, 512))
    The 95% interval holds 89.8% of the targets, where 95 ± 1.0% are due: too narrow
    """

    level: float
    share: float
    below: float
    above: float
    num_rows: int

    @property
    def error(self) -> float:
        """The binomial standard error of the share, if what is due is true."""
        return math.sqrt(self.level * (1 - self.level) / self.num_rows)

    def is_off(self, sds: float = SDS) -> bool:
        """Whether it is further from what is due than chance goes."""
        return abs(self.share - self.level) > sds * self.error

    @property
    def direction(self) -> str:
        """Too narrow or too wide."""
        return "too narrow" if self.share < self.level else "too wide"

    def __str__(self) -> str:
        due = f"where {100 * self.level:.0f} ± {self.error:.1%} are due"
        said = self.direction if self.is_off() else "as it should"
        return f"The {self.level:.0%} interval holds {self.share:.1%} of the targets, {due}: {said}"


def coverage_of_levels(levels: np.ndarray, level: float) -> Coverage:
    """The coverage of one interval, from F(y) of each target, (rows, output…); NaN are left out."""
    there = levels[is_observed(levels)]
    tail = (1 - level) / 2
    below, above = float(np.mean(there < tail)), float(np.mean(there > 1 - tail))
    return Coverage(level, 1 - below - above, below, above, len(levels))


def where_off(levels: np.ndarray, lead: Coverage) -> str:
    """Where in the range other intervals are off on another side than the one that was named first; "" for nowhere."""
    others = [coverage_of_levels(levels, level) for level in LEVELS if level != lead.level]
    known = lead.direction if lead.is_off() else ""
    off = [one for one in others if one.is_off(SDS_OF_MANY) and one.direction != known]
    return ", ".join(f"the {one.level:.0%} interval is {one.direction} (it holds {one.share:.1%})" for one in off)


def in_words(levels: np.ndarray, level: float = 0.95) -> str:
    """A headline that leads with the interval that was written, and says which others are off on another side.

    >>> print(in_words(np.linspace(0.2, 0.8, 99)))
    The 95% interval holds 100.0% of the targets, where 95 ± 2.2% are due: too wide.
    """
    lead = coverage_of_levels(levels, level)
    elsewhere = where_off(levels, lead)
    return f"{lead}; {elsewhere}." if elsewhere else f"{lead}."
