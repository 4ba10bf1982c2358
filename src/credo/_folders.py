"""Folders that several files make whole: a lock, and a way to put all of them there at once.

Files that belong together are written into a folder within the folder, and that one is renamed: from then on they
count. To move them to their places is the same whoever does it and however often, so it does not matter when a process
is stopped: whoever opens the folder next does what is left. What was there before is whole until that moment.

    run/.next-1a2b3c4d.partial/    files on their way: whoever takes the lock next removes them
    run/.next/                     files that count, and have yet to be moved to their places in run/
"""

import fcntl
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from credo._files import PARTIAL, LoadError, put_bytes, remove_partial, sync
from credo._manifest import MANIFEST, Manifest, is_ours

T = TypeVar("T")

NEXT = ".next"
# Among the files that count: they take the place of a run, whose other files must go.
REPLACES = ".replaces"
# What was found about a run, which is not true of the one that takes its place.
VERDICT = "verdict.json"
# Where an unfinished fit keeps its stages.
CHECKPOINT = "checkpoint"
ARRAYS = "arrays-*.safetensors"
# Where earlier versions wrote down which fit it is.
FIRST_FIT = "fit.json"


class CheckpointError(OSError):
    """The folder of a run cannot be written to, or is in use; what it held is still there."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which the end of a process gives back too, however it comes.

    The folder is made if it is not there; what a process that was stopped has left undone in it is done.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise unwritable(folder, error) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CheckpointError(
                f"another process is at work on {folder}; wait for it, or choose another folder"
            ) from error
        try:
            remove_partial(folder)
            _settle(folder)
        except OSError as error:
            raise unwritable(folder, error) from error
        yield
    finally:
        os.close(handle)


def put_together(folder: Path, write: Callable[[Path], None]) -> None:
    """Put files into a folder that is locked, all at once, in place of a run that it holds.

    Arguments:
        write: writes them, and a manifest that names them, into the folder that it is given.
    """
    fresh = folder / f"{NEXT}-{uuid.uuid4().hex[:8]}{PARTIAL}"
    try:
        fresh.mkdir()
        write(fresh)
        if holds_a_run(folder):
            put_bytes(fresh / REPLACES, b"")
        fresh.rename(folder / NEXT)
        sync(folder)
        _settle(folder)
    except OSError as error:
        raise unwritable(folder, error) from error


def _settle(folder: Path) -> None:
    """Move files that count to their places, and take away what they replace."""
    waiting = folder / NEXT
    if not waiting.is_dir():
        return
    names = sorted(path.name for path in waiting.iterdir() if path.name not in (MANIFEST, REPLACES))
    for name in (*names, MANIFEST):
        if (waiting / name).exists():
            (waiting / name).replace(folder / name)
    sync(folder)
    if (waiting / REPLACES).exists():
        remove_unnamed(folder)
        if VERDICT not in Manifest.read(folder).files:
            (folder / VERDICT).unlink(missing_ok=True)
        (folder / FIRST_FIT).unlink(missing_ok=True)
        if (folder / CHECKPOINT).exists():
            shutil.rmtree(folder / CHECKPOINT)
        (waiting / REPLACES).unlink()
    waiting.rmdir()


def holds_a_run(folder: Path) -> bool:
    """Whether a folder holds what credo wrote: a posterior, or a fit, finished or not, of this version or the first."""
    return is_ours(folder) or (folder / NEXT).is_dir() or (folder / FIRST_FIT).exists()


def remove_unnamed(folder: Path) -> None:
    """Remove arrays that the manifest does not name: those of a posterior that was replaced, or never came to be."""
    named = Manifest.read(folder).files
    for path in folder.glob(ARRAYS):
        if path.name not in named:
            path.unlink()


def opened(folder: Path) -> Manifest:
    """The manifest of a folder, for reading; what a process that was stopped has left undone in it is done first."""
    if not folder.exists():
        raise FileNotFoundError(f"{folder} is not a saved posterior: it does not exist")
    if (folder / NEXT).is_dir():
        try:
            with locked(folder):
                pass
        except CheckpointError as error:
            raise LoadError(f"{folder} is being replaced, and is not whole yet: {error}") from error
    return Manifest.read(folder)


def read_whole(folder: Path, read: Callable[[Manifest], T]) -> T:
    """What `read` makes of a folder with that manifest; once more where another process has replaced it meanwhile."""
    held = opened(folder)
    while True:
        try:
            return read(held)
        except LoadError:
            now = opened(folder)
            if now == held:
                raise
            held = now


def unwritable(folder: Path, error: OSError) -> CheckpointError:
    """What to say of a folder that cannot be written to."""
    reason = error.strerror or str(error)
    return CheckpointError(
        f"{folder} cannot be written to ({reason}); what it holds is still good: make room or mend its permissions, "
        "and continue with resume=True, or choose another folder"
    )


def require_nothing_to_resume(resume: bool) -> None:
    """Refuse to go on where no folder was named that one could go on from."""
    if resume:
        raise ValueError("resume=True goes on from a folder, and checkpoint names none: pass checkpoint='run/'")
