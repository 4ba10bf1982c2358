"""Scores of rows: what a label would be worth, from a prediction on the pool alone.

Paper, "Advantages of Bayesian methods for deep learning", active learning: what the model is uncertain about for want
of data (epistemic uncertainty) is asked first.
"""

import math
from typing import Any

import numpy as np

from credo.predictive import ClassPredictive, Predictive, RegressionPredictive

# A variance that float32 cannot tell from none.
LEAST_VARIANCE = 1e-30

# -- scores of numbers ----------------------------------------------------------------------------------------------


def variance(predictive: Predictive) -> np.ndarray:
    """tr Cov[y | x, D]: for classes, of their probabilities over the posterior, Σ_c Var_theta p(c | x, theta).

    >>> import credo
    >>> credo.acquisitions.variance(credo.from_normal([0.0, 0.0], [0.5, 1.0])).round(2).tolist()
    [0.25, 1.0]
    """
    if isinstance(predictive, ClassPredictive):
        return np.sum(predictive.probs_std**2, axis=1)
    return _numbers(predictive, "variance").variance.reshape(len(predictive), -1).sum(1)


def largest_eigenvalue(predictive: Predictive) -> np.ndarray:
    """The largest eigenvalue of Cov[y | x, D]: the variance along the direction that is known least.

    >>> import credo
    >>> credo.acquisitions.largest_eigenvalue(credo.from_normal([[[0.0, 0.0]]], [[[1.0, 2.0]]])).round(2).tolist()
    [4.0]
    """
    return np.linalg.eigvalsh(_covariance(predictive, "largest_eigenvalue"))[:, -1]


def log_det(predictive: Predictive) -> np.ndarray:
    """log det Cov[y | x, D]: up to a constant, twice the entropy of a normal with that covariance.

    >>> import credo
    >>> credo.acquisitions.log_det(credo.from_normal([[[0.0, 0.0]]], [[[1.0, 2.0]]])).round(2).tolist()  # log(1 · 4)
    [1.39]
    """
    return np.linalg.slogdet(_covariance(predictive, "log_det"))[1]


# -- scores of classes ----------------------------------------------------------------------------------------------


def entropy(predictive: Predictive) -> np.ndarray:
    """H[y | x, D]: all uncertainty, that of overlapping classes included. Of numbers, that of a normal as wide.

    >>> import credo
    >>> print(credo.acquisitions.entropy(credo.from_probs([[0.5, 0.5], [0.9, 0.1]])).round(2))
    [0.69 0.33]
    """
    if isinstance(predictive, ClassPredictive):
        return predictive.entropy
    num = _covariance(predictive, "entropy").shape[1]
    return 0.5 * (log_det(predictive) + num * math.log(2 * math.pi * math.e))


def variation_ratios(predictive: Predictive) -> np.ndarray:
    """1 − max_c p(c | x, D): the share of the posterior that is not with the most probable class.

    >>> import credo
    >>> credo.acquisitions.variation_ratios(credo.from_probs([[0.75, 0.25], [0.5, 0.5]])).tolist()
    [0.25, 0.5]
    """
    return 1 - _classes(predictive, "variation_ratios").probs.max(axis=1)


def margin(predictive: Predictive) -> np.ndarray:
    """−(p₁ − p₂) of the two most probable classes.

    >>> import credo
    >>> credo.acquisitions.margin(credo.from_probs([[0.75, 0.25], [0.5, 0.5]])).tolist()
    [-0.5, 0.0]
    """
    probs = np.sort(_classes(predictive, "margin").probs, axis=1)
    return probs[:, -2] - probs[:, -1]


def bald(predictive: Predictive) -> np.ndarray:
    """I[y; theta | x, D] = H[y | x, D] − E_theta H[y | x, theta]: what a label would tell about the network.

    Of numbers it is ½ log(det Cov[y] / det noise), as if their laws were normal. Houlsby et al., "Bayesian active
    learning for classification and preference learning" (2011).

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.3)
    >>> posterior = credo.fit(model, credo.datasets.gap(20), credo.ClosedForm())
    >>> near, far = credo.acquisitions.bald(posterior.predict([[0.5], [3.0]]))
    >>> bool(far > near)  # a label far from all others tells more
    True
    """
    if isinstance(predictive, ClassPredictive):
        return predictive.mutual_information
    noise = _numbers(predictive, "bald").aleatoric.reshape(len(predictive), -1)
    if noise.shape[1] == 1:
        epistemic = predictive.epistemic.reshape(len(predictive))
        return 0.5 * np.log1p(epistemic / np.maximum(noise[:, 0], LEAST_VARIANCE))
    return 0.5 * (log_det(predictive) - np.log(np.maximum(noise, LEAST_VARIANCE)).sum(1))


def _covariance(predictive: Predictive, name: str) -> np.ndarray:
    """Between the outputs of each row, (rows, outputs, outputs)."""
    numbers = _numbers(predictive, name)
    return numbers.covariance if numbers.mean.ndim > 1 else numbers.variance[:, None, None]


def _numbers(predictive: Predictive, name: str) -> Any:
    if isinstance(predictive, RegressionPredictive):
        return predictive
    raise ValueError(f"acquisition {name!r} is for numbers, and the model predicts classes; take 'bald' or 'entropy'")


def _classes(predictive: Predictive, name: str) -> ClassPredictive:
    if isinstance(predictive, ClassPredictive):
        return predictive
    raise ValueError(f"acquisition {name!r} is for classes, and the model predicts numbers; take 'bald' or 'variance'")
