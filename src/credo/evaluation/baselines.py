"""What is to be beaten: predictions that know nothing of x, or only straight lines in it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import BayesianRidge, LogisticRegression

from credo.data import Data, is_observed, require_equal_precisions, require_uncensored
from credo.evaluation.evaluate import Scores, evaluate
from credo.predictive import Predictive
from credo.predictive.tabulated import from_normal, from_probs


def baselines(train: Data, test: Data, **options: Any) -> dict[str, Scores]:
    """The scores on a test set of two predictions that are made from the training set alone.

        constant    N(mean, variance) of the training targets; of classes their shares, (nₖ + 1) / (n + K)
        linear      Bayesian linear regression, whose prior and noise are those of greatest evidence (MacKay, 1992);
                    of classes logistic regression, with a prior N(0, 1) of its weights

    Inputs are standardised by the training set. A score that is not better than these has learned nothing, or nothing
    that a line does not say.

    Arguments:
        train: the rows that the posterior was fitted to.
        test: the rows that it is judged on, with columns like those.
        options: `num_resamples` and `seed` of `credo.evaluate`.

    >>> x = np.linspace(-1, 1, 40)
    >>> found = baselines(Data(x[::2], 2 * x[::2]), Data(x[1::2], 2 * x[1::2]), num_resamples=0)
    >>> [f"{name} {scores['rmse'].value:.1f}" for name, scores in found.items()]
    ['constant 1.2', 'linear 0.0']
    """
    for rows in (train, test):
        require_uncensored(rows, "a baseline")
        require_equal_precisions(rows, "a baseline")
    known, asked = train.with_labels().only_labelled(), test.with_labels()
    classes = known.y.dtype.kind in "iu"
    inputs = [np.asarray(rows.x, np.float64).reshape(rows.size, -1) for rows in (known, asked)]
    mean, scale = inputs[0].mean(axis=0), inputs[0].std(axis=0)
    x, new = ((one - mean) / np.where(scale > 0, scale, 1.0) for one in inputs)
    made: tuple[Callable[..., Predictive], ...] = (_normal, _linear)
    if classes:
        num_classes = len(train.classes or ()) or int(max(known.y.max(), asked.y.max())) + 1
        made = (partial(_shares, num_classes), partial(_logistic, num_classes))
    return {
        name: evaluate(predict(x, known.y, new), asked.y, **options)
        for name, predict in zip(("constant", "linear"), made, strict=True)
    }


def _normal(x: np.ndarray, y: np.ndarray, new: np.ndarray) -> Predictive:
    shape = (1, len(new), *y.shape[1:])
    return from_normal(np.broadcast_to(np.nanmean(y, axis=0), shape), np.broadcast_to(_spread(y), shape))


def _spread(y: np.ndarray) -> np.ndarray:
    """The sd of the targets; that of one value has no scale, and gets one that it is not certain in."""
    spread = np.nanstd(y, axis=0)
    return np.where(spread > 0, spread, 1.0)


def _linear(x: np.ndarray, y: np.ndarray, new: np.ndarray) -> Predictive:
    """A line for each output, from the rows that have it."""
    outputs = y.reshape(len(y), -1).T
    there = [np.asarray(is_observed(output)) for output in outputs]
    fits = [BayesianRidge().fit(x[rows], output[rows]) for rows, output in zip(there, outputs, strict=True)]
    mean, std = np.moveaxis(np.stack([fit.predict(new, return_std=True) for fit in fits], axis=-1), 0, 0)
    shape = (1, len(new), *y.shape[1:])
    return from_normal(mean.reshape(shape), std.reshape(shape))


def _shares(num_classes: int, x: np.ndarray, y: np.ndarray, new: np.ndarray) -> Predictive:
    shares = (np.bincount(y, minlength=num_classes) + 1) / (len(y) + num_classes)
    return from_probs(np.tile(shares, (len(new), 1)))


def _logistic(num_classes: int, x: np.ndarray, y: np.ndarray, new: np.ndarray) -> Predictive:
    seen = np.unique(y)
    if len(seen) == 1:
        return _shares(num_classes, x, y, new)
    probs = np.zeros((len(new), num_classes))
    probs[:, seen] = LogisticRegression(max_iter=1000).fit(x, y).predict_proba(new)
    return from_probs(probs)
