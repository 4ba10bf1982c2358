"""Words for messages and errors."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint to append to an error: `; did you mean 'nuts'?`, or nothing if no known word is similar.

    >>> nearest("nutz", ["nuts", "hmc"])
    "; did you mean 'nuts'?"
    """
    match = get_close_matches(str(word), list(known), n=1, cutoff=0.5)
    return f"; did you mean {match[0]!r}?" if match else ""


def size_in_words(num_bytes: float) -> str:
    """A size that people read.

    >>> size_in_words(3_500_000)
    '3.5 MB'
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if num_bytes < 1000:
            return f"{num_bytes:.3g} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:.3g} TB"
