"""The functions of a posterior on a pool, block of rows by block of rows: what joint information is computed from."""

from collections.abc import Iterator

import numpy as np

from credo._precision import working_precision
from credo.predictive import Predictive

# What the functions of a block of rows may take.
BYTES_PER_BLOCK = 2**26


def functions_of(predictive: Predictive, rows: np.ndarray) -> np.ndarray:
    """E[y | x, theta_s] of some rows, rows first: (rows, draws, outputs); of classes their probabilities."""
    found = np.moveaxis(predictive[rows].functions, 0, 1)
    return found.reshape(*found.shape[:2], -1).astype(working_precision(), copy=False)


def blocks_of_functions(predictive: Predictive) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The numbers of some rows, and their functions as by `functions_of`; in the end all rows have come.

    All blocks are of one size, the last one filled up with its last row: one shape is one compilation.
    """
    num_rows = len(predictive)
    one = functions_of(predictive, np.zeros(1, np.int64))
    size = max(1, min(num_rows, BYTES_PER_BLOCK // one.nbytes))
    for first in range(0, num_rows, size):
        rows = np.minimum(np.arange(first, first + size), num_rows - 1)
        yield rows, functions_of(predictive, rows)


def weights_of(predictive: Predictive, functions: np.ndarray) -> np.ndarray:
    """The weight of each function: equal, where a prediction in closed form has drawn them for the purpose."""
    num = functions.shape[1]
    return predictive.weights if len(predictive.weights) == num else np.full(num, 1 / num)
