"""Streams that are closed, full, or lack letters; names that are not only letters. Never a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from credo._text import visible
from credo.cli.streams import mend
from credo.cli.voice import Voice
from credo.examples import page

FULL = Path("/dev/full")


def shell(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = script.replace("credo", f"{sys.executable} -m credo.cli")
    settings = os.environ | environment
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=settings, check=False)


def test_a_closed_stdout_is_nobody_listening(tmp_path):
    script = "from credo.cli.streams import mend; mend(); from credo.cli.voice import Voice; file = open('file', 'w');"
    script += "Voice().table(['column'], [['price']]); Voice().say('words')"
    command = ["bash", "-c", f'{sys.executable} -c "{script}" >&-']
    found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (found.returncode, found.stderr) == (0, "")
    assert (tmp_path / "file").read_text() == "", "a file that was opened in its place"


def test_a_reader_that_has_seen_enough():
    found = shell("credo --help | head -1; exit ${PIPESTATUS[0]}")
    assert found.returncode in (0, 141)
    assert found.stderr == ""


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
def test_a_full_stdout_is_one_line(tmp_path):
    found = shell(f"credo example table --out {tmp_path} > {FULL}")
    assert (found.returncode, found.stderr) == (2, "credo: No space left on device\n")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_letters_that_a_terminal_lacks(encoding):
    """Boxes of tables, Greek and signs."""
    script = (
        "from credo.cli.streams import mend; mend(); from credo.cli.voice import Voice; voice = Voice();"
        "voice.table(['σ ≥ 1'], [['… Zürich']]); voice.say('σ ≥ 1'); Voice(as_json=True).result({'city': 'Łódź'})"
    )
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, env=environment, check=False)
    assert (found.returncode, found.stderr) == (0, b"")
    said = found.stdout.decode(encoding)
    assert "? ? 1" in said
    assert "+---" in said
    assert r"\u0141\u00f3d\u017a" in said, "what machines read has all letters"


def test_streams_that_are_there_stay(capsys):
    before = sys.stdin, sys.stdout, sys.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("signal.signal", lambda *_: None)
        for stream in (sys.stdout, sys.stderr):
            patch.setattr(stream, "reconfigure", lambda **_: None, raising=False)
        mend()
    assert (sys.stdin, sys.stdout, sys.stderr) == before


def test_a_terminal_obeys_no_name(capsys):
    name = "\x1b[31mred\x07 \u202eback \udcff [/bold]"
    voice = Voice()
    voice.say(name)
    voice.table(["column"], [[name]])
    said = capsys.readouterr().out
    assert not set("\x1b\x07\u202e\udcff") & set(said)
    assert said.count(r"\x1b[31mred\x07 \u202eback \udcff [/bold]") == 2


def test_what_is_visible_stays():
    for text in ("Zürich, 北京, שלום, \U0001f600", "two\nlines\tapart", ""):
        assert visible(text) == text


def test_a_folder_whose_name_is_markup(tmp_path, capsys):
    out = tmp_path / "a[" / "b]"
    out.mkdir(parents=True)
    page.finish(out, "Words")
    assert "a[/b]:" in capsys.readouterr().out


def test_a_process_without_a_console(monkeypatch):
    """As under pythonw, or a service that closes its streams."""
    from credo._progress import StepBar, tracked, working

    monkeypatch.setattr(sys, "stderr", None)
    with working("Computing"), StepBar("Fit", 3):
        assert list(tracked([1, 2], 2, "Counting")) == [1, 2]
