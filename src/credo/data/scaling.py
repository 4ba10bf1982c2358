"""Scaling: between the user's units and those that suit a network."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from credo._files import LoadError
from credo._precision import working_precision
from credo._schema import require_numbers
from credo.data.missing import is_observed

# Moments and scaling are computed in double precision, on this many numbers at a time: 8 MB.
BLOCK_NUMBERS = 2**20


@dataclass(frozen=True, eq=False)
class Scaling:
    """The affine maps from the user's units to standardised ones; by default the identity.

    x ↦ (x − x_mean) / x_scale and y ↦ (y − y_mean) / y_scale, in double precision, then rounded to the working one.

    Arguments:
        x_mean, x_scale: broadcastable to one row of x.
        y_mean, y_scale: broadcastable to one row of y.

    >>> Scaling(y_mean=np.asarray(10.0), y_scale=np.asarray(2.0)).targets([8.0, 14.0])
    array([-1.,  2.], dtype=float32)
    """

    x_mean: np.ndarray = field(default_factory=lambda: np.zeros(()))
    x_scale: np.ndarray = field(default_factory=lambda: np.ones(()))
    y_mean: np.ndarray = field(default_factory=lambda: np.zeros(()))
    y_scale: np.ndarray = field(default_factory=lambda: np.ones(()))

    @property
    def is_identity(self) -> bool:
        """Whether standardised units are the user's own."""
        return _is_identity(self.x_mean, self.x_scale) and _is_identity(self.y_mean, self.y_scale)

    def inputs(self, x: ArrayLike, precision: Any = None) -> np.ndarray:
        """Standardised x, in the working precision or in another."""
        return _affine(np.asarray(x), self.x_mean, self.x_scale, precision or working_precision())

    def targets(self, y: ArrayLike) -> np.ndarray:
        """Standardised y, in the working precision; integers that are not scaled are labels, and come back as int32."""
        y = np.asarray(y)
        if y.dtype.kind in "biu" and _is_identity(self.y_mean, self.y_scale):
            return y.astype(np.int32)
        return _affine(y, self.y_mean, self.y_scale, working_precision())

    def to_dict(self) -> dict[str, np.ndarray]:
        """The four arrays by name, ready for storage."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_dict(cls, arrays: Mapping[str, np.ndarray], source: Any = "scaling") -> Self:
        """The inverse of `to_dict`; `source` is where it was read."""
        names = {f.name for f in fields(cls)}
        if arrays.keys() != names:
            raise LoadError(f"{source} is damaged: its scaling has {', '.join(sorted(arrays)) or 'no arrays'}")
        for name, array in arrays.items():
            require_numbers(source, f"scaling/{name}", array, positive=name.endswith("scale"))
        return cls(**{name: np.asarray(arrays[name]) for name in names})


def _is_identity(mean: np.ndarray, scale: np.ndarray) -> bool:
    return not np.any(mean) and bool(np.all(scale == 1))


def _affine(values: np.ndarray, mean: np.ndarray, scale: np.ndarray, precision: Any) -> np.ndarray:
    if _is_identity(mean, scale):
        # What nobody can write to, such as a mapped file, may be taken as it is.
        return values.astype(precision, copy=values.flags.writeable)
    scaled = aligned(values.shape, np.dtype(precision))
    for rows in _blocks(values):
        centred = np.subtract(values[rows], mean, dtype=np.float64)
        centred /= scale
        scaled[rows] = centred
    return scaled


def aligned(shape: tuple[int, ...], precision: np.dtype[Any]) -> np.ndarray:
    """An empty array that begins at a multiple of 64 bytes: any other, JAX would copy."""
    num_bytes = precision.itemsize * int(np.prod(shape))
    memory = np.empty(num_bytes + 64, np.uint8)
    first = -memory.ctypes.data % 64
    return memory[first : first + num_bytes].view(precision).reshape(shape)


def _blocks(values: np.ndarray) -> list[Any]:
    """Slices of rows: a large set in single precision must not become a larger one in double on the way."""
    if values.size <= BLOCK_NUMBERS:
        return [...]
    size = max(1, BLOCK_NUMBERS * len(values) // values.size)
    return [slice(first, first + size) for first in range(0, len(values), size)]


def fitted(x: np.ndarray, y: np.ndarray, counts: np.ndarray | None = None, *, but_last: bool = False) -> Scaling:
    """The scaling to mean 0 and standard deviation 1, of rows that were seen so often.

    `but_last` leaves the last column of x as it is.
    """
    x_mean, x_scale = _moments(x, tuple(range(x.ndim if x.ndim == 3 else x.ndim - 1)), counts)
    if but_last:
        x_mean[-1], x_scale[-1] = 0.0, 1.0
    if y.dtype.kind != "f":
        return Scaling(x_mean, x_scale)
    if is_observed(y).all():
        return Scaling(x_mean, x_scale, *_moments(y, (0,), counts))
    # Each target by the rows in which it is there.
    often = np.ones(len(y)) if counts is None else counts
    there = [(column, is_observed(column)) for column in y.reshape(len(y), -1).T]
    moments = [_moments(column[seen], (0,), None if counts is None else often[seen]) for column, seen in there]
    y_mean, y_scale = (np.reshape(values, y.shape[1:]) for values in zip(*moments, strict=True))
    return Scaling(x_mean, x_scale, y_mean, y_scale)


def _squares(values: np.ndarray, mean: Any) -> Iterator[np.ndarray]:
    """(values − mean)², block by block."""
    for rows in _blocks(values):
        yield np.square(np.subtract(values[rows], mean, dtype=np.float64))


def _moments(
    values: np.ndarray, axes: tuple[int, ...], counts: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    num_terms = np.prod([values.shape[axis] for axis in axes])
    if counts is None:
        mean = np.mean(values, axis=axes, dtype=np.float64)
        scale = np.sqrt(sum(part.sum(axis=axes) for part in _squares(values, mean)) / num_terms)
    else:
        mean = np.asarray(np.average(values.mean(axis=axes[1:], dtype=np.float64), axis=0, weights=counts))
        squares = np.concatenate([part.mean(axis=axes[1:]) for part in _squares(values, mean)])
        scale = np.sqrt(np.average(squares, axis=0, weights=counts))
    # The mean of n equal numbers is off by up to n roundings: a column that spreads no more than that is constant.
    constant = scale <= num_terms * np.finfo(np.float64).eps * np.abs(mean)
    return np.asarray(mean), np.where(constant, 1.0, scale)
