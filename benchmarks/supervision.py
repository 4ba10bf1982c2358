"""Degrees of supervision: what a model of noisy labels costs, and what it wins.

    python -m benchmarks supervision            seconds of a step; 40 % wrong labels among the embedded digits
    python -m benchmarks supervision --noisy    MNIST of CREDO_DATA with noise as in Co-teaching (Han et al., 2018)

Settings were chosen on seed 0; the figures are of the seeds after it.
"""

import argparse
import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from sklearn.metrics import roc_auc_score

import credo
from benchmarks.printing import console, new_table
from benchmarks.timing import best_of
from credo import random
from credo.inference.engine import driver as engine
from credo.inference.sgmcmc.schedules import Cosine
from credo.networks import MLP

KINDS = ("plain", "ncar", "nar", "nnar")
NUM_ROUNDS = 8
SEEDS = (1, 2, 3)
NUM_STEPS, BATCH_SIZE = 6000, 256
DIGITS = credo.BayesByBackprop(num_steps=3000)
# Wrong labels, how many of them, the figure that is asked for, and of what; and from how many starts the fit with the
# highest ELBO is taken. How to choose among starts was found on seeds 1 to 3.
MNIST_SEEDS = (7, 8, 9)
MNIST = (
    ("symmetric", 0.5, "accuracy", 0.913, 1),
    ("pair", 0.45, "accuracy", 0.876, 6),
    ("symmetric", 0.2, "auroc", 0.99, 1),
)


def main(options: Sequence[str] = ()) -> None:
    """The tables of steps and digits, or that of MNIST."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks supervision")
    parser.add_argument("--noisy", action="store_true", help="MNIST with wrong labels: about ten minutes of two cores")
    if parser.parse_args(list(options)).noisy:
        mnist()
    else:
        steps()
        digits()


# -- what it costs ----------------------------------------------------------------------------------------------


def steps() -> None:
    """Milliseconds of a step, and beside that of a model which takes labels for the truth."""
    rng = np.random.default_rng(0)
    images = credo.Data(rng.normal(size=(5000, 784)), rng.integers(0, 10, 5000))
    few = credo.Data(rng.normal(size=(1347, 64)), rng.integers(0, 10, 1347))
    cases: dict[str, Callable[[Any], Callable[[], Any]]] = {
        "784-400-400-10, batch 128: a step of MAP": lambda kind: _chunk([400, 400], kind, images, 60, 128),
        "64-50-10, 1,347 rows: a step of MAP": lambda kind: _chunk([50], kind, few, 200, None),
        "64-50-10, 1,347 rows: a gradient of NUTS": lambda kind: _gradients([50], kind, few, 200),
    }
    counts = dict(zip(cases, (60, 200, 200), strict=True))
    for title, side in cases.items():
        table = new_table(title, "model", "per step", "beside plain")
        times = best_of(NUM_ROUNDS, {kind: side(kind) for kind in KINDS})
        for kind, seconds in times.items():
            table.add_row(kind, f"{seconds / counts[title] * 1e3:.3f} ms", f"{seconds / times['plain']:.2f}")
        console.print(table)


def _chunk(features: list[int], kind: str, data: credo.Data, num: int, batch_size: int | None) -> Callable[[], Any]:
    """A compiled chunk of steps in the engine."""
    model, method = _model(features, kind).bind(data), credo.MAP(num_steps=num, batch_size=batch_size)
    driver = engine.Driver(method, model, method.plan(), num)
    chain = driver.start(0, 0, None, model.with_inputs(data.batch()), None)
    driver.compile([chain])
    return lambda: driver.chunk(chain, num_records=num, thin=1)


def _gradients(features: list[int], kind: str, data: credo.Data, num: int) -> Callable[[], Any]:
    """Gradients of the log joint, one after another."""
    model, batch = _model(features, kind).bind(data), data.batch()

    def step(theta: Any, _: None) -> tuple[Any, None]:
        slope = jax.grad(model.log_joint)(theta, batch)
        return jax.tree.map(lambda value, own: value + 1e-7 * own, theta, slope), None

    run = jax.jit(lambda theta: jax.lax.scan(step, theta, None, length=num)[0])
    theta = model.initial_theta(random.key(0))
    return lambda: run(theta)


def _model(features: list[int], kind: str) -> credo.Model:
    net = MLP(features, 10)
    return credo.models.classification(net) if kind == "plain" else credo.models.noisy_labels(net, kind)  # type: ignore[arg-type]


# -- what it wins -----------------------------------------------------------------------------------------------


def corrupted(labels: np.ndarray, how: str, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels of which a share is replaced, by any of nine others or by the next ("pair"); and which those are."""
    rng = np.random.default_rng(seed)
    wrong = rng.uniform(size=len(labels)) < share
    moved = 1 if how == "pair" else rng.integers(1, 10, len(labels))
    return np.where(wrong, (labels + moved) % 10, labels).astype(np.int32), wrong


