"""The log of answers: on disk before anyone is told, whole after any kill, and refused where it is damaged."""

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from credo import LoadError
from credo.labelling import answers as module
from credo.labelling.answers import Answer, Answers
from tests.kills import Killed


def said(number: int, label: str = "cat") -> Answer:
    return Answer(f"{number}.png", "label", label, "ana", f"token {number}", float(number), "3f")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log with three answers."""
    path = tmp_path / "labels.csv.log.jsonl"
    with Answers(path) as answers:
        for number in range(3):
            answers.append(said(number))
    return path


def read(path: Path) -> list[Answer]:
    with Answers(path) as answers:
        return list(answers.all)


def test_answers_come_back_as_they_were(log: Path) -> None:
    assert read(log) == [said(0), said(1), said(2)]


def test_a_log_cut_anywhere_keeps_every_whole_line_and_goes_on(log: Path) -> None:
    content = log.read_bytes()
    header = content.index(b"\n") + 1
    for end in range(header, len(content)):
        log.write_bytes(content[:end])
        whole = content[:end].count(b"\n") - 1
        with Answers(log) as answers:
            assert answers.all == [said(number) for number in range(whole)]
            answers.append(said(9))
        assert read(log) == [*(said(number) for number in range(whole)), said(9)]


@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.parametrize("damage", [b'{"item": "7"}', b"", b"\x00\x00", b"[1]", b'{"item": "7", "kind": "no"}'])
def test_damage_in_the_midst_is_refused_with_its_line(log: Path, number: int, damage: bytes) -> None:
    lines = log.read_bytes().split(b"\n")
    lines[number - 1] = damage
    log.write_bytes(b"\n".join(lines))
    with pytest.raises(LoadError, match=f"line {number}"):
        Answers(log)


def test_a_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "notes.jsonl"
    other.write_text('{"format": "something"}\n')
    with pytest.raises(LoadError, match="not a log of answers"):
        Answers(other)


def test_a_log_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    newer = tmp_path / "newer.jsonl"
    newer.write_text(json.dumps({"format": module.FORMAT, "format_version": 99}) + "\n")
    with pytest.raises(LoadError, match="newer credo"):
        Answers(newer)


def test_one_process_at_a_time(log: Path) -> None:
    with Answers(log), pytest.raises(OSError, match="another process is labelling"):
        Answers(log)
    assert len(read(log)) == 3


def test_a_place_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"cannot be written to .* choose another out"):
        Answers(tmp_path / "file" / "labels.csv.log.jsonl")


@pytest.mark.parametrize("step", ["write", "half", "fsync"])
def test_an_answer_that_does_not_reach_the_disk_is_not_there(
    log: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A full disk is told, and the next answer stands on a line of its own."""
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    write = os.write

    def fail(handle: int, content: bytes = b"") -> int:
        if step == "half":
            write(handle, content[: len(content) // 2])
        raise full

    with Answers(log) as answers:
        with monkeypatch.context() as patched:
            patched.setattr(module.os, "fsync" if step == "fsync" else "write", fail)
            with pytest.raises(OSError, match="this answer is not kept, all before it are"):
                answers.append(said(3))
        assert len(answers.all) == 3
        answers.append(said(4))
    assert read(log) == [said(0), said(1), said(2), said(4)]


@pytest.mark.parametrize("written", [0.0, 0.5, 1.0])
def test_killed_while_it_appends(log: Path, monkeypatch: pytest.MonkeyPatch, written: float) -> None:
    """What was acknowledged is there; the answer on its way is there whole or not at all."""
    write = os.write

    def killed(handle: int, content: bytes) -> int:
        write(handle, content[: round(written * len(content))])
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(module.os, "write", killed)
        answers = Answers(log)
        with pytest.raises(Killed):
            answers.append(said(3))
        answers.close()  # as the end of the process does
    assert read(log) == [said(number) for number in range(4 if written == 1 else 3)]


# Says each number once its answer is kept.
APPENDING = """
import sys
from credo.labelling.answers import Answer, Answers
with Answers(sys.argv[1]) as answers:
    for number in range(len(answers.all), 100_000):
        answers.append(Answer(f"{number}.png", "label", "cat", "ana", f"token {number}", float(number), "3f"))
        print(number, flush=True)
"""


@pytest.mark.parametrize("num_kills", [3, pytest.param(40, marks=pytest.mark.full)])
def test_real_kills_lose_nothing_that_was_acknowledged(tmp_path: Path, num_kills: int) -> None:
    log = tmp_path / "labels.csv.log.jsonl"
    for kill in range(num_kills):
        process = subprocess.Popen([sys.executable, "-c", APPENDING, str(log)], stdout=subprocess.PIPE, text=True)
        seen = [int(process.stdout.readline()) for _ in range(5 + kill)]
        process.send_signal(signal.SIGKILL)
        seen += [int(line) for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        process.wait()
        kept = read(log)
        assert kept == [said(number) for number in range(len(kept))]
        assert len(kept) in (seen[-1] + 1, seen[-1] + 2)
