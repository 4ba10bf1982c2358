"""What it costs to judge a classifier: 100,000 rows × 1,000 draws × 10 classes.

    python -m benchmarks evaluation

The array of all probabilities would take 4 GB; one pass over it is a bare compiled scan over the draws that applies the
network, takes the softmax and adds it up. `credo.evaluate` gives every score, curve and bootstrap error.
"""

import resource
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import credo
from benchmarks.printing import console, new_table
from benchmarks.timing import best_of
from credo import random
from credo.posterior import Draws, Provenance

NUM_ROWS, NUM_DRAWS, NUM_INPUTS, NUM_CLASSES, NUM_HIDDEN = 100_000, 1000, 5, 10, 20


def main() -> None:
    """The table."""
    posterior, x, y = _problem()
    theta = {name: jnp.asarray(leaf[0]) for name, leaf in posterior.theta.items()}
    before = _peak()
    times = best_of(
        3,
        {
            "one pass": partial(_one_pass, theta, jnp.asarray(x)),
            "predict": lambda: posterior.predict(x).probs,
            "evaluate": lambda: credo.evaluate(posterior, (x, y))["nll"].value,
        },
    )
    title = f"{NUM_ROWS:,} rows × {NUM_DRAWS:,} draws × {NUM_CLASSES} classes"
    table = new_table(title, "what", "seconds", "ratio", "asked")
    for name, asked in (("one pass", ""), ("predict", ""), ("evaluate", "≤ 3")):
        table.add_row(name, f"{times[name]:.2f}", f"{times[name] / times['one pass']:.2f}", asked)
    console.print(table)
    print(f"peak memory above the start: {(_peak() - before) / 2**20:.2f} GiB (asked: within 2)")


def _problem() -> tuple[Draws, np.ndarray, np.ndarray]:
    """Draws from the prior of a small network, and labels from one of them."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(NUM_ROWS, NUM_INPUTS)).astype(np.float32)
    net = credo.networks.MLP([NUM_HIDDEN], out=NUM_CLASSES, activation="tanh")
    model = credo.models.classification(net).bind((x[:100], np.arange(100) % NUM_CLASSES))
    theta = {name: np.asarray(leaf)[None] for name, leaf in model.sample_prior(random.key(0), NUM_DRAWS).items()}
    posterior = Draws(model, theta, Provenance({"name": "prior"}, 0, 0.0, 100))
    return posterior, x, posterior.predict(x, num_draws=1).samples(random.key(1), 1)[0]


@jax.jit
def _one_pass(theta: dict[str, Any], x: jax.Array) -> jax.Array:
    def add(total: jax.Array, draw: dict[str, Any]) -> tuple[jax.Array, None]:
        hidden = jnp.tanh(x @ draw["hidden.0.kernel"] + draw["hidden.0.bias"])
        return total + jax.nn.softmax(hidden @ draw["head.kernel"] + draw["head.bias"]), None

    total, _ = jax.lax.scan(add, jnp.zeros((NUM_ROWS, NUM_CLASSES)), theta)
    return total / NUM_DRAWS


def _peak() -> float:
    """KiB, of the whole process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
