"""Learning from a stream: ten permutations of MNIST one after another, and a boundary that turns.

    python -m benchmarks online                          a hyperplane that turns: with and without forgetting
    python -m benchmarks online --mnist laplace          permuted MNIST of CREDO_DATA, without stored data
    python -m benchmarks online --mnist vi --coreset 200

Permuted MNIST: each task shows all pixels in another order, and no task is seen twice; after the last one the accuracy
is that on the test images of all of them. Settings were chosen on permutations of seed 100, figures are of seed 0.
"""

import argparse
from collections.abc import Iterator, Sequence

import matplotlib.pyplot as plt
import numpy as np

import credo
from benchmarks.printing import console, new_table
from credo.inference.method import Method

NUM_TASKS = 10
# Test images of each task that are asked while tasks come, any 500 of them: the error of a percentage is 0.9/√tasks.
# After the last all are asked.
NUM_ON_THE_WAY, NUM_AT_THE_END = 500, 10_000


def main(options: Sequence[str] = ()) -> None:
    """The drift, or permuted MNIST."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks online")
    parser.add_argument("--mnist", choices=("laplace", "vi"), help="ten permutations: about ten minutes")
    parser.add_argument("--coreset", type=int, default=0, help="rows of each task that are kept")
    parser.add_argument("--tasks", type=int, default=NUM_TASKS)
    parser.add_argument("--steps", type=int, default=1000, help="of the optimiser, for each task")
    parser.add_argument("--seed", type=int, default=0, help="of the permutations")
    parser.add_argument("--picture", help="a file to draw the accuracy over the tasks into")
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
    tests, averages, asked = [], [], np.random.default_rng(0).permutation(NUM_AT_THE_END)
    for task, (train, test) in enumerate(tasks(chosen.tasks, chosen.seed), 1):
        tests.append(test)
        posterior = learner.update(train)
        num = NUM_ON_THE_WAY if task < chosen.tasks else NUM_AT_THE_END
        found = [accuracy(posterior, one.select(asked[:num])) for one in tests]
        averages.append(100 * float(np.mean(found)))
        console.print(
            f"after {task:2} tasks {averages[-1]:.2f} %  (first {100 * found[0]:.1f}, last {100 * found[-1]:.1f}; "
            f"{posterior.provenance.seconds:.0f} s)"
        )
    if chosen.picture is not None:
        draw(averages, chosen.picture)


def draw(averages: Sequence[float], path: str) -> None:
    """The average accuracy over the number of tasks, beside what was published for the last."""
    figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
    ax.plot(np.arange(1, len(averages) + 1), averages, marker="o", label="Laplace, Kronecker factors")
    published = {"VCL": 90, "SI": 86, "EWC": 84, "Laplace, diagonal": 82}
    for name, value in published.items():
        ax.plot(NUM_TASKS, value, marker="_", markersize=14, color="0.4", linestyle="none")
        ax.annotate(name, (NUM_TASKS, value), (-12, -3), textcoords="offset points", ha="right", color="0.4")
    ax.set(xlabel="tasks learned", ylabel="average accuracy (%)", ylim=(80, 100), xlim=(0.5, NUM_TASKS + 0.5))
    ax.legend(frameon=False, loc="lower left")
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


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


# -- a boundary that turns ----------------------------------------------------------------------------------------

# Ten inputs, and a hyperplane that turns by a twentieth of a right angle from batch to batch, in a plane of its own.
NUM_INPUTS, ROWS_PER_BATCH, NUM_BATCHES, ANGLE = 10, 50, 30, np.pi / 40
MEMORIES = (1.0, 0.9, 0.7)
SEEDS = (0, 1, 2)


def drift(seeds: Sequence[int] = SEEDS, num_batches: int = NUM_BATCHES) -> None:
    """Each batch is predicted before it is learned: mean log score in nats per row, and accuracy."""
    table = new_table(
        f"a turning hyperplane, {num_batches} batches of {ROWS_PER_BATCH} rows, {len(seeds)} seeds",
        *("forgetting", "log score", "gain over none", "accuracy"),
    )
    found = {kept: np.array([prequential(kept, seed, num_batches) for seed in seeds]) for kept in MEMORIES}
    for kept, scores in found.items():
        gains = scores[:, 0] - found[1.0][:, 0]
        error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else 0.0
        log_score, right = scores.mean(axis=0)
        table.add_row(f"{kept:g}", f"{log_score:.3f}", f"{gains.mean():+.3f} ± {error:.3f}", f"{100 * right:.1f} %")
    console.print(table)


def prequential(kept: float, seed: int, num_batches: int) -> tuple[float, float]:
    """Of a logistic regression that forgets: mean log score and accuracy over all batches but the first."""
    model = credo.models.classification(credo.networks.MLP([], out=1))
    method = credo.Laplace(structure="full", training=credo.MAP(num_steps=200, learning_rate=0.05), prediction="probit")
    learner = credo.online(model, method, forgetting=kept, seed=seed)
    scores = []
    for x, y in turning(seed, num_batches):
        if learner.num_updates:
            predicted = learner.posterior.predict(x)
            scores.append((np.mean(predicted.log_prob(y)), np.mean(predicted.label == y)))
        learner.update((x, y), progress=False)
    log_score, right = np.mean(scores, axis=0)
    return float(log_score), float(right)


def turning(seed: int, num_batches: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Batches of labels on both sides of a hyperplane through the origin, one in twenty of them wrong."""
    rng = np.random.default_rng(seed)
    plane = np.linalg.qr(rng.normal(size=(NUM_INPUTS, 2)))[0]
    for batch in range(num_batches):
        normal = plane @ [np.cos(batch * ANGLE), np.sin(batch * ANGLE)]
        x = rng.normal(size=(ROWS_PER_BATCH, NUM_INPUTS))
        wrong = rng.random(ROWS_PER_BATCH) < 0.05
        yield x, ((x @ normal > 0) ^ wrong).astype(np.int32)
