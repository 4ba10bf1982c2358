"""Learning from a stream: ten permutations of MNIST one after another, and a boundary that turns.

    python -m benchmarks online                          a hyperplane that turns: with and without forgetting
    python -m benchmarks online --mnist laplace          permuted MNIST of CREDO_DATA, without stored data
    python -m benchmarks online --mnist vi --coreset 200

Permuted MNIST: each task shows all pixels in another order, and no task is seen twice; after the last one the accuracy
is that on the test images of all of them. Settings were chosen on permutations of seed 100, figures are of seed 0.
"""

import argparse
from collections.abc import Iterator, Sequence

import numpy as np

import credo
from benchmarks.tables import console, new_table
from credo.inference.method import Method

NUM_TASKS = 10
# Rows of each test set that are asked while tasks come, and at the end.
NUM_ON_THE_WAY = 1000


def main(options: Sequence[str] = ()) -> None:
    """The drift, or permuted MNIST."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks online")
    parser.add_argument("--mnist", choices=("laplace", "vi"), help="ten permutations: about ten minutes")
    parser.add_argument("--coreset", type=int, default=0, help="rows of each task that are kept")
    parser.add_argument("--tasks", type=int, default=NUM_TASKS)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0, help="of the permutations")
    chosen = parser.parse_args(list(options))
    if chosen.mnist is None:
        drift()
    else:
        permuted_mnist(chosen)


# -- permuted MNIST ---------------------------------------------------------------------------------------------


def permuted_mnist(chosen: argparse.Namespace) -> None:
    """The average accuracy on all tasks so far, after each of them."""
    model = credo.models.classification(credo.networks.MLP([100, 100], out=10, activation="relu"))
    learner = credo.online(model, method_of(chosen.mnist, chosen.steps), coreset=chosen.coreset)
    tests = []
    for task, (train, test) in enumerate(tasks(chosen.tasks, chosen.seed), 1):
        tests.append(test)
        posterior = learner.update(train)
        num = NUM_ON_THE_WAY if task < chosen.tasks else len(test.y)
        found = [accuracy(posterior, one.select(np.arange(num))) for one in tests]
        console.print(
            f"after {task:2} tasks {100 * np.mean(found):.2f} %  (first {100 * found[0]:.1f}, "
            f"last {100 * found[-1]:.1f}; {posterior.provenance.seconds:.0f} s)"
        )


def tasks(num: int, seed: int) -> Iterator[tuple[credo.Data, credo.Data]]:
    """Train and test of each task: the pixels in an order of its own."""
    parts, rng = credo.datasets.mnist(), np.random.default_rng(seed)
    for _ in range(num):
        order = rng.permutation(784)
        train, test = (credo.Data(part.x.reshape(len(part.x), -1)[:, order], part.y) for part in parts)
        yield train, test


def method_of(name: str, num_steps: int) -> Method:
    """What learns a task, by its name."""
    falling = credo.schedules.Cosine(1e-3, num_steps)
    if name == "laplace":
        training = credo.MAP(num_steps=num_steps, batch_size=256, learning_rate=falling)
        return credo.Laplace(training=training, prediction="probit")
    return credo.BayesByBackprop(num_steps=num_steps, batch_size=256, learning_rate=falling)


def accuracy(posterior: credo.Posterior, test: credo.Data) -> float:
    """The share of labels that are right."""
    return float(np.mean(posterior.predict(test.x, num_draws=20).label == test.y))
