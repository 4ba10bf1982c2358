"""Calibration curves: the observed probability p̌ as a function of the predicted probability p̂.

Paper, "Performance metrics of Bayesian Neural Networks". For classes an event is a set of points whose predicted
probability lies in [p − δ, p + δ], in [0, p] or in [1 − p, 1], and p̌ is how often the class came true. For regression

    NSSR = (ŷ − y)ᵀ Σ⁻¹ (ŷ − y) ~ χ²,   p̂ᵢ = X²(NSSRᵢ),   p̌ᵢ = share of points with p̂ⱼ ≤ p̂ᵢ

where Σ is the covariance of the marginal, epistemic and aleatoric. Below the diagonal (p̌ < p̂) a model is
overconfident. Two summaries: AUC = ∫ p̌ dp̂, which is 0.5 for a calibrated model, and the distance √∫ (p̌ − p̂)² dp̂,
which is 0. Where nothing was predicted there is no event, and the curve counts as ideal.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from typing import Literal, NamedTuple

import numpy as np
from scipy import stats

from credo._blocks import row_slices
from credo._checks import require_fraction
from credo._html import InNotebook
from credo.data import is_observed
from credo.evaluation.checks import checked, judged, several_classes
from credo.evaluation.coverage import levels_of
from credo.evaluation.residuals import Law, nssr_probabilities
from credo.predictive import ClassPredictive, Predictive, RegressionPredictive

Direction = Literal["overconfident", "underconfident", "mixed", "calibrated"]
EventSet = Literal["window", "below", "above"]


class _EventRule(NamedTuple):
    words: str
    gather: Callable[[np.ndarray], np.ndarray]


# How sums over windows make an event: one window, all up to it, or all from it on.
EVENT_SETS: dict[str, _EventRule] = {
    "window": _EventRule("p̂ in [p − {delta:g}, p + {delta:g}]", lambda sums: sums),
    "below": _EventRule("p̂ in [0, p]", np.cumsum),
    "above": _EventRule("p̂ in [1 − p, 1]", lambda sums: np.cumsum(sums[::-1])[::-1]),
}
NUM_HISTOGRAM_BINS = 20
DELTA = 0.05  # ten windows
SAME_REGION = 2.5 * DELTA  # joins neighbouring windows only


class Region(NamedTuple):
    """A range of predicted probabilities in which the curve leaves the band of a calibrated model."""

    low: float
    high: float
    direction: Direction


@dataclass(frozen=True, eq=False)
class CalibrationCurve(InNotebook):
    """Observed against predicted probabilities, one number per event; p̂ never decreases.

    Arguments:
        predicted: p̂, the average predicted probability of the event's points.
        observed: p̌, how often it came true among them.
        counts: number of points in each event.
        widths: the part of the p̂ axis that each event stands for, in the integrals.
        lower, upper: with probability `level` the whole curve of a calibrated model lies between them.
        events: what the events are, in words.
        bias: confidence minus frequency, > 0 if the model is too sure on average.
        bias_error, auc_error: standard errors of `bias` and of the AUC if the model were calibrated.
        histogram: how many predictions fall into each of twenty equal parts of [0, 1].
        pivot: the answer of a model that knows nothing; below it, one is confident that the event does *not* happen.
        note: how the numbers had to be corrected, if at all.

    >>> import credo
    >>> curve = credo.evaluation.calibration_curve(credo.from_normal([0.0] * 3, 1.0), [-0.5, 0.1, 0.9])
    >>> print(curve.predicted.round(2), curve.observed.round(2), curve.direction)
    [0.08 0.38 0.63] [0.33 0.67 1.  ] calibrated
    """

    predicted: np.ndarray
    observed: np.ndarray
    counts: np.ndarray
    widths: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    level: float
    events: str
    bias: float
    bias_error: float
    auc_error: float
    histogram: np.ndarray = field(repr=False)
    pivot: float = 0.0
    note: str = ""

    @property
    def auc(self) -> float:
        """∫ p̌ dp̂: 0.5 where the model is calibrated on average."""
        return float(0.5 + np.sum(self.widths * (self.observed - self.predicted)))

    @property
    def distance(self) -> float:
        """√∫ (p̌ − p̂)² dp̂: 0 where it is calibrated everywhere."""
        return float(np.sqrt(np.sum(self.widths * (self.observed - self.predicted) ** 2)))

    @property
    def regions(self) -> tuple[Region, ...]:
        """Where the curve leaves the band, and on which side."""
        too_sure = np.sign(self.predicted - self.pivot) * (self.predicted - self.observed) > 0
        outside = (self.observed < self.lower) | (self.observed > self.upper)
        found: list[Region] = []
        for place in np.flatnonzero(outside):
            p, direction = float(self.predicted[place]), "overconfident" if too_sure[place] else "underconfident"
            # A curve along the edge of its band crosses it many times: crossings close together are one region.
            together = found and found[-1].direction == direction and p - found[-1].high <= SAME_REGION
            start = found.pop().low if together else p
            found.append(Region(start, p, direction))  # type: ignore[arg-type]
        return tuple(found)

    @property
    def direction(self) -> Direction:
        """Too sure, too unsure, both in places ("mixed"), or calibrated as far as this many points can tell."""
        found = {region.direction for region in self.regions}
        if abs(self.bias) > stats.norm.ppf((1 + self.level) / 2) * self.bias_error:
            found.add("overconfident" if self.bias > 0 else "underconfident")
        return found.pop() if len(found) == 1 else "mixed" if found else "calibrated"

    @property
    def verdict(self) -> str:
        """One sentence: the direction, and where; on average only where no place stands out, or it is the other way."""
        where, sides = self._where(), {region.direction for region in self.regions}
        if not where:
            return {
                "overconfident": "Overconfident on average: surer than it is right.",
                "underconfident": "Underconfident on average: right more often than it says.",
            }.get(self.direction, "Calibrated, as far as this many points can tell.")
        average = "overconfident" if self.bias > 0 else "underconfident"
        is_other_way = self.direction == "mixed" and len(sides) == 1
        return f"{where[:1].upper()}{where[1:]}{f', and {average} on average' if is_other_way else ''}."

    def _where(self) -> str:
        """The regions in words, by direction."""
        ranges: dict[str, list[str]] = {}
        for low, high, direction in self.regions:
            text = f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f}"
            ranges.setdefault(direction, []).append(text)
        return ", ".join(f"{direction} at p̂ = {' and '.join(texts)}" for direction, texts in ranges.items())

    def __str__(self) -> str:
        note = f"\n{self.note}" if self.note else ""
        return f"AUC {self.auc:.3f} ± {self.auc_error:.3f}, distance {self.distance:.3f}. {self.verdict}{note}"


def calibration_curve(
    predictive: Predictive,
    y: object,
    *,
    of: str | int | None = None,
    events: EventSet = "window",
    delta: float = DELTA,
    level: float = 0.95,
) -> CalibrationCurve:
    """The calibration curve of a prediction.

    Arguments:
        of: for classifiers, a class (one against the rest), "pooled" (all classes together) or "confidence" (the
            most probable class). Class 1 of two by default, and the confidence of many. For regression, "nssr" (the
            paper's χ² curve, the default where no target is censored), "quantile" (share of targets below each
            quantile) or "interval" (inside each central interval), the last two after Kuleshov et al. (2018).
        events: which points make an event of a classifier: "window" [p − δ, p + δ], "below" [0, p], "above" [1 − p, 1].
        delta: half the width of the window.
        level: probability that a calibrated model stays within the band.

    >>> from credo import from_probs
    >>> prediction = from_probs([[0.75, 0.25]] * 4)
    >>> print(calibration_curve(prediction, [0, 1, 0, 0]).distance)
    0.0
    """
    require_fraction(level=level)
    predictive, y = judged(predictive, y)
    if isinstance(predictive, ClassPredictive):
        return _class_curve(predictive, checked(predictive, y), of, events, delta, level)
    if not isinstance(predictive, RegressionPredictive):
        raise TypeError(f"a calibration curve needs a prediction, got {type(predictive).__name__}")
    censored = predictive.parted(predictive.targets(y))[1] is not None
    if of == "nssr" or (of is None and not censored):
        return nssr_curve(predictive, y, level=level)
    levels = levels_of(predictive, checked(predictive, y)).ravel()
    levels = levels[is_observed(levels)]
    if of in (None, "quantile"):
        return _distribution_curve(levels, level, "y is below its p-quantile", pivot=0.5)
    if of == "interval":
        return _distribution_curve(np.abs(2 * levels - 1), level, "y is inside its central interval of probability p")
    raise ValueError(f"of must be 'nssr', 'quantile' or 'interval' for regression, got {of!r}")


def calibration_curves(predictive: Predictive, y: object, *, level: float = 0.95) -> dict[str, CalibrationCurve]:
    """Every curve that suits the task, by name; for a classifier its confidence, all classes pooled, and each class.

    >>> import credo
    >>> list(credo.evaluation.calibration_curves(credo.from_probs([[0.9, 0.1], [0.6, 0.4]]), [0, 1]))
    ['confidence', 'pooled', 'class 0', 'class 1']
    """
    predictive, y = judged(predictive, y)
    if not isinstance(predictive, ClassPredictive):
        censored = predictive.parted(predictive.targets(y))[1] is not None
        kinds = ("quantile", "interval") if censored else ("nssr", "quantile", "interval")
        return {kind: calibration_curve(predictive, y, of=kind, level=level) for kind in kinds}
    labels = checked(predictive, y)

    def curve(of: str | int) -> CalibrationCurve:
        return _class_curve(predictive, labels, of, "window", DELTA, level)

    classes = range(predictive.probs.shape[1])
    return {of: curve(of) for of in ("confidence", "pooled")} | {f"class {of}": curve(of) for of in classes}


# -- classes -----------------------------------------------------------------------------------------------


def class_events(
    predictive: Predictive, labels: np.ndarray, of: str | int | None
) -> tuple[np.ndarray, np.ndarray, float]:
    """Predicted probabilities of binary events, whether they came true, and the pivot of their confidence."""
    probs, num_classes = predictive.probs, predictive.probs.shape[1]
    if of is None:
        of = 1 if num_classes == 2 else "confidence"
    if of == "confidence":
        return probs.max(1), (predictive.label == labels), 0.0
    if of == "pooled":
        return probs.ravel(), (np.arange(num_classes) == labels[:, None]).ravel(), 1 / num_classes
    if isinstance(of, int | np.integer) and 0 <= of < num_classes:
        return probs[:, of], labels == of, 1 / num_classes
    raise ValueError(f"of must be 'confidence', 'pooled' or a class from 0 to {num_classes - 1}, got {of!r}")


def _class_curve(
    predictive: ClassPredictive, labels: np.ndarray, of: str | int | None, events: EventSet, delta: float, level: float
) -> CalibrationCurve:
    several_classes(labels)
    predicted, happened, pivot = class_events(predictive, labels, of)
    return binary_curve(predicted, happened, events=events, delta=delta, level=level, pivot=pivot)


def binary_curve(
    predicted: np.ndarray,
    happened: np.ndarray,
    *,
    events: EventSet = "window",
    delta: float = DELTA,
    level: float = 0.95,
    pivot: float = 0.5,
) -> CalibrationCurve:
    """p̌ = Σ y·I(p̂) / Σ I(p̂) for sets of points chosen by their predicted probability.

    The curve's p̂ is the mean prediction of a set. Over a narrow window that is p; over [0, p] or [1 − p, 1] it is
    not, and p̌ against p itself would leave the diagonal for the best of models.
    """
    if events not in EVENT_SETS:
        raise ValueError(f"events must be {', '.join(map(repr, EVENT_SETS))}, got {events!r}")
    predicted, happened = np.asarray(predicted), np.asarray(happened)
    sums = [_event_sums(predicted[rows], happened[rows], delta, pivot) for rows in row_slices(predicted)]
    by_window, bias, spread, histogram = (reduce(np.add, parts) for parts in zip(*sums, strict=True))
    counts, sum_predicted, sum_happened, sum_variance = map(EVENT_SETS[events].gather, by_window)
    seen = counts > 0
    counts, widths = counts[seen], windows(np.empty(0), delta)[1][seen]
    mean, frequency = sum_predicted[seen] / counts, sum_happened[seen] / counts
    variance = sum_variance[seen] / counts**2
    # A share for each event (Bonferroni), so that the whole curve stays inside; sums of unequal coins vary less than
    # those of equal ones (Hoeffding, 1956), so the binomial law is wide enough.
    tail = (1 - level) / (2 * max(len(counts), 1))
    sds = np.sqrt(variance)
    return CalibrationCurve(
        predicted=mean,
        observed=frequency,
        counts=counts.astype(int),
        widths=widths,
        lower=stats.binom.ppf(tail, counts, mean) / counts,
        upper=stats.binom.ppf(1 - tail, counts, mean) / counts,
        level=level,
        events=EVENT_SETS[events].words.format(delta=delta),
        bias=float(bias / len(predicted)),
        bias_error=float(np.sqrt(spread) / len(predicted)),
        # Windows share no points and their errors are independent; nested sets share them, and errors may add up.
        auc_error=float(np.sqrt(np.sum((widths * sds) ** 2)) if events == "window" else np.sum(widths * sds)),
        histogram=histogram,
        pivot=pivot,
    )


def _event_sums(
    predicted: np.ndarray, happened: np.ndarray, delta: float, pivot: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What a curve needs of some points: sums over each window (counts, p̂, y, p̂(1 − p̂)), of the bias and of all
    variances, and the histogram.
    """
    predicted, happened = predicted.astype(np.float64), happened.astype(np.float64)
    window, widths = windows(predicted, delta)
    variance = predicted * (1 - predicted)
    terms = (np.ones(len(predicted)), predicted, happened, variance)
    by_window = np.stack([np.bincount(window, term, len(widths)) for term in terms])
    bias = np.sum(np.sign(predicted - pivot) * (predicted - happened))
    return by_window, bias, np.sum(variance), np.histogram(predicted, NUM_HISTOGRAM_BINS, (0, 1))[0]


