"""BatchBALD: a batch of rows whose labels tell the most about the network together.

    a(x₁ … x_b) = I[y₁ … y_b; theta],    a(A, x) − a(A) = H[y | x, y_A] − E_theta H[y | x, theta]

The batch grows by the row with the largest gain: what it is expected to tell once the answers to the others are known.
Given answers y_A, draws of theta have the weights w_s p(y_A | theta_s), so that for classes

    H[y | x, y_A] = Σ_{y_A} p(y_A) H[Σ_s w_s(y_A) p(y | x, theta_s)]

over all answers while they are few, and over answers drawn from p(y_A) beyond. A gain never grows as the batch does, so
that rows whose last gain is below the best one need not be looked at again. Of numbers, the gain of normal laws with
the covariance of the functions is ½ log(1 + Var[f | y_A] / noise).

Kirsch, van Amersfoort and Gal, "BatchBALD: efficient and diverse batch acquisition for deep Bayesian active learning"
(2019).
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp, softmax

from credo._blocks import by_block
from credo._checks import require_at_least
from credo.learning.acquisition import Acquisition, Chosen
from credo.learning.functions import functions_of, weights_of
from credo.learning.scores import LEAST_VARIANCE, bald
from credo.predictive import ClassPredictive, Predictive
from credo.predictive.streaming import class_entropy
from credo.typing import Array

# The functions of the rows that are looked at take at most this: 13,000 rows of 1,000 draws and ten classes, 130,000 of
# 100. In a larger pool they are those of the highest scores of their own, which no gain exceeds.
MAX_BYTES = 2**29
# Rows whose gains are computed at once, for 1,000 answers of ten classes in 10 MB.
ROWS_AT_ONCE = 256


@dataclass(frozen=True)
class BatchBALD(Acquisition):
    """The batch whose labels tell the most about theta together, row after row.

    Arguments:
        num_answers: to the rows of the batch so far, that the next one is judged by: all there are, up to this many,
            and as many random ones beyond.

    >>> BatchBALD().num_answers
    1000
    """

    num_answers: int = 1000

    def __post_init__(self) -> None:
        require_at_least(1, num_answers=self.num_answers)

    def choose(
        self, posterior: Any, x: np.ndarray, num: int, *, allowed: np.ndarray, rng: np.random.Generator
    ) -> Chosen:
        predictive = posterior.predict(x, num_draws=self.num_draws)
        scores = bald(predictive)
        rows = _candidates(predictive, np.where(allowed, scores, -np.inf))
        functions = functions_of(predictive, rows)
        weights = weights_of(predictive, functions)
        judge: Any
        if isinstance(predictive, ClassPredictive):
            judge = _Classes(functions, weights, self.num_answers, rng)
        else:
            noise = predictive.aleatoric.reshape(len(x), -1)[rows]
            judge = _Numbers(functions, weights, noise)
        return Chosen(rows[_greedy(judge, x[rows], num, allowed[rows])], scores)


def _candidates(predictive: Predictive, scores: np.ndarray) -> np.ndarray:
    """The rows of the highest scores, as many as may be looked at: the same number in each round."""
    one = functions_of(predictive, np.zeros(1, np.int64))
    num = max(1, min(len(scores), MAX_BYTES // one.nbytes))
    return np.argsort(-scores, kind="stable")[:num]


def _greedy(judge: Any, x: np.ndarray, num: int, allowed: np.ndarray) -> np.ndarray:
    """Row after row, the one with the largest gain; never two that hold the same."""
    chosen: list[int] = []
    left = allowed.copy()
    while len(chosen) < num and left.any():
        row = judge.next(chosen, left)
        chosen.append(row)
        left &= ~(x == x[row]).reshape(len(x), -1).all(1)
    return np.array(chosen, np.int64)


class _Classes:
    """Gains of class labels: `probs` (rows, draws, classes)."""

    def __init__(self, probs: np.ndarray, weights: np.ndarray, num_answers: int, rng: np.random.Generator) -> None:
        self.probs, self.weights, self.num_answers, self.rng = probs, weights, num_answers, rng
        self.bounds = self.gains(np.arange(len(probs)), weights[None], np.ones(1))

    def next(self, chosen: list[int], left: np.ndarray) -> int:
        """The row with the largest gain, of those that are left."""
        if chosen:
            given, shares = answers(self.probs[chosen], self.weights, self.num_answers, self.rng)
            best = -np.inf
            rows = np.flatnonzero(left)
            rows = rows[np.argsort(-self.bounds[rows], kind="stable")]
            for first in range(0, len(rows), ROWS_AT_ONCE):
                block = rows[first : first + ROWS_AT_ONCE]
                if self.bounds[block[0]] <= best:
                    break
                self.bounds[block] = self.gains(block, given, shares)
                best = max(best, self.bounds[block].max())
        return int(np.argmax(np.where(left, self.bounds, -np.inf)))

    def gains(self, rows: np.ndarray, given: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """H[y | x, y_A] − E_theta H[y | x, theta] of some rows."""
        arrays = tuple(jnp.asarray(one, self.probs.dtype) for one in (self.weights, given, shares))
        return np.asarray(by_block(lambda probs: _gains(probs, *arrays), [self.probs[rows]], ROWS_AT_ONCE), np.float64)


@jax.jit
def _gains(probs: Array, weights: Array, given: Array, shares: Array) -> Array:
    """Of a block of rows, (rows,); `given` (answers, draws) are the weights of the draws after each of the answers."""
    after = class_entropy(jnp.einsum("as,nsc->nac", given, probs)) @ shares
    return after - class_entropy(probs) @ weights


def answers(
    probs: np.ndarray, weights: np.ndarray, num: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the draws after each of `num` answers, (num, draws), and the share of each answer, (num,).

    All answers, with their probabilities, where they are no more than `num`, the rest of them without a share; else
    random ones: a draw of theta first, then a label of each row.

    Arguments:
        probs: of the rows that are answered, (rows, draws, classes).

    >>> probs, weights = np.array([[[1.0, 0.0], [0.0, 1.0]]]), np.array([0.25, 0.75])
    >>> given, shares = answers(probs, weights, 2, np.random.default_rng(0))
    >>> given.tolist(), shares.tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [0.25, 0.75])
    """
    num_rows, _, num_classes = probs.shape
    with np.errstate(divide="ignore"):
        logs, log_weights = np.log(probs.astype(np.float64)), np.log(weights)
    every = num_classes**num_rows <= num
    if every:
        labels = np.indices((num_classes,) * num_rows).reshape(num_rows, -1)
    else:
        draws = rng.choice(len(weights), num, p=weights / weights.sum())
        levels = np.cumsum(probs[:, draws].astype(np.float64), axis=2)
        labels = np.sum(levels < levels[..., -1:] * rng.random((num_rows, num, 1)), axis=2)
    joint = log_weights + sum(logs[row][:, own].T for row, own in enumerate(labels))
    given, log_shares = softmax(joint, axis=1), logsumexp(joint, axis=1)
    if not every:
        return given, np.full(num, 1 / num)
    given = np.where(np.isfinite(log_shares)[:, None], given, weights)
    missing = num - len(given)
    return np.pad(given, ((0, missing), (0, 0))), np.pad(np.exp(log_shares), (0, missing))


