"""Metrics of a prediction and its targets, with standard errors.

A metric is a function of the *weights* of the test rows. Weights of one give its value; the counts of a bootstrap
resample give its value on another test set of that size (Efron, 1979).
"""

import functools
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from credo.data import is_observed
from credo.evaluation.checks import judged, uncensored
from credo.predictive import Predictive

# Weights of the rows (resamples, rows) → the metric on each resample (resamples,).
Measure = Callable[[np.ndarray], np.ndarray]

# Resamples are evaluated in blocks of this many numbers: 64 MiB in double precision.
NUMBERS_PER_BLOCK = 2**23


class Score(NamedTuple):
    """A metric's value and its bootstrap standard error over test rows."""

    value: float
    standard_error: float

    def __str__(self) -> str:
        return f"{self.value:.4g} ± {self.standard_error:.2g}"


class Metric:
    """Call it with a prediction and its targets for its value; `score` adds the standard error.

    Rows without a target are left out, and of several outputs those that are missing (NaN, None).

    Arguments:
        measure: (predictive, y, **settings) → the metric as a function of row weights.
        label: its name in tables.
        better: "higher", "lower", or the value of a perfect model.
        unit: "y" where it has the unit of the target.
        censored: whether it judges rows of which only a lower bound is known; else they are left out as well.
        words: what a value means, for those who do not know the metric, with places for {value} and {unit}.
    """

    def __init__(
        self,
        measure: Callable[..., Measure],
        *,
        label: str,
        better: Literal["higher", "lower"] | float,
        unit: str = "",
        censored: bool = False,
        words: str = "",
    ) -> None:
        functools.update_wrapper(self, measure)
        self.measure = measure
        self.label = label
        self.better = better
        self.unit = unit
        self.censored = censored
        self.words = words

    def __call__(self, predictive: Predictive, y: Any, **settings: Any) -> float:
        predictive, y = judged(predictive, y)
        if not self.censored:
            predictive, y = uncensored(predictive, y)[:2]
        return float(self.measure(predictive, y, **settings)(np.ones((1, len(predictive))))[0])

    def score(self, predictive: Predictive, y: Any, resamples: np.ndarray, **settings: Any) -> Score:
        """The value, and its standard deviation over resamples of the rows that have a target."""
        predictive, y = judged(predictive, y)
        if resamples.shape[1] != len(predictive):
            raise ValueError(
                f"resamples have {resamples.shape[1]:,} rows, and {len(predictive):,} have a target; pass "
                f"resample({len(predictive)}, …)"
            )
        if not self.censored:
            predictive, y, seen = uncensored(predictive, y)
            resamples = resamples[:, seen]
        return score(self.measure(predictive, y, **settings), resamples)

    def in_words(self, value: float, unit: str = "") -> str:
        """What a value means; nothing of one that is not known."""
        return self.words.format(value=value, unit=f" {unit}" if unit else "") if np.isfinite(value) else "not known"

    def badness(self, value: float) -> float:
        """The value on a scale where lower is better, for every metric."""
        if isinstance(self.better, str):
            return value if self.better == "lower" else -value
        return abs(value - self.better)


def metric(
    label: str,
    *,
    better: Literal["higher", "lower"] | float,
    unit: str = "",
    words: str = "",
    censored: bool = False,
) -> Callable[..., Metric]:
    """Turn a function that gives a `Measure` into a `Metric`."""
    return functools.partial(Metric, label=label, better=better, unit=unit, words=words, censored=censored)


def resample(num_rows: int, num_resamples: int, seed: int = 0) -> np.ndarray:
    """How often each row is drawn in each resample, (resamples, rows): n draws with replacement out of n."""
    rng = np.random.default_rng(seed)
    drawn = (rng.integers(0, num_rows, num_rows) for _ in range(num_resamples))
    counts = [np.bincount(rows, minlength=num_rows).astype(np.uint8) for rows in drawn]
    return np.stack(counts) if counts else np.empty((0, num_rows), np.uint8)


def score(measure: Measure, resamples: np.ndarray) -> Score:
    """A measure's value, and its standard deviation over resamples."""
    num_resamples, num_rows = resamples.shape
    size = max(1, NUMBERS_PER_BLOCK // num_rows)
    blocks = [measure(resamples[first : first + size].astype(float)) for first in range(0, num_resamples, size)]
    values = np.concatenate(blocks) if blocks else np.empty(0)
    # A resample may have no value, for instance without any error to correlate with.
    values = values[np.isfinite(values)]
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return Score(float(measure(np.ones((1, num_rows)))[0]), spread)


def mean_of(terms: np.ndarray) -> Measure:
    """The weighted average of one number per row."""
    terms = np.asarray(terms, np.float64)
    return lambda weights: weights @ terms / weights.sum(1)


def mean_of_outputs(values: np.ndarray, targets: np.ndarray) -> Measure:
    """The weighted average of one number per row and output (rows, output…), where its target is there."""
    observed = is_observed(targets)
    if observed.all():
        return mean_of(mean_by_row(values, targets))
    counts = observed.reshape(len(values), -1).sum(axis=1)
    totals = counts * mean_by_row(values, targets)
    return lambda weights: weights @ totals / (weights @ counts)


def mean_by_row(values: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The mean over the outputs of each row whose targets are there, (rows,)."""
    observed = is_observed(targets)
    if observed.all():
        return values.reshape(len(values), -1).mean(1)
    totals, counts = (part.reshape(len(values), -1).sum(1) for part in (np.where(observed, values, 0.0), observed))
    return totals / counts
