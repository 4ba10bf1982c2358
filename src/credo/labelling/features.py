"""What a model sees of small images: edges by their direction and place, and colours by their place.

From tens of labels nothing can learn what edges are. So each image is described by how strong its edges are in each of
nine directions and each of 8 × 8 cells (Dalal and Triggs, "Histograms of oriented gradients for human detection",
2005), beside the mean colours of the cells, in the main directions in which the images of the pool differ.
"""

import numpy as np
from sklearn.decomposition import PCA

# Images are brought to this side, and cut into cells of this one.
SIDE, CELL = 32, 4
NUM_CELLS = SIDE // CELL
NUM_ANGLES = 9
# Cells are normalised by the strength of all edges in blocks of so many by so many.
BLOCK = 2
# Colours weigh less than edges: they change with the light.
WEIGHT_OF_COLOURS = 0.5
NUM_DIRECTIONS = 100
# The main directions are found from so many images at most.
MAX_SEEN = 5_000


def features(images: np.ndarray) -> np.ndarray:
    """Images (items, side, side, 3) of bytes as numbers (items, D) that few labels suffice to learn from.

    >>> features(np.zeros((4, 32, 32, 3), np.uint8)).shape[0]
    4
    """
    blocks = [_described(images[first : first + 500] / np.float32(255)) for first in range(0, len(images), 500)]
    return principal(np.concatenate(blocks))


def _described(images: np.ndarray) -> np.ndarray:
    colours = _by_cell(images).reshape(len(images), -1)
    return np.concatenate([edges(images.mean(axis=3)), WEIGHT_OF_COLOURS * colours], axis=1)


def edges(grey: np.ndarray) -> np.ndarray:
    """The strength of edges by block, cell in it and direction: (items, blocks · cells · angles)."""
    down, right = np.gradient(grey, axis=(1, 2))
    strength = np.hypot(down, right)
    # Directions, not ways: light on dark is the same edge as dark on light. Each adds to the two nearest angles.
    angle = np.mod(np.arctan2(down, right), np.pi) * (NUM_ANGLES / np.pi)
    distance = np.abs(angle[..., None] - np.arange(NUM_ANGLES))
    shares = np.maximum(0, 1 - np.minimum(distance, NUM_ANGLES - distance))
    cells = _by_cell(strength[..., None] * shares)
    return _normalised(cells).astype(np.float32)


def _by_cell(values: np.ndarray) -> np.ndarray:
    """Means over cells: (items, cells, cells, values)."""
    num, _, _, last = values.shape
    return values.reshape(num, NUM_CELLS, CELL, NUM_CELLS, CELL, last).mean(axis=(2, 4))


def _normalised(cells: np.ndarray) -> np.ndarray:
    """Each block of neighbouring cells at length one, so that contrast does not matter."""
    last = NUM_CELLS - BLOCK + 1
    parts = [cells[:, y : y + last, x : x + last] for y in range(BLOCK) for x in range(BLOCK)]
    blocks = np.concatenate(parts, axis=-1)
    blocks = blocks / np.sqrt(np.sum(blocks**2, axis=-1, keepdims=True) + 1e-4)
    return blocks.reshape(len(cells), -1)


def principal(values: np.ndarray) -> np.ndarray:
    """The main directions in which rows differ, (items, at most `NUM_DIRECTIONS`), at one scale for all of them.

    Their own scales stay: at equal ones the last directions, which are noise, would count as much as the first.
    """
    num = min(NUM_DIRECTIONS, *values.shape)
    seen = values[np.linspace(0, len(values) - 1, min(len(values), MAX_SEEN)).round().astype(int)]
    # Where all images are equal there is no variance to explain, which is a warning.
    with np.errstate(invalid="ignore"):
        directions = PCA(num, svd_solver="randomized", random_state=0).fit(seen)
    found = directions.transform(values)
    return found / max(float(found.std()), 1e-9)
