"""How good variational inference is on MNIST, beside published numbers; for UCI see `python -m benchmarks uci`.

    CREDO_DATA=folder python -m benchmarks vi_quality

Published: Blundell et al., "Weight uncertainty in neural networks" (2015).
"""

import time
from typing import Any

import optax

import credo
from benchmarks.printing import console, new_table

BATCH, EPOCHS, MNIST_DRAWS = 128, 20, 50


def main() -> None:
    """784-400-400-10 ReLU: mean-field Bayes-by-backprop against the mode of the same model."""
    try:
        train, test = credo.datasets.mnist(standardise=True)
    except FileNotFoundError as error:
        console.print(f"skipped: {error}")
        return
    steps = EPOCHS * train.size // BATCH
    rate = optax.cosine_decay_schedule(1e-3, steps)
    settings: dict[str, Any] = {"num_steps": steps, "batch_size": BATCH, "learning_rate": rate}
    net = credo.networks.MLP([400, 400], out=10, activation="relu")
    sides = {
        "scale mixture": (credo.priors.scale_mixture(0.25, 0.3, 0.0025), 0.005, "1.36%"),
        "normal, 0.1": (credo.priors.normal(0.1), 0.01, "1.82%; 2.3–2.6% in a rerun with 1,200 units"),
    }
    table = new_table(f"MNIST, {EPOCHS} epochs", "prior", "method", "test error", "NLL", "ECE", "minutes", "published")
    for prior, (distribution, scale, published) in sides.items():
        model = credo.models.classification(net, prior=distribution)
        methods = {"MAP": credo.MAP(**settings), "mean field": credo.BayesByBackprop(**settings, initial_scale=scale)}
        for name, method in methods.items():
            began = time.perf_counter()
            posterior = credo.fit(model, train, method)
            minutes = (time.perf_counter() - began) / 60
            prediction = posterior.predict(test.x, num_draws=MNIST_DRAWS)
            error = 1 - credo.evaluation.accuracy(prediction, test.y)
            figures = (credo.evaluation.nll(prediction, test.y), credo.evaluation.ece(prediction, test.y))
            beside = "1.83% (SGD)" if name == "MAP" else published
            table.add_row(
                prior, name, f"{error:.2%}", *(f"{figure:.4f}" for figure in figures), f"{minutes:.1f}", beside
            )
    console.print(table)


if __name__ == "__main__":
    main()
