"""Recalibrated classifiers: maps of the marginal class probabilities.

p' ∝ p^(1/T),   p'ₖ ∝ exp(aₖ log pₖ + bₖ)                       Guo et al. (2017)
p'ₖ ∝ the isotonic regression of [y = k] on pₖ                  Zadrozny and Elkan (2002)
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from scipy import optimize
from scipy.special import log_softmax, logsumexp
from sklearn.isotonic import IsotonicRegression

from credo.evaluation.checks import checked, judged, required, several_classes
from credo.evaluation.mapped import Mapped
from credo.predictive import ClassPredictive
from credo.typing import Key

# Single precision rounds smaller probabilities to 0.
LEAST_PROBABILITY = float(np.finfo(np.float32).tiny)
# Where every label is right the best temperature is 0, and where labels are noise it is infinite.
TEMPERATURES = (0.01, 100.0)
# A normal prior of sd 10 around the identity: weaker than one row, but enough where labels leave a direction open.
RIDGE = 0.01


class ClassMap(ABC):
    """A map of class probabilities to better ones."""

    @abstractmethod
    def log_probs(self, probs: np.ndarray) -> np.ndarray:
        """log p' of marginal probabilities p, both (data, classes)."""

    def __call__(self, predictive: ClassPredictive) -> "RecalibratedClasses":
        required(predictive, ClassPredictive)
        return RecalibratedClasses(predictive, self)


@dataclass(frozen=True)
class Temperature(ClassMap):
    """p' ∝ p^(1/T): less confident for T > 1, more for T < 1; the label never changes.

    >>> from credo.predictive.tabulated import from_probs
    >>> map = Temperature.fit(from_probs([[0.99, 0.01]] * 4), [0, 0, 0, 1])
    >>> print(map(from_probs([[0.99, 0.01]])).probs.round(2))
    [[0.75 0.25]]
    """

    temperature: float

    @classmethod
    def fit(cls, predictive: ClassPredictive, y: object) -> Self:
        """Find the T of least negative log-likelihood, which is convex in 1/T."""
        labels, logs = _labels_and_logs(predictive, y)
        chosen = np.take_along_axis(logs, labels[:, None], axis=1)[:, 0]

        def loss(log_temperature: float) -> float:
            sharpness = math.exp(-log_temperature)
            return float(np.mean(logsumexp(sharpness * logs, axis=1) - sharpness * chosen))

        best = optimize.minimize_scalar(loss, bounds=np.log(TEMPERATURES), method="bounded", options={"xatol": 1e-8})
        return cls(math.exp(best.x))

    def log_probs(self, probs: np.ndarray) -> np.ndarray:
        return log_softmax(_logs(probs) / self.temperature, axis=1)


@dataclass(frozen=True, eq=False)
class VectorScaling(ClassMap):
    """p'ₖ ∝ exp(aₖ log pₖ + bₖ): a temperature and a shift for every class.

    Arguments:
        scales: a, (classes,).
        shifts: b, (classes,).

    >>> import credo
    >>> map = credo.evaluation.VectorScaling.fit(credo.from_probs([[0.99, 0.01]] * 4), [0, 0, 0, 1])
    >>> print(map(credo.from_probs([[0.99, 0.01]])).probs.round(2))
    [[0.75 0.25]]
    """

    scales: np.ndarray
    shifts: np.ndarray

    @classmethod
    def fit(cls, predictive: ClassPredictive, y: object) -> Self:
        """Minimise the negative log-likelihood plus λ/2 (‖a − 1‖² + ‖b‖²), from the identity."""
        labels, logs = _labels_and_logs(predictive, y)
        num, num_classes = logs.shape
        happened = np.eye(num_classes)[labels]
        identity = np.repeat([1.0, 0.0], num_classes)

        def loss(both: np.ndarray) -> tuple[float, np.ndarray]:
            new = log_softmax(both[:num_classes] * logs + both[num_classes:], axis=1)
            excess = np.exp(new) - happened
            away = both - identity
            value = -np.sum(new * happened) + RIDGE / 2 * away @ away
            gradient = np.concatenate([np.sum(excess * logs, axis=0), np.sum(excess, axis=0)]) + RIDGE * away
            return value / num, gradient / num

        settings = {"maxiter": 10_000, "ftol": 1e-14, "gtol": 1e-8}
        best = optimize.minimize(loss, identity, jac=True, method="L-BFGS-B", options=settings).x
        return cls(best[:num_classes], best[num_classes:])

    def log_probs(self, probs: np.ndarray) -> np.ndarray:
        _same_classes(probs, len(self.scales))
        return log_softmax(self.scales * _logs(probs) + self.shifts, axis=1)


