"""Augmentation: what K views of each row cost beside K plain steps, and what they are worth with few labels.

    python -m benchmarks augmentation

Steps of MAP with Adam on images, batch 128, the sides in turns and the best of several rounds.
Accuracy on the digits of `credo.datasets`, of which 100 have labels. Settings were chosen on seeds 100 to 102.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import optax

import credo
from benchmarks.tables import console, new_table
from benchmarks.timing import best_of
from credo import augmentations
from credo.inference.engine import driver as engine

NUM_ROWS, BATCH_SIZE, NUM_VIEWS = 2_000, 128, 4
# The side of the images, and hidden units.
NETWORKS = {"784-400-400-10": (28, [400, 400]), "64-50-50-10": (8, [50, 50])}
NUM_STEPS, NUM_ROUNDS = 50, 8
TRANSFORMS = {
    "flip": augmentations.flip(),
    "shift": augmentations.shift(2),
    "noise": augmentations.noise(0.1),
    "rotate": augmentations.rotate(10),
    "crop": augmentations.crop(0.9),
    "shift, then rotate": augmentations.compose(augmentations.shift(2), augmentations.rotate(10)),
}
SEEDS = (0, 1, 2, 3, 4)
NUM_LABELS = 100
# What a digit could have looked like: turned, cut otherwise, and noisy.
VIEWS = augmentations.compose(augmentations.rotate(15), augmentations.crop(0.65), augmentations.noise(0.1))


def main() -> None:
    """Both tables."""
    steps()
    effect()


def steps() -> None:
    """Milliseconds of a step with K views, and beside K plain steps."""
    rng = np.random.default_rng(0)
    for label, (side, features) in NETWORKS.items():
        data = credo.Data(rng.random((NUM_ROWS, side, side)), rng.integers(10, size=NUM_ROWS))
        plain = credo.models.classification(credo.networks.MLP(features, out=10))
        sides = {name: credo.models.augmented(plain, one, num_draws=NUM_VIEWS) for name, one in TRANSFORMS.items()}
        sides["plain"] = plain
        times = best_of(NUM_ROUNDS, {name: _chunk(model, data) for name, model in sides.items()})
        title = f"{label}, batch {BATCH_SIZE}: a step of MAP with {NUM_VIEWS} views of each row"
        table = new_table(title, "augmentation", "per step", f"beside {NUM_VIEWS} plain steps")
        for name, time in times.items():
            beside = f"{time / times['plain'] / NUM_VIEWS:.2f}" if name in TRANSFORMS else ""
            table.add_row(name, f"{time / NUM_STEPS * 1e3:.2f} ms", beside)
        console.print(table)


def effect() -> None:
    """Accuracy with few labels, without and with augmentation."""
    table = new_table(f"{NUM_LABELS} digits with labels, the others as test", "seed", "plain", "augmented", "gain")
    rows = [accuracies(seed) for seed in SEEDS]
    for seed, (plain, views) in zip(SEEDS, rows, strict=True):
        table.add_row(str(seed), f"{plain:.1f} %", f"{views:.1f} %", f"{views - plain:.1f}")
    plain, views = np.mean(rows, axis=0)
    table.add_row("mean", f"{plain:.1f} %", f"{views:.1f} %", f"{views - plain:.1f}")
    console.print(table)


def accuracies(seed: int, num_steps: int = 3000) -> tuple[float, float]:
    """In per cent, plain and augmented, of a network at its mode."""
    digits = credo.datasets.load("digits")
    order = np.random.default_rng(seed).permutation(digits.size)
    train, test = digits.select(order[:NUM_LABELS]), digits.select(order[NUM_LABELS:])
    net = credo.networks.CNN(10, channels=(64,), kernel_size=3, features=(128,))
    plain = credo.models.classification(net, prior=credo.priors.normal(4.0))
    augmented = credo.models.augmented(plain, VIEWS, num_draws=2)
    method = credo.MAP(num_steps=num_steps, learning_rate=optax.cosine_decay_schedule(5e-3, num_steps))
    found = [credo.fit(model, train, method, seed=seed, progress=False) for model in (plain, augmented)]
    first, second = (100 * float(np.mean(one.predict(test.x).label == test.y)) for one in found)
    return first, second


def _chunk(model: Any, data: credo.Data) -> Callable[[], Any]:
    """A compiled chunk of steps in the engine."""
    bound = model.bind(data)
    method = credo.MAP(num_steps=NUM_STEPS, batch_size=BATCH_SIZE)
    driver = engine.Driver(method, bound, method.plan(), NUM_STEPS)
    chain = driver.start(0, 0, None, bound.with_inputs(data.batch()), None)
    driver.compile([chain])
    return lambda: driver.chunk(chain, num_records=NUM_STEPS, thin=1)
