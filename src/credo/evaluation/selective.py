"""Does it know when it is wrong? Selective prediction, and how uncertainty relates to error.

A selective predictor answers only where it is sure. At coverage c it answers the share c of the rows with the least
uncertainty; its risk is the mean loss there (El-Yaniv and Wiener, 2010). The area under this curve is small where the
model is good *and* knows where it is not.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from credo._text import nearest
from credo.evaluation.checks import checked, judged
from credo.evaluation.metric import Measure, metric
from credo.evaluation.scores import squared_errors
from credo.predictive import ClassPredictive, Predictive

CLASS_UNCERTAINTIES = ("entropy", "mutual_information", "max_probability", "aleatoric")
REGRESSION_UNCERTAINTIES = ("variance", "epistemic", "aleatoric")


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """Risk of the answered rows at every coverage, least uncertain first.

    Arguments:
        coverage: (rows,), from 1/n to 1.
        risk: mean loss of the answered rows.
        oracle: the risk with rows ordered by their loss: no ordering is better.
        risk_name: what the loss is.
        by: the uncertainty that orders the rows.

    >>> import credo
    >>> curve = credo.evaluation.risk_coverage(credo.from_probs([[0.9, 0.1], [0.6, 0.4]]), [0, 1])
    >>> curve.coverage.tolist(), curve.risk.tolist(), curve.by
    ([0.5, 1.0], [0.0, 0.5], 'max_probability')
    """

    coverage: np.ndarray
    risk: np.ndarray
    oracle: np.ndarray
    risk_name: str
    by: str

    @property
    def area(self) -> float:
        """The mean risk over all coverages."""
        return float(np.mean(self.risk))

    @property
    def excess_area(self) -> float:
        """The area above that of the oracle, which a better uncertainty could gain."""
        return float(np.mean(self.risk) - np.mean(self.oracle))


def uncertainty(predictive: Predictive, by: str | None = None) -> np.ndarray:
    """One uncertainty per row; the total one by default.

    Arguments:
        by: for classes "entropy", "mutual_information", "max_probability" (as 1 − max p̂, the default) or "aleatoric";
            for regression "variance" (the default), "epistemic" or "aleatoric", summed over outputs.

    >>> import credo
    >>> credo.evaluation.uncertainty(credo.from_probs([[0.75, 0.25], [0.5, 0.5]])).tolist()
    [0.25, 0.5]
    """
    classes = isinstance(predictive, ClassPredictive)
    known = CLASS_UNCERTAINTIES if classes else REGRESSION_UNCERTAINTIES
    by = by or ("max_probability" if classes else "variance")
    if by == "epistemic" and classes:
        by = "mutual_information"
    if by not in known:
        raise ValueError(f"by must be one of {', '.join(known)}, got {by!r}{nearest(by, known)}")
    values = 1 - predictive.probs.max(1) if by == "max_probability" else getattr(predictive, by)
    return np.asarray(values).reshape(len(predictive), -1).sum(1)


def losses(predictive: Predictive, y: Any) -> np.ndarray:
    """The loss of each row: 1 for a wrong label, the squared error of a regression."""
    if isinstance(predictive, ClassPredictive):
        return (predictive.label != checked(predictive, y)).astype(float)
    return squared_errors(predictive, y)  # type: ignore[arg-type]


def risk_coverage(predictive: Predictive, y: Any, by: str | None = None) -> RiskCoverage:
    """The risk–coverage curve, with rows ordered by an uncertainty.

    >>> from credo import from_probs
    >>> curve = risk_coverage(from_probs([[0.9, 0.1], [0.6, 0.4]]), [0, 1])
    >>> print(curve.risk)
    [0.  0.5]
    """
    predictive, y = judged(predictive, y)
    loss = losses(predictive, y)
    order = np.argsort(uncertainty(predictive, by), kind="stable")
    answered = np.arange(1, len(loss) + 1)
    classes = isinstance(predictive, ClassPredictive)
    return RiskCoverage(
        coverage=answered / len(loss),
        risk=np.cumsum(loss[order]) / answered,
        oracle=np.cumsum(np.sort(loss)) / answered,
        risk_name="error rate" if classes else "mean squared error",
        by=by or ("max_probability" if classes else "variance"),
    )


@metric(
    "area under risk–coverage",
    better="lower",
    words="what is wrong in what is answered, if the most uncertain rows go first",
)
def risk_coverage_area(predictive: Predictive, y: Any, *, by: str | None = None) -> Measure:
    """The mean risk over all coverages.

    >>> import credo
    >>> credo.evaluation.risk_coverage_area(credo.from_probs([[0.9, 0.1], [0.6, 0.4]]), [0, 1])
    0.25
    """
    loss = losses(predictive, y)
    order = np.argsort(uncertainty(predictive, by), kind="stable")

    def measure(weights: np.ndarray) -> np.ndarray:
        weights = weights[:, order]
        answered = np.cumsum(weights, axis=1)
        risk = np.cumsum(weights * loss[order], axis=1) / np.maximum(answered, 1e-9)
        return np.sum(weights * risk, axis=1) / answered[:, -1]

    return measure


@metric(
    "correlation of uncertainty and error",
    better="higher",
    words="1 if the uncertain rows are the wrong ones, 0 if uncertainty says nothing",
)
def uncertainty_error_correlation(predictive: Predictive, y: Any, *, by: str | None = None) -> Measure:
    """Spearman's rank correlation between uncertainty and loss; nan if one of them is constant.

    >>> import credo
    >>> prediction = credo.from_probs([[0.9, 0.1], [0.7, 0.3], [0.6, 0.4]])
    >>> round(credo.evaluation.uncertainty_error_correlation(prediction, [0, 0, 1]), 3)
    0.866
    """
    first, second = (stats.rankdata(values) for values in (uncertainty(predictive, by), losses(predictive, y)))

    def measure(weights: np.ndarray) -> np.ndarray:
        total = weights.sum(1)

        def covariance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            return weights @ (a * b) / total - (weights @ a) * (weights @ b) / total**2

        # Centred ranks: the difference of two large products would lose its digits.
        a, b = first - first.mean(), second - second.mean()
        with np.errstate(divide="ignore", invalid="ignore"):
            return covariance(a, b) / np.sqrt(covariance(a, a) * covariance(b, b))

    return measure
