"""Runs cases of all kinds side by side for a given time, and tells what they came to.

A piece of a kind runs in a process of its own, which reports each case as it begins and as it ends: a process that dies
or hangs is a fault of the case that it was at, and the piece goes on after it. A case is a function of the seed and of
its number, so that it can be played again alone.
"""

import json
import os
import select
import shutil
import subprocess
import sys
import time
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import numpy as np

from tests.attack.kinds import KINDS, prepare
from tests.attack.outcomes import KILLS, REFUSED, RIGHT, Fault, Outcome

# A process that runs longer than this is followed by a fresh one: what it has compiled and cached goes with it.
SECONDS_PER_PIECE = 240.0
# Numbers of cases that belong to one piece.
CASES_PER_PIECE = 1_000_000
# A case that takes longer hangs.
PATIENCE = 300.0
# After so many deaths of its process a piece is given up.
MAX_DEATHS = 5


@dataclass(frozen=True)
class Piece:
    """Some seconds of one kind, or one case."""

    kind: str
    seed: int
    first: int
    seconds: float
    only_one: bool = False


@dataclass
class Tally:
    """What the cases of a kind have come to."""

    outcomes: Outcome = field(default_factory=Counter)
    num_failures: int = 0
    seconds: float = 0.0

    @property
    def num_cases(self) -> int:
        return self.outcomes[REFUSED] + self.outcomes[RIGHT] + self.num_failures


@dataclass
class Found:
    """A distinct fault: the first case that showed it, and how many did."""

    kind: str
    case: int
    fault: Fault
    times: int = 1


@dataclass
class Results:
    """What all pieces have come to."""

    seed: int
    tallies: dict[str, Tally] = field(default_factory=dict)
    faults: dict[tuple[str, str], Found] = field(default_factory=dict)

    def of(self, kind: str) -> Tally:
        return self.tallies.setdefault(kind, Tally())

    def failed(self, kind: str, case: int, fault: Fault) -> None:
        self.of(kind).num_failures += 1
        if found := self.faults.get((kind, fault.name)):
            found.times += 1
        else:
            self.faults[kind, fault.name] = Found(kind, case, fault)


def pieces(seed: int, minutes: float, names: Iterable[str], lanes: int) -> Iterator[Piece]:
    """The time of all lanes split over the kinds by their shares, in pieces that take turns."""
    chosen = {name: KINDS[name] for name in names}
    whole = sum(kind.share for kind in chosen.values())
    left = {name: 60 * minutes * lanes * kind.share / whole for name, kind in chosen.items()}
    for round_ in count():
        if not left:
            return
        for name in list(left):
            seconds = min(left[name], SECONDS_PER_PIECE)
            yield Piece(name, seed, round_ * CASES_PER_PIECE, seconds)
            left[name] -= seconds
            if left[name] < 1.0:
                del left[name]


def run(todo: Iterable[Piece], folder: Path, results: Results, lanes: int) -> None:
    """Work through the pieces, some at a time."""
    queue = deque(todo)

    def lane() -> None:
        while queue:
            follow(queue.popleft(), folder, results)

    with ThreadPoolExecutor(lanes) as pool:
        for done in [pool.submit(lane) for _ in range(lanes)]:
            done.result()


def follow(piece: Piece, folder: Path, results: Results) -> None:
    """Run a piece in processes of its own, a fresh one after each that died."""
    began, first = time.monotonic(), piece.first
    for _ in range(MAX_DEATHS):
        rest = piece.seconds - (time.monotonic() - began)
        died_at = _followed(Piece(piece.kind, piece.seed, first, rest, piece.only_one), folder, results)
        if died_at is None or piece.only_one or rest <= 0:
            break
        first = died_at + 1
    results.of(piece.kind).seconds += time.monotonic() - began


