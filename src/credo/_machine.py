"""What this process may use of the machine."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from credo._text import size_in_words

# How XLA says that memory has run out, in errors that are no MemoryError.
OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "Out of memory", "bad_alloc")


def available_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class MemoryLimit(NamedTuple):
    """The most memory that this process may take, and what says so."""

    num_bytes: int
    bound_by: str

    def __str__(self) -> str:
        return f"{size_in_words(self.num_bytes)} ({self.bound_by})"


def memory_limit(root: Path = Path("/")) -> MemoryLimit:
    """The least of the machine's memory, the limits of its control groups, and what `ulimit -v` and `-d` leave.

    Arguments:
        root: of the files /proc and /sys.
    """
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    found = [MemoryLimit(physical, "the memory of this machine")]
    found += [MemoryLimit(most, "the control group of this process (cgroup)") for most in _cgroup_limits(root)]
    mapped = _mapped(root)
    for name, kind, used in (("-v", resource.RLIMIT_AS, "VmSize"), ("-d", resource.RLIMIT_DATA, "VmData")):
        most = resource.getrlimit(kind)[0]
        if most != resource.RLIM_INFINITY:
            found.append(MemoryLimit(max(most - mapped.get(used, 0), 0), f"what ulimit {name} leaves"))
    return min(found)


def _cgroup_limits(root: Path) -> Iterator[int]:
    """Limits of the groups that this process is in, and of those around them (version 1 and 2)."""
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, own = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        mount, name = ("memory", "memory.limit_in_bytes") if controllers else ("", "memory.max")
        # In a container the path may be that of the host, and the root of the mount the own group.
        for group in (Path(own), *Path(own).parents):
            for text in _lines(root / "sys/fs/cgroup" / mount / group.relative_to("/") / name):
                if text.isdigit():  # "max" is no limit
                    yield int(text)


def _mapped(root: Path) -> dict[str, int]:
    """What the process has mapped already: VmSize in all, VmData of data; in bytes."""
    fields = (line.split() for line in _lines(root / "proc/self/status"))
    return {one[0].rstrip(":"): 1024 * int(one[1]) for one in fields if len(one) == 3 and one[2] == "kB"}


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.is_file() else []


@contextmanager
def memory_told(doing: str, smaller: str) -> Iterator[None]:
    """What fails for want of memory, in NumPy or in compiled code, becomes one MemoryError that says what to do.

    Arguments:
        doing: what was going on, such as "predicting".
        smaller: what would take less.
    """
    try:
        yield
    except _ToldMemoryError:
        raise
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not any(text in str(error) for text in OUT_OF_MEMORY):
            raise
        raise _ToldMemoryError(f"memory ran out while {doing}; {smaller} (at most {memory_limit()})") from error


class _ToldMemoryError(MemoryError):
    """One that says what to do."""
