"""A distribution over the last layer alone: what a gradient costs on cached features, and what it wins on MNIST.

    python -m benchmarks last_layer            milliseconds of a gradient and seconds of NUTS, features beside network
    python -m benchmarks last_layer --mnist    MNIST of CREDO_DATA: last-layer VI beside MAP, three seeds

Settings of MNIST were chosen on seed 0; the figures are of the seeds after it.
"""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

import credo
from benchmarks.tables import console, new_table
from benchmarks.timing import best_of
from credo import random
from credo.models.on_features import on_features
from credo.typing import Batch

NUM_ROWS, BATCH_SIZE, NUM_ROUNDS = 10_000, 64, 10
# Gradients in one compiled call, so that calling is no part of the time.
NUM_GRADIENTS = {NUM_ROWS: 1, BATCH_SIZE: 100}


def main(options: Sequence[str] = ()) -> None:
    """The table of costs, or that of MNIST."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks last_layer")
    parser.add_argument(
        "--mnist", action="store_true", help="last-layer VI beside MAP: about half an hour of two cores"
    )
    if parser.parse_args(list(options)).mnist:
        mnist()
    else:
        cost()


def cost() -> None:
    """Milliseconds of a gradient of the log joint of LeNet, and how far features are from the network."""
    rng = np.random.default_rng(0)
    data = credo.Data(rng.normal(size=(NUM_ROWS, 28, 28, 1)), rng.integers(0, 10, NUM_ROWS))
    whole = credo.models.classification(credo.networks.CNN(10))
    params = credo.networks.functional(credo.networks.CNN(10, seed=1), data.x).params
    models = {
        "all weights": whole.bind(data),
        "head, whole network": credo.models.last_layer(whole, trained=params).bind(data),
    }
    short: Any = on_features(models["head, whole network"])
    table = new_table(
        "a gradient of LeNet's log joint", "rows", *models, "head, features", "ratio", "largest difference"
    )
    for num in (NUM_ROWS, BATCH_SIZE):
        batch = Batch(data.x[:num], data.y[:num], NUM_ROWS)
        sides = {name: _gradients(model, batch) for name, model in models.items()}
        sides["head, features"] = _gradients(short.model, short.batch(batch))
        times = {name: value / NUM_GRADIENTS[num] for name, value in best_of(NUM_ROUNDS, sides).items()}
        *others, features = times.values()
        far = _difference(sides["head, whole network"](), sides["head, features"]())
        cells = [f"{1e3 * value:.3g} ms" for value in times.values()]
        table.add_row(f"{num:,}", *cells, f"1/{others[-1] / features:.0f}", f"{far:.0e}")
    console.print(table)


def _gradients(model: credo.Model, batch: Batch) -> Callable[[], Any]:
    """Several gradients along a line of thetas, each from the one before, so that none can be left out."""
    theta = model.initial_theta(random.key(0))
    on_device = jax.device_put(batch)

    @jax.jit
    def climb(theta: Any, batch: Batch) -> Any:
        def step(theta: Any, _: Any) -> tuple[Any, None]:
            gradient = jax.grad(model.log_joint)(theta, batch)
            return jax.tree.map(lambda value, slope: value + 1e-9 * slope, theta, gradient), None

        moved, _ = jax.lax.scan(step, theta, length=NUM_GRADIENTS[batch.x.shape[0]])
        return moved, jax.grad(model.log_joint)(moved, batch) if batch.x.shape[0] == BATCH_SIZE else None

    return lambda: climb(theta, on_device)