class _Numbers:
    """Gains of numbers: `functions` (rows, draws, outputs), `noise` variances (rows, outputs)."""

    def __init__(self, functions: np.ndarray, weights: np.ndarray, noise: np.ndarray) -> None:
        functions = functions.astype(np.float64)
        centred = functions - np.einsum("s,nsk->nk", weights, functions)[:, None]
        unbiased = 1 / max(1 - np.sum(weights**2), LEAST_VARIANCE) if len(weights) > 1 else 1.0
        # The inner product of two rows is their covariance.
        self.roots = np.sqrt(unbiased * weights)[:, None] * centred
        self.noise = np.maximum(noise, LEAST_VARIANCE)

    def next(self, chosen: list[int], left: np.ndarray) -> int:
        """The row with the largest gain, of those that are left."""
        if chosen:
            self._answered(chosen[-1])
        return int(np.argmax(np.where(left, self.gains(), -np.inf)))

    def gains(self) -> np.ndarray:
        """½ log det(I + noise^(−½) Cov[f | y_A] noise^(−½)) of each row."""
        white = self.roots / np.sqrt(self.noise)[:, None]
        if white.shape[2] == 1:
            return 0.5 * np.log1p(np.sum(white[..., 0] ** 2, axis=1))
        inner = np.einsum("nsk,nsl->nkl", white, white)
        return 0.5 * np.linalg.slogdet(np.eye(white.shape[2]) + inner)[1]

    def _answered(self, row: int) -> None:
        """The covariances once a row is answered: K − k kᵀ/(k_row + noise), for one output after another.

        In terms of roots with u = root/‖root‖ of that output: (I − α u uᵀ) with (1 − α)² = noise/(‖root‖² + noise).
        """
        for output, noise in enumerate(self.noise[row]):
            root = self.roots[row, :, output].copy()
            square = root @ root
            if square > 0:
                alpha = 1 - np.sqrt(noise / (square + noise))
                along = np.einsum("s,nsk->nk", root, self.roots)
                self.roots -= alpha / square * root[:, None] * along[:, None]
