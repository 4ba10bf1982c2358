"""A sparse graph: edges between each point and its nearest, or others, and a function at the ends of some of them."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from credo.typing import Array

# Where a tree of points pays. For 20,000 points of 3, 10 and 50 columns a tree took 0.1, 5.8 and 91 s, and all
# distances, block after block, 1.7, 2.0 and 3.3 s.
MAX_COLUMNS_OF_A_TREE = 8


def nearest_edges(name: str, points: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Edges i < j between each point and its k nearest, (edges, 2), each once, and their squared lengths."""
    # Slow to load, and of no use to most models.
    from sklearn.neighbors import NearestNeighbors

    if len(points) < k + 1:
        raise ValueError(
            f"{name}: {k} neighbours need at least {k + 1} inputs, got {len(points)}; lower k or add inputs"
        )
    flat = points.reshape(len(points), -1)
    algorithm = "kd_tree" if flat.shape[1] <= MAX_COLUMNS_OF_A_TREE else "brute"
    nearest = NearestNeighbors(n_neighbors=k, algorithm=algorithm).fit(flat).kneighbors(return_distance=False)
    ends = np.stack([np.repeat(np.arange(len(points)), k), nearest.ravel()], axis=1)
    edges = np.unique(np.sort(ends, axis=1), axis=0).astype(np.int32)
    return edges, _squared_lengths(flat, edges)


def random_edges(name: str, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edges of a ring of all points in a random order, (points, 2), and their squared lengths."""
    if len(points) < 2:
        raise ValueError(f"{name}: a pair needs two inputs, got {len(points)}; add inputs")
    ring = np.random.default_rng(0).permutation(len(points))
    edges = np.stack([ring, np.roll(ring, 1)], axis=1).astype(np.int32)
    return edges, _squared_lengths(points.reshape(len(points), -1), edges)


def _squared_lengths(flat: np.ndarray, edges: np.ndarray, block: int = 4096) -> np.ndarray:
    """By blocks of edges: all differences at once could be larger than all points."""
    parts = [edges[first : first + block] for first in range(0, len(edges), block)]
    return np.concatenate([np.sum((flat[part[:, 0]] - flat[part[:, 1]]) ** 2, axis=1) for part in parts])


def at_ends(f: Callable[[Array], Array], points: Array, edges: Array) -> tuple[Array, Array]:
    """f at both ends of each edge, (edges, outputs) each: asked there, or at all points once if they are fewer."""
    if 2 * len(edges) < len(points):
        values = f(points[edges.T.reshape(-1)])
        first, second = jnp.split(values, 2)
        return first, second
    values = f(points)
    return values[edges[:, 0]], values[edges[:, 1]]
