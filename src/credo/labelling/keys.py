"""What people press or type, at the terminal as on the page (keys as in Prodigy).

1 … 9   a class by its place; a digit where all classes are digits; a and x the first and second of two
space   skip             n   none of these         f   flag: something is wrong with it
⌫       undo             q   end: everything is kept
"""

import os
import select
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Literal

from credo._stopping import STOP
from credo._text import nearest

Action = Literal["label", "none", "flag", "skip", "undo", "quit"]
# What is typed in whole words does the same.
ACTIONS: dict[str, Action] = {
    " ": "skip",
    "skip": "skip",
    "n": "none",
    "none": "none",
    "f": "flag",
    "flag": "flag",
    "\x7f": "undo",
    "\b": "undo",
    "undo": "undo",
    "q": "quit",
    "quit": "quit",
}
# How long a signal may wait to be noticed.
SECONDS_BETWEEN = 0.2
MAX_BYTES = 4096


@dataclass(frozen=True)
class Said:
    """What a key or a word means: what to do, and with which label."""

    action: Action
    label: str | None = None


def class_keys(classes: Sequence[str]) -> dict[str, str]:
    """The keys that choose a class.

    >>> class_keys(["cat", "dog"])
    {'1': 'cat', 'a': 'cat', '2': 'dog', 'x': 'dog'}
    """
    if all(len(name) == 1 and name.isdecimal() for name in classes):
        return {name: name for name in classes}
    keys = {str(place): name for place, name in enumerate(classes[:9], start=1)}
    return {"1": classes[0], "a": classes[0], "2": classes[1], "x": classes[1]} if len(classes) == 2 else keys


def meaning(said: str, classes: Sequence[str]) -> Said:
    """What someone means who presses a key, or types a word or the name of a class.

    >>> meaning("2", ["cat", "dog"]), meaning("undo", ["cat", "dog"]).action
    (Said(action='label', label='dog'), 'undo')
    """
    word = said if said in ACTIONS else said.strip()
    if word in classes:
        return Said("label", word)
    keys = class_keys(classes)
    if word in keys:
        return Said("label", keys[word])
    if word.lower() in ACTIONS:
        return Said(ACTIONS[word.lower()])
    hint = nearest(word, (*classes, *ACTIONS))
    raise ValueError(f"{word!r} is neither a key, a class nor a command{hint}")


class Reader:
    """Reads keys one by one where the input is a terminal and every class has a key, and lines elsewhere.

    It notices within moments that the process is asked to stop.
    """

    def __init__(self, classes: Sequence[str], source: IO[str] | None = None) -> None:
        self._handle = (sys.stdin if source is None else source).fileno()
        has_keys = set(class_keys(classes).values()) == set(classes)
        self.by_key = os.isatty(self._handle) and has_keys
        self._left = b""

    @contextmanager
    def ready(self) -> "Iterator[Reader]":
        """This reader; while it lasts, keys arrive as they are pressed, and are not shown."""
        if not self.by_key:
            yield self
            return
        before = termios.tcgetattr(self._handle)
        try:
            tty.setcbreak(self._handle)
            yield self
        finally:
            termios.tcsetattr(self._handle, termios.TCSADRAIN, before)

    def __call__(self) -> str | None:
        """The next key or line; None at the end of the input."""
        while b"\n" not in self._left and not (self.by_key and self._left):
            new = self._read()
            if not new:
                line, self._left = self._left, b""
                return line.decode(errors="replace") or None
            self._left += new
        if self.by_key:
            pressed, self._left = self._left.decode(errors="replace"), b""
            # What a terminal sends for an arrow or a function key is no answer.
            return "" if pressed.startswith("\x1b") else pressed[:1]
        line, _, self._left = self._left.partition(b"\n")
        return line.decode(errors="replace")

    def _read(self) -> bytes:
        while not select.select([self._handle], [], [], SECONDS_BETWEEN)[0]:
            STOP.raise_if_asked()
        return os.read(self._handle, MAX_BYTES)
