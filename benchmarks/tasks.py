"""Sinusoids from five points: what a population of tasks is worth, and whether its bands are honest.

    python -m benchmarks tasks

A task is a sine of amplitude U(0.1, 5) and phase U(0, π) on x ~ U(−5, 5) (Finn, Abbeel and Levine, "Model-agnostic
meta-learning", 2017). `credo.models.task_heads` is trained on 10,000 tasks of ten points; new tasks are learned from
five by `credo.adapt`, in closed form, and judged at fifty other points. MAML++ reports a mean squared error of 0.34 for
it (Antoniou, Edwards and Storkey, 2019). Once without noise, as published, and once with, where bands mean something.
The settings were chosen with the seeds 1 and 2. Then lines that resemble each other, and digits in a haze that learn
from clear ones.

    python -m benchmarks.tasks docs/images    draws the picture of docs/tasks.md
"""

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import optax
from matplotlib import pyplot

import credo
from benchmarks.printing import console, new_table
from credo.data import Scaling

SEEDS = (11, 12, 13)
NUM_TASKS, NUM_TRAINED, NUM_SHOTS, NUM_ASKED, NUM_NEW = 10_000, 10, 5, 50, 200
NUM_STEPS, LEARNING_RATE, BATCH_SIZE = 10_000, 0.003, 64
LEVELS = (0.5, 0.9, 0.95)
NUM_HAZY = (30, 100)
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


def sinusoids() -> None:
    """A row for each seed, without noise and with."""
    for noise in (0.0, 0.3):
        title = f"Sinusoids from {NUM_SHOTS} points, noise {noise:g}"
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


def pooling() -> None:
    """Twelve lines of four points each: one fit for all, one for each, and a population of them."""
    table = new_table(
        "Twelve lines of four points: held-out log density per row", "seed", "one for all", "each alone", "tasks"
    )
    net, method = credo.networks.MLP([], out=1), credo.NUTS(num_samples=300, num_warmup=300, num_chains=2)
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        weights = np.array([1.0, 2.0]) + 0.5 * rng.normal(size=(12, 2))
        x, asked = rng.normal(size=(12, 4, 1)), rng.normal(size=(12, 50, 1))
        y, seen = (
            weights[:, :1] + weights[:, 1:] * points[..., 0] + 0.5 * rng.normal(size=points.shape[:2])
            for points in (x, asked)
        )
        plain, numbers = credo.models.regression(net, prior=credo.priors.normal(3.0)), np.repeat(np.arange(12.0), 50)
        whole = credo.fit(plain, (x.reshape(-1, 1), y.ravel()), method, seed=seed, progress=False)
        alone = [credo.fit(plain, one, method, seed=seed, progress=False) for one in zip(x, y, strict=True)]
        model = credo.models.tasks(net, prior=credo.priors.normal(3.0))
        together = credo.fit(model, credo.tasks_data(list(zip(x, y, strict=True))), method, seed=seed, progress=False)
        rows = np.column_stack([asked.ravel(), numbers])
        found = (
            whole.predict(asked.reshape(-1, 1)).log_prob(seen.ravel()),
            [one.predict(points).log_prob(values) for one, points, values in zip(alone, asked, seen, strict=True)],
            together.predict(rows).log_prob(seen.ravel()),
        )
        table.add_row(str(seed), *(f"{np.mean(one):.3f}" for one in found))
    console.print(table)


def transfer() -> None:
    """Hazy digits, 0.5 x + 0.3 with noise, from few of them, with what 900 clear ones have taught and without."""
    columns = ("clear ones alone", *(f"{num} hazy, {how}" for num in NUM_HAZY for how in ("alone", "transferred")))
    table = new_table("Hazy digits: accuracy", "seed", *columns)
    digits, base = credo.datasets.load("digits"), credo.priors.fan_in(10.0)
    net = credo.networks.MLP([50], out=10)

    def fitted(prior: Any, x: np.ndarray, y: np.ndarray, method: Any) -> credo.Posterior:
        return credo.fit(credo.models.classification(net, prior=prior), (x, y), method, seed=seed, progress=False)

    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        clear, few, asked = np.split(rng.permutation(digits.size), [900, 1100])
        hazy = np.clip(0.5 * digits.x + 0.3 + 0.1 * rng.normal(size=digits.x.shape), 0, 1)
        first = fitted(base, digits.x[clear], digits.y[clear], credo.Laplace(structure="diagonal"))
        posteriors = [first]
        for num in NUM_HAZY:
            x, y = hazy[few[:num]], digits.y[few[:num]]
            posteriors += [fitted(prior, x, y, credo.MAP()) for prior in (base, credo.priors.from_posterior(first))]
        shares = [np.mean(one.predict(hazy[asked]).label == digits.y[asked]) for one in posteriors]
        table.add_row(str(seed), *(f"{share:.1%}" for share in shares))
    console.print(table)


def picture(folder: Path) -> None:
    """Three new tasks with noise, from five points each, beside a network that knows no other tasks."""
    posterior, noise = trained(SEEDS[0], 0.3), 0.3
    x, _, y = Sinusoids(np.random.default_rng(7), 3, noise).draw(NUM_SHOTS)
    grid = np.linspace(-5, 5, 101)[:, None]
    figure, axes = pyplot.subplots(2, 3, figsize=(10, 4.6), sharex=True, sharey=True, layout="constrained")
    net = credo.networks.MLP([40, 40], out=1, activation="tanh")
    for task in range(3):
        data = credo.Data(x[task], y[task]).with_scaling(SCALING)
        plain = credo.models.regression(net, prior=credo.priors.fan_in(3.0), noise=noise / 2)
        alone = credo.fit(plain, data, credo.NUTS(num_samples=200, num_warmup=200, num_chains=2), progress=False)
        sides = {"knows the population": credo.adapt(posterior, (x[task], y[task])), "knows five points alone": alone}
        for ax, (words, one) in zip(axes[:, task], sides.items(), strict=True):
            said = one.predict(grid)
            ax.fill_between(grid[:, 0], *said.interval(0.9), alpha=0.3, lw=0)
            ax.plot(grid[:, 0], said.mean, lw=1.5)
            ax.plot(x[task, :, 0], y[task], "k.")
            ax.set_ylim(-7, 7)
            ax.set_title(words, fontsize=9)
    figure.savefig(folder / "tasks.png", dpi=70)


def main() -> None:
    """All tables."""
    sinusoids()
    pooling()
    transfer()


if __name__ == "__main__":
    picture(Path(sys.argv[1]))
