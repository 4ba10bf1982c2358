"""Rows that an online learner holds back from its posterior and learns last: the coreset of continual learning.

Nguyen et al., "Variational continual learning" (2018): a few rows of each task are kept out of the recursion, and the
posterior that predicts is refined on all of them, q(theta) ∝ q_t(theta) p(kept rows | theta).
"""

from typing import Literal

import numpy as np

from credo.data import Data

Choice = Literal["random", "k-center"]


def held_back(data: Data, num: int, choice: Choice, seed: int) -> tuple[Data, Data]:
    """The rows to learn now, and `num` rows with a target to keep.

    Arguments:
        choice: "random"; or "k-center", each as far as possible from those chosen before, in the model's units.
    """
    labelled = np.flatnonzero(data.labelled)
    if num >= len(labelled):
        raise ValueError(
            f"coreset={num} rows of each batch are held back, and this one has {len(labelled)} with a target, of which "
            "none would be left to learn; pass larger batches, or hold back fewer"
        )
    rng = np.random.default_rng(seed)
    if choice == "random":
        chosen = rng.choice(labelled, num, replace=False)
    else:
        inputs = data.scaling.inputs(data.x[labelled]).reshape(len(labelled), -1)
        chosen = labelled[k_center(inputs, num, first=int(rng.integers(len(labelled))))]
    chosen = np.sort(chosen)
    return data.select(np.setdiff1d(np.arange(data.size), chosen)), data.select(chosen)


def k_center(points: np.ndarray, num: int, *, first: int = 0) -> np.ndarray:
    """Which of the points, (N, D), cover all others best: each is the one that is farthest from those before it.

    Within twice the smallest radius that any choice of as many has.

    >>> k_center(np.array([[0.0], [0.1], [1.0], [0.9], [0.5]]), 3)
    array([0, 2, 4])

    Reference: Gonzalez, "Clustering to minimize the maximum intercluster distance" (1985).
    """
    chosen = [first]
    distances = np.sum((points - points[first]) ** 2, axis=1)
    for _ in range(num - 1):
        chosen.append(int(np.argmax(distances)))
        distances = np.minimum(distances, np.sum((points - points[chosen[-1]]) ** 2, axis=1))
    return np.array(chosen)


def joined(before: Data | None, new: Data) -> Data:
    """Rows one after another, under the scaling of the first."""
    if before is None:
        return new
    return before.followed_by(new).with_scaling(before.scaling)
