"""The simulator of the sparse measure: nine outputs that are seen now and then, one of them through a broken sensor."""

from dataclasses import dataclass

import numpy as np

import credo

# Inputs and outputs, hidden dimensions, and the output whose sensor is broken, counted from 0.
SIZE, HIDDEN, CORRUPTED = 9, 3, 3
# Standard deviations: of every measurement, and of what the broken sensor adds.
NOISE, CORRUPTION = 0.1, 3.0
# How often an output of a training row is measured.
SHARE_OBSERVED = 0.3


@dataclass(frozen=True, eq=False)
class Measure:
    """A new function, measurements of it, and what is known of it.

    Arguments:
        train: noisy outputs, of which most are missing.
        test: the function itself, complete and without noise.
        subspace: (9, 3), a basis of the subspace that the function stays close to.
    """

    train: credo.Data
    test: credo.Data
    subspace: np.ndarray


def simulated(seed: int = 0, *, num_train: int = 1000, num_test: int = 1000) -> Measure:
    """Practical Example II of the paper's supplement: y = S g(P x) + 0.1 cos(x/3) in nine dimensions.

    >>> simulated(num_train=20).train
    Data(20 rows; x: shape (9,); y: float × 9)
    """
    rng = np.random.default_rng(seed)
    mixing = 0.2 * np.eye(SIZE) + 0.5 * rng.uniform(size=(SIZE, SIZE))
    seen, spanned = (np.linalg.svd(rng.uniform(size=(SIZE, HIDDEN)), full_matrices=False)[0] for _ in range(2))
    x = rng.normal(size=(num_train + num_test, SIZE)) @ mixing.T
    y = hidden(x @ seen) @ spanned.T + 0.1 * np.cos(x / 3)
    measured = y[:num_train] + NOISE * rng.normal(size=(num_train, SIZE))
    measured[:, CORRUPTED] += CORRUPTION * rng.normal(size=num_train)
    measured[rng.uniform(size=measured.shape) >= SHARE_OBSERVED] = np.nan
    return Measure(credo.Data(x[:num_train], measured), credo.Data(x[num_train:], y[num_train:]), spanned)


def hidden(z: np.ndarray) -> np.ndarray:
    """g of the three hidden dimensions, (rows, 3)."""
    z0, z1, z2 = z.T
    return np.column_stack(
        [
            0.2 * z0**2 + 0.2 * z2 * np.sin(z1 / 3) + 0.3 * np.sqrt(np.abs(z2)) + z1 + 2,
            0.3 * z1**2 + 0.1 * z0 * np.sin(z2 / 4) + 0.1 * np.sqrt(np.abs(z0)) + z0 + 1,
            0.1 * z2**2 + 0.3 * z1 * np.sin(z0 / 5) + 0.6 * np.sqrt(np.abs(z1)) + z2 + 2,
        ]
    )
