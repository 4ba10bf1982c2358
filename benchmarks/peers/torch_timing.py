"""Fair timing of torch: one thread and the default number take turns, and the best round counts."""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

NUM_STEPS, NUM_ROUNDS, MAX_SECONDS = 20, 5, 2.0
Step = Callable[[Tensor, Tensor], Any]


def prepare() -> None:
    """Denormal numbers are flushed, as XLA does."""
    torch.set_flush_denormal(True)
    torch.manual_seed(0)


def seconds_per_step(step: Step, x: Tensor, y: Tensor, batch_size: int, num_steps: int = NUM_STEPS) -> float:
    """The best round of either number of threads, after one that warms up; batches are taken by index."""
    spent = dict.fromkeys((1, torch.get_num_threads()), 0.0)
    best = float("inf")
    for number in range(NUM_ROUNDS + 1):
        for num_threads in spent:
            # Two threads on a busy machine wait for each other, up to a second per step.
            if number > 1 and spent[num_threads] > MAX_SECONDS:
                continue
            torch.set_num_threads(num_threads)
            began = time.perf_counter()
            num_done, elapsed = 0, 0.0
            while num_done < num_steps and elapsed < MAX_SECONDS / 2:
                rows = torch.randint(0, len(x), (batch_size,))
                step(x[rows], y[rows])
                num_done, elapsed = num_done + 1, time.perf_counter() - began
            spent[num_threads] += elapsed
            best = min(best, elapsed / num_done) if number > 0 else best
    return best
