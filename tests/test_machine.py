"""The memory that a process may take: the least of all limits; and what is said when it has run out."""

import resource
from pathlib import Path

import jax
import pytest

from credo._machine import memory_limit, memory_told

GB = 10**9
UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


@pytest.fixture
def root(tmp_path: Path, monkeypatch) -> Path:
    """A machine of 64 GB without any limit, on which the process has mapped 1 GiB, 0.5 GiB of it data."""
    monkeypatch.setattr("os.sysconf", {"SC_PHYS_PAGES": 64 * 10**6, "SC_PAGE_SIZE": 1000}.get)
    monkeypatch.setattr("resource.getrlimit", lambda kind: UNLIMITED)
    write(tmp_path / "proc/self/status", "Name:\tpython\nVmSize:\t 1048576 kB\nVmData:\t 524288 kB\n")
    write(tmp_path / "proc/self/cgroup", "4:cpu,memory:/jobs/mine\n3:cpuset:/\n0::/user/one\n")
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_without_limits_it_is_the_memory_of_the_machine(root) -> None:
    write(root / "sys/fs/cgroup/user/one/memory.max", "max\n")
    assert memory_limit(root) == (64 * GB, "the memory of this machine")


@pytest.mark.parametrize(
    "place",
    [
        "user/one/memory.max",
        "user/memory.max",
        "memory.max",
        "memory/jobs/mine/memory.limit_in_bytes",
        "memory/jobs/memory.limit_in_bytes",
        "memory/memory.limit_in_bytes",
    ],
)
def test_control_groups_and_those_around_them(root, place) -> None:
    write(root / "sys/fs/cgroup" / place, f"{3 * GB}\n")
    assert memory_limit(root).num_bytes == 3 * GB
    assert "cgroup" in str(memory_limit(root))


@pytest.mark.parametrize(("kind", "flag", "left"), [("RLIMIT_AS", "-v", 3 * 2**30), ("RLIMIT_DATA", "-d", 3.5 * 2**30)])
def test_ulimit_less_what_is_mapped_already(root, monkeypatch, kind, flag, left) -> None:
    limits = {getattr(resource, kind): (4 * 2**30, resource.RLIM_INFINITY)}
    monkeypatch.setattr("resource.getrlimit", lambda one: limits.get(one, UNLIMITED))
    assert memory_limit(root) == (left, f"what ulimit {flag} leaves")


@pytest.mark.parametrize(
    "error", [MemoryError(), jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes.")]
)
def test_memory_that_ran_out_is_one_sentence(error) -> None:
    with (
        pytest.raises(MemoryError, match=r"^memory ran out while fitting; take less \(at most .*\)$"),
        memory_told("fitting", "take less"),
        memory_told("fitting", "take less"),
    ):
        raise error


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(RuntimeError, match="broken"), memory_told("fitting", "take less"):
        raise RuntimeError("broken")
