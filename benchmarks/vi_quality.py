"""How good variational inference is: MNIST, and the standard splits of four UCI sets, beside published numbers.

    CREDO_DATA=folder python -m benchmarks.vi_quality [mnist] [uci]

Published: Blundell et al. (2015) for MNIST; PBP from Lakshminarayanan et al. (2017), MC-dropout from the tables that
Gal published with his code (2016), mean-field VI from uncertainty-baselines and Wu et al. via Izmailov et al. (2019).
"""

import sys
import time
from typing import Any

import numpy as np
import optax
from rich.console import Console
from rich.table import Table

import credo

console = Console(width=150)

# Rows: RMSE and log-likelihood of PBP, of MC-dropout 2016, log-likelihoods of mean-field VI by two other groups.
PUBLISHED = {
    "boston": ("3.01 / −2.57", "2.97 / −2.46", "−3.12, −2.43"),
    "concrete": ("5.67 / −3.16", "5.23 / −3.04", "−3.22, −3.04"),
    "energy": ("1.80 / −2.04", "1.66 / −1.99", "−0.93, −2.38"),
    "yacht": ("1.02 / −1.63", "1.11 / −1.55", "−2.01, −1.68"),
}
NUM_SPLITS = 5
UCI_STEPS, UCI_DRAWS = 20_000, 200
BATCH, EPOCHS, MNIST_DRAWS = 128, 20, 50


def main() -> None:
    """The tables that were asked for, or both."""
    wanted = [name for name in sys.argv[1:] if name in ("mnist", "uci")] or ["mnist", "uci"]
    try:
        credo.datasets.uci("boston")
    except FileNotFoundError as error:
        console.print(f"skipped: {error}")
        return
    if "mnist" in wanted:
        mnist()
    if "uci" in wanted:
        uci()


def mnist() -> None:
    """784-400-400-10 ReLU: mean-field Bayes-by-backprop against the mode of the same model."""
    train, test = credo.datasets.mnist(standardise=True)
    steps = EPOCHS * train.size // BATCH
    rate = optax.cosine_decay_schedule(1e-3, steps)
    settings: dict[str, Any] = {"num_steps": steps, "batch_size": BATCH, "learning_rate": rate}
    methods = {
        "MAP": credo.MAP(**settings),
        "Bayes-by-backprop, mean field": credo.BayesByBackprop(**settings),
        "the same, cold (kl_weight=0.1)": credo.BayesByBackprop(**settings, kl_weight=0.1),
    }
    net = credo.networks.MLP([400, 400], out=10, activation="relu")
    model = credo.models.classification(net, prior=credo.priors.normal(0.1))
    table = _table(f"MNIST, {EPOCHS} epochs", "method", "test error", "NLL", "ECE", "minutes", "published")
    for name, method in methods.items():
        began = time.perf_counter()
        posterior = credo.fit(model, train, method)
        minutes = (time.perf_counter() - began) / 60
        prediction = posterior.predict(test.x, num_draws=MNIST_DRAWS)
        error = 1 - credo.evaluation.accuracy(prediction, test.y)
        figures = (credo.evaluation.nll(prediction, test.y), credo.evaluation.ece(prediction, test.y))
        published = "1.83% (SGD)" if name == "MAP" else "1.82% normal prior, 1.36% scale mixture"
        table.add_row(name, f"{error:.2%}", *(f"{figure:.4f}" for figure in figures), f"{minutes:.1f}", published)
    console.print(table)


def uci() -> None:
    """One hidden layer of 50: RMSE / log-likelihood over the first five standard splits, ± standard error."""
    heading = f"UCI, first {NUM_SPLITS} splits, RMSE / log-likelihood"
    table = _table(heading, "set", "credo", "PBP", "MC-dropout", "mean-field VI, LL", "seconds per fit")
    rate = optax.cosine_decay_schedule(1e-2, UCI_STEPS)
    method = credo.BayesByBackprop(num_steps=UCI_STEPS, learning_rate=rate, initial_scale=0.05)
    model = credo.models.regression(credo.networks.MLP([50], out=1, activation="relu"), prior=credo.priors.normal(1.0))
    for name, published in PUBLISHED.items():
        data = credo.datasets.uci(name)
        scores, seconds = [], []
        for split in range(NUM_SPLITS):
            train, test = credo.datasets.uci_split(data, split)
            posterior = credo.fit(model, train, method, seed=split)
            prediction = posterior.predict(test.x, num_draws=UCI_DRAWS)
            scores.append([credo.evaluation.rmse(prediction, test.y), credo.evaluation.lpd(prediction, test.y)])
            seconds.append(posterior.provenance.seconds)
        mean, error = np.mean(scores, 0), np.std(scores, 0, ddof=1) / np.sqrt(NUM_SPLITS)
        own = f"{mean[0]:.2f} ± {error[0]:.2f} / {mean[1]:.2f} ± {error[1]:.2f}"
        table.add_row(name, own, *published, f"{np.mean(seconds):.0f}")
    console.print(table)


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading)
    return table


if __name__ == "__main__":
    main()
