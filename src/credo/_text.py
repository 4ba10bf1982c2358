"""Words for error messages."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint to append to an error: `; did you mean 'nuts'?`, or nothing if no known word is similar.

    >>> nearest("nutz", ["nuts", "hmc"])
    "; did you mean 'nuts'?"
    """
    match = get_close_matches(str(word), list(known), n=1, cutoff=0.5)
    return f"; did you mean {match[0]!r}?" if match else ""
