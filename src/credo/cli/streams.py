"""The streams of the process: there, able to say anything, and quiet when nobody reads them any more."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

NUMBERS = {"stdin": 0, "stdout": 1, "stderr": 2}


def mend() -> None:
    """Open streams that are closed, let those that lack a letter show a question mark, and end with a broken pipe."""
    # As other commands end when `head` has seen enough: Python would raise an error in its place.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for name, number in NUMBERS.items():
        if getattr(sys, name) is None:
            # The next file to be opened would get the number of the stream, and what is said would be written into it.
            _discard(number)
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]


@contextmanager
def closing() -> Iterator[None]:
    """Write out what was said. Where that failed a command has told it already, and Python need not tell it again."""
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                _discard(stream.fileno())


def _discard(number: int) -> None:
    """Let a stream lead nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere != number:
        os.dup2(nowhere, number)
        os.close(nowhere)
