"""Bars for long work: nothing for short work, nothing in files, and never a change of what comes through."""

import io
import sys
import time

import pytest

from credo import _progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """To be called inside a test: pytest sets stderr anew between a fixture and its test."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    return stream


def slow() -> object:
    for number in range(3):
        time.sleep(0.02)
        yield number


def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = terminal(monkeypatch)
    assert list(_progress.tracked(slow(), 3, "Working")) == [0, 1, 2]
    assert stream.getvalue() == ""


def test_long_work_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = terminal(monkeypatch)
    monkeypatch.setattr(_progress, "PATIENCE_SECONDS", 0.01)
    assert list(_progress.tracked(slow(), 3, "Working")) == [0, 1, 2]
    assert "Working" in stream.getvalue()


def test_files_and_pipes_get_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(_progress, "PATIENCE_SECONDS", 0.0)
    assert list(_progress.tracked(slow(), 3, "Working")) == [0, 1, 2]
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("show", "is_terminal", "shown"), [(None, True, True), (False, True, False), (None, False, False)]
)
def test_steps_show_their_speed_and_a_line(monkeypatch: pytest.MonkeyPatch, show, is_terminal, shown) -> None:
    stream = terminal(monkeypatch)
    monkeypatch.setattr(stream, "isatty", lambda: is_terminal)
    monkeypatch.setenv("COLUMNS", "120")
    with _progress.StepBar("NUTS", 100, show=show) as bar:
        bar.move("NUTS warm-up", 50, "acceptance 0.81")
    said = stream.getvalue()
    assert all((words in said) == shown for words in ("NUTS warm-up", "50%", "steps/s", "acceptance 0.81"))
