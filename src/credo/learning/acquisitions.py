"""Acquisitions: which rows of a pool are worth a label, by what a posterior says of them.

Paper, "Advantages of Bayesian methods for deep learning", active learning: what the model is uncertain about for want
of data (epistemic uncertainty) is asked first. Each acquisition scores every row on its own; `batch_bald` also looks at
what the rows of a batch tell together. No two rows of a batch hold the same, and ties are broken at random.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from credo._text import nearest
from credo.predictive import ClassPredictive, Predictive, RegressionPredictive

# Of each posterior so many functions are asked what they say of the pool, unless an acquisition is told otherwise.
NUM_DRAWS = 100
# A variance that float32 cannot tell from none.
LEAST_VARIANCE = 1e-30


class Chosen(NamedTuple):
    """The rows to ask about, best first, and the score of each row of the pool on its own, (rows,)."""

    rows: np.ndarray
    scores: np.ndarray


@dataclass(frozen=True)
class Acquisition(ABC):
    """What a label is worth, row by row, and which rows to ask about."""

    num_draws: int = field(default=NUM_DRAWS, kw_only=True)

    @abstractmethod
    def choose(
        self, posterior: Any, x: np.ndarray, num: int, *, allowed: np.ndarray, rng: np.random.Generator
    ) -> Chosen:
        """At most `num` rows; fewer where fewer are allowed, or where they hold the same.

        Arguments:
            posterior: whatever predicts.
            x: the pool, in the user's units, (rows, …).
            allowed: which rows may be asked about, (rows,).
            rng: breaks ties, and makes random choices.
        """


@dataclass(frozen=True)
class Scored(Acquisition):
    """The rows of the highest scores.

    Arguments:
        score: from a prediction on the pool to a number for each row, the higher the better.
        num_draws: of theta, that the prediction averages.
    """

    score: Callable[[Predictive], Any]

    def choose(
        self, posterior: Any, x: np.ndarray, num: int, *, allowed: np.ndarray, rng: np.random.Generator
    ) -> Chosen:
        scores = checked(self.score(posterior.predict(x, num_draws=self.num_draws)), len(x), self.score)
        return Chosen(best(scores, x, num, allowed=allowed, rng=rng), scores)


@dataclass(frozen=True)
class Random(Acquisition):
    """Rows at random: what every other acquisition has to beat."""

    def choose(
        self, posterior: Any, x: np.ndarray, num: int, *, allowed: np.ndarray, rng: np.random.Generator
    ) -> Chosen:
        scores = rng.random(len(x))
        return Chosen(best(scores, x, num, allowed=allowed, rng=rng), scores)


def best(scores: np.ndarray, x: np.ndarray, num: int, *, allowed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The allowed rows of the highest scores, the best first, each content once; equal scores in a random order.

    >>> rng = np.random.default_rng(0)
    >>> best(np.array([1.0, 3.0, 3.0]), np.array([[0.0], [1.0], [1.0]]), 3, allowed=np.full(3, True), rng=rng).size
    2
    """
    found: dict[bytes, int] = {}
    for row in np.lexsort((rng.permutation(len(scores)), -scores)):
        if len(found) == num:
            break
        if allowed[row]:
            found.setdefault(x[row].tobytes(), int(row))
    return np.array(list(found.values()), np.int64)


def checked(scores: Any, num_rows: int, function: Any) -> np.ndarray:
    """Scores as finite numbers, one for each row."""
    found = np.asarray(scores)
    if found.shape != (num_rows,) or found.dtype.kind not in "biuf" or not np.isfinite(found).all():
        name = getattr(function, "__name__", repr(function))
        what = f"{found.dtype} of shape {found.shape}" if found.shape != (num_rows,) else "not all finite numbers"
        raise ValueError(f"acquisition {name!r} gave {what}; return a finite number for each of the {num_rows} rows")
    return found.astype(np.float64)


# -- scores of numbers ----------------------------------------------------------------------------------------------


def variance(predictive: Predictive) -> np.ndarray:
    """tr Cov[y | x, D]: for classes, of their probabilities over the posterior, Σ_c Var_theta p(c | x, theta)."""
    if isinstance(predictive, ClassPredictive):
        return np.sum(predictive.probs_std**2, axis=1)
    return _numbers(predictive, "variance").variance.reshape(len(predictive), -1).sum(1)


def largest_eigenvalue(predictive: Predictive) -> np.ndarray:
    """The largest eigenvalue of Cov[y | x, D]: the variance along the direction that is known least."""
    return np.linalg.eigvalsh(_covariance(predictive, "largest_eigenvalue"))[:, -1]


def log_det(predictive: Predictive) -> np.ndarray:
    """log det Cov[y | x, D]: up to a constant, twice the entropy of a normal with that covariance."""
    return np.linalg.slogdet(_covariance(predictive, "log_det"))[1]


# -- scores of classes ----------------------------------------------------------------------------------------------


def entropy(predictive: Predictive) -> np.ndarray:
    """H[y | x, D]: all uncertainty, that of overlapping classes included. Of numbers, that of a normal as wide."""
    if isinstance(predictive, ClassPredictive):
        return predictive.entropy
    num = _covariance(predictive, "entropy").shape[1]
    return 0.5 * (log_det(predictive) + num * math.log(2 * math.pi * math.e))


def variation_ratios(predictive: Predictive) -> np.ndarray:
    """1 − max_c p(c | x, D): the share of the posterior that is not with the most probable class."""
    return 1 - _classes(predictive, "variation_ratios").probs.max(axis=1)


def margin(predictive: Predictive) -> np.ndarray:
    """−(p₁ − p₂) of the two most probable classes."""
    probs = np.sort(_classes(predictive, "margin").probs, axis=1)
    return probs[:, -2] - probs[:, -1]


def bald(predictive: Predictive) -> np.ndarray:
    """I[y; theta | x, D] = H[y | x, D] − E_theta H[y | x, theta]: what a label would tell about the network.

    Of numbers it is ½ log(det Cov[y] / det noise), as if their laws were normal. Houlsby et al., "Bayesian active
    learning for classification and preference learning" (2011).
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


SCORES: Mapping[str, Callable[[Predictive], np.ndarray]] = {
    one.__name__: one for one in (variance, largest_eigenvalue, log_det, entropy, variation_ratios, margin, bald)
}


def scored(acquisition: Any, others: Mapping[str, Callable[[], Acquisition]]) -> Acquisition:
    """An acquisition from its name, from a function of a prediction, or as it is.

    Arguments:
        others: acquisitions by name that are more than a score.
    """
    if isinstance(acquisition, Acquisition):
        return acquisition
    if callable(acquisition):
        return Scored(acquisition)
    if acquisition in others:
        return others[acquisition]()
    if acquisition in SCORES:
        return Scored(SCORES[acquisition])
    known = [*SCORES, *others]
    raise ValueError(
        f"acquisition is {acquisition!r}{nearest(str(acquisition), known)}; pass one of {', '.join(known)}, or a "
        "function from a prediction to a score for each row"
    )
