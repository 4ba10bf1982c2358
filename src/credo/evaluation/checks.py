"""Checks of a prediction and its targets, before any metric is computed."""

from typing import Any

import numpy as np

from credo._blocks import each_row
from credo.data import Data, as_data, as_labels, filled, has_target
from credo.predictive import ClassPredictive, Predictive, RegressionPredictive

NEEDED = {
    Predictive: "a prediction (posterior.predict(x), credo.from_probs or credo.from_normal)",
    ClassPredictive: "the prediction of a classifier (posterior.predict(x), or credo.from_probs)",
    RegressionPredictive: "the prediction of a regression (posterior.predict(x), or credo.from_normal)",
}


def checked(predictive: Predictive, y: object, needs: type[Predictive] = Predictive) -> np.ndarray:
    """The targets, one per row, after checking that the prediction is finite, not empty, and of the type needed."""
    required(predictive, needs)
    if len(predictive) == 0:
        raise ValueError("the test set is empty; pass at least one row")
    finite(predictive)
    return predictive.targets(y)


def rows_for(posterior: Any, data: Any) -> Data:
    """Test data, with columns that have names in the order of the posterior's training."""
    return as_data(data).arranged(columns_of(posterior))


def columns_of(posterior: Any) -> tuple[str, ...] | None:
    """The names of the columns that a posterior was trained on; None where it has none, or no model."""
    return getattr(getattr(getattr(posterior, "model", None), "rows", None), "columns", None)


def predicted(posterior: Any, rows: Data, num_draws: int | None = None) -> Predictive:
    """The prediction of rows, with the noise that their precisions leave."""
    found: Any = posterior.predict(rows.x, num_draws=num_draws)
    return found if rows.precisions is None else found.with_precisions(rows.precisions)


def as_often(predictive: Predictive, data: Data) -> tuple[Predictive, np.ndarray]:
    """A prediction of data and its targets, each row as often as it was seen."""
    if data.counts is None:
        return predictive, data.outcomes
    require_whole_counts(data)
    rows = np.repeat(np.arange(data.size), data.counts.astype(int))
    return predictive[rows], data.outcomes[rows]


def require_whole_counts(data: Data) -> None:
    """Refuse data whose rows cannot be judged as often as they were seen."""
    if data.counts is not None and np.any(data.counts != np.round(data.counts)):
        raise ValueError(
            "counts are not whole numbers, and rows are judged as often as they were seen; judge on data without counts"
        )


def judged(predictive: Any, y: object) -> tuple[Any, Any]:
    """The prediction and its targets on the rows that have a target: what every metric and curve is about.

    Where none is missing, these are the arguments themselves.

    >>> from credo import from_normal
    >>> prediction, targets = judged(from_normal([1.0, 2.0, 3.0], 1.0), [1.5, None, 2.5])
    >>> len(prediction), targets.tolist()
    (2, [1.5, 2.5])
    """
    targets = np.asarray(filled(y))
    if not isinstance(predictive, Predictive) or targets.ndim == 0 or len(targets) != len(predictive):
        return predictive, y  # which `checked` refuses
    if isinstance(predictive, ClassPredictive):
        targets = as_labels(targets)
    there = has_target(targets)
    if there.all():
        return predictive, y
    if not there.any():
        raise ValueError("y has no value at all: all targets are missing; pass the target of at least one row")
    return predictive[there], targets[there]


def uncensored(predictive: Any, y: Any) -> tuple[Any, Any, Any]:
    """The prediction and its targets on the rows whose target is known, and which rows these are.

    >>> from credo import from_normal
    >>> prediction, targets, seen = uncensored(from_normal([1.0, 2.0], 1.0), np.array([[1.5, 0], [2.5, 1]]))
    >>> len(prediction), targets, seen.tolist()
    (1, array([1.5]), [True, False])
    """
    if not isinstance(predictive, RegressionPredictive):
        return predictive, y, slice(None)
    values, censored = predictive.parted(np.asarray(y))
    if censored is None:
        return predictive, y, slice(None)
    if censored.all():
        raise ValueError("y holds lower bounds only: all targets are censored, and errors need some that are not")
    return predictive[~censored], values[~censored], ~censored


def required(predictive: object, needs: type[Predictive]) -> None:
    """Refuse a prediction of another type."""
    if not isinstance(predictive, needs):
        raise TypeError(f"this needs {NEEDED[needs]}, got {type(predictive).__name__}")


def finite(predictive: Predictive) -> None:
    """Refuse a prediction with NaN or infinite values."""
    if isinstance(predictive, ClassPredictive):
        _require_finite("probabilities", predictive.probs)
    elif isinstance(predictive, RegressionPredictive):
        _require_finite("means", predictive.mean)
        _require_finite("variances", predictive.variance)


def several_classes(labels: np.ndarray) -> None:
    """Refuse labels that are all the same: they say nothing about telling classes apart."""
    if np.all(labels == labels[0]):
        raise ValueError(
            f"y holds one class only ({labels[0]}): calibration needs at least two; accuracy and nll do not"
        )


def _require_finite(what: str, values: np.ndarray) -> None:
    rows = np.flatnonzero(each_row(lambda some: ~np.isfinite(some).reshape(len(some), -1).all(1), values))
    if len(rows):
        raise ValueError(
            f"the predicted {what} of {len(rows):,} rows are not finite, first in row {rows[0]}: look at "
            "posterior.diagnostics, and at the inputs of these rows"
        )
