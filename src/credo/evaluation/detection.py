"""Out-of-distribution detection: do inputs unlike the training data get more uncertainty?

Inputs from elsewhere are the positives. AUROC is the probability that one of them is more uncertain than one from the
training distribution; AUPR weighs precision; FPR95 is the share of ordinary inputs that raise a
false alarm when 95% of the foreign ones are found.
"""

from dataclasses import dataclass

import numpy as np
from sklearn import metrics

from credo._html import InNotebook
from credo.evaluation.checks import finite
from credo.evaluation.selective import uncertainty
from credo.predictive import ClassPredictive, Predictive


@dataclass(frozen=True, eq=False)
class Detection(InNotebook):
    """How well one uncertainty tells foreign inputs from ordinary ones.

    Arguments:
        by: the uncertainty.
        auroc, aupr, fpr95: see the module.
        auroc_error: standard error of the AUROC (Hanley and McNeil, 1982).
        false_positive_rate, true_positive_rate: the ROC curve.

    >>> import credo
    >>> sure, torn = credo.from_probs([[0.9, 0.1], [0.8, 0.2]]), credo.from_probs([[0.5, 0.5], [0.85, 0.15]])
    >>> found = credo.evaluation.detect(sure, torn)
    >>> found.by, found.auroc
    ('entropy', 0.75)
    """

    by: str
    auroc: float
    auroc_error: float
    aupr: float
    fpr95: float
    false_positive_rate: np.ndarray
    true_positive_rate: np.ndarray

    def __str__(self) -> str:
        return (
            f"{self.by}: AUROC {self.auroc:.3f} ± {self.auroc_error:.3f}, AUPR {self.aupr:.3f}, FPR95 {self.fpr95:.3f}"
        )


def detect(inside: Predictive, outside: Predictive, by: str | None = None) -> Detection:
    """Tell foreign inputs from ordinary ones by an uncertainty of their predictions.

    Arguments:
        inside: the prediction on inputs like the training data.
        outside: the prediction on foreign inputs.
        by: as in `uncertainty`; the total uncertainty by default.

    >>> from credo import from_probs
    >>> detect(from_probs([[0.9, 0.1], [0.8, 0.2]]), from_probs([[0.5, 0.5], [0.4, 0.6]])).auroc
    1.0
    """
    for name, prediction in (("inside", inside), ("outside", outside)):
        if len(prediction) == 0:
            raise ValueError(f"{name} holds no rows; detection needs inputs from inside and outside")
        finite(prediction)
    if type(inside) is not type(outside):
        raise TypeError(f"inside is a {type(inside).__name__} and outside a {type(outside).__name__}")
    classes = isinstance(inside, ClassPredictive)
    # The functions disagree about foreign inputs: in regression that is the epistemic part.
    by = by or ("entropy" if classes else "epistemic")
    values = np.concatenate([uncertainty(inside, by), uncertainty(outside, by)])
    foreign = np.repeat([0, 1], [len(inside), len(outside)])
    false_positive_rate, true_positive_rate, _ = metrics.roc_curve(foreign, values, drop_intermediate=False)
    auroc = float(metrics.auc(false_positive_rate, true_positive_rate))
    return Detection(
        by=by,
        auroc=auroc,
        auroc_error=_hanley_mcneil(auroc, len(outside), len(inside)),
        aupr=float(metrics.average_precision_score(foreign, values)),
        fpr95=float(false_positive_rate[np.argmax(true_positive_rate >= 0.95)]),
        false_positive_rate=false_positive_rate,
        true_positive_rate=true_positive_rate,
    )


def detections(inside: Predictive, outside: Predictive) -> dict[str, Detection]:
    """Detection by every uncertainty that suits the task.

    >>> import credo
    >>> sure, torn = credo.from_probs([[0.9, 0.1], [0.8, 0.2]]), credo.from_probs([[0.5, 0.5], [0.4, 0.6]])
    >>> {name: found.auroc for name, found in credo.evaluation.detections(sure, torn).items()}
    {'entropy': 1.0, 'mutual_information': 0.5, 'max_probability': 1.0}
    """
    classes = ("entropy", "mutual_information", "max_probability")
    kinds = classes if isinstance(inside, ClassPredictive) else ("epistemic", "variance")
    return {by: detect(inside, outside, by) for by in kinds}


def _hanley_mcneil(auroc: float, num_positive: int, num_negative: int) -> float:
    """The standard error of the area under a ROC curve."""
    twice_positive, twice_negative = auroc / (2 - auroc), 2 * auroc**2 / (1 + auroc)
    variance = (
        auroc * (1 - auroc)
        + (num_positive - 1) * (twice_positive - auroc**2)
        + (num_negative - 1) * (twice_negative - auroc**2)
    ) / (num_positive * num_negative)
    return float(np.sqrt(max(variance, 0.0)))