@dataclass(frozen=True, eq=False)
class IsotonicClasses(ClassMap):
    """One class against the rest by isotonic regression of [y = k] on pₖ, then normalised.

    A class that is absent from some rows would get the probability 0 there. The rule of succession gives 1/(m + 2) for
    m such rows, never below 1/(n + 2) for n rows in all: the least probability before normalising.

    Arguments:
        curves: for each class (for two: of class 1 alone) pₖ at the knots and the probabilities there, (2, knots).
        num_classes: of the prediction.

    >>> import credo
    >>> held_out = credo.from_probs([[0.6, 0.4]] * 4 + [[0.1, 0.9]] * 4)
    >>> map = credo.evaluation.IsotonicClasses.fit(held_out, [0, 0, 0, 1, 1, 1, 1, 0])
    >>> print(map(credo.from_probs([[0.6, 0.4]])).probs.round(2))
    [[0.75 0.25]]
    """

    curves: tuple[np.ndarray, ...]
    num_classes: int

    @classmethod
    def fit(cls, predictive: ClassPredictive, y: object) -> Self:
        """Fit one regression for each class."""
        predictive, y = judged(predictive, y)
        labels, _ = _labels_and_logs(predictive, y)
        probs, least = np.asarray(predictive.probs, np.float64), 1 / (len(labels) + 2)
        num_classes = probs.shape[1]

        def curve(k: int) -> np.ndarray:
            fitted = IsotonicRegression(y_min=least, y_max=1 - least).fit(probs[:, k], labels == k)
            return np.stack([fitted.X_thresholds_, fitted.y_thresholds_])

        return cls(tuple(map(curve, [1] if num_classes == 2 else range(num_classes))), num_classes)

    def log_probs(self, probs: np.ndarray) -> np.ndarray:
        _same_classes(probs, self.num_classes)
        if self.num_classes == 2:
            second = np.interp(probs[:, 1], *self.curves[0])
            return np.log(np.stack([1 - second, second], axis=1))
        each = np.stack([np.interp(probs[:, k], *curve) for k, curve in enumerate(self.curves)], axis=1)
        return np.log(each / each.sum(axis=1, keepdims=True))


class RecalibratedClasses(Mapped, ClassPredictive):
    """Classes with new marginal probabilities; `probs_std` stays that of the draws."""

    @cached_property
    def _log_probs(self) -> np.ndarray:
        return self.map.log_probs(self.base.probs)

    @property
    def probs(self) -> np.ndarray:
        """p' = map(p̂), (data, classes)."""
        return np.exp(self._log_probs)

    @property
    def entropy(self) -> np.ndarray:
        """H of the new probabilities."""
        return -np.sum(self.probs * self._log_probs, axis=1)

    @property
    def mutual_information(self) -> np.ndarray:
        """As for the draws, capped at the entropy: a map changes confidence, not what the draws disagree about."""
        return np.minimum(self.base.mutual_information, self.entropy)

    @property
    def aleatoric(self) -> np.ndarray:
        """entropy − mutual_information."""
        return self.entropy - self.mutual_information

    def log_prob(self, y: Any) -> np.ndarray:
        """log p'(y) of each row."""
        return np.take_along_axis(self._log_probs, self.targets(y)[:, None], axis=1)[:, 0]

    def samples(self, key: Key, num: int) -> np.ndarray:
        """`num` labels for each row from the new probabilities, (num, data)."""
        if num < 1:
            raise ValueError(f"num must be at least 1, got {num}")
        self._refuse_if_large(num, "samples", ())
        return np.asarray(jax.random.categorical(key, jnp.asarray(self._log_probs), shape=(num, len(self))))


def _logs(probs: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(np.asarray(probs, np.float64), LEAST_PROBABILITY))


def _labels_and_logs(predictive: ClassPredictive, y: object) -> tuple[np.ndarray, np.ndarray]:
    predictive, y = judged(predictive, y)
    labels = checked(predictive, y, ClassPredictive)
    several_classes(labels)
    return labels, _logs(predictive.probs)


def _same_classes(probs: np.ndarray, num_classes: int) -> None:
    if probs.shape[1] != num_classes:
        raise ValueError(f"the map was fitted to {num_classes} classes, but the prediction has {probs.shape[1]}")
