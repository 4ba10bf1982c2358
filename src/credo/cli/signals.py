"""Signals: one line and the exit code that shells expect, at every moment from the first on.

They are blocked everywhere and awaited in a thread of their own, so that neither imports nor compiled code ever see
them. While a fit has something to save, the first one asks it to stop; any other ends the process at once, which is
safe because every file is whole or not there.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from credo._stopping import STOP

AWAITED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Forget the line of a progress bar, and show the cursor that it has hidden.
CLEARED = "\r\x1b[2K\x1b[?25h"

_advice: list[Callable[[], str]] = []


def watch() -> None:
    """Answer signals from now on. Those that the process was told to ignore, as by nohup, stay ignored."""
    awaited = {number for number in AWAITED if signal.getsignal(number) is not signal.SIG_IGN}
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    threading.Thread(target=_answer, args=(awaited,), name="signals", daemon=True).start()


@contextmanager
def advising(advice: Callable[[], str]) -> Iterator[None]:
    """What to say if the process, or what it does, is stopped meanwhile."""
    _advice.append(advice)
    try:
        yield
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(advice()) from stop
    finally:
        _advice.pop()


def exit_code() -> int:
    """Of a process that was stopped: 128 and the number of the signal, 130 for Ctrl-C."""
    return 128 + (STOP.signal or signal.SIGINT)


def _answer(awaited: set[signal.Signals]) -> None:
    while True:
        number = signal.sigwait(awaited)
        if not STOP.ask(number):
            _leave(number)


def _leave(number: int) -> None:
    """End the process: what is half written goes, and one line says what to do."""
    for path in tuple(STOP.unfinished):
        path.unlink(missing_ok=True)
    said = "; ".join(["credo: interrupted", *filter(None, (advice() for advice in _advice))])
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    try:
        os.write(2 if sys.stderr is None else sys.stderr.fileno(), f"{CLEARED if is_terminal else ''}{said}\n".encode())
    finally:
        os._exit(128 + number)
