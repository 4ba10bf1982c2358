"""A Gaussian mixture in place of draws: clusters of functions, each with a mean, a diagonal and a few directions.

    Σ_k π_k N(theta; μ_k, D_k (I + F_k F_kᵀ) D_k),        D F = the first r principal directions of a cluster

Draws are clustered by their functions, since weights that mean the same may be far apart. Of networks whose units can
be exchanged the draws are brought into one order first (`Draws.canonical`): a Gaussian over all orders would mix them.
"""

from dataclasses import replace

import numpy as np
from sklearn.cluster import KMeans

from credo.covariance import Root
from credo.covariance.diagonal import Diagonal, LowRank
from credo.posterior import Draws, Gaussian, Mixture, Provenance
from credo.simplifying.reference import Reference
from credo.typing import Theta

# Numbers of clusters that are compared.
CLUSTERS = (1, 2, 4, 8)
# The diagonal keeps at least this part of a weight's sd: directions that happen to explain all of it explain few draws.
LEAST_PART = 0.05


def mixture(draws: Draws, reference: Reference, num_bytes: int) -> Mixture | None:
    """The mixture of least loss at the inputs of `reference` among those that fit; None where none does.

    Arguments:
        draws: that it is to stand for.
        num_bytes: what means, diagonals and directions may take.
    """
    per_weight = num_bytes // (4 * draws.model.num_parameters)
    ordered = _ordered(draws)
    tried = [_of_clusters(ordered, reference, num, per_weight) for num in CLUSTERS if per_weight >= 2 * num]
    return min(tried, key=lambda one: reference.loss(one).total, default=None)


def _ordered(draws: Draws) -> Draws:
    """The draws with their units in one order, where they have units that can be exchanged."""
    plain = Draws(draws.model, draws.theta, draws.provenance, scaling=draws.scaling, probes=draws.probes)
    return replace(plain.canonical(), weights=draws.weights)


def _of_clusters(draws: Draws, reference: Reference, num: int, per_weight: int) -> Mixture:
    theta, weights = draws.weighted_draws(0)
    functions = reference.prediction.functions
    # In epistemic sds: an output of large units must not decide alone.
    features = (functions - functions.mean(axis=0)).reshape(len(weights), -1)
    features /= np.maximum(features.std(axis=0), np.finfo(np.float32).tiny)
    labels = KMeans(num, n_init=4, random_state=0).fit_predict(features, sample_weight=weights)
    groups = [np.flatnonzero(labels == label) for label in range(num) if np.any(labels == label)]
    rank = per_weight // len(groups) - 2
    members = tuple(_gaussian(draws, theta, rows, weights[rows], rank) for rows in groups)
    return Mixture(members, draws.provenance, np.array([weights[rows].sum() for rows in groups]))


def _gaussian(draws: Draws, theta: Theta, rows: np.ndarray, weights: np.ndarray, rank: int) -> Gaussian:
    own = {name: leaf[rows] for name, leaf in theta.items()}
    mean, root = moments(own, weights / weights.sum(), rank)
    made = Provenance(draws.provenance.method, draws.provenance.seed, 0.0, draws.provenance.num_data)
    return Gaussian(draws.model, mean, root, made, scaling=draws.scaling, probes=draws.probes)


def moments(theta: Theta, weights: np.ndarray, rank: int) -> tuple[Theta, Root]:
    """The weighted mean of draws, and the root of their covariance: a diagonal beside at most `rank` directions."""
    mean = {name: np.einsum("s,s...->...", weights, leaf) for name, leaf in theta.items()}
    sizes = [leaf.size for leaf in mean.values()]
    offsets = np.concatenate([(leaf - mean[name]).reshape(len(leaf), -1) for name, leaf in theta.items()], axis=1)
    offsets = offsets * np.sqrt(weights)[:, None]
    variance = np.sum(offsets**2, axis=0)
    # At most as many directions as draws are there, less one for the mean.
    rank = max(0, min(rank, len(weights) - 1))
    _, lengths, directions = np.linalg.svd(offsets, full_matrices=False)
    along = (directions[:rank] * lengths[:rank, None]).T
    rest = np.sqrt(np.maximum(variance - np.sum(along**2, axis=1), LEAST_PART**2 * variance + 1e-12))

    def split(values: np.ndarray) -> Theta:
        parts = np.split(values.astype(np.float32), np.cumsum(sizes)[:-1])
        return {
            name: part.reshape((*leaf.shape, *values.shape[1:]))
            for part, (name, leaf) in zip(parts, mean.items(), strict=True)
        }

    mean = {name: leaf.astype(np.float32) for name, leaf in mean.items()}
    if rank == 0:
        return mean, Diagonal(split(rest))
    return mean, LowRank(split(rest), split(along / rest[:, None]))