def windows(predicted: np.ndarray, delta: float = DELTA) -> tuple[np.ndarray, np.ndarray]:
    """The window [p − δ, p + δ] that each prediction lies in, (rows,), and the width of every window."""
    if not 0 < delta <= 0.5:
        raise ValueError(f"delta must lie between 0 and 0.5, got {delta}")
    # A last window that would end beyond 1 is narrower; rounding must not make one of width zero.
    edges = np.append(np.arange(0, 1 - 1e-9, 2 * delta), 1.0)
    return np.clip(np.searchsorted(edges, predicted, side="right") - 1, 0, len(edges) - 2), np.diff(edges)


# -- regression --------------------------------------------------------------------------------------------


def nssr_curve(
    predictive: RegressionPredictive,
    y: object,
    *,
    law: Law = "chi2",
    noise: bool = True,
    level: float = 0.95,
) -> CalibrationCurve:
    """The paper's curve for regression: the probability of each residual's length against its rank.

    The paper prints I(p̂ⱼ − p̂ᵢ ≥ 0) for the observed probability, with which a calibrated model gives 1 − p̂; here it is
    the share with p̂ⱼ ≤ p̂ᵢ.

    Arguments:
        law: of the NSSR. "chi2" takes the predictive covariance as known; "hotelling" is exact where it is estimated
            from normal draws alone (without noise), which for few draws is far from known.
        noise: whether y has noise; False for the values of the function itself, for which the covariance is that of the
            draws alone.

    >>> import credo
    >>> too_narrow = credo.from_normal([0.0] * 4, 0.1)
    >>> round(credo.evaluation.nssr_curve(too_narrow, [-1.0, -0.5, 0.5, 1.0]).bias, 2)
    0.5
    """
    predicted, note = nssr_probabilities(predictive, y, law=law, noise=noise)
    return _distribution_curve(predicted, level, "the residual is at most this long", note=note)


