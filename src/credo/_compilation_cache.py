"""Compiled programs are kept on disk, and the next process need not compile them again: JAX's own cache, switched on.

It is the folder `credo/programs` of the user's caches, holds a gigabyte at most, and lets go of what was not used for
longest. `CREDO_CACHE=folder` is another one, `CREDO_CACHE=off` none. Where JAX has been given a cache, or has been
forbidden to use one, nothing is changed.

What lies there is code that will be run: nobody else may write into it. A program is the same for the same version of
JAX, the same flags and the same kind of processor only, which its key says.
"""

import os
import stat
import time
from functools import cache
from pathlib import Path

import jax
import platformdirs

VARIABLE, OFF = "CREDO_CACHE", "off"
MAX_BYTES = 2**30
# A program is written in far less.
SECONDS_TO_WRITE = 60.0


@cache
def keep_programs() -> Path | None:
    """Switch the cache on, once in a process; the folder, or None where there is no cache of ours."""
    wanted = os.environ.get(VARIABLE, "")
    settings = jax.config.values
    if wanted == OFF or settings["jax_compilation_cache_dir"] or not settings["jax_enable_compilation_cache"]:
        return None
    folder = Path(wanted) if wanted else platformdirs.user_cache_path("credo") / "programs"
    if not _is_own(folder):
        return None
    _sweep(folder)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_compilation_cache_max_size", MAX_BYTES)
    # Also what compiles fast: a fit has twenty such programs, which take longer to compile than to read.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    return folder


def _is_own(folder: Path) -> bool:
    """Whether the folder is there, can be written to by this user, and by no other."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = folder.stat()
    except OSError:  # a disk that is full or may only be read: each process compiles for itself
        return False
    is_private = os.name != "posix" or (
        found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )
    return is_private and os.access(folder, os.W_OK)


def _sweep(folder: Path) -> None:
    """Remove programs that were being written when their process was killed: they have no time of use yet."""
    used = {path.name.removesuffix("-atime") for path in folder.glob("*-atime")}
    for path in folder.glob("*-cache"):
        if path.name.removesuffix("-cache") not in used:
            try:
                if path.stat().st_mtime < time.time() - SECONDS_TO_WRITE:
                    path.unlink()
            except FileNotFoundError:  # another process has let go of it meanwhile
                continue
