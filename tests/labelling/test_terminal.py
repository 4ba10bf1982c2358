"""Labelling at the terminal: keys, lines, the end of the input, and Ctrl-C."""

import io
import os
import pty
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from typer.testing import CliRunner

from credo._stopping import STOP
from credo.cli import app
from credo.labelling.keys import Reader, Said, class_keys, meaning
from credo.labelling.opening import opened
from credo.labelling.session import Labelling
from credo.labelling.terminal import label_at_terminal, oracle_at_terminal
from credo.labelling.view import View
from tests.labelling.serving import CLASSES, lines

MANY = tuple(f"kind {number}" for number in range(12))
# Longer than any machine takes to start.
PATIENCE_SECONDS = 300


@pytest.fixture
def labelling(tmp_path: Path) -> Iterator[Labelling]:
    with opened(lines(tmp_path, 6), tmp_path / "labels.csv", classes=CLASSES) as found:
        yield found


def asked(labelling: Labelling, *words: str) -> str:
    """What is shown to someone who presses or types this."""
    source, shown = iter(words), io.StringIO()
    label_at_terminal(labelling, "ana", console=Console(file=shown, width=200), read=lambda: next(source, None))
    return shown.getvalue()


def stands(labelling: Labelling) -> list[tuple[str, str, str | None]]:
    return [(one.item, one.kind, one.label) for said in labelling.said().values() for one in said]


@pytest.mark.parametrize(
    ("said", "classes", "meant"),
    [
        ("1", CLASSES, Said("label", "even")),
        ("a", CLASSES, Said("label", "even")),
        ("x", CLASSES, Said("label", "odd")),
        ("odd", CLASSES, Said("label", "odd")),
        ("0", ("0", "1"), Said("label", "0")),
        ("a", MANY, None),
        ("9", MANY, Said("label", "kind 8")),
        ("kind 11", MANY, Said("label", "kind 11")),
        (" ", CLASSES, Said("skip")),
        ("f", CLASSES, Said("flag")),
        ("f", ("f", "m"), Said("label", "f")),
        ("n", CLASSES, Said("none")),
        ("\x7f", CLASSES, Said("undo")),
        ("Undo ", CLASSES, Said("undo")),
        ("q", CLASSES, Said("quit")),
    ],
)
def test_keys_and_words(said: str, classes: tuple[str, ...], meant: Said | None) -> None:
    if meant is None:
        with pytest.raises(ValueError, match="neither a key, a class nor a command"):
            meaning(said, classes)
    else:
        assert meaning(said, classes) == meant


def test_no_class_has_the_key_of_another() -> None:
    assert class_keys(MANY) == {str(number): f"kind {number - 1}" for number in range(1, 10)}


def test_each_key_is_kept_at_once(labelling: Labelling) -> None:
    asked(labelling, "2", "a", "\x7f", "odd", " ", "f", "n", "q", "1")
    assert stands(labelling) == [
        ("1", "label", "odd"),
        ("2", "label", "odd"),
        ("3", "skip", None),
        ("4", "flag", None),
        ("5", "none", None),
    ]


def test_what_means_nothing_is_told_and_asked_again(labelling: Labelling) -> None:
    shown = asked(labelling, "evn", "", "even")
    assert "'evn' is neither a key, a class nor a command; did you mean 'even'?" in shown
    assert stands(labelling) == [("1", "label", "even")]


def test_undo_of_nothing_is_told(labelling: Labelling) -> None:
    assert "there is nothing to undo" in asked(labelling, "undo")


def test_it_ends_when_all_is_labelled(labelling: Labelling) -> None:
    assert "all is labelled" in asked(labelling, *["1"] * 9)


def test_a_person_is_an_oracle_of_rows(labelling: Labelling) -> None:
    words = iter(["2", "x", "skip", "1", "q"])
    oracle = oracle_at_terminal(labelling, "ana", console=Console(file=io.StringIO()), read=lambda: next(words, None))
    assert [oracle(row) for row in (4, 2, 0, 4)] == [1, 1, None, 1]
    assert oracle(1) == 0
    with pytest.raises(EOFError):
        oracle(5)
    assert stands(labelling) == [
        ("1", "skip", None),
        ("2", "label", "even"),
        ("3", "label", "odd"),
        ("5", "label", "odd"),
    ]


