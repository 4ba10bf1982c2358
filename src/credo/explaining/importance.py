"""Which inputs matter: how much worse every function of the posterior predicts when a column is shuffled."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from credo.explaining.columns import Columns, functions_of, over_draws
from credo.predictive import Predictive


@dataclass(frozen=True)
class Importance:
    """How much a posterior goes by one column: the fall of R² when it is shuffled.

    For a draw theta, a row n and the row m that lends its value of column j,

        Iⱼ(theta) = mean over n of [ℓ(yₙ, f(xₙ with xⱼ of m; theta)) − ℓ(yₙ, f(xₙ; theta))] / Var[y],
        ℓ(y, f) = ‖y − f‖²,    f = E[y | x, theta],    of classes y is one for the right one and 0 for the others

    which is the permutation importance of Breiman (2001) and Fisher, Rudin and Dominici (2019), of each function alone.
    On rows that were not learned from it is 0 on average for a column that does not matter. It may be above 1: a column
    of other rows is worse than none. Half of it is the share of the variance of y that column j explains, alone and
    with others (its total Sobol' index), if f is right and the columns are independent.

    Arguments:
        mean: over the draws.
        sd: over the draws: what the parameters leave open, and more data to learn from would settle.
        standard_error: of the mean, by the rows of the table too: √(sd² + variance over rows / rows).
    """

    mean: float
    sd: float
    standard_error: float

    @property
    def matters(self) -> bool:
        """Whether it is above 0 by more than two standard errors."""
        return self.mean > 2 * self.standard_error


def importances(
    predict: Callable[[np.ndarray], Predictive], columns: Columns, y: np.ndarray, base: np.ndarray, num_rows: int
) -> dict[str, Importance]:
    """The importance of each column, by `num_rows` predictions each.

    Arguments:
        y: targets of the rows, (rows, outputs), NaN where they are missing; of classes 0 and 1.
        base: the functions on the rows as they are, (draws, rows, outputs).
    """
    scale = np.nanmean((y - np.nanmean(y, axis=0)) ** 2, axis=0)
    num, found = len(columns.x), dict.fromkeys(columns, Importance(0.0, 0.0, 0.0))
    for number, name in enumerate(columns.varying):
        # Each column is judged on rows of its own; the rows are in random order, so the next one is any other.
        rows = (number * num_rows + np.arange(num_rows)) % num
        lent = columns.x[(rows + 1 + number) % num][:, columns.places[name]]
        functions, weights = functions_of(predict(columns.replaced(columns.x[rows], name, lent)))
        rise = _losses(functions, y[rows], scale) - _losses(base[:, rows], y[rows], scale)
        mean, sd = over_draws(rise.mean(axis=1), weights)
        by_row, _ = over_draws(rise, weights)
        error = np.sqrt(sd**2 + by_row.var(ddof=1) / num_rows)
        found[name] = Importance(float(mean), float(sd), float(error))
    return found


def _losses(functions: np.ndarray, y: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """‖y − f‖² in units of the variance of y, (draws, rows), over the outputs that are there."""
    return np.nansum((functions - y) ** 2, axis=2) / np.sum(np.where(np.isnan(y), 0.0, scale), axis=1)
