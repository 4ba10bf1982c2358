"""SIGINT and SIGTERM at random moments: an exit code of 0, 130 or 143, one line, and a run that can be continued."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from credo.inference.registry import METHODS
from tests.attack import forks
from tests.attack.kinds import Case
from tests.attack.outcomes import Outcome, Wrong, require_one_line, right
from tests.attack.saved import require_same

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
# Python itself starts within these seconds, before any line of credo runs: nobody can catch a signal there.
BEFORE_US = {"forked": 0.05, "cold": 0.4}
# One in so many starts is a cold one, which takes three seconds.
COLD = 8


def prepare(folder: Path) -> Case:
    forks.import_everything()
    library = forks.Library(folder)
    predicted = library.run(library.config("map"))
    commands: tuple[tuple[object, ...], ...] = (
        ("predict", predicted, library.tables / "test.csv"),
        ("evaluate", predicted, library.tables / "test.csv"),
        ("inspect", predicted),
        ("methods",),
    )

    def case(rng: np.random.Generator) -> Outcome:
        place = Path(tempfile.mkdtemp(dir=folder))
        try:
            number = signal.SIGINT if rng.random() < 0.5 else signal.SIGTERM
            if rng.random() < 0.6:
                return fit_is_interrupted(rng, library, place, number)
            command = commands[rng.integers(len(commands))]
            if rng.integers(COLD // 3) == 0:
                return cold_start_is_interrupted(rng, command, number)
            child = forks.credo(*command, words=place / "words")
            delay = rng.uniform(0, 1.5)
            time.sleep(delay)
            child.send(number)
            judge(child.wait(), child.stderr, number, is_early=delay < BEFORE_US["forked"])
            return right
        finally:
            shutil.rmtree(place)

    return case


def fit_is_interrupted(
    rng: np.random.Generator, library: forks.Library, place: Path, number: signal.Signals
) -> Outcome:
    """A fit that a signal has stopped goes on to the same bits."""
    config = library.config(forks.chosen(rng, sorted(METHODS)))
    command = ("fit", "--config", config, "--out", place / "run", "--quiet")
    child = forks.credo(*command, words=place / "words", before=forks.write_at_every_chunk)
    delay = rng.uniform(0, 1.1 * library.duration(config))
    time.sleep(delay)
    child.send(number)
    judge(child.wait(), child.stderr, number, is_early=delay < BEFORE_US["forked"])
    resume = ("--resume",) if (place / "run").exists() else ()
    child = forks.credo(*command, *resume, words=place / "words")
    require_one_line(child.wait(), child.stderr, allowed=(0,))
    require_same(place / "run", library.run(config))
    return right


def cold_start_is_interrupted(rng: np.random.Generator, command: tuple[object, ...], number: signal.Signals) -> Outcome:
    process = subprocess.Popen(
        [sys.executable, "-m", "credo.cli", *map(str, command)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONWARNINGS": "ignore"},
    )
    delay = rng.uniform(0, 4)
    time.sleep(delay)
    process.send_signal(number)
    try:
        _, said = process.communicate(timeout=forks.PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        raise Wrong("a signal at the start makes it hang") from None
    judge(process.returncode, said, number, is_early=delay < BEFORE_US["cold"])
    return right


def judge(code: int, stderr: str, number: signal.Signals, *, is_early: bool) -> None:
    if is_early and (code == -number or ("Traceback" in stderr and "/credo/" not in stderr)):
        return
    require_one_line(code, stderr, allowed=(0, CODES[number]))
