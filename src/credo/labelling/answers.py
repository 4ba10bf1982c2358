"""What people have answered: a log that is only ever appended to, on disk before anyone is told.

    {"format": "credo-answers", "format_version": 1}
    {"item": "7.png", "kind": "label", "label": "cat", "labeller": "ana", "token": "1f…", "time": 1767225600.0, …}

A process that is killed while it appends leaves a last line without an end. Nobody was told that this answer is kept,
so it is cut off; damage anywhere else is refused.
"""

import fcntl
import json
import os
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from credo import _files
from credo._files import LoadError
from credo._schema import Seconds, checked

FORMAT, FORMAT_VERSION = "credo-answers", 1
Kind = Literal["label", "none", "flag", "skip", "undo"]
KINDS: tuple[str, ...] = get_args(Kind)


@dataclass(frozen=True)
class Answer:
    """What one person said of one item.

    Arguments:
        item: its name in the pool.
        kind: "label"; "none" where no class fits; "flag" where something is wrong with the item; "skip" where the
            person would rather not say; "undo" takes back what that person said of the item before.
        label: one of the classes, where the kind is "label".
        labeller: who said it.
        token: of whoever sent it: the same token again is the same answer, not another.
        time: when, in seconds since 1970.
        digest: of what the item holds.
        predicted: what the model took it for before it learned this answer.
        by_chance: whether the item was drawn by chance, so that the model's hits on such items tell its accuracy.
    """

    item: str
    kind: Kind
    label: str | None
    labeller: str
    token: str
    time: Seconds
    digest: str
    predicted: str | None = None
    by_chance: bool = False


class Answers:
    """The log in a file, which one process at a time may append to.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, Answers(Path(folder) / "labels.log.jsonl") as answers:
    ...     answers.append(Answer("7.png", "label", "cat", "ana", "t1", 0.0, "3f"))
    ...     [answer.label for answer in answers.all]
    ['cat']
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if not self.path.exists():
                header = json.dumps({"format": FORMAT, "format_version": FORMAT_VERSION})
                _files.put_bytes(self.path, f"{header}\n".encode())
            self._handle = os.open(self.path, os.O_RDWR | os.O_APPEND)
        except OSError as error:
            raise OSError(
                f"{self.path} cannot be written to ({error.strerror or error}); choose another out=… or mend its "
                "permissions"
            ) from error
        try:
            self._hold()
            self.all, self._num_bytes = _read(self.path, self._handle)
            os.ftruncate(self._handle, self._num_bytes)
        except BaseException:
            os.close(self._handle)
            raise

    def _hold(self) -> None:
        """Hold the file, which the end of the process gives back too, however it comes."""
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise OSError(
                f"another process is labelling into {self.path}; end it first, or choose another out=…"
            ) from error

    def append(self, answer: Answer) -> None:
        """Add an answer: it is on disk when this returns, and not there at all when this raises."""
        line = (json.dumps(asdict(answer), ensure_ascii=True) + "\n").encode()
        with self._lock:
            try:
                _write(self._handle, line)
                os.fsync(self._handle)
            except OSError as error:
                # Half a line must not stand before the next one.
                os.ftruncate(self._handle, self._num_bytes)
                raise OSError(
                    f"{self.path} could not be written ({error.strerror}); this answer is not kept, all before it are"
                ) from error
            self._num_bytes += len(line)
            self.all.append(answer)

    def close(self) -> None:
        """Let others append."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> "Answers":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _write(handle: int, content: bytes) -> None:
    while content:
        content = content[os.write(handle, content) :]


def _read(path: Path, handle: int) -> tuple[list[Answer], int]:
    """The answers of a log, and the number of bytes that they take."""
    content = os.pread(handle, os.fstat(handle).st_size, 0)
    whole = content[: content.rfind(b"\n") + 1]
    lines = whole.split(b"\n")[:-1]
    header = _parsed(path, 1, lines[0] if lines else b"")
    if header.get("format") != FORMAT:
        raise LoadError(f"{path} is not a log of answers; choose another out=…")
    if header.get("format_version") != FORMAT_VERSION:
        raise LoadError(f"{path} has format version {header.get('format_version')}; install a newer credo")
    found = [_answer(path, number, line) for number, line in enumerate(lines[1:], start=2)]
    return found, len(whole)


def _answer(path: Path, number: int, line: bytes) -> Answer:
    return checked(f"{path}, line {number},", _parsed(path, number, line), Answer)


def _parsed(path: Path, number: int, line: bytes) -> dict[str, Any]:
    return _files.parsed(Path(f"{path}, line {number}"), line)
