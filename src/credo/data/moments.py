"""What one pass over rows in files says of them: moments, extremes, that all are finite, and a checksum."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from credo.data.scaling import BLOCK_NUMBERS, Scaling
from credo.data.stored import StoredRows


class Moments:
    """Mean and standard deviation by blocks, in double precision.

    Blocks of n and m rows, with means and sums of squared deviations S, join as (Chan, Golub and LeVeque, 1979)

        mean = mean_n + m/(n+m) · δ,    S = S_n + S_m + nm/(n+m) · δ²,    δ = mean_m − mean_n

    >>> moments = Moments()
    >>> for block in ([1.0, 2.0], [6.0]):
    ...     moments.see(np.array(block), (0,))
    >>> float(moments.mean), round(float(moments.scale), 3)
    (3.0, 2.16)
    """

    def __init__(self) -> None:
        self.num, self.mean, self.squares = 0, np.zeros(()), np.zeros(())

    def see(self, values: np.ndarray, axes: tuple[int, ...]) -> None:
        """One more block, of which these axes count as terms."""
        num = int(np.prod([values.shape[axis] for axis in axes]))
        mean = np.mean(values, axis=axes, dtype=np.float64)
        squares = np.square(np.subtract(values, mean, dtype=np.float64)).sum(axis=axes)
        offset, whole = mean - self.mean, self.num + num
        self.mean = self.mean + num / whole * offset
        self.squares = self.squares + squares + self.num * num / whole * offset**2
        self.num = whole

    @property
    def scale(self) -> np.ndarray:
        """The standard deviation; 1 where it is no more than rounding, as for `Scaling`."""
        found = np.sqrt(self.squares / self.num)
        return np.where(found <= self.num * np.finfo(np.float64).eps * np.abs(self.mean), 1.0, found)


@dataclass(frozen=True)
class Survey:
    """What a pass has found.

    Arguments:
        scaling: to mean 0 and standard deviation 1, of targets only if they are numbers.
        extremes: the rows with the least and the largest target.
        checksum: of all rows.
    """

    scaling: Scaling
    extremes: tuple[int, int]
    checksum: str


def survey(rows: StoredRows, names: tuple[str, ...] | None = None) -> Survey:
    """Read all rows once; a ValueError names the first that is missing or not finite."""
    of_x, of_y, digest = Moments(), Moments(), hashlib.sha256()
    least, largest = (np.inf, 0), (-np.inf, 0)
    size = max(1, BLOCK_NUMBERS // int(np.prod(rows.x_shape)))
    for first in range(0, len(rows.x), size):
        x, y = rows.read(first, min(first + size, len(rows.x)))
        _require_finite(rows, "x", x, first, names)
        _require_finite(rows, "y", y, first, None)
        of_x.see(x, tuple(range(x.ndim if x.ndim == 3 else x.ndim - 1)))
        if y.dtype.kind == "f":
            of_y.see(y, (0,))
        low, high = (int(one) for one in (np.argmin(y) // y[0].size, np.argmax(y) // y[0].size))
        least = min(least, (float(y[low].min()), first + low))
        largest = max(largest, (float(y[high].max()), first + high))
        for array in (x, y):
            digest.update(np.ascontiguousarray(array).data)
    scaled: Any = {"x_mean": of_x.mean, "x_scale": of_x.scale}
    if of_y.num:
        scaled |= {"y_mean": of_y.mean, "y_scale": of_y.scale}
    return Survey(Scaling(**scaled), (least[1], largest[1]), digest.hexdigest())


def _require_finite(
    rows: StoredRows, argument: str, values: np.ndarray, first: int, names: tuple[str, ...] | None
) -> None:
    limit = np.finfo(np.float32).max
    if -limit <= values.min() and values.max() <= limit:  # false for NaN too
        return
    row, *rest = map(int, np.argwhere(~(np.abs(values) <= limit))[0])
    column = ""
    if len(rest) == 1:
        column = f", column {rest[0] if names is None else repr(names[rest[0]])}"
    path = rows.x.path if argument == "x" or rows.y is None else rows.y.path
    raise ValueError(
        f"{path}: {argument} of row {first + row}{column} is {values[(row, *rest)]}, and rows in files must be there "
        "and finite in single precision; leave such rows out, or fill them in"
    )
