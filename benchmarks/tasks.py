"""Sinusoids from five points: what a population of tasks is worth, and whether its bands are honest.

    python -m benchmarks tasks

A task is a sine of amplitude U(0.1, 5) and phase U(0, π) on x ~ U(−5, 5) (Finn, Abbeel and Levine, "Model-agnostic
meta-learning", 2017). `credo.models.task_heads` is trained on 10,000 tasks of ten points; new tasks are learned from
five by `credo.adapt`, in closed form, and judged at fifty other points. MAML++ reports a mean squared error of 0.34 for
it (Antoniou, Edwards and Storkey, 2019). Once without noise, as published, and once with, where bands mean something.
The settings were chosen with the seeds 1 and 2.
"""

import time

import numpy as np
import optax

import credo
from benchmarks.tables import console, new_table
from credo.data import Scaling

SEEDS = (11, 12, 13)
NUM_TASKS, NUM_TRAINED, NUM_SHOTS, NUM_ASKED, NUM_NEW = 10_000, 10, 5, 50, 200
NUM_STEPS, LEARNING_RATE, BATCH_SIZE = 10_000, 0.003, 64
LEVELS = (0.5, 0.9, 0.95)
# x and y of all tasks together, by the law of the tasks.
SCALING = Scaling(x_scale=np.asarray(2.9), y_scale=np.asarray(2.0))


class Sinusoids:
    """Tasks a sin(x − φ)."""

    def __init__(self, rng: np.random.Generator, num: int, noise: float) -> None:
        self.rng, self.noise = rng, noise
        self.amplitude, self.phase = rng.uniform(0.1, 5, (num, 1)), rng.uniform(0, np.pi, (num, 1))

    def draw(self, num: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`num` points of each task: x, the function, and what is observed of it."""
        x = self.rng.uniform(-5, 5, (len(self.phase), num, 1))
        function = self.amplitude * np.sin(x[..., 0] - self.phase)
        return x, function, function + self.noise * self.rng.normal(size=function.shape)


def trained(seed: int, noise: float) -> credo.Posterior:
    """A trunk and ξ, from many tasks."""
    x, _, y = Sinusoids(np.random.default_rng(seed), NUM_TASKS, noise).draw(NUM_TRAINED)
    net = credo.networks.MLP([40, 40], out=1, activation="tanh")
    model = credo.models.task_heads(net, prior=credo.priors.fan_in(3.0))
    schedule = optax.cosine_decay_schedule(LEARNING_RATE, NUM_STEPS)
    method = credo.MAP(num_steps=NUM_STEPS, learning_rate=schedule, batch_size=BATCH_SIZE)
    return credo.fit(model, credo.Data(x, y).with_scaling(SCALING), method, seed=seed, progress=False)


def judged(posterior: credo.Posterior, seed: int, noise: float) -> dict[str, float]:
    """New tasks: the squared error of the mean against the function, and the share of y in the bands."""
    new = Sinusoids(np.random.default_rng(seed + 10_000), NUM_NEW, noise)
    (x, _, y), (asked, function, seen) = new.draw(NUM_SHOTS), new.draw(NUM_ASKED)
    errors, inside, widths = [], [], []
    for task in range(NUM_NEW):
        said = credo.adapt(posterior, (x[task], y[task])).predict(asked[task])
        errors.append(np.mean((said.mean - function[task]) ** 2))
        bands = [said.interval(level) for level in LEVELS]
        inside.append([np.mean((low <= seen[task]) & (seen[task] <= high)) for low, high in bands])
        widths.append(np.mean(bands[1][1] - bands[1][0]))
    spread = np.std(errors, ddof=1) / np.sqrt(NUM_NEW)
    return {
        "error": float(np.mean(errors)),
        "standard error": float(spread),
        **{f"{level:.0%}": float(share) for level, share in zip(LEVELS, np.mean(inside, axis=0), strict=True)},
        "width of 90%": float(np.mean(widths)),
    }


def main() -> None:
    """Both tables, a row for each seed."""
    for noise in (0.0, 0.3):
        title = f"Sinusoids from {NUM_SHOTS} points, noise {noise:g}: {NUM_NEW} new tasks"
        columns = (
            "squared error",
            *(f"in {level:.0%}" for level in LEVELS),
            "width of 90%",
            "training",
            "per new task",
        )
        table = new_table(title, "seed", *columns)
        for seed in SEEDS:
            began = time.perf_counter()
            posterior = trained(seed, noise)
            half = time.perf_counter()
            found = judged(posterior, seed, noise)
            done = time.perf_counter()
            table.add_row(
                str(seed),
                f"{found['error']:.2g} ± {found['standard error']:.1g}",
                *(f"{found[f'{level:.0%}']:.1%}" for level in LEVELS),
                f"{found['width of 90%']:.3f}",
                f"{half - began:.0f} s",
                f"{(done - half) / NUM_NEW:.2f} s",
            )
        console.print(table)