def _distribution_curve(
    predicted: np.ndarray, level: float, events: str, *, pivot: float = 0.0, note: str = ""
) -> CalibrationCurve:
    """The distribution function of values that a calibrated model makes uniform."""
    num = len(predicted)
    predicted = np.sort(np.asarray(predicted, np.float64))
    # Where values are equal, as those that are rounded to one, the curve is a step up: its foot belongs to it too.
    observed = np.arange(1, num + 1) / num
    reach = stats.kstwo.ppf(level, num)
    around = np.concatenate([[0.0], predicted, [1.0]])
    widths = (around[2:] - around[:-2]) / 2
    # The mean of |u − c| around the pivot c, or of u without one, less what it is for uniform values.
    bias = float(np.mean(predicted) - 0.5) if pivot == 0 else float(np.mean(np.abs(predicted - pivot)) - 0.25)
    return CalibrationCurve(
        predicted=predicted,
        observed=observed,
        counts=np.full(num, num),
        widths=widths,
        lower=np.clip(predicted - reach, 0, 1),
        upper=np.clip(predicted + reach, 0, 1),
        level=level,
        events=events,
        bias=bias,
        bias_error=float(np.sqrt((1 / 12 if pivot == 0 else 1 / 48) / num)),
        auc_error=float(np.sqrt(1 / 12 / num)),
        histogram=np.histogram(predicted, NUM_HISTOGRAM_BINS, (0, 1))[0],
        pivot=pivot,
        note=note,
    )
