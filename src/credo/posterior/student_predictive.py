"""Predictive distributions of a student.

The outputs of each row take the place of the inputs, so that all answers of a `Predictive` follow without running the
network again, and those about moments in closed form.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NoReturn

import jax
import numpy as np
from scipy.special import digamma, ndtri

from credo.data import Scaling
from credo.models.student import DirichletHead, Head, NormalHead
from credo.predictive import ClassPredictive, Predictive, RegressionPredictive, streaming
from credo.predictive.conditional import Conditional
from credo.predictive.quantiles import as_levels
from credo.typing import Array, Theta

# α₀ is sought between exp(∓25), halved to single precision: at the ends a Dirichlet is one of corners, or a point.
LOG_RANGE, NUM_BISECTIONS = 25.0, 30


@dataclass(frozen=True)
class Rows:
    """q(y | outputs): equal where the heads are, so that all students of one kind share compiled code."""

    head: Head

    def __call__(self, theta: Theta, outputs: Array) -> Conditional:
        return self.head.law(outputs)


class StudentRegressionPredictive(RegressionPredictive):
    """The marginal of numbers that a student gives: normal, its epistemic and aleatoric variance known apart."""

    conditional_of: Rows

    @cached_property
    def _moments(self) -> streaming.Moments:
        table = self._by_block(partial(_own, self.conditional_of.head))
        parts = np.split(table, 3, axis=-1)
        return streaming.Moments(np.ones(len(self)), *(part.reshape(self._target_shape) for part in parts))

    def quantile(self, level: Any) -> np.ndarray:
        """mean + std Φ⁻¹(level), with a leading axis for each axis of `level`."""
        levels = as_levels(level)
        return self.mean + self.std * ndtri(levels).reshape(levels.shape + (1,) * self.mean.ndim)

    @property
    def functions(self) -> np.ndarray:
        """Not known to a student."""
        _refuse("functions")

    @property
    def input_covariance(self) -> np.ndarray:
        """Not known to a student."""
        _refuse("a covariance between inputs")


class StudentClassPredictive(ClassPredictive):
    """The marginal of class labels that a student gives: the probabilities are Dirichlet(α₀ π), row by row."""

    @cached_property
    def probs(self) -> np.ndarray:
        """π, (data, classes)."""
        logits = self.x[:, :-1] - self.x[:, :-1].max(axis=1, keepdims=True)
        odds = np.exp(logits)
        return odds / odds.sum(axis=1, keepdims=True)

    @property
    def _share(self) -> np.ndarray:
        """r, the epistemic share of the entropy."""
        return 1 / (1 + np.exp(self.x[:, -1].astype(np.float64)))

    @cached_property
    def aleatoric(self) -> np.ndarray:
        """(1 − r) H[y]: the entropy that is left where the probabilities are known."""
        return (1 - self._share) * self.entropy

    @cached_property
    def precision(self) -> np.ndarray:
        """α₀, (data,): how many labels the knowledge of a row is worth. Low where the teacher's draws disagreed.

        It solves ψ(α₀ + 1) − Σₖ πₖ ψ(α₀ πₖ + 1) = (1 − r) H[y], whose left side rises from nothing to H[y].
        """
        probs = np.maximum(self.probs.astype(np.float64), np.finfo(np.float64).tiny)
        wanted = (1 - self._share) * -np.sum(probs * np.log(probs), axis=1)
        low, high = np.full(len(self), -LOG_RANGE), np.full(len(self), LOG_RANGE)
        for _ in range(NUM_BISECTIONS):
            middle = (low + high) / 2
            total = np.exp(middle)[:, None]
            left = digamma(total[:, 0] + 1) - np.sum(probs * digamma(total * probs + 1), axis=1)
            low, high = np.where(left < wanted, middle, low), np.where(left < wanted, high, middle)
        return np.exp((low + high) / 2)

    @property
    def probs_std(self) -> np.ndarray:
        """√(π (1 − π)/(1 + α₀)), (data, classes)."""
        return np.sqrt(self.probs * (1 - self.probs) / (1 + self.precision[:, None]))

    @property
    def functions(self) -> np.ndarray:
        """Not known to a student."""
        _refuse("functions")


def student_predictive(head: Head, outputs: np.ndarray, scaling: Scaling) -> Predictive:
    """What outputs of a student, (rows, outputs), say of y."""
    kinds: dict[type, Any] = {NormalHead: StudentRegressionPredictive, DirichletHead: StudentClassPredictive}
    return kinds[type(head)](Rows(head), {}, outputs, weights=np.ones(1), scaling=scaling)


@partial(jax.jit, static_argnums=0)
def _own(head: Head, draws: Theta, outputs: Array) -> Array:
    return head.own(outputs)


def _refuse(what: str) -> NoReturn:
    raise ValueError(
        f"a student has no {what}: it knows the law of each row, and not how rows go together; ask its teacher, or use "
        "mean, epistemic and samples(key, num), which are row by row"
    )
