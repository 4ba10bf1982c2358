"""What JSON may hold, as types: a value that was read is of its type, or refused in one sentence.

The types are those that the values have in memory, dataclasses for the most part; msgspec checks every field on the way
and keeps the ranges that are written beside the type.
"""

from dataclasses import fields, is_dataclass
from typing import Annotated, Any, TypeVar

import msgspec

from credo._files import LoadError

T = TypeVar("T")

Count = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
# Not NaN, which is not at least zero, nor infinite.
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e18)]
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
# A name in the folder itself: no separator, not hidden, no way up.
FileName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=200)]


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
    except (msgspec.ValidationError, RecursionError, OverflowError) as error:
        name = getattr(kind, "__name__", "a value")
        raise LoadError(f"{source} is damaged: {name} does not hold what it should ({error})") from error
