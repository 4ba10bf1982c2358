"""Σ of a covariance root, written out."""

import math
from collections.abc import Iterable

import jax
import numpy as np

from credo.covariance import Root


def dense(root: Root, order: Iterable[str]) -> np.ndarray:
    """Σ as a matrix over the entries of the arrays in that order."""
    shapes = root.noise_shapes()
    sizes = [math.prod(shape) for shape in shapes.values()]
    parts = np.split(np.eye(sum(sizes), dtype=np.float32), np.cumsum(sizes)[:-1], axis=1)
    noise = {name: part.reshape(-1, *shape) for part, (name, shape) in zip(parts, shapes.items(), strict=True)}
    offset = jax.jit(jax.vmap(root.offset))(noise)
    columns = np.concatenate([np.reshape(offset[name], (sum(sizes), -1)) for name in order if name in offset], axis=1)
    return columns.T @ columns