def _followed(piece: Piece, folder: Path, results: Results) -> int | None:
    """Run one process; returns the number of the case at which it died, if it did."""
    reader, writer = os.pipe()
    log = folder / f"{piece.kind}-{piece.first}.log"
    with log.open("wb") as words:
        arguments = [piece.kind, piece.seed, piece.first, piece.seconds, int(piece.only_one), folder, writer]
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.attack.worker", *map(str, arguments)],
            stdout=words,
            stderr=words,
            stdin=subprocess.DEVNULL,
            pass_fds=[writer],
            start_new_session=True,
        )
    os.close(writer)
    at, is_hanging = piece.first, False
    with os.fdopen(reader, "r") as lines:
        while not is_hanging:
            is_hanging = not select.select([lines], [], [], PATIENCE)[0]
            line = "" if is_hanging else lines.readline()
            if not line:
                break
            at = _noted(json.loads(line), piece, results)
    if is_hanging:
        process.kill()
    code = process.wait()
    if code == 0:
        return None
    said = log.read_text(errors="replace")[-2_000:]
    results.failed(piece.kind, at, Fault("a hang" if is_hanging else f"the process died ({code})", said))
    return at


def _noted(report: dict, piece: Piece, results: Results) -> int:
    if "outcome" in report:
        results.of(piece.kind).outcomes.update(report["outcome"])
    elif "fault" in report:
        results.failed(piece.kind, report["case"], Fault(*report["fault"]))
    return report["case"]


def work(piece: Piece, folder: Path, tell: Callable[[dict], None]) -> None:
    """The cases of a piece, in this process, until its time is over."""
    deadline = time.monotonic() + piece.seconds
    tell({"case": piece.first})
    case = prepare(piece.kind, folder)
    for number in range(piece.first, piece.first + (1 if piece.only_one else CASES_PER_PIECE)):
        tell({"case": number})
        try:
            tell({"case": number, "outcome": case(generator(piece.kind, piece.seed, number))})
        except Exception as error:
            fault = Fault.of(error)
            tell({"case": number, "fault": [fault.name, fault.text]})
        if time.monotonic() >= deadline:
            break


def generator(kind: str, seed: int, number: int) -> np.random.Generator:
    """The randomness of one case."""
    return np.random.default_rng([zlib.crc32(kind.encode()), seed, number])


def remove(folder: Path) -> None:
    """Remove what the pieces have left, also small disks that are still mounted there."""
    mounts = Path("/proc/mounts")
    for line in mounts.read_text().splitlines() if mounts.exists() else ():
        if line.split()[1].startswith(f"{folder}/"):
            subprocess.run(["umount", "-l", line.split()[1]], check=False)
    shutil.rmtree(folder, ignore_errors=True)


def total(results: Results) -> Tally:
    whole = Tally()
    for one in results.tallies.values():
        whole.outcomes.update(one.outcomes)
        whole.num_failures += one.num_failures
        whole.seconds += one.seconds
    return whole


def rows(results: Results) -> list[tuple[str, ...]]:
    """The table: a row for each kind, and their sum."""
    named = [(name, results.tallies[name]) for name in KINDS if name in results.tallies]
    return [
        (
            name,
            f"{one.num_cases:,}",
            f"{one.outcomes[REFUSED]:,}",
            f"{one.outcomes[RIGHT]:,}",
            f"{one.outcomes[KILLS]:,}",
            f"{one.num_failures:,}",
            f"{one.seconds:,.0f}",
        )
        for name, one in [*named, ("all", total(results))]
    ]


HEAD = ("kind", "cases", "refused politely", "right answer", "kills", "failures", "seconds")


def markdown(results: Results) -> str:
    """The table for docs/attack.md."""
    rule = ("---", *["---:"] * (len(HEAD) - 1))
    return "".join(f"| {' | '.join(row)} |\n" for row in (HEAD, rule, *rows(results)))


def replay(results: Results, found: Found) -> str:
    """The command that plays a case again, alone."""
    return f"python -m tests.attack --only {found.kind} --seed {results.seed} --case {found.case}"
