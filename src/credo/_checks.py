"""Checks that refuse an argument by its name: what was passed, what was expected."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from credo._text import nearest

# Counts are numbers of 32 bits on the device.
LARGEST_COUNT = 2**31 - 1


def require_at_least(minimum: int, **counts: int) -> None:
    """Refuse a count that is not a whole number of at least `minimum`, by its name."""
    for name, count in counts.items():
        if not isinstance(count, int | np.integer) or isinstance(count, bool) or count < minimum:
            raise ValueError(f"{name} must be a whole number of at least {minimum}, got {count!r}")
        if count > LARGEST_COUNT:
            raise ValueError(f"{name} must be at most {LARGEST_COUNT:,}, got {count!r}")


def require_positive(**numbers: Any) -> None:
    """Refuse what is not a positive, finite number, by its name."""
    for name, number in numbers.items():
        value = np.asarray(number)
        if value.shape or value.dtype.kind not in "iuf" or not 0 < value < np.inf:
            raise ValueError(f"{name} must be a positive number, got {number!r}")


def require_fraction(**numbers: Any) -> None:
    """Refuse what is not a number between 0 and 1, by its name."""
    for name, number in numbers.items():
        value = np.asarray(number)
        if value.shape or value.dtype.kind not in "iuf" or not 0 < value < 1:
            raise ValueError(f"{name} must lie between 0 and 1, got {number!r}")


def require_one_of(known: Iterable[Any], **choices: Any) -> None:
    """Refuse a choice that is not known, by its name, and suggest the nearest one."""
    known = list(known)
    for name, choice in choices.items():
        if choice not in known:
            listed = " or ".join(map(repr, known)) if len(known) == 2 else f"one of {', '.join(map(str, known))}"
            raise ValueError(f"{name} must be {listed}, got {choice!r}{nearest(str(choice), filter(None, known))}")
