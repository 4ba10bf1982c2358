"""What every metric asks of a prediction and its targets before it counts anything."""

import numpy as np

from credo.predictive import ClassPredictive, Predictive, RegressionPredictive

KINDS = {
    Predictive: "a prediction (posterior.predict(x), credo.from_probs or credo.from_normal)",
    ClassPredictive: "the prediction of a classifier (posterior.predict(x), or credo.from_probs)",
    RegressionPredictive: "the prediction of a regression (posterior.predict(x), or credo.from_normal)",
}


def checked(predictive: Predictive, y: object, needs: type[Predictive] = Predictive) -> np.ndarray:
    """The targets, one for each row of a finite, non-empty prediction of the kind that is needed."""
    required(predictive, needs)
    if len(predictive) == 0:
        raise ValueError("the test set is empty; pass at least one row")
    finite(predictive)
    return predictive.targets(y)


def required(predictive: object, needs: type[Predictive]) -> None:
    """An error where the prediction is not of the kind that is needed."""
    if not isinstance(predictive, needs):
        raise TypeError(f"this needs {KINDS[needs]}, got {type(predictive).__name__}")


def finite(predictive: Predictive) -> None:
    """An error where the prediction holds NaN or infinite values."""
    if isinstance(predictive, ClassPredictive):
        _require_finite("probabilities", predictive.probs)
    elif isinstance(predictive, RegressionPredictive):
        _require_finite("means", predictive.mean)
        _require_finite("variances", predictive.variance)


def several_classes(labels: np.ndarray) -> None:
    """An error where all labels are the same: nothing can be said of how classes are told apart."""
    if np.all(labels == labels[0]):
        raise ValueError(
            f"y holds one class only ({labels[0]}): calibration needs at least two; accuracy and nll do not"
        )


def _require_finite(what: str, values: np.ndarray) -> None:
    bad = ~np.isfinite(values)
    if np.any(bad):
        rows = np.unique(np.nonzero(bad)[0])
        raise ValueError(
            f"the predicted {what} of {len(rows):,} rows are not finite numbers, the first is row {rows[0]}: look at "
            "posterior.diagnostics, and at the inputs of these rows"
        )
