"""Items that are unlike each other: what to ask before there is a model."""

import numpy as np


def spread(x: np.ndarray, num: int, *, seed: int, seen: np.ndarray) -> np.ndarray:
    """Places of `num` rows, each drawn by its squared distance to the nearest of those before it.

    Groups that lie apart come one after the other, and a single far point is no more likely than its distance makes it
    (Arthur and Vassilvitskii, "k-means++: the advantages of careful seeding", 2007).

    Arguments:
        x: (items, …).
        seen: places of rows that count as chosen before.

    >>> x = np.array([[0.0], [0.0], [0.0], [9.0]])
    >>> sorted(spread(x, 2, seed=0, seen=np.array([], int)).tolist())[-1]
    3
    """
    flat = x.reshape(len(x), -1).astype(np.float64)
    generator = np.random.default_rng(seed)
    chosen, distances = list[int](), np.full(len(x), np.inf)
    for place in seen:
        distances = np.minimum(distances, _squared(flat, int(place)))
    for _ in range(min(num, len(x) - len(seen))):
        weights = np.where(np.isinf(distances), 1.0, distances)
        weights[np.concatenate([seen, chosen]).astype(int)] = 0.0
        if not weights.any():  # what is left equals what was chosen
            break
        chosen.append(int(generator.choice(len(x), p=weights / weights.sum())))
        distances = np.minimum(distances, _squared(flat, chosen[-1]))
    return np.array(chosen, int)


def _squared(x: np.ndarray, place: int) -> np.ndarray:
    return np.sum((x - x[place]) ** 2, axis=1)
