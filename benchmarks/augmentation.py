"""Augmentation: what K views of each row cost beside K plain steps, and what they are worth with few labels.

    python -m benchmarks augmentation

Steps of MAP with Adam on images, batch 128, the sides in turns and the best of several rounds.
Accuracy on the digits of `credo.datasets`, of which 100 have labels; and of self-supervised models, with 50 labels and
all other digits without. Settings were chosen on seeds 100 to 104 (self-supervised: 100 and 101).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import optax

import credo
from benchmarks.printing import console, new_table
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
NUM_LABELS, NUM_FEW_LABELS = 100, 50
# What a digit could have looked like: turned, cut otherwise, and noisy.
VIEWS = augmentations.compose(augmentations.rotate(15), augmentations.crop(0.65), augmentations.noise(0.1))

PRETEXTS = {
    "masked": credo.models.pretexts.masked(0.5, strength=0.1),
    "contrast": credo.models.pretexts.contrast(VIEWS, num_candidates=16, strength=0.3),
}


def main() -> None:
    """All tables."""
    steps()
    effect()
    self_supervision()


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


def self_supervision() -> None:
    """Accuracy with very few labels, alone and with a pretext task on all inputs."""
    title = f"{NUM_FEW_LABELS} digits with labels, the others without: a trunk shared with a pretext"
    table = new_table(title, "seed", "labels alone", *(f"with {name}" for name in PRETEXTS))
    rows = [with_pretexts(seed) for seed in SEEDS]
    for label, row in [*zip(map(str, SEEDS), rows, strict=True), ("mean", np.mean(rows, axis=0))]:
        table.add_row(label, *(f"{accuracy:.1f} %" for accuracy in row))
    console.print(table)


def accuracies(seed: int, num_steps: int = 1500) -> tuple[float, float]:
    """In per cent, plain and augmented, of a network at its mode; views are averaged over in predictions too."""
    train, test = _few(seed, NUM_LABELS)
    net = credo.networks.MLP([100, 100], out=10, activation="relu")
    # A wide prior: what keeps the plain network from learning 100 digits by heart would keep views from teaching it.
    plain = credo.models.classification(net, prior=credo.priors.normal(10.0))
    augmented = credo.models.augmented(plain, VIEWS, num_draws=32, average=True)
    first, second = (_accuracy(model, train, test, _method(num_steps, 1e-2), seed) for model in (plain, augmented))
    return first, second


def with_pretexts(seed: int, num_steps: int = 2000) -> list[float]:
    """In per cent, of the target alone and jointly with each pretext."""
    train, test = _few(seed, NUM_FEW_LABELS)
    everything = credo.Data(train.x, train.y, unlabelled=test.x)
    trunk = credo.networks.CNN(64, channels=(32,), kernel_size=3, features=())
    alone = credo.models.self_supervised(trunk, PRETEXTS["masked"], out=10, task="target")
    found = [_accuracy(alone, train, test, _method(num_steps), seed)]
    for pretext in PRETEXTS.values():
        joint = credo.models.self_supervised(trunk, pretext, out=10)
        found.append(_accuracy(joint, everything, test, _method(num_steps, batch_size=1024), seed))
    return found


def _few(seed: int, num: int) -> tuple[credo.Data, credo.Data]:
    """Some digits, and the others."""
    digits = credo.datasets.load("digits")
    order = np.random.default_rng(seed).permutation(digits.size)
    return digits.select(order[:num]), digits.select(order[num:])


def _method(num_steps: int, highest_rate: float = 5e-3, batch_size: int | None = None) -> credo.MAP:
    rate = optax.cosine_decay_schedule(highest_rate, num_steps)
    return credo.MAP(num_steps=num_steps, learning_rate=rate, batch_size=batch_size)


def _accuracy(model: Any, train: credo.Data, test: credo.Data, method: Any, seed: int) -> float:
    posterior = credo.fit(model, train, method, seed=seed, progress=False)
    return 100 * float(np.mean(posterior.predict(test.x).label == test.y))


def _chunk(model: Any, data: credo.Data) -> Callable[[], Any]:
    """A compiled chunk of steps in the engine."""
    bound = model.bind(data)
    method = credo.MAP(num_steps=NUM_STEPS, batch_size=BATCH_SIZE)
    driver = engine.Driver(method, bound, method.plan(), NUM_STEPS)
    chain = driver.start(0, 0, None, bound.with_inputs(data.batch()), None)
    driver.compile([chain])
    return lambda: driver.chunk(chain, num_records=NUM_STEPS, thin=1)
