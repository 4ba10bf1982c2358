"""Split conformal prediction: sets that hold y with a chosen probability, however wrong the model is.

A score s(x, y) says how badly y fits the prediction at x. With its k-th smallest value on n held-out rows,

    C(x) = {y : s(x, y) ≤ s₍ₖ₎},   k = ⌈(n + 1) level⌉,   level ≤ P(y ∈ C(x)) ≤ level + 1/(n + 1)

(Vovk et al., 2005; Lei et al., 2018). The lower bound needs rows that are exchangeable with those to come, and nothing
else; the upper one also needs scores without ties. The probability is over the held-out rows too, and an average over
x: the level is not promised at each x. A good posterior makes the sets small where they can be.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from credo._checks import require_fraction
from credo._text import nearest
from credo.data import Data, as_inputs, require_equal_precisions, require_uncensored
from credo.evaluation.checks import checked, columns_of, rows_for
from credo.predictive import ClassPredictive, RegressionPredictive

# (n + 1)·level is often a whole number; rounding may put it this much above.
ROUNDING = 1e-9

Band = tuple[np.ndarray, np.ndarray, np.ndarray]
ClassScores = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Conformal:
    """A posterior with sets that hold y with probability `level`. See `conformal`.

    Arguments:
        posterior: any posterior.
        score: "scaled" or "quantile" for regression, "adaptive" or "threshold" for classes.
        level: probability that y is in its set.
        threshold: the greatest score of a y in the set.
        num_data: n, the number of held-out rows.
        seed: of the randomised score "adaptive".

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.3)
    >>> posterior = credo.fit(model, credo.datasets.gap(20), credo.ClosedForm())
    >>> sets = credo.conformal(posterior, credo.datasets.gap(100, seed=1), level=0.9)
    >>> low, high = sets.interval([[0.0]])
    >>> print(sets.level, (high - low).round(1))
    0.9 [0.9]
    """

    posterior: Any
    score: str
    level: float
    threshold: float
    num_data: int
    seed: int = 0

    def interval(self, x: Any) -> tuple[np.ndarray, np.ndarray]:
        """(lower, upper) of each row, (data, output…); several outputs get a box that holds the whole vector."""
        if self.score not in BANDS:
            raise TypeError(f"the score {self.score!r} is for classes, which have no interval; use labels(x)")
        low, high, unit = BANDS[self.score](self.posterior.predict(self._inputs(x)), self.level)
        # A negative threshold shrinks intervals that were too wide, at most to a point.
        middle = (low + high) / 2
        return np.minimum(low - self.threshold * unit, middle), np.maximum(high + self.threshold * unit, middle)

    def labels(self, x: Any) -> np.ndarray:
        """Which classes are in the set of each row, a boolean (data, classes)."""
        if self.score not in CLASS_SCORES:
            raise TypeError(f"the score {self.score!r} is for regression, which has no labels; use interval(x)")
        inputs = self._inputs(x)
        scores = CLASS_SCORES[self.score](self.posterior.predict(inputs).probs, _shares(inputs, self.seed))
        return scores <= self.threshold

    def _inputs(self, x: Any) -> np.ndarray:
        return as_inputs(x, columns=columns_of(self.posterior))

    def coverage(self, x: Any, y: Any) -> float:
        """Share of rows, with all their targets, whose y is in its set: on new rows `level`, up to sampling error."""
        data = _complete(self.posterior, (x, y))
        return float(np.mean(_scores(self.posterior, data, self.score, self.level, self.seed) <= self.threshold))

    def mean_size(self, x: Any) -> float | np.ndarray:
        """Average number of classes in a set, or average width of the interval of each output: less says more."""
        if self.score in CLASS_SCORES:
            return float(self.labels(x).sum(axis=1).mean())
        lower, upper = self.interval(x)
        return np.mean(upper - lower, axis=0)


def conformal(
    posterior: Any,
    data: Data | tuple[ArrayLike, ArrayLike],
    *,
    level: float = 0.9,
    score: str | None = None,
    seed: int = 0,
) -> Conformal:
    """Prediction sets on top of any posterior, with a guarantee for every number of held-out rows.

    Arguments:
        posterior: anything with `predict(x)`.
        data: rows that it was not trained on, `credo.Data` or (x, y); those that miss a target are left out. Sets are
            for what the posterior predicts: with noisy labels, `posterior.about("y")` predicts what is seen.
        level: probability that y is in its set.
        score: for regression "scaled", |y − mean|/std, or "quantile", max(q_low − y, y − q_high) with the central
            interval of probability `level` (Romano et al., 2019); the largest over outputs counts, so that the box
            holds all of them at once. For classes "adaptive", the probability of the classes before y in order of p̂ and
            a random share of y's own (Romano et al., 2020), or "threshold", 1 − p̂(y). The first of each is the default.
        seed: of the random share.

    >>> from types import SimpleNamespace
    >>> from credo.predictive.tabulated import from_normal
    >>> posterior = SimpleNamespace(predict=lambda x: from_normal(x[:, 0], 0.1))
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 1))
    >>> y = x[:, 0] + rng.normal(size=2000)
    >>> sets = conformal(posterior, (x[:1000], y[:1000]), level=0.9)
    >>> print(round(sets.coverage(x[1000:], y[1000:]), 1))
    0.9
    """
    require_fraction(level=level)
    held_out = _complete(posterior, data)
    rank = _rank(held_out.size, level)
    if rank > held_out.size:
        needed = math.ceil(level / (1 - level) - ROUNDING)
        raise ValueError(f"a level of {level:g} needs at least {needed:,} held-out rows, got {held_out.size:,}")
    if score is None:
        score = "adaptive" if isinstance(posterior.predict(held_out.x[:1]), ClassPredictive) else "scaled"
    threshold = np.sort(_scores(posterior, held_out, score, level, seed))[rank - 1]
    return Conformal(posterior, score, level, float(threshold), held_out.size, seed)


def _complete(posterior: Any, data: Any) -> Data:
    """The rows with all their targets: the greatest score of some outputs would say nothing of the others."""
    rows = rows_for(posterior, data).with_labels()
    require_uncensored(rows, "credo.conformal")
    require_equal_precisions(rows, "credo.conformal")
    whole = rows.observed.reshape(rows.size, -1).all(axis=1)
    if not whole.any():
        raise ValueError(f"data has {rows.size:,} rows, and each misses some of its targets; pass rows that have all")
    return rows if whole.all() else rows.select(whole)


def _rank(num: int, level: float) -> int:
    """k = ⌈(n + 1) level⌉: a new score is equally likely to have each of the n + 1 ranks."""
    return math.ceil((num + 1) * level - ROUNDING)


def _scores(posterior: Any, data: Data, score: str, level: float, seed: int) -> np.ndarray:
    """s(x, y) of each row, (data,)."""
    predictive = posterior.predict(data.x)
    y = checked(predictive, data.y)
    known = CLASS_SCORES if isinstance(predictive, ClassPredictive) else BANDS
    if score not in known:
        names = " or ".join(map(repr, known))
        raise ValueError(f"score is {score!r}{nearest(score, known)}; for {type(predictive).__name__} it is {names}")
    if isinstance(predictive, ClassPredictive):
        every = CLASS_SCORES[score](predictive.probs, _shares(data.x, seed))
        return np.take_along_axis(every, y[:, None], axis=1)[:, 0]
    low, high, unit = BANDS[score](predictive, level)
    if np.any(np.asarray(unit) <= 0):
        raise ValueError("the predicted standard deviation of some rows is zero: their residuals cannot be scaled")
    scores = np.maximum(low - y, y - high) / unit
    return scores.reshape(len(scores), -1).max(axis=1)


# -- scores ------------------------------------------------------------------------------------------------


def _scaled(predictive: RegressionPredictive, level: float) -> Band:
    return predictive.mean, predictive.mean, predictive.std


def _quantile(predictive: RegressionPredictive, level: float) -> Band:
    low, high = predictive.interval(level)
    # Outputs in different units must be made comparable before the largest is picked; a single one keeps its unit.
    return low, high, np.ones_like(low) if low.ndim == 1 else high - low


def _adaptive(probs: np.ndarray, shares: np.ndarray) -> np.ndarray:
    order = np.argsort(-probs, axis=1, kind="stable")
    ordered = np.take_along_axis(probs, order, axis=1).astype(np.float64)
    scores = np.cumsum(ordered, axis=1) - (1 - shares[:, None]) * ordered
    return np.take_along_axis(scores, np.argsort(order, axis=1), axis=1)


def _threshold(probs: np.ndarray, shares: np.ndarray) -> np.ndarray:
    return 1 - probs.astype(np.float64)


def _shares(x: np.ndarray, seed: int) -> np.ndarray:
    """A number in [0, 1) for each row, (data,), from a hash of the row itself.

    So the score depends on (x, y) only, and a row gets the same set whatever it is predicted with. If numbers were
    drawn in order, rows predicted one by one would all get the same one, and the guarantee would be lost.
    """
    rows = np.ascontiguousarray(x, np.float64)
    digests = [blake2b(row.tobytes(), digest_size=8, key=str(seed).encode()).digest() for row in rows]
    return np.frombuffer(b"".join(digests), np.uint64) / 2.0**64


# low, high and unit, each (data, output…): the score is max(low − y, y − high) / unit.
BANDS: dict[str, Callable[[RegressionPredictive, float], Band]] = {"scaled": _scaled, "quantile": _quantile}
# Scores of all classes, (data, classes), from their probabilities and a random share for each row.
CLASS_SCORES: dict[str, ClassScores] = {"adaptive": _adaptive, "threshold": _threshold}
