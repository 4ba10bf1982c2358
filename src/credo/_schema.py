"""What JSON may hold, as types: a value that was read is of its type, or refused in one sentence.

The types are those that the values have in memory, dataclasses for the most part; msgspec checks every field on the way
and keeps the ranges that are written beside the type.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np

from credo._files import LoadError

T = TypeVar("T")

Count = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
# Not NaN, which is not at least zero, nor infinite.
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e18)]
Seed = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
# A name in the folder itself: no separator, not hidden, no way up.
FileName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=200)]


# What code raises that is given something else than it was written for.
BROKEN = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    StopIteration,
    TypeError,
    ValueError,
)


@contextmanager
def reading(source: Any, what: str) -> Iterator[None]:
    """Where something is made again of a description that was read: what does not fit together is a LoadError."""
    try:
        yield
    except LoadError:
        raise
    except BROKEN as error:
        said = str(error).strip().partition("\n")[0] or type(error).__name__
        raise LoadError(f"{source} cannot be read: its {what} does not fit together ({said})") from error


def checked(source: Any, stored: Any, kind: type[T]) -> T:
    """What was stored, as a value of this type.

    Arguments:
        source: where it was read, for the error.

    >>> checked("columns.json", 3, Count)
    3
    """
    if is_dataclass(kind) and isinstance(stored, dict):
        known = {field.name for field in fields(kind)}
        if strange := sorted(map(str, stored.keys() - known)):
            raise LoadError(f"{source} is damaged: {kind.__name__} has no field {strange[0]!r}")
    try:
        return msgspec.convert(stored, kind)
    except (msgspec.ValidationError, RecursionError, OverflowError, UnicodeError) as error:
        name = getattr(kind, "__name__", "a value")
        raise LoadError(f"{source} is damaged: {name} does not hold what it should ({error})") from error


def require_numbers(
    source: Any,
    name: str,
    array: np.ndarray,
    *,
    shape: tuple[int, ...] | None = None,
    least: float | None = None,
    positive: bool = False,
    short: bool = False,
) -> np.ndarray:
    """Refuse an array that does not hold finite floating-point numbers of that shape; returns it.

    Arguments:
        name: of the array, for the error.
        shape: that it must have; None for any.
        least: no number may be smaller.
        positive: whether all numbers must be above zero.
        short: whether they are bfloat16, and not of single or double precision.
    """
    if array.dtype.name not in (("bfloat16",) if short else ("float32", "float64")):
        raise LoadError(f"{source} is damaged: {name} holds {array.dtype}, and should hold floating-point numbers")
    if shape is not None and array.shape != shape:
        raise LoadError(f"{source} does not fit the model: {name} has the shape {array.shape}, and should have {shape}")
    if not np.all(np.isfinite(array)):
        raise LoadError(f"{source} is damaged: {name} holds numbers that are not finite")
    if (least is not None and np.any(array < least)) or (positive and not np.all(array > 0)):
        raise LoadError(f"{source} is damaged: {name} holds numbers that are too small")
    return array


def require_weights(source: Any, weights: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray | None:
    """Refuse weights that are negative or do not add up to one; None weighs all alike."""
    if weights is None:
        return None
    require_numbers(source, "weights", weights, shape=shape, least=0.0)
    # Single precision, and sums of many.
    if abs(float(np.sum(weights, dtype=np.float64)) - 1) > 1e-3:
        raise LoadError(f"{source} is damaged: its weights do not add up to one")
    return weights
