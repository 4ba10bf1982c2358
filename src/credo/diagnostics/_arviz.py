"""ArviZ, imported without the notice about its next major version that it prints to every user."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)
    import arviz

_LOCK = threading.Lock()


@contextmanager
def quiet() -> Iterator[None]:
    """While it lasts, ArviZ warns of nothing.

    Python has one list of filters for all threads: of two that change it at once, the last would leave behind what the
    first had set. So they come one after another, and the warnings of others are heard.
    """
    with _LOCK, warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="arviz")
        yield


__all__ = ["arviz", "quiet"]
