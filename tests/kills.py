"""A process that is killed while it writes, as far as a process can do that to itself."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import credo
from credo import _files
from credo.inference.engine import checkpoint


class Killed(BaseException):
    """No error that anyone could catch and go on."""


def write_at_every_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE_OF_TIME", float("inf"))


def kill_at(monkeypatch: pytest.MonkeyPatch, number: int, *, error: BaseException | None = None) -> None:
    """Stop at write number `number`, every other time before the file is in its place, else just after."""
    put, calls = _files.put, iter(range(1, 1_000_000))

    def write(path: Path, how: Callable[[Path], object], **options: Any) -> None:
        call = next(calls)
        if call == number and number % 2 == 0:
            raise error or Killed
        put(path, how, **options)
        if call == number:
            raise error or Killed

    monkeypatch.setattr(_files, "put", write)


def fit_through_kills(
    monkeypatch: pytest.MonkeyPatch, folder: Path, fit: Callable[..., credo.Posterior], *, every: int
) -> tuple[credo.Posterior, int]:
    """A fit that is killed at each of its first writes in turn, and goes on after each; and how often it was."""
    for number in range(1, 1_000, every):
        with monkeypatch.context() as patched:
            kill_at(patched, number)
            try:
                return fit(checkpoint=folder, resume=True), (number - 1) // every
            except Killed:
                continue
    raise AssertionError("the fit never came to its end")
