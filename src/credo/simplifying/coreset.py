"""A coreset: a few weighted draws whose predictive is that of all of them.

With a feature vector φ(theta) of the function that a draw stands for, its mean over all draws being zero,

    min over w ≥ 0, Σ w = 1, at most K of them above zero:   ‖Σᵢ wᵢ φ(thetaᵢ)‖² = wᵀ G w,    Gᵢⱼ = φ(thetaᵢ)·φ(thetaⱼ)

the maximum mean discrepancy between the few and the many under the kernel G. φ holds, at inputs x_j,

    p(y_j | x_j, theta)/p(y_j | x_j, D) − 1     for y_j from the full predictive: the loss is then twice that in nats
    (f_j(theta) − m_j)/s_j                      the mean, in epistemic sds (of classes the line above has it already)
    (f_j(theta) − m_j)²/s_j² − 1                the epistemic variance

Draws are added one by one, each the one that a step towards it lowers wᵀGw most by, and all weights are solved for
anew: herding with full correction, or the conditional gradient method on the simplex.

Reference: Chen, Welling and Smola, Super-samples from kernel herding, 2010; Bach, Lacoste-Julien and Obozinski, On the
equivalence between herding and conditional gradient algorithms, 2012.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import nnls

from credo.simplifying.reference import LEAST_PROBABILITY, Reference

# Up to so many draws all weights are solved for after each; then, since that takes longer and changes less, after each
# tenth more.
CORRECTED = 100
# Of non-negative least squares for each unknown. It enters and leaves each a few times; rounding makes it more.
ITERATIONS = 100
# G has the rank of its features, and a little on its diagonal makes up for what is missing.
JITTER = 1e-9


@dataclass(frozen=True, eq=False)
class Features:
    """φ of every draw, in two parts.

    Arguments:
        centred: whose mean over draws is zero, (draws, …).
        spread: (f − m)²/s², whose mean over draws is one, (draws, …).
    """

    centred: np.ndarray
    spread: np.ndarray

    @classmethod
    def of(cls, reference: Reference, stored: Any) -> "Features":
        """Of draws as they are stored: what rounding them has changed is then matched too."""
        prediction = stored.predict(reference.x)
        functions = prediction.functions.astype(np.float64) - reference.mean
        scale = np.where(reference.least_sd > 0, reference.least_sd, 1.0)
        if reference.is_classes:
            ratios = functions / np.sqrt(np.maximum(reference.mean, LEAST_PROBABILITY))
            return cls(_mean_square(ratios), _mean_square(np.sum(functions**2, axis=-1) / scale**2))
        by_draw = stored.predict(reference.rows).log_prob_by_draw(reference.targets)
        ratios = np.expm1(by_draw - reference.log_prob)
        centred = np.concatenate([_mean_square(ratios), _mean_square(functions / scale)], axis=1)
        return cls(centred, _mean_square(functions**2 / scale**2))

    def gram(self, spread: float) -> np.ndarray:
        """G, where the weighted mean of the spread is to be `spread`."""
        off = self.spread - spread / np.sqrt(self.spread.shape[1])
        return self.centred @ self.centred.T + off @ off.T


def coreset(features: Features, num: int) -> tuple[np.ndarray, np.ndarray]:
    """At most `num` draws, by number, and their weights, adding up to one.

    >>> points = np.array([[-2.0], [-1.0], [3.0], [0.5], [-0.5]])
    >>> rows, weights = coreset(Features(points, np.ones((5, 1))), num=2)
    >>> bool(abs(weights @ points[rows]).max() < 1e-3)
    True
    """
    # The variance of weighted draws is divided by 1 − Σ w² to be unbiased; that is 1 − 1/num for equal weights.
    gram = features.gram(1 - 1 / num)
    chosen, weights, due = [int(np.argmin(np.diag(gram)))], np.ones(1), 2
    while len(chosen) < min(num, len(gram)):
        along = gram[:, chosen] @ weights
        now = weights @ along[chosen]
        # The best step from w towards draw j alone takes (now − alongⱼ)²/(now − 2 alongⱼ + Gⱼⱼ) off.
        gain = np.maximum(now - along, 0.0) ** 2 / np.maximum(now - 2 * along + np.diag(gram), JITTER)
        gain[chosen] = -1.0
        new = int(np.argmax(gain))
        share = np.clip((now - along[new]) / max(now - 2 * along[new] + gram[new, new], JITTER), 0.0, 1.0)
        chosen, weights = [*chosen, new], np.append((1 - share) * weights, share)
        if len(chosen) >= due:
            weights = best_weights(gram[np.ix_(chosen, chosen)])
            due = len(chosen) + max(1, len(chosen) // CORRECTED * CORRECTED // 10)
    rows, gram = np.asarray(chosen), features.gram(1 - np.sum(weights**2))
    weights = best_weights(gram[np.ix_(rows, rows)])
    return rows[weights > 0], weights[weights > 0]


def best_weights(gram: np.ndarray) -> np.ndarray:
    """argmin wᵀGw over w ≥ 0 with Σ w = 1, as non-negative least squares.

    With u = t w the minimum over t of uᵀGu + (Σ u − 1)² is q/(1 + q), q = wᵀGw, and least where q is: the sum needs no
    constraint, and u is scaled to a sum of one.
    """
    size = np.trace(gram) / len(gram) + np.finfo(np.float64).tiny
    root = np.linalg.cholesky(gram / size + JITTER * np.eye(len(gram))).T
    rows = np.vstack([root, np.ones(len(gram))])
    weights, _ = nnls(rows, np.append(np.zeros(len(gram)), 1.0), maxiter=ITERATIONS * len(gram))
    return weights / weights.sum()


def _mean_square(features: np.ndarray) -> np.ndarray:
    """(draws, features), scaled so that their squares are averaged over rows, and not summed."""
    return features.reshape(len(features), -1) / np.sqrt(features.shape[1])
