"""Predictions given as arrays: what another library or a formula has computed, for credo's metrics and plots."""

from typing import Any

import numpy as np
import numpyro.distributions as dist

from credo._precision import working_precision
from credo.data import Scaling
from credo.predictive import ClassPredictive, RegressionPredictive
from credo.predictive.conditional import Conditional
from credo.typing import Array, Theta

# Probabilities of a row may miss 1 by what single precision loses over some thousand classes.
SUM_TOLERANCE = 1e-3


def from_probs(probs: Any) -> ClassPredictive:
    """A classifier's prediction from its probabilities.

    Arguments:
        probs: (data, classes), or (draws, data, classes) where several draws or members are averaged.

    Example:
        >>> from_probs([[0.9, 0.1], [0.3, 0.7]]).label
        array([0, 1])
    """
    table = np.asarray(probs)
    table = table[None] if table.ndim == 2 else table
    if table.ndim != 3 or table.shape[2] < 2 or 0 in table.shape:
        raise ValueError(
            f"probs has shape {np.shape(probs)}; pass (data, classes) or (draws, data, classes), with a column for "
            "each of at least two classes"
        )
    # Draw by draw: such arrays can fill the memory, and a copy of one would not fit beside it.
    for draw in table:
        _check_probs(draw)
    # A row's input is its own table of answers, so that it streams like that of a network.
    rows = np.moveaxis(table.astype(working_precision(), copy=False), 0, 1)
    return ClassPredictive(_categorical, _indices(rows), rows, weights=_equal(rows), scaling=Scaling())


def from_normal(mean: Any, std: Any = None, *, covariance: Any = None) -> RegressionPredictive:
    """A regression's prediction from normal distributions, averaged over draws.

    Arguments:
        mean: (draws, data), (draws, data, outputs), or (data,) for one draw of one output.
        std: of the noise, broadcastable to `mean`.
        covariance: of the noise between outputs, broadcastable to (draws, data, outputs, outputs); in place of `std`.

    Example:
        >>> prediction = from_normal([1.0, 2.0], 0.5)
        >>> print(prediction.std)
        [0.5 0.5]
    """
    if (std is None) == (covariance is None):
        raise ValueError("pass one of std and covariance: the noise around the mean")
    means = _finite("mean", mean)
    means = means[None] if means.ndim == 1 else means
    if means.ndim not in (2, 3) or 0 in means.shape:
        raise ValueError(f"mean has shape {np.shape(mean)}; pass (draws, data) or (draws, data, outputs)")
    scaling = _scaling(means)
    means = (means - scaling.y_mean) / scaling.y_scale
    if covariance is None:
        sds = np.broadcast_to(_finite("std", std), means.shape) / scaling.y_scale
        if sds.min() <= 0:
            raise ValueError(f"std must be positive, got {sds.min():.4g}")
        conditional, table = _normal, np.stack([means, sds], axis=2)
    else:
        if means.ndim != 3:
            raise ValueError(f"a covariance needs a mean of shape (draws, data, outputs), got {np.shape(mean)}")
        unit = np.broadcast_to(scaling.y_scale, means.shape[2:])
        matrices = np.broadcast_to(_finite("covariance", covariance), (*means.shape, means.shape[2]))
        roots = _root(matrices / np.outer(unit, unit))
        conditional, table = _correlated, np.concatenate([means[..., None], roots], axis=-1)
    rows = np.moveaxis(table, 0, 1).astype(working_precision())
    return RegressionPredictive(conditional, _indices(rows), rows, weights=_equal(rows), scaling=scaling)


def _indices(rows: np.ndarray) -> Theta:
    """theta of a table is the number of the draw."""
    return {"draw": np.arange(rows.shape[1])}


def _equal(rows: np.ndarray) -> np.ndarray:
    return np.full(rows.shape[1], 1 / rows.shape[1])


def _check_probs(probs: np.ndarray) -> None:
    sums = probs.sum(-1)
    if not np.all(np.isfinite(sums)):
        _finite("probs", probs)
    if probs.min() < 0:
        raise ValueError(f"probs must lie between 0 and 1, got {probs.min():.4g} to {probs.max():.4g}")
    if np.abs(sums - 1).max() > SUM_TOLERANCE:
        worst = sums[np.abs(sums - 1).argmax()]
        raise ValueError(f"probs of each row must add up to 1, and one adds up to {worst:.4g}; pass softmax outputs")


def _categorical(theta: Theta, x: Array) -> Conditional:
    return dist.CategoricalProbs(x[:, theta["draw"]])


def _normal(theta: Theta, x: Array) -> Conditional:
    chosen = x[:, theta["draw"]]
    normal = dist.Normal(chosen[:, 0], chosen[:, 1])
    return normal.to_event(1) if x.ndim == 4 else normal


def _correlated(theta: Theta, x: Array) -> Conditional:
    chosen = x[:, theta["draw"]]
    return dist.MultivariateNormal(chosen[..., 0], scale_tril=chosen[..., 1:])


def _finite(name: str, values: Any) -> np.ndarray:
    array = np.asarray(values, np.float64)
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} holds {np.sum(~np.isfinite(array)):,} values that are not finite numbers")
    return array


def _scaling(means: np.ndarray) -> Scaling:
    """Single precision is kept for the differences between predictions: their common level is set aside."""
    spread = means.std(axis=(0, 1))
    return Scaling(y_mean=means.mean(axis=(0, 1)), y_scale=np.where(spread > 0, spread, 1.0))


def _root(covariance: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        raise ValueError("covariance must be symmetric and positive definite for each row") from None
