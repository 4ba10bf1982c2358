"""Fair timing on a noisy machine: the sides take turns, and the best of several rounds counts."""

import json
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax


def seconds(function: Callable[[], Any]) -> float:
    """How long one call takes, results included."""
    began = time.perf_counter()
    jax.block_until_ready(function())
    return time.perf_counter() - began


def best_of(rounds: int, sides: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """The shortest time of each side, after one call that compiles."""
    for function in sides.values():
        jax.block_until_ready(function())
    times = {name: float("inf") for name in sides}
    for _ in range(rounds):
        for name, function in sides.items():
            times[name] = min(times[name], seconds(function))
    return times


class GivenUpError(RuntimeError):
    """A program has taken more time of the processors than it had set itself as a limit (RLIMIT_CPU)."""


def in_new_process(command: Sequence[str]) -> Any:
    """What a program prints as JSON in its last line."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode == -signal.SIGXCPU:
        raise GivenUpError(f"{' '.join(command)} was given up")
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{result.stderr}")
    return json.loads(result.stdout.splitlines()[-1])
