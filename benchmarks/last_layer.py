"""A distribution over the last layers alone: what a gradient costs on cached features, and what it wins on MNIST.

    python -m benchmarks last_layer                      milliseconds of a gradient: features beside the network
    python -m benchmarks last_layer --mnist              MNIST of CREDO_DATA: last-layer VI beside MAP
    python -m benchmarks last_layer --mnist --seeds 1

Settings of MNIST were chosen on seeds 0 and 1; the figures are of the seeds after these.
"""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

import credo
from benchmarks.printing import console, new_table
from benchmarks.timing import best_of
from credo import random
from credo.models.on_features import on_features
from credo.typing import Batch

NUM_ROUNDS = 8
# Rows of a gradient, and how many gradients are computed in one compiled call, each of other rows.
SIZES = {10_000: 1, 64: 50}
NUM_ROWS = 10_000

SEEDS = (2, 3)
# Twenty passes over the data, and a rate that falls to zero: chosen on seed 0, the learned prior on seed 1.
NUM_STEPS, BATCH_SIZE, LEARNING_RATE = 18_760, 64, 1e-3


def main(options: Sequence[str] = ()) -> None:
    """The table of costs, or that of MNIST."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks last_layer")
    parser.add_argument("--mnist", action="store_true", help="last-layer VI beside MAP: two minutes for each fit")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    chosen = parser.parse_args(list(options))
    if chosen.mnist:
        mnist(chosen.seeds)
    else:
        cost()


# -- what it costs ----------------------------------------------------------------------------------------------


def cost() -> None:
    """Milliseconds of a gradient of LeNet's log joint, and the largest relative difference of gradients."""
    rng = np.random.default_rng(0)
    data = credo.Data(rng.normal(size=(NUM_ROWS, 28, 28, 1)).astype(np.float32), rng.integers(0, 10, NUM_ROWS))
    whole = credo.models.classification(credo.networks.CNN(10))
    params = credo.networks.functional(credo.networks.CNN(10, seed=1), data.x).params
    frozen = credo.models.last_layer(whole, trained=params).bind(data)
    short: Any = on_features(frozen, NUM_ROWS)
    raw, features = data.batch(), short.batch(data.batch())
    table = new_table(
        "a gradient of LeNet's log joint", "rows", "all weights", "the head", "on features", "ratio", "difference"
    )
    for size, num in SIZES.items():
        sides = {
            "all": _gradients(whole.bind(data), raw, size, num),
            "head": _gradients(frozen, raw, size, num),
            "features": _gradients(short.model, features, size, num),
        }
        times = {name: 1e3 * value / num for name, value in best_of(NUM_ROUNDS, sides).items()}
        apart = jax.tree.map(
            lambda one, other: np.abs(one - other).max() / np.abs(one).max(), sides["head"](), sides["features"]()
        )
        cells = [f"{value:.3g} ms" for value in times.values()]
        ratio = f"1/{times['head'] / times['features']:.0f}"
        table.add_row(f"{size:,}", *cells, ratio, f"{max(jax.tree.leaves(apart)):.0e}")
    console.print(table)


def _gradients(model: credo.Model, data: Batch, size: int, num: int) -> Callable[[], Any]:
    """Gradients at a starting point, one for each of `num` batches of `size` rows."""
    theta = model.initial_theta(random.key(0))
    batches = [np.asarray(part)[: num * size].reshape(num, size, *np.shape(part)[1:]) for part in (data.x, data.y)]

    @jax.jit
    def gradients(theta: Any, x: Any, y: Any) -> Any:
        return jax.lax.map(lambda rows: jax.grad(model.log_joint)(theta, Batch(*rows, NUM_ROWS)), (x, y))

    on_device = jax.device_put(batches)
    return lambda: gradients(theta, *on_device)


# -- what it wins -----------------------------------------------------------------------------------------------


def mnist(seeds: Sequence[int]) -> None:
    """Test error and calibration error of MAP and of last-layer VI, trained alike."""
    train, test = credo.datasets.mnist(standardise=True)
    falling = credo.schedules.Cosine(LEARNING_RATE, NUM_STEPS)
    settings: dict[str, Any] = {"num_steps": NUM_STEPS, "batch_size": BATCH_SIZE, "learning_rate": falling}
    table = new_table(
        f"MNIST, {NUM_STEPS:,} steps of {BATCH_SIZE} rows", "seed", "what", "error", "ECE", "NLL", "seconds"
    )
    for seed in seeds:
        net = credo.networks.CNN(10, seed=seed)
        model = credo.models.classification(net)
        learned = credo.models.classification(net, prior=credo.priors.learned())
        sides = {
            "MAP": (model, credo.MAP(**settings)),
            "the last layer": (credo.models.last_layer(model), credo.BayesByBackprop(**settings)),
            "its prior learned": (credo.models.last_layer(learned), credo.BayesByBackprop(**settings)),
        }
        for name, (own, method) in sides.items():
            posterior = credo.fit(own, train, method, seed=seed)
            scores = credo.evaluate(posterior, test)
            error, ece = 100 * (1 - scores["accuracy"].value), scores["ece"]
            cells = (
                f"{error:.2f} %",
                f"{100 * ece.value:.2f} ± {100 * ece.standard_error:.2f} %",
                f"{scores['nll'].value:.4f}",
            )
            table.add_row(str(seed), name, *cells, f"{posterior.provenance.seconds:.0f}")
    console.print(table)