def test_belief_and_reason_are_shown_and_nothing_is_obeyed(tmp_path: Path) -> None:
    pool = tmp_path / "lines.txt"
    pool.write_text("harmless \x1b[31m red\nother\n")
    with opened(pool, tmp_path / "labels.csv", classes=CLASSES) as labelling:
        probs = np.tile(np.array([0.25, 0.75], np.float32), (4, 2, 1))
        probs[0] = [0.9, 0.1]
        labelling.publish(View(np.arange(2), probs, 1))
        shown = asked(labelling)
    assert "\x1b[31m" not in shown
    assert "41%" in shown
    assert "why: the sampled models disagree: of 4, 3 say odd, 1 says even" in shown


def test_lines_come_one_by_one_and_the_last_needs_no_end() -> None:
    ours, theirs = os.pipe()
    with os.fdopen(ours) as source:
        os.write(theirs, b"even\nodd\nq")
        os.close(theirs)
        reader = Reader(MANY, source)
        assert [reader() for _ in range(4)] == ["even", "odd", "q", None]


def test_keys_come_as_they_are_pressed() -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs) as terminal:
        reader = Reader(CLASSES, terminal)
        assert reader.by_key
        assert not Reader(MANY, terminal).by_key
        with reader.ready():
            for pressed, read in ((b"1", "1"), (b"\x7f", "\x7f"), (b"\x1b[A", "")):
                os.write(ours, pressed)
                assert reader() == read
    os.close(ours)


def test_who_waits_for_a_key_notices_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.pipe()
    with os.fdopen(ours) as source:
        reader = Reader(CLASSES, source)
        threading.Timer(0.1, lambda: monkeypatch.setattr(STOP, "signal", signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            reader()
    os.close(theirs)


def test_the_command_labels_a_table_and_says_what_is_next(tmp_path: Path) -> None:
    pool = tmp_path / "rooms.csv"
    pool.write_text("size,kind\n3,flat\n9,house\n4,\n8,\n")
    out = tmp_path / "labels.csv"
    command = [sys.executable, "-m", "credo.cli", "label", str(pool), "--target", "kind", "--out", str(out)]
    done = subprocess.run([*command, "--labeller", "ana"], input="1\n2\n", capture_output=True, text=True, check=True)
    assert f"credo fit {out} --target kind --drop item,answer,labellers,disagreement" in done.stdout.replace("\n", " ")
    table = pl.read_csv(out)
    assert table["kind"].to_list()[:2] == ["flat", "house"]
    assert sorted(table["kind"].to_list()[2:]) == ["flat", "house"]
    assert table.columns == ["item", "size", "kind", "answer", "labellers", "disagreement"]


def test_a_stop_keeps_everything(tmp_path: Path) -> None:
    """By SIGTERM, which is answered as Ctrl-C is: who runs tests in the background has that one ignored."""
    out = tmp_path / "labels.csv"
    command = [sys.executable, "-m", "credo.cli", "label", str(lines(tmp_path, 9)), "--classes", "even,odd"]
    process = subprocess.Popen(
        [*command, "--out", str(out), "--labeller", "ana"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    os.write(process.stdin.fileno(), b"1\n2\n")
    seen = b""
    while seen.count("→".encode()) < 2:
        assert select.select([process.stdout], [], [], PATIENCE_SECONDS)[0]
        seen += os.read(process.stdout.fileno(), 4096)
    process.send_signal(signal.SIGTERM)
    process.wait(PATIENCE_SECONDS)
    with process.stdin, process.stdout, process.stderr:
        # The model that was learning says that it was interrupted, too.
        said = [line for line in process.stderr.read().decode().splitlines() if not line.startswith("credo: note:")]
    assert len(said) == 1
    assert said[0].startswith("credo: interrupted; every answer is kept")
    assert process.returncode == 128 + signal.SIGTERM
    assert len(pl.read_csv(out)) == 2


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "name at least two classes"),
        (("--classes", "even"), "pass at least two names"),
        (("--classes", "even,odd", "--method", "nutz"), "did you mean 'nuts'"),
        (("--classes", "even,odd", "--out", "labels.txt"), "name a file that ends in .csv or .parquet"),
    ],
)
def test_what_can_be_mended_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["label", str(lines(tmp_path)), *options])
    assert done.exit_code == 2, done.output
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1
