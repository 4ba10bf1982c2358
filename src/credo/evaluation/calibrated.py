"""Do the intervals hold what they say, on rows that a prediction has not seen?

Rows that were held out tell it directly. Without them each row is left out in turn, without a refit: the draws are
weighed by 1/p(yₙ | thetaᵢ), smoothed (PSIS-LOO, Vehtari, Gelman and Gabry, 2017), and

    F(yₙ | D without n) = Σᵢ wᵢₙ F(yₙ | xₙ, thetaᵢ)

of which the 90% interval holds a share. For classes: how often the most probable one is right, beside how sure it is.
"""

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from credo.data import Data, held_out
from credo.diagnostics.status import Answer, Status
from credo.evaluation.checks import judged, predicted, rows_for
from credo.evaluation.coverage import SDS, coverage_of_levels, levels_of, placed, where_off
from credo.evaluation.loo import BAD_K, left_out_weights
from credo.posterior import Draws
from credo.posterior.mixture import PointEnsemble
from credo.predictive import ClassPredictive, Predictive, RegressionPredictive

LEVEL = 0.9
# What a 90% interval may hold to be called good, and what it must hold not to be called bad; of classes, how far the
# share of right labels may be from their probability.
GOOD, TOLERABLE = (0.85, 0.95), (0.80, 0.97)
GOOD_GAP, TOLERABLE_GAP = 0.05, 0.10
# Fewer rows than make this of two binomial errors cannot tell a good interval from a bad one: 35 of them.
TELLING = 0.1
# The weights of a row with k̂ above 1 have no mean; beyond these shares of rows the estimate is not to be believed.
# Below, 90% intervals of 13 fits of seven tables of 93 to 483 rows, by MCLMC, held 91.4% of left-out rows and
# 89.1% of 404 held-out ones, and log scores were within 0.33 nats of each other, with up to 37% of k̂ above 0.7.
LOST_K = 1.0
MAX_UNSURE, MAX_LOST = 0.5, 0.1
# The tail of the weights, a fifth of the draws, needs some to be fitted to.
MIN_DRAWS = 50
# More rows than this would move the error of a share, 0.7%, by less than anyone looks at; and so many numbers at once.
MAX_ROWS, MAX_NUMBERS = 2_000, 50_000_000


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What was found on rows that were not seen.

    Arguments:
        task: "regression" or "classification".
        how: the rows that were judged, in words.
        num_rows: how many.
        due: the share of targets that the interval should hold; of classes, the average confidence.
        share: what it holds; of classes, the share of right labels.
        error: the binomial standard error of the share, if what is due is true.
        below, above: the shares of targets below and above the interval; None for classes.
        log_score: log p(y | x) per row, in nats.
        where: other intervals that are off, in words.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.3)
    >>> posterior = credo.fit(model, credo.datasets.gap(20), credo.ClosedForm())
    >>> found = credo.check(posterior, held_out=credo.datasets.gap(40, seed=1)).calibration
    >>> found.num_rows, found.due, found.share
    (40, 0.9, 0.95)
    """

    task: str
    how: str
    num_rows: int
    due: float
    share: float
    error: float
    below: float | None
    above: float | None
    log_score: float
    where: str = ""

    @property
    def is_off(self) -> bool:
        """Whether the share is further from what is due than chance goes."""
        return abs(self.share - self.due) > SDS * self.error

    @property
    def status(self) -> Status:
        """Red and amber take a share that is off by more than chance; green takes rows enough to see it."""
        gap = self.share - self.due
        good, tolerable = (
            [(low - LEVEL, high - LEVEL) for low, high in (GOOD, TOLERABLE)]
            if self.task == "regression"
            else [(-GOOD_GAP, GOOD_GAP), (-TOLERABLE_GAP, TOLERABLE_GAP)]
        )
        if self.is_off and not tolerable[0] <= gap <= tolerable[1]:
            return Status.RED
        if (self.is_off and not good[0] <= gap <= good[1]) or SDS * self.error > TELLING:
            return Status.AMBER
        return Status.GREEN

    @property
    def answer(self) -> Answer:
        """To the question whether it is calibrated."""
        return Answer("calibration", self.status, self.says, mend=self._mend)

    @property
    def says(self) -> str:
        """What was found, as part of a sentence."""
        off, share = self.status is not Status.GREEN and self.is_off, f"{100 * self.share:.0f} ± {self.error:.1%}"
        if self.task == "regression":
            found = f"the {LEVEL:.0%} interval holds {share} of {self.how}"
            found += f": too {'narrow' if self.share < self.due else 'wide'}" if off else ""
            found += f", {self.below:.0%} below and {self.above:.0%} above" if off else ""
        else:
            found = f"the most probable class is right for {share} of {self.how}, "
            found += f"where {self.due:.0%} are due"
            found += f": too {'sure' if self.share < self.due else 'unsure'}" if off else ""
        if not off and SDS * self.error > TELLING:
            found += "; so few rows cannot tell a good interval from a bad one"
        return f"{found}; {self.where}" if self.where else found

    @property
    def _mend(self) -> str:
        if self.status is Status.GREEN or not self.is_off:
            return ""
        return "recalibrate on rows held back (credo.recalibrate), or compare with another method (credo compare)"


def held_out_calibration(prediction: Predictive, y: Any, how: str = "") -> Calibration:
    """Of a prediction on rows that were not seen.

    >>> from credo import from_normal
    >>> found = held_out_calibration(from_normal([0.0] * 40, 1.0), [0.5] * 34 + [2.0] * 6)
    >>> found.share, found.answer.in_words
    (0.85, 'good')
    """
    prediction, y = judged(prediction, y)
    how, log_score = how or f"{len(prediction):,} rows held out", float(np.mean(prediction.log_prob(y)))
    if isinstance(prediction, ClassPredictive):
        return _of_classes(np.asarray(prediction.probs, np.float64), prediction.targets(y), how, log_score)
    return _of_numbers(levels_of(cast(RegressionPredictive, prediction), y), how, log_score)


def left_out_calibration(posterior: Draws, data: Data) -> Calibration | str:
    """Of the rows that a posterior was fitted to, each left out in turn; or why that cannot be told."""
    rows = _some_rows(posterior, data)
    weights, k_hat, log_score = left_out_weights(posterior, rows)
    if not np.isfinite(log_score).all():
        return "some rows are impossible under some draws, so nothing can be weighed"
    unsure, lost = float(np.mean(k_hat > BAD_K)), float(np.mean(k_hat > LOST_K))
    if unsure > MAX_UNSURE or lost > MAX_LOST:
        return (
            f"rows decide the fit too much to be left out of it by weighting (Pareto k̂ above {BAD_K} for {unsure:.0%} "
            f"of them, above {LOST_K:g} for {lost:.0%})"
        )
    itself = "itself" if rows.groups is None else "its group"
    how = f"{rows.size:,} rows, each predicted without {itself} (PSIS-LOO"
    how += f", rough for {unsure:.0%} of them)" if unsure >= 0.005 else ")"
    prediction, score = predicted(posterior, rows), float(np.mean(log_score))
    if isinstance(prediction, ClassPredictive):
        probs = np.einsum("dn,dnc->nc", weights, prediction.functions)
        return _of_classes(probs, prediction.targets(rows.y), how, score)

    def left_out(y: np.ndarray) -> np.ndarray:
        return np.einsum("dn,dn...->n...", weights, prediction.cdf_by_draw(y))

    below = left_out(rows.y - 1) if prediction.is_discrete else None
    return _of_numbers(placed(left_out(rows.y), below, rows.censored), how, score)


def can_leave_out(posterior: Any) -> bool:
    """Whether a posterior is made of draws that can be weighed: those of a sampler, all of them alike."""
    return (
        isinstance(posterior, Draws)
        and not isinstance(posterior, PointEnsemble)
        and posterior.weights is None
        and posterior.provenance.compression is None
        and posterior.num_chains * posterior.num_draws >= MIN_DRAWS
    )


def _some_rows(posterior: Draws, data: Data) -> Data:
    """The rows with a target, or so many of them by chance that no array is too large."""
    rows = rows_for(posterior, data).with_labels().only_labelled()
    outputs = math.prod(rows.y.shape[1:]) if rows.y.dtype.kind == "f" else int(rows.y.max()) + 1
    num = max(1, min(MAX_ROWS, MAX_NUMBERS // (posterior.num_chains * posterior.num_draws * outputs)))
    if rows.size <= num:
        return rows
    rng = np.random.default_rng(0)
    if rows.groups is not None:
        return rows.select(held_out(rows.groups, None, rows.labelled, num / rows.size, rng))
    return rows.select(np.sort(rng.choice(rows.size, num, replace=False)))


def _of_numbers(levels: np.ndarray, how: str, log_score: float) -> Calibration:
    found = coverage_of_levels(levels, LEVEL)
    return Calibration(
        task="regression",
        how=how,
        num_rows=found.num_rows,
        due=LEVEL,
        share=found.share,
        error=found.error,
        below=found.below,
        above=found.above,
        log_score=log_score,
        where=where_off(levels, found),
    )


def _of_classes(probs: np.ndarray, labels: np.ndarray, how: str, log_score: float) -> Calibration:
    confidence, right = probs.max(axis=1), probs.argmax(axis=1) == labels
    return Calibration(
        task="classification",
        how=how,
        num_rows=len(labels),
        due=float(confidence.mean()),
        share=float(right.mean()),
        error=float(np.sqrt(np.sum(confidence * (1 - confidence))) / len(labels)),
        below=None,
        above=None,
        log_score=log_score,
    )
