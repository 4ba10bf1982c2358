"""Compiled programs are kept for the next process, unless somebody says otherwise."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = """
import jax
from credo._compilation_cache import keep_programs
folder = keep_programs()
compiled = []
jax.monitoring.register_event_listener(lambda name, **_: compiled.append(name))
jax.jit(lambda x: x * 2 + 1)(1.0).block_until_ready()
print(folder, sum(name.endswith("cache_hits") for name in compiled))
"""


def _run(folder: Path, **settings: str) -> tuple[str, int]:
    """What the process says of its cache: the folder, and how many programs came from it."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "CREDO_"))}
    environment = ours | {"XDG_CACHE_HOME": str(folder)} | settings
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    said, hits = done.stdout.rsplit(maxsplit=1)
    return said, int(hits)


def test_the_second_process_compiles_nothing(tmp_path: Path) -> None:
    assert _run(tmp_path, CREDO_CACHE=str(tmp_path / "own")) == (str(tmp_path / "own"), 0)
    kept = sorted((tmp_path / "own").glob("*-cache"))
    assert kept
    assert _run(tmp_path, CREDO_CACHE=str(tmp_path / "own"))[1] == len(kept)


@pytest.mark.skipif(sys.platform != "linux", reason="where the user's caches are is said by XDG_CACHE_HOME on Linux")
def test_by_default_it_is_the_users_cache(tmp_path: Path) -> None:
    assert _run(tmp_path)[0] == str(tmp_path / "credo" / "programs")


def test_it_can_be_off_or_somebody_elses(tmp_path: Path) -> None:
    assert _run(tmp_path, CREDO_CACHE="off")[0] == "None"
    assert _run(tmp_path, JAX_ENABLE_COMPILATION_CACHE="false")[0] == "None"
    assert _run(tmp_path, JAX_COMPILATION_CACHE_DIR=str(tmp_path / "theirs"))[0] == "None"
    assert not (tmp_path / "credo").exists()


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_folder_that_others_may_write_to_is_not_trusted(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert _run(tmp_path, CREDO_CACHE=str(shared))[0] == "None"


def test_what_a_kill_left_half_written_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir(mode=0o700)
    old, new = folder / "jit_f-1-cache", folder / "jit_f-2-cache"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 3600,) * 2)
    _run(tmp_path, CREDO_CACHE=str(folder))
    assert not old.exists()
    assert new.exists()  # another process may be writing it now
