"""What a case can come to: the right answer, a polite refusal, or a fault."""

import re
import signal
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType

# How many examples of a case were refused politely or answered rightly, and how many processes or writes were cut off.
REFUSED, RIGHT, KILLS = "refused", "right", "kills"
Outcome = Counter[str]
refused = Counter({REFUSED: 1})
right = Counter({RIGHT: 1})


class Wrong(AssertionError):
    """A wrong answer, a loss, a traceback, a hang: `what` is the same for all cases of one fault."""

    def __init__(self, what: str, details: object = "") -> None:
        super().__init__(f"{what}: {details}" if str(details) else what)
        self.what = what


@dataclass(frozen=True)
class Fault:
    """A case that failed: which fault it shows, and what there is to know about it."""

    name: str
    text: str

    @classmethod
    def of(cls, error: BaseException) -> "Fault":
        kind, where = type(error).__name__, place_of(error.__traceback__)
        name = error.what if isinstance(error, Wrong) else f"{kind} in {where}"
        notes = "\n".join(getattr(error, "__notes__", ()))
        last = "".join(traceback.format_tb((error.__cause__ or error).__traceback__, limit=-4))
        return cls(
            name, "\n".join(part for part in (f"{kind}: {shortened(str(error))}", shortened(notes), last) if part)
        )


def place_of(trace: TracebackType | None) -> str:
    """The innermost function of credo on the way to an error, or the innermost of all."""
    frames = traceback.extract_tb(trace)
    ours = [frame for frame in frames if "/credo/" in frame.filename]
    if not frames:
        return "nowhere"
    last = (ours or frames)[-1]
    return f"{Path(last.filename).name}:{last.name}"


def shortened(text: str, length: int = 2_000) -> str:
    return text if len(text) <= length else f"{text[:length]} … ({len(text):,} characters)"


def require_sentence(error: BaseException) -> None:
    """What a refusal says is one line, and not a novel."""
    said = str(error)
    if not said.strip() or len(said.strip().splitlines()) > 1 or len(said) > 2_000:
        raise Wrong(f"{type(error).__name__} does not say it in one sentence", repr(shortened(said))) from error


def require_one_line(code: int, stderr: str, *, allowed: tuple[int, ...] = (0, 2)) -> None:
    """What a command line may do: end well, or say in one line why not; notes may stand before that."""
    if "Traceback (most recent call last)" in stderr or "terminate called" in stderr:
        raise Wrong(f"a traceback: {last_frame(stderr)}", f"exit code {code}\n{shortened(stderr[-1_500:])}")
    if code not in allowed:
        raise Wrong(f"exit code {code} in place of {' or '.join(map(str, allowed))}", shortened(stderr[-1_500:]))
    lines = [line for line in stderr.splitlines() if line.strip() and not line.startswith("credo: note: ")]
    if len(lines) > (1 if code else 0):
        raise Wrong(f"{len(lines)} lines on stderr with exit code {code}", shortened(stderr))
    if code == 2 and not lines:
        raise Wrong("exit code 2 without a word")


def last_frame(stderr: str) -> str:
    """Where a printed traceback ends: the innermost function of credo and the kind of the error, or what it says."""
    frames = re.findall(r'File "[^"]*/credo/([^"]*)", line \d+, in (\S+)', stderr)
    kinds = re.findall(r"^([A-Za-z_.]*(?:Error|Exception|Interrupt|Exit))\b", stderr, re.MULTILINE)
    if frames and kinds:
        return f"{kinds[-1]} in {':'.join(frames[-1])}"
    return stderr.strip().splitlines()[-1][:120]


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """A case of the own process that takes longer hangs. Only code that comes back to Python can be stopped so."""

    def stop(_: int, __: FrameType | None) -> None:
        raise Wrong(f"no answer within {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
