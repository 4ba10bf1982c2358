"""A stop that is asked for from outside, as by a signal to the command line.

An exception that a signal raises wherever the process happens to be is lost in the midst of an import or of compiled
code, or crashes it. So none is raised: who has something to save listens, and looks between two pieces of work whether
a stop was asked for. Where nobody listens there is nothing to lose, and the process may end at once.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class Stop:
    """Whether this process was asked to stop, who listens, and which files are not yet whole."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.unfinished: set[Path] = set()
        self._num_listeners = 0
        self._lock = threading.Lock()

    def ask(self, signal: int) -> bool:
        """Ask for a stop; False if nobody listens, or if it is not the first time."""
        with self._lock:
            is_heard = self._num_listeners > 0 and self.signal is None
            if is_heard:
                self.signal = signal
            return is_heard

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Listen meanwhile, and stop at the end at the latest."""
        with self.listening():
            yield
        self.raise_if_asked()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen meanwhile."""
        with self._lock:
            self._num_listeners += 1
        try:
            yield
        finally:
            with self._lock:
                self._num_listeners -= 1

    def raise_if_asked(self) -> None:
        """The stop that was asked for as the KeyboardInterrupt that Ctrl-C is elsewhere."""
        if self.signal is not None:
            raise KeyboardInterrupt

    @contextmanager
    def removing(self, path: "Path") -> Iterator[None]:
        """A file that must not stay behind if the process ends meanwhile."""
        self.unfinished.add(path)
        try:
            yield
        finally:
            self.unfinished.discard(path)


# A signal reaches a process, so there is one.
STOP = Stop()
