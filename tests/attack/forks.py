"""Command lines in forked processes: they start in no time, since all packages have been imported, and are real.

A process that has computed with JAX cannot be forked, so who uses this computes in children only.
"""

import os
import runpy
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jax._src import xla_bridge

import credo as package
from credo.inference.engine import checkpoint
from credo.runs import Config
from tests.attack.corpus import config_of
from tests.attack.outcomes import Wrong, require_one_line

# A command line that takes longer hangs: the longest takes a few seconds on a machine of its own.
PATIENCE = 240.0


@dataclass(eq=False)
class Child:
    """A process, its words in files beside each other."""

    pid: int
    words: Path
    began: float = field(default_factory=time.monotonic)
    code: int | None = None

    @property
    def has_ended(self) -> bool:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code is not None

    def wait(self, seconds: float = PATIENCE) -> int:
        deadline = time.monotonic() + seconds
        while not self.has_ended:
            if time.monotonic() > deadline:
                self.send(signal.SIGKILL)
                raise Wrong(f"a process hangs for more than {seconds:.0f} s", self.stderr[-500:])
            time.sleep(0.005)
        assert self.code is not None
        return self.code

    def wait_until(self, moment: Callable[[], bool], seconds: float = PATIENCE) -> None:
        """Wait for a moment, or for the end."""
        deadline = time.monotonic() + seconds
        while not moment() and not self.has_ended and time.monotonic() < deadline:
            time.sleep(0.002)

    def send(self, number: signal.Signals) -> bool:
        """Send a signal to a process and its own children, if it has not ended."""
        if self.has_ended:
            return False
        os.killpg(self.pid, number)
        return True

    @property
    def stderr(self) -> str:
        return self.words.with_suffix(".err").read_text(errors="replace")

    @property
    def stdout(self) -> str:
        return self.words.with_suffix(".out").read_text(errors="replace")


def start(act: Callable[[], Any], words: Path) -> Child:
    """Act in a process of its own, which leads a group of its own; returns when it is about to begin."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        os.read(reader, 1)
        os.close(reader)
        return Child(pid, words)
    code = 1
    try:
        os.setsid()
        for number, suffix in ((1, ".out"), (2, ".err")):
            os.dup2(os.open(words.with_suffix(suffix), os.O_CREAT | os.O_TRUNC | os.O_WRONLY), number)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False, buffering=1)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.write(writer, b"!")
        os.close(writer)
        act()
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def credo(*arguments: object, words: Path, before: Callable[[], Any] = lambda: None) -> Child:
    """The command line in a process of its own, after something else."""

    def act() -> None:
        before()
        sys.argv = ["credo", *map(str, arguments)]
        runpy.run_module("credo.cli", run_name="__main__", alter_sys=True)

    return start(act, words)


def write_at_every_chunk() -> None:
    """For `before`: checkpoints as often as can be."""
    checkpoint.SECONDS_BETWEEN, checkpoint.SHARE_OF_TIME = 0.0, float("inf")


def import_everything() -> None:
    """All that a command line will need, without a computation."""
    for name in package.__all__:
        getattr(package, name)
    if xla_bridge.backends_are_initialized():
        raise RuntimeError("an import has computed with JAX: children that compute would hang")


class Library:
    """Runs that nobody has disturbed, each made when it is first asked for, and how long it took."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tables = folder / "library", folder / "tables"
        self.folder.mkdir(exist_ok=True)

    def config(self, method: str, *, other: bool = False, seed: int = 0) -> Path:
        """The settings of a fit, of one table or the other, in a file."""
        path = self.folder / f"{method}-{other:d}-{seed}.toml"
        if not path.exists():
            made: Config = config_of(method, self.tables / ("other/train.csv" if other else "train.csv"), seed=seed)
            path.write_bytes(made.to_toml())
        return path

    def run(self, config: Path) -> Path:
        """The finished run of such settings."""
        made = config.with_suffix("")
        if not made.exists():
            place = made.with_name(f".{made.name}-{os.getpid()}")
            child = credo(*_fit(config, place), words=place, before=write_at_every_chunk)
            require_one_line(child.wait(), child.stderr, allowed=(0,))
            if not made.exists():
                place.rename(made)
        return made

    def duration(self, config: Path) -> float:
        """How long a fit takes from here: the second time, when its programs are compiled."""
        noted = config.with_suffix(".seconds")
        if not noted.exists():
            self.run(config)
            place = self.folder / f".timed-{config.stem}-{os.getpid()}"
            child = credo(*_fit(config, place), words=place, before=write_at_every_chunk)
            child.wait()
            noted.write_text(str(time.monotonic() - child.began))
        return float(noted.read_text())


def _fit(config: Path, out: Path) -> tuple[object, ...]:
    return "fit", "--config", config, "--out", out, "--quiet"


def chosen(rng: np.random.Generator, names: Sequence[str]) -> str:
    return names[rng.integers(len(names))]
