"""A disk that is full after so many bytes: what was there stays, and one line says which file and how much it needs.

A small file system in memory where there are rights to mount one; else a limit of the size of a file.
"""

import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

import credo
from credo.cli import app
from tests.attack import corpus, damage
from tests.attack.kinds import Case
from tests.attack.outcomes import Outcome, Wrong, at_most, refused, require_one_line, require_sentence, right

PAGE = resource.getpagesize()


def prepare(folder: Path) -> Case:
    posteriors = [credo.load(entry) for entry in corpus.entries(folder) if not corpus.is_run(entry)]
    disk = Disk(Path(tempfile.mkdtemp(dir=folder)))
    tables, run = folder / "tables", folder / "runs" / "map"
    config = folder / "disk.toml"
    config.write_bytes(corpus.config_of("map", tables / "train.csv").to_toml())

    def case(rng: np.random.Generator) -> Outcome:
        what, pages = rng.integers(10), int(rng.integers(0, 24))
        with disk.emptied() as place, at_most(120):
            if what < 5:
                return save_over(rng, disk, place, posteriors, pages)
            file = place / "old.html"
            commands: dict[str, tuple[object, ...]] = {
                "report": ("evaluate", run, tables / "test.csv", "--report", file, "--quiet"),
                "predict": ("predict", run, tables / "test.csv", "--out", file.with_suffix(".csv"), "--quiet"),
                "fit": ("fit", "--config", config, "--out", place / "run", "--quiet"),
            }
            name = ("report", "report", "predict", "predict", "fit")[what - 5]
            return command(commands[name], disk, place, pages * (20 if name == "report" else 1))

    return case


class Disk:
    """A folder on which there is little room."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.is_mounted = self._mount("size=64m")

    def _mount(self, options: str) -> bool:
        command = ["mount", "-t", "tmpfs", "-o", options, "none", str(self.folder)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    @contextmanager
    def emptied(self) -> Iterator[Path]:
        place = self.folder / "it"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        yield place

    @contextmanager
    def with_room(self, pages: int) -> Iterator[None]:
        """So much room, beyond what is taken; where nothing can be mounted, no file can be larger."""
        if self.is_mounted:
            found = os.statvfs(self.folder)
            taken = (found.f_blocks - found.f_bfree) * found.f_frsize // PAGE
            self._remount(f"nr_blocks={taken + max(pages, 1)}")
        else:
            resource.setrlimit(resource.RLIMIT_FSIZE, (max(pages, 1) * PAGE // 8, resource.RLIM_INFINITY))
        try:
            yield
        finally:
            if self.is_mounted:
                self._remount("size=64m")
            else:
                resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def _remount(self, options: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{options}", str(self.folder)], check=True, capture_output=True)


def save_over(rng: np.random.Generator, disk: Disk, place: Path, posteriors: list[Any], pages: int) -> Outcome:
    """A posterior in place of another."""
    old, new = (posteriors[number] for number in rng.choice(len(posteriors), 2, replace=False))
    old.save(place / "it")
    before = damage.read(place)
    return judged(partial(new.save, place / "it"), disk, place, before, pages)


def judged(act: Callable[[], None], disk: Disk, place: Path, before: damage.Files, pages: int) -> Outcome:
    try:
        with disk.with_room(pages):
            act()
    except OSError as error:
        require_sentence(error)
        require_intact(before, place)
        if not any(word in str(error) for word in ("safetensors", ".json", str(place))):
            raise Wrong("a full disk, and the error does not name the file", error) from error
        return refused
    credo.load(place / "it")
    return right


def command(words: tuple[object, ...], disk: Disk, place: Path, pages: int) -> Outcome:
    """The command line writes a file or a run in full, or nothing."""
    old = {"old.html": b"<p>the old page</p>", "old.csv": b"the old table\n"}
    damage.write(old, place)
    with disk.with_room(pages):
        result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    require_one_line(result.exit_code, result.stderr)
    if result.exit_code == 0:
        return right
    require_intact(old, place)
    if str(place) not in result.stderr:
        raise Wrong("a full disk, and the line does not name the file", result.stderr)
    if words[0] == "fit":
        again = CliRunner().invoke(app, [str(word) for word in (*words, "--resume")])
        require_one_line(again.exit_code, again.stderr, allowed=(0,))
    return refused


def require_intact(before: damage.Files, place: Path) -> None:
    after = damage.read(place)
    if lost := [name for name, content in before.items() if after.get(name) != content]:
        raise Wrong("a full disk destroys what was there", lost)
