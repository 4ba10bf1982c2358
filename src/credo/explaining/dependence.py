"""How the prediction depends on one column, the others being as they are: one function for each draw."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from credo.explaining.columns import Columns, functions_of, over_draws
from credo.predictive import Predictive

# Of the draws of a curve, what its band holds.
LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Dependence:
    """Partial dependence on a column, with the uncertainty of the function itself.

    For a draw theta, over rows n of the table,

        fⱼ(v; theta) = mean over n of E[y | xₙ with xⱼ = v, theta]                        (Friedman, 2001)

    A draw is one function, so `sd` and the interval are the epistemic uncertainty of this curve, without noise.

    Arguments:
        name: of the column.
        settings: what v is, in words.
        at: v as numbers to draw over; places 0, 1, … where it has levels.
        mean: over the draws, (settings, outputs): outputs are targets, or the probabilities of classes.
        sd: over the draws.
        lower, upper: between which 95% of the draws lie.
        ordered: whether it is a curve, and not levels side by side.
    """

    name: str
    settings: tuple[str, ...]
    at: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    ordered: bool


def dependence(predict: Callable[[np.ndarray], Predictive], columns: Columns, name: str, num_rows: int) -> Dependence:
    """Partial dependence on a column, averaged over the first `num_rows` rows."""
    settings, others = columns.settings(name), columns.x[:num_rows]
    every = np.repeat(settings, num_rows, axis=0)
    functions, weights = functions_of(predict(columns.replaced(np.tile(others, (len(settings), 1)), name, every)))
    averaged = functions.reshape(len(functions), len(settings), num_rows, -1).mean(axis=2)
    ordered = columns.is_ordered(name)
    mean, sd = over_draws(averaged, weights)
    tail = (1 - LEVEL) / 2
    lower, upper = np.quantile(averaged, [tail, 1 - tail], axis=0, weights=weights, method="inverted_cdf")
    return Dependence(
        name=name,
        settings=tuple(columns.in_words(name, one) for one in settings),
        at=settings[:, 0] if ordered else np.arange(len(settings)),
        mean=mean,
        sd=sd,
        lower=lower,
        upper=upper,
        ordered=ordered,
    )
