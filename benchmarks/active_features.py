"""Features of handwritten digits: how much their edges point where, in cells of an image that stands upright.

The slant is taken out (LeCun et al., 1998), directions of gradients are counted in overlapping cells (Dalal and Triggs,
2005), and of the counts the principal components are kept. Nothing is learned but these, and they need no labels.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.ndimage import affine_transform, gaussian_filter

SMOOTHING, NUM_DIRECTIONS, NUM_CELLS = 0.7, 8, 7
DIRECTIONS = np.arange(NUM_DIRECTIONS, dtype=np.float32)
NUM_FOR_COMPONENTS, NUM_COMPONENTS = 10_000, 50
BLOCK = 1_000


class EdgeFeatures(NamedTuple):
    """From images (N, H, W) to features (N, 50), the first of unit variance."""

    offset: np.ndarray
    components: np.ndarray

    @classmethod
    def of(cls, images: np.ndarray) -> "EdgeFeatures":
        """Components of the first of some images."""
        counts = np.concatenate(list(_counts(images[:NUM_FOR_COMPONENTS])))
        values, vectors = np.linalg.eigh(np.cov(counts.T))
        components = vectors[:, ::-1][:, :NUM_COMPONENTS] / np.sqrt(values[-1])
        return cls(counts.mean(0), components.astype(np.float32))

    def __call__(self, images: np.ndarray) -> np.ndarray:
        return np.concatenate([(counts - self.offset) @ self.components for counts in _counts(images)])


def _counts(images: np.ndarray) -> Iterator[np.ndarray]:
    """Of each image, for each cell and direction, the edges there: square roots, which add up to one in squares."""
    cells = _cells(images.shape[1])
    for first in range(0, len(images), BLOCK):
        upright = np.stack([_upright(image) for image in images[first : first + BLOCK]]).astype(np.float32)
        smooth = gaussian_filter(upright, (0, SMOOTHING, SMOOTHING))
        down, right = np.gradient(smooth, axis=(1, 2))
        turns = np.arctan2(down, right) / (2 * np.pi) * NUM_DIRECTIONS
        # Each gradient counts for the two directions that it lies between.
        away = (turns[..., None] - DIRECTIONS + NUM_DIRECTIONS / 2) % NUM_DIRECTIONS - NUM_DIRECTIONS / 2
        edges = np.hypot(down, right)[..., None] * np.maximum(0, 1 - np.abs(away))
        counts = np.einsum("ir,nrcd,jc->nijd", cells, edges, cells, optimize=True).reshape(len(upright), -1)
        yield np.sqrt(counts / counts.sum(1, keepdims=True))


def _cells(side: int) -> np.ndarray:
    """How much each pixel of a side belongs to each cell: triangles that overlap by half, (cells, side)."""
    centres, width = np.linspace(2, side - 3, NUM_CELLS, retstep=True)
    return np.maximum(0, 1 - np.abs(np.arange(side) - centres[:, None]) / width).astype(np.float32)


def _upright(image: np.ndarray) -> np.ndarray:
    """An image in the middle of its frame, sheared so that columns do not wander with rows."""
    rows, columns = np.indices(image.shape)
    share = image / image.sum()
    row, column = np.sum(rows * share), np.sum(columns * share)
    slant = np.sum((rows - row) * (columns - column) * share) / np.sum((rows - row) ** 2 * share)
    shear = np.array([[1, 0], [slant, 1]])
    middle = (np.array(image.shape) - 1) / 2
    return affine_transform(image, shear, np.array([row, column]) - shear @ middle, order=1)
