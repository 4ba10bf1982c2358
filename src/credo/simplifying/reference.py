"""The full posterior at some inputs, and what a smaller one loses there."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from credo import random
from credo.diagnostics.compression import Loss
from credo.predictive import ClassPredictive, Predictive, RegressionPredictive

# An epistemic sd below this share of the sd of y moves that by under one part in 10⁴: its errors are taken relative to
# this share.
SMALL_SHARE = 0.01
# Values of y for each row. log p_full − log p has a standard deviation of about √(2 nats): with 8 × 100 of them a loss
# of 0.01 nats is known to 0.005 even without the control variate below.
NUM_TARGETS = 8
# Probabilities below this have no digits in single precision.
LEAST_PROBABILITY = 1e-30


@dataclass(frozen=True, eq=False)
class Reference:
    """What the full posterior says at some inputs.

    Arguments:
        full: the full posterior.
        x: inputs in the user's units, (rows, …).
        seed: of the values of y that stand for its predictive.
        num_targets: of these for each row.
    """

    full: Any
    x: np.ndarray
    seed: int
    num_targets: int = NUM_TARGETS

    @cached_property
    def prediction(self) -> Predictive:
        """p(y | x, D) of the full posterior."""
        return self.full.predict(self.x)

    @property
    def is_classes(self) -> bool:
        """Whether y is a class label."""
        return isinstance(self.prediction, ClassPredictive)

    @cached_property
    def mean(self) -> np.ndarray:
        """E[y | x, D], or the class probabilities, (rows, output…)."""
        return mean_of(self.prediction)

    @cached_property
    def epistemic_sd(self) -> np.ndarray:
        """The sd of E[y | x, theta] over theta, (rows, output…); of classes √Σ_c Var[p_c], (rows,)."""
        return epistemic_sd_of(self.prediction)

    @cached_property
    def variance(self) -> np.ndarray:
        """Var[y | x, D] in the shape of the mean, of classes that of each indicator."""
        return self.mean * (1 - self.mean) if self.is_classes else self.prediction.variance

    @cached_property
    def least_sd(self) -> np.ndarray:
        """The epistemic sd below which errors do not count for more, in the shape of `epistemic_sd`."""
        variance = np.sum(self.variance, axis=-1) if self.is_classes else self.variance
        return np.maximum(self.epistemic_sd, SMALL_SHARE * np.sqrt(variance))

    # -- y from the full predictive ------------------------------------------------------------------------

    @cached_property
    def rows(self) -> np.ndarray:
        """The inputs, each as often as it has targets."""
        return np.repeat(self.x, self.num_targets, axis=0)

    @cached_property
    def targets(self) -> np.ndarray:
        """Values of y from the full predictive, one for each of `rows`."""
        by_sample = self.prediction.samples(random.key(self.seed), self.num_targets)
        return np.moveaxis(by_sample, 0, 1).reshape(-1, *by_sample.shape[2:])

    @cached_property
    def log_prob(self) -> np.ndarray:
        """log p_full of these targets."""
        return self.full.predict(self.rows).log_prob(self.targets)

    # -- what another loses --------------------------------------------------------------------------------

    def loss(self, posterior: Any) -> Loss:
        """What a smaller posterior loses at these inputs."""
        prediction = posterior.predict(self.x)
        errors = np.abs(epistemic_sd_of(prediction) - self.epistemic_sd) / np.where(self.least_sd > 0, self.least_sd, 1)
        total = np.mean(self.variance)
        mean = np.mean((mean_of(prediction) - self.mean) ** 2 / (total if self.is_classes else self.variance))
        return Loss(
            nats=self._class_nats(prediction) if self.is_classes else self._nats(posterior),
            mean=float(np.sqrt(mean)),
            epistemic=float(np.mean(errors)),
            epistemic_median=float(np.median(errors)),
            epistemic_90=float(np.quantile(errors, 0.9)),
        )

    def _nats(self, posterior: Any) -> float:
        """E[log p_full − log p] from samples of y, with r − 1 for r = p/p_full as control variate, whose mean is zero.

        No sample of r − 1 − log r is negative, and near r = 1 it varies far less than −log r.
        """
        log_ratio = posterior.predict(self.rows).log_prob(self.targets) - self.log_prob
        return float(np.mean(np.expm1(log_ratio) - log_ratio))

    def _class_nats(self, prediction: Any) -> float:
        """Σ_c p_full log(p_full/p) itself."""
        full, own = (np.maximum(probs, LEAST_PROBABILITY) for probs in (self.mean, mean_of(prediction)))
        return float(np.mean(np.sum(full * np.log(full / own), axis=-1)))


def mean_of(prediction: Any) -> np.ndarray:
    """The mean, or the class probabilities, in double precision."""
    answer = prediction.probs if isinstance(prediction, ClassPredictive) else prediction.mean
    return np.asarray(answer, np.float64)


def epistemic_sd_of(prediction: Any) -> np.ndarray:
    """The sd of E[y | x, theta] over theta; of classes that of all probabilities together."""
    if isinstance(prediction, RegressionPredictive):
        return np.sqrt(prediction.epistemic)
    return np.sqrt(np.sum(prediction.probs_std**2, axis=-1))
