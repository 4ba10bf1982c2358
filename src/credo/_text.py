"""Words for error messages and tables."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint to append to an error: `; did you mean 'nuts'?`, or nothing if no known word is similar.

    >>> nearest("nutz", ["nuts", "hmc"])
    "; did you mean 'nuts'?"
    """
    match = get_close_matches(str(word), list(known), n=1, cutoff=0.5)
    return f"; did you mean {match[0]!r}?" if match else ""


def in_bytes(num: float) -> str:
    """A size that people read.

    >>> in_bytes(3_500_000)
    '3.5 MB'
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if num < 1000:
            return f"{num:.3g} {unit}"
        num /= 1000
    return f"{num:.3g} TB"
