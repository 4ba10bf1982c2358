"""Fair timing on a noisy machine: the sides take turns, and the best of several rounds counts."""

import time
from collections.abc import Callable, Mapping
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
