"""Shared by all tests: the seed of the statistical ones, and memory that stays bounded from file to file."""

import ctypes
import gc
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

os.environ.setdefault("MPLBACKEND", "Agg")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=0, help="the (first) seed of the statistical tests")
    parser.addoption("--num-seeds", type=int, default=1, help="run each statistical test with so many seeds")


@pytest.fixture(scope="session")
def seed(request: pytest.FixtureRequest) -> int:
    """Of a test whose outcome depends on chance. Whatever it is, the test passes: see `tests.statistical.tolerance`."""
    return request.config.getoption("--seed")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    first, num = (metafunc.config.getoption(name) for name in ("--seed", "--num-seeds"))
    if "seed" in metafunc.fixturenames and num > 1:
        # By module, so that all seeds use the programs that one of them has compiled.
        seeds = range(first, first + num)
        metafunc.parametrize("seed", seeds, ids=[f"seed{one}" for one in seeds], scope="module")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Who asks for the seed is a statistical test."""
    if "seed" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.statistical)


# -- memory that stays bounded -----------------------------------------------------------------------------

# A process that holds this much forgets in the middle of a file too; the limit for its peak is 2 GB.
LARGE = 1.25 * 2**30


@pytest.fixture(scope="module", autouse=True)
def _forget_after_a_file() -> Iterator[None]:
    """Programs of one file are of no use to the next, and hold gigabytes in the end; the disk keeps them anyway."""
    yield
    forget_compiled_programs()


@pytest.fixture(autouse=True)
def _forget_when_large() -> Iterator[None]:
    yield
    statm = Path("/proc/self/statm")
    if statm.exists() and int(statm.read_text().split()[1]) * resource.getpagesize() > LARGE:
        forget_compiled_programs()


def forget_compiled_programs() -> None:
    jax.clear_caches()
    gc.collect()
    # What is free goes back to the system; glibc keeps a gigabyte of it otherwise.
    if hasattr(ctypes.CDLL(None), "malloc_trim"):
        ctypes.CDLL(None).malloc_trim(0)


PEAKS: list[int] = []


def pytest_sessionfinish(session: pytest.Session) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # A worker of pytest-xdist hands it over, the process that the user started collects.
    getattr(session.config, "workeroutput", {})["peak"] = peak
    PEAKS.append(peak)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    PEAKS.append(getattr(node, "workeroutput", {}).get("peak", 0))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"peak memory of a test process: {max(PEAKS) / 2**20:.2f} GB")
