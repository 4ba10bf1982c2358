"""Labels that people are spared: the accuracy after so many labels, as `credo label` asks for them and at random.

    python -m benchmarks labels [--pools digits,mnist] [--seeds 3] [--markdown]

All at the defaults of `credo label`, one question in five drawn by chance included; somebody knows all labels, and the
model learns after every fifth. Judged by all items of the pool that have no label. The defaults were chosen on digits.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from benchmarks.printing import new_table, show
from credo.data.datasets import mnist
from credo.labelling.answers import Answers
from credo.labelling.lesson import Lesson
from credo.labelling.pool import Pool
from credo.labelling.pools import read_pool
from credo.labelling.session import Labelling

AFTER = (20, 40, 60, 100)
BETWEEN = 5
NUM_IMAGES = 2_000


def main(arguments: Sequence[str] = ()) -> None:
    """A row for each pool and each way to ask."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks labels", description=__doc__)
    parser.add_argument("--pools", default=",".join(POOLS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args(arguments)
    table = new_table(
        f"accuracy on the rest of the pool, mean of {options.seeds} seeds",
        "pool",
        "asked",
        *(f"{num} labels" for num in AFTER),
    )
    for name in options.pools.split(","):
        with POOLS[name]() as (pool, truth):
            for way, lesson in {"by margin": Lesson(), "at random": Lesson(acquisition="random")}.items():
                found = np.mean([accuracies(pool, truth, lesson, seed) for seed in range(options.seeds)], axis=0)
                table.add_row(name, way, *(f"{share:.1%}" for share in found))
    show(table, markdown=options.markdown)


def accuracies(pool: Pool, truth: np.ndarray, lesson: Lesson, seed: int) -> list[float]:
    """The accuracy on what has no label, after each number of labels."""
    classes, found = tuple(map(str, np.unique(truth))), list[float]()
    with (
        TemporaryDirectory() as folder,
        Labelling(pool, classes, Answers(Path(folder) / "log"), seed=seed) as labelling,
    ):
        own = Lesson(lesson.method, lesson.network, lesson.acquisition, seed)
        for number in range(AFTER[-1] + 1):
            if number % BETWEEN == 0:
                labelling.publish(own.view(pool, classes, labelling.votes(), labelling.open_places()))
            if number in AFTER:
                left = labelling.open_places()
                guesses = labelling.view.probs[:, left].mean(axis=0).argmax(axis=-1)
                found.append(float(np.mean(np.array(classes)[guesses] == truth[left].astype(str))))
            [card] = labelling.next("all-knowing")
            labelling.answer("all-knowing", card.item, "label", str(truth[pool.place(card.item)]))
    return found


@contextmanager
def images(load: Callable[[], tuple[np.ndarray, np.ndarray]]) -> Iterator[tuple[Pool, np.ndarray]]:
    """Images in a file, and their classes."""
    x, y = load()
    with TemporaryDirectory() as folder:
        np.savez(Path(folder) / "images.npz", x=x[:NUM_IMAGES])
        yield read_pool(Path(folder) / "images.npz"), y[:NUM_IMAGES]


@contextmanager
def rows(load: Callable[..., tuple[np.ndarray, np.ndarray]]) -> Iterator[tuple[Pool, np.ndarray]]:
    """Rows of a table in a file, and their classes."""
    x, y = load(return_X_y=True)
    with TemporaryDirectory() as folder:
        names = ",".join(f"column {place}" for place in range(x.shape[1]))
        np.savetxt(Path(folder) / "rows.csv", x, delimiter=",", header=names, comments="")
        yield read_pool(Path(folder) / "rows.csv"), y


def _digits() -> tuple[np.ndarray, np.ndarray]:
    found = load_digits()
    return found.images, found.target


def _mnist(fashion: bool) -> tuple[np.ndarray, np.ndarray]:
    train, _ = mnist(fashion=fashion)
    return train.x[:NUM_IMAGES].reshape(-1, 28, 28), train.y[:NUM_IMAGES]


POOLS = {
    "digits": lambda: images(_digits),
    "mnist": lambda: images(lambda: _mnist(False)),
    "fashion": lambda: images(lambda: _mnist(True)),
    "wine": lambda: rows(load_wine),
    "cancer": lambda: rows(load_breast_cancer),
}


if __name__ == "__main__":
    main()
