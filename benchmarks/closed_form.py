"""Last layers in closed form beside MAP and a last-layer Laplace: error and log-likelihood on UCI sets.

    CREDO_DATA=folder python -m benchmarks closed_form [--sets energy,yacht] [--splits 0,1,2] [--markdown]

One hidden layer of 50 ReLU units, everything standardised, default settings of each method. How the closed form holds
its point layers was chosen on boston and concrete, splits 15 to 17.
"""

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import credo
from benchmarks import printing
from benchmarks.printing import console, new_table
from credo.inference.method import Method
from credo.models.priors import fan_in, learned, normal

NUM_UNITS = 50


class Recipe(NamedTuple):
    """How a method is used."""

    method: Method
    prior: Any = fan_in()
    noise: Any = "learned"
    validation: float | None = None


LAST_LAYER = {"hidden.*": "point", "head.*": normal()}
RECIPES = {
    "MAP": Recipe(credo.MAP(), validation=0.1),
    # The evidence tunes a prior scale for each array, and the noise.
    "Laplace, last layer": Recipe(credo.Laplace(subset="last_layer", structure="full"), learned(), "tuned"),
    "closed form": Recipe(credo.ClosedForm(), LAST_LAYER),
    "closed form, held out": Recipe(credo.ClosedForm(), LAST_LAYER, validation=0.1),
    # What the evidence does to features that nothing holds.
    "closed form, unregularised": Recipe(credo.ClosedForm(regularised_by=None), LAST_LAYER),
}


def main(arguments: Sequence[str] = ()) -> None:
    """A table for each set."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks closed_form", description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default="energy,yacht")
    parser.add_argument("--splits", default="0,1,2,3,4")
    parser.add_argument("--markdown", action="store_true", help="print tables for a document")
    options = parser.parse_args(list(arguments))
    for name in options.sets.split(","):
        try:
            data = credo.datasets.uci(name)
        except FileNotFoundError as error:
            console.print(f"skipped: {error}")
            return
        splits = [int(split) for split in options.splits.split(",")]
        printing.show(_table(name, data, splits), markdown=options.markdown)


def _table(name: str, data: credo.Data, splits: Sequence[int]) -> Any:
    title = f"{name}, {data.size} rows, {len(splits)} splits"
    table = new_table(title, "method", "RMSE", "log-likelihood", "log evidence", "seconds")
    for method, recipe in RECIPES.items():
        # One model for all splits, which then share compiled programs.
        net = credo.networks.MLP([NUM_UNITS], out=1, activation="relu")
        model = credo.models.regression(net, prior=recipe.prior, noise=recipe.noise)
        found = np.array([_scores(model, recipe, *credo.datasets.uci_split(data, split), split) for split in splits])
        error = found.std(axis=0, ddof=1) / np.sqrt(len(splits))
        cells = [
            "–" if np.isnan(mean) else f"{mean:.3g} ± {err:.2g}"
            for mean, err in zip(found.mean(axis=0), error, strict=True)
        ]
        table.add_row(method, *cells[:3], f"{found[:, 3].mean():.1f}")
    return table


def _scores(model: credo.Model, recipe: Recipe, train: credo.Data, test: credo.Data, seed: int) -> tuple[float, ...]:
    posterior: Any = credo.fit(model, train, recipe.method, seed=seed, validation=recipe.validation, progress=False)
    prediction = posterior.predict(test.x)
    evidence = getattr(posterior.diagnostics, "log_evidence", np.nan)
    scores = credo.evaluation.rmse(prediction, test.y), credo.evaluation.lpd(prediction, test.y)
    return *map(float, scores), evidence, posterior.provenance.seconds
