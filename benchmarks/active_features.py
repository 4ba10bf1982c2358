"""Features of small images from patches, learned without labels (Coates and Ng, 2012).

Patches are normalised and whitened, k-means finds what they look like, and an image is described by how close its
patches are to each centre, averaged over a grid of places; of these numbers the principal components are kept.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.cluster import MiniBatchKMeans

SIDE, STRIDE, MARGIN, NUM_CENTRES, GRID = 6, 2, 2, 128, 4
NUM_IMAGES, NUM_PATCHES, NUM_FOR_COMPONENTS, NUM_COMPONENTS = 2_000, 20_000, 8_000, 200
# Of patches of nearly one brightness, and of directions in which patches hardly vary, noise is not blown up.
LEAST_CONTRAST, LEAST_VARIANCE = 0.01, 0.1
BLOCK = 250


class PatchFeatures(NamedTuple):
    """From images (N, H, W) to features (N, 200), of unit variance in the first of them."""

    whiten: np.ndarray
    mean: np.ndarray
    centres: np.ndarray
    offset: np.ndarray
    components: np.ndarray

    @classmethod
    def of(cls, images: np.ndarray) -> "PatchFeatures":
        """Learned from images, the same ones every time."""
        rng = np.random.default_rng(0)
        some = _patches(images[rng.choice(len(images), NUM_IMAGES, replace=False)])
        patches = _normalised(some.reshape(-1, SIDE**2)[rng.choice(some[..., 0, 0].size, NUM_PATCHES, replace=False)])
        mean = patches.mean(0)
        values, vectors = np.linalg.eigh(np.cov((patches - mean).T))
        whiten = ((vectors / np.sqrt(values + LEAST_VARIANCE)) @ vectors.T).astype(np.float32)
        found = MiniBatchKMeans(NUM_CENTRES, batch_size=2048, n_init=1, max_iter=15, random_state=0)
        centres = found.fit((patches - mean) @ whiten).cluster_centers_.astype(np.float32)
        raw = cls(whiten, mean, centres, np.zeros(0), np.zeros((0, 0)))
        pooled = np.concatenate(list(raw._pooled(images[:NUM_FOR_COMPONENTS])))
        values, vectors = np.linalg.eigh(np.cov(pooled.T))
        components = (vectors[:, ::-1][:, :NUM_COMPONENTS] / np.sqrt(values[-1])).astype(np.float32)
        return raw._replace(offset=pooled.mean(0), components=components)

    def __call__(self, images: np.ndarray) -> np.ndarray:
        return np.concatenate([(pooled - self.offset) @ self.components for pooled in self._pooled(images)])

    def _pooled(self, images: np.ndarray) -> Iterator[np.ndarray]:
        """How close the patches in each cell of the grid are to each centre, block of images by block."""
        squares = np.sum(self.centres**2, axis=1)
        for first in range(0, len(images), BLOCK):
            patches = _patches(images[first : first + BLOCK])
            num, side = patches.shape[:2]
            white = (_normalised(patches.reshape(-1, SIDE**2)) - self.mean) @ self.whiten
            square = np.sum(white**2, axis=1)[:, None] + squares - 2 * white @ self.centres.T
            distance = np.sqrt(np.maximum(square, 0))
            close = np.maximum(distance.mean(1, keepdims=True) - distance, 0).reshape(num, side, side, -1)
            edges = np.linspace(0, side, GRID + 1).astype(int)
            cells = [(slice(*edges[i : i + 2]), slice(*edges[j : j + 2])) for i in range(GRID) for j in range(GRID)]
            yield np.concatenate([close[:, rows, columns].mean((1, 2)) for rows, columns in cells], axis=1)


def _patches(images: np.ndarray) -> np.ndarray:
    """(N, places, places, SIDE, SIDE)."""
    padded = np.pad(images.astype(np.float32), ((0, 0), (MARGIN, MARGIN), (MARGIN, MARGIN)))
    return sliding_window_view(padded, (SIDE, SIDE), axis=(1, 2))[:, ::STRIDE, ::STRIDE]


def _normalised(patches: np.ndarray) -> np.ndarray:
    centred = patches - patches.mean(1, keepdims=True)
    return centred / np.sqrt(centred.var(1, keepdims=True) + LEAST_CONTRAST)