def judged(posterior: Any, train: credo.Data, test: credo.Data, wrong: np.ndarray) -> dict[str, float]:
    """Accuracy on clean labels, and how well wrong ones are found: by the self-confidence of a plain model."""
    num_draws = 20 if train.size > 10_000 else None
    accuracy = float(np.mean(posterior.predict(test.x, num_draws=num_draws).label == test.y))
    if posterior.model.predicts == "y":
        errors = 1 - posterior.predict(train.x, num_draws=num_draws).probs[np.arange(train.size), train.y]
    else:
        errors = posterior.label_errors(train, num_draws=num_draws)
    auroc = float(roc_auc_score(wrong, errors)) if wrong.any() else float("nan")
    return {"accuracy": accuracy, "auroc": auroc, "seconds": posterior.provenance.seconds}


def is_sensible(posterior: Any) -> bool:
    """Whether each label is right more often than it is mistaken for any other: if not, classes are swapped."""
    confusion = np.asarray(posterior.model.constrain(posterior.mean)["confusion"])
    return bool(np.all(np.argmax(confusion, axis=1) == np.arange(len(confusion))))


def digits() -> None:
    """Test accuracy of plain and noisy models by one method, and how well wrong labels are found."""
    title = f"Digits, 64-50-10, 40 % wrong labels, BayesByBackprop({DIGITS.num_steps:,} steps), means of seeds {SEEDS}"
    table = new_table(title, "errors", "model", "accuracy", "AUROC of wrong labels")
    clean = np.mean([digits_of("symmetric", "plain", seed, share=0.0)["accuracy"] for seed in SEEDS])
    table.add_row("none", "plain", f"{clean:.3f}", "")
    for how in ("symmetric", "pair"):
        for kind in KINDS:
            found = [digits_of(how, kind, seed) for seed in SEEDS]
            table.add_row(how, kind, *(f"{np.mean([one[key] for one in found]):.3f}" for key in ("accuracy", "auroc")))
    console.print(table)


def digits_of(how: str, kind: str, seed: int, *, share: float = 0.4) -> dict[str, float]:
    """One fit to three quarters of the digits."""
    train, test = credo.datasets.load("digits", standardise=True).split(0.25, seed=seed, stratify=True)
    labels, wrong = corrupted(train.y, how, share, seed)
    noisy = credo.Data(train.x, labels).with_scaling(train.scaling)
    return judged(credo.fit(_model([50], kind), noisy, DIGITS, seed=seed, progress=False), noisy, test, wrong)


def mnist() -> None:
    """NAR by variational inference, beside the figures that Co-teaching has published."""
    if not os.environ.get("CREDO_DATA"):
        console.print("MNIST: skipped, since the environment variable CREDO_DATA names no folder with it")
        return
    train, test = credo.datasets.mnist(standardise=True)
    method = credo.BayesByBackprop(num_steps=NUM_STEPS, learning_rate=Cosine(3e-3, NUM_STEPS), batch_size=BATCH_SIZE)
    title = f"MNIST, 784-200-10, nar by BayesByBackprop, {NUM_STEPS:,} steps of {BATCH_SIZE} rows, seeds {MNIST_SEEDS}"
    table = new_table(title, "errors", "asked for", "accuracy", "AUROC of wrong labels", "per fit")
    model = _model([200], "nar")
    for how, share, asked, least, num_starts in MNIST:
        found = []
        for seed in MNIST_SEEDS:
            labels, wrong = corrupted(train.y, how, share, seed)
            noisy = credo.Data(train.x, labels).with_scaling(train.scaling)
            starts = [credo.fit(model, noisy, method, seed=10 * n + seed, progress=False) for n in range(num_starts)]
            best = max(starts, key=lambda posterior: (is_sensible(posterior), posterior.trace["elbo"][0, -500:].mean()))
            found.append(judged(best, noisy, test, wrong))
        shown = (" ".join(f"{one[key]:.4f}" for one in found) for key in ("accuracy", "auroc"))
        seconds = np.mean([one["seconds"] for one in found])
        starts_in_words = f", best of {num_starts}" if num_starts > 1 else ""
        table.add_row(f"{how} {share:.0%}{starts_in_words}", f"{asked} ≥ {least}", *shown, f"{seconds:.0f} s")
    console.print(table)
