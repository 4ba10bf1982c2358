"""How small: a size in bytes, from what people write."""

import math
import re
from typing import Any

from credo._text import size_in_words

UNITS = {"": 1, "b": 1, "bytes": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_SIZE = re.compile(r"\s*([0-9][0-9_,]*(?:\.[0-9]+)?|\.[0-9]+)\s*(%|[a-z]*)\s*", re.IGNORECASE)


def as_bytes(to: Any, whole: int) -> int:
    """The bytes that `to` stands for, less than `whole` of them.

    Arguments:
        to: "1%", a share below one such as 0.01, a number of bytes, or "200 kB".
        whole: the bytes of what is to become smaller.

    >>> as_bytes("1%", 50_000), as_bytes(0.02, 50_000), as_bytes("1.5 kB", 50_000), as_bytes(2000, 50_000)
    (500, 1000, 1500, 2000)
    """
    num_bytes = int(_read(to) if not _is_share(to) else _read(to) * whole)
    if num_bytes >= whole:
        raise ValueError(
            f"to={to!r} is {size_in_words(num_bytes)}, and the posterior takes {size_in_words(whole)}: that would be "
            "no compression; ask for less, such as to='2%'"
        )
    if num_bytes < 1:
        raise ValueError(f"to={to!r} of {size_in_words(whole)} is less than a byte; ask for more, such as to='2%'")
    return num_bytes


def _is_share(to: Any) -> bool:
    return to.strip().endswith("%") if isinstance(to, str) else isinstance(to, float) and to < 1


def _read(to: Any) -> float:
    """The number in `to`, in bytes or as a share."""
    if isinstance(to, int | float) and not isinstance(to, bool) and 0 < to < math.inf:
        return to
    found = _SIZE.fullmatch(to) if isinstance(to, str) else None
    if found and found[2] == "%":
        return float(found[1].replace(",", "")) / 100
    if found and found[2].lower() in UNITS:
        return float(found[1].replace(",", "").replace("_", "")) * UNITS[found[2].lower()]
    raise ValueError(f"to must be a share such as '1%' or 0.01, or a size such as 200_000 or '200 kB', got {to!r}")
