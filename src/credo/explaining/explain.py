"""`credo.explain`: what a posterior goes by, how its prediction depends on that, and why single rows are uncertain."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas

from credo.data import Data
from credo.evaluation.checks import finite, rows_for
from credo.evaluation.recalibration import Recalibrated
from credo.explaining.columns import MAX_SETTINGS, Columns, functions_of
from credo.explaining.dependence import Dependence, dependence
from credo.explaining.importance import Importance, importances
from credo.explaining.unsure import UnsureRow, parts_of, unsure_row
from credo.posterior import Posterior
from credo.predictive import ClassPredictive

# Predictions of the table that each part may take: with two of the rows as they are, 20 in all.
FOR_IMPORTANCE, FOR_CURVES, FOR_ROWS = 9, 5, 4
# Draws give an sd to within 7%, and so many rows an R² to within 3% or so.
NUM_DRAWS, MAX_ROWS = 100, 2000
MAX_CURVES, MAX_OTHERS = 6, 200
MIN_ROWS, MAX_WALKS = 10, 64


@dataclass(frozen=True, eq=False)
class Explanation:
    """What `credo.explain` found. Print it for a table.

    Arguments:
        importance: of each column, the most important first.
        dependence: on the most important columns, in the same order.
        rows: the most uncertain rows of the table, the first of them first.
        num_rows: with a target, that importance and dependence were computed on.
        target: what is predicted, with its unit.
        classes: the names of the classes; None for numbers.

    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> import credo
    >>> posterior = SimpleNamespace(predict=lambda x, num_draws: credo.from_normal(np.stack([x[:, 0]] * 2), 0.5))
    >>> x = np.random.default_rng(0).normal(size=(40, 2))
    >>> found = credo.explain(posterior, (x, x[:, 0]))
    >>> list(found.importance), found.num_rows
    (['x1', 'x2'], 40)
    """

    task: Literal["regression", "classification"]
    importance: dict[str, Importance]
    dependence: dict[str, Dependence] = field(repr=False)
    rows: tuple[UnsureRow, ...] = field(repr=False)
    num_rows: int
    target: str = "y"
    classes: tuple[str, ...] | None = None

    def to_frame(self) -> pandas.DataFrame:
        """The importance of each column, one in a row."""
        rows = [{"column": name, **asdict(one)} for name, one in self.importance.items()]
        return pandas.DataFrame(rows).set_index("column")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "task": self.task,
            "num_rows": self.num_rows,
            "target": self.target,
            "classes": None if self.classes is None else list(self.classes),
            "importance": {name: asdict(one) for name, one in self.importance.items()},
            "dependence": {
                name: {"settings": list(one.settings)}
                | {part: getattr(one, part).tolist() for part in ("mean", "sd", "lower", "upper")}
                for name, one in self.dependence.items()
            },
            "rows": [
                {"row": one.index + 1} | {name: value for name, value in asdict(one).items() if name != "index"}
                for one in self.rows
            ],
        }

    def table(self) -> Iterator[tuple[str, str, str, str]]:
        """Each column, its importance, the standard error and what that means, in words."""
        most = next(iter(self.importance.values())).mean
        for name, one in self.importance.items():
            strength = "most" if one.mean == most else "much" if one.mean > most / 4 else "a little"
            said = f"matters {strength}" if one.matters else "no effect that can be told from none"
            yield name, f"{one.mean:.3f}", f"{one.standard_error:.2g}", said

    def __str__(self) -> str:
        lines = [f"How much R² falls when a column is shuffled, on {self.num_rows:,} rows"]
        width = max(map(len, self.importance))
        lines += [f"{name:<{width}}  {mean:>7} ± {error:<8} {said}" for name, mean, error, said in self.table()]
        return "\n".join([*lines, *(["Most uncertain rows"] if self.rows else []), *map(str, self.rows)])


def explain(
    posterior: Posterior | Recalibrated,
    data: Data | tuple[Any, Any],
    *,
    num_rows: int = 5,
    num_draws: int = NUM_DRAWS,
    seed: int = 0,
) -> Explanation:
    """Which columns matter, how the prediction depends on them, and what makes single rows uncertain.

    Importance is the fall of R² when a column is shuffled, of every draw's function: see `Importance`. How the
    prediction depends on a column is again one function for each draw: see `Dependence`. The uncertainty of a row is
    divided among its columns: see `UnsureRow`. All of it is about the model, and no proof of causes; of columns that
    say the same, each looks less important than both.

    It costs at most 20 predictions of the table, if that has more rows than columns; a larger table is explained by
    2,000 of its rows.

    Arguments:
        posterior: from `credo.fit`; a recalibrated one is explained as it was before.
        data: rows that it was not trained on, `credo.Data` or (x, y): training rows make every column look important.
            The numbers that a column of a table became are shuffled together (`Data.columns`).
        num_rows: how many of the most uncertain rows to explain, fewer where the table is small.
        num_draws: draws of the posterior to look at.
        seed: of what is shuffled with what.

    >>> import credo, numpy as np
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> data = credo.Data(x, 2 * x[:, 0] + 0.1, names=["dose", "shoe size"])
    >>> linear = credo.models.regression(credo.networks.MLP([], out=1), noise=0.1)
    >>> found = credo.explain(credo.fit(linear, data, credo.ClosedForm()), data)
    >>> [name for name, one in found.importance.items() if one.matters]
    ['dose']

    References: Breiman, Random forests, 2001; Fisher, Rudin and Dominici, All models are wrong, but many are useful,
    2019; Friedman, Greedy function approximation, 2001; Štrumbelj and Kononenko, Explaining prediction models, 2014.
    """
    if num_rows < 0:
        raise ValueError(f"num_rows is {num_rows}; it is how many uncertain rows to explain, 0 or more")
    posterior = posterior.posterior if isinstance(posterior, Recalibrated) else posterior
    table = _required(rows_for(posterior, data).with_labels())
    predict = partial(posterior.predict, num_draws=num_draws)
    chosen = np.random.default_rng(seed).permutation(np.flatnonzero(table.seen))[:MAX_ROWS]
    columns = Columns.of(table, table.x[chosen])
    as_it_is = predict(table.x)
    finite(as_it_is)
    classes = isinstance(as_it_is, ClassPredictive)
    base, _ = functions_of(predict(columns.x))
    y = np.eye(base.shape[2])[table.y[chosen]] if classes else table.y[chosen].reshape(len(chosen), -1)
    if not np.nanvar(y, axis=0).all():
        raise ValueError("y is the same in all rows of data: no column can explain it; pass rows in which it varies")
    size, num_varying = table.size, max(len(columns.varying), 1)
    for_each = min(len(chosen), max(FOR_IMPORTANCE * size // num_varying, MIN_ROWS))
    found = importances(predict, columns, y, base, for_each)
    ranked = dict(sorted(found.items(), key=lambda item: -item[1].mean))
    curves = [name for name in ranked if name in columns.varying][:MAX_CURVES]
    num_others = max(1, min(len(chosen), MAX_OTHERS, FOR_CURVES * size // (MAX_SETTINGS * max(len(curves), 1))))
    names = table.classes or (tuple(map(str, range(base.shape[2]))) if classes else None)
    parts_at = partial(_parts, predict, np.nanvar(y, axis=0))
    return Explanation(
        task="classification" if classes else "regression",
        importance=ranked,
        dependence={name: dependence(predict, columns, name, num_others) for name in curves},
        rows=_unsure(parts_at, columns, table.x, parts_of(as_it_is, np.nanvar(y, axis=0)), chosen, num_rows),
        num_rows=len(chosen),
        target=f"{table.target or 'y'}{f' ({table.unit})' if table.unit else ''}",
        classes=names,
    )


def _required(table: Data) -> Data:
    if table.x.ndim != 2:
        raise ValueError(f"explain is for tables of numbers, and x has rows of shape {table.x.shape[1:]}")
    if table.num_labelled < 2:
        raise ValueError(f"data has {table.num_labelled} rows with a target; importance needs at least 2")
    return table


def _parts(predict: Any, scale: np.ndarray, x: np.ndarray) -> np.ndarray:
    return parts_of(predict(x), scale)


def _unsure(
    parts_at: Any, columns: Columns, x: np.ndarray, parts: np.ndarray, chosen: np.ndarray, num_rows: int
) -> tuple[UnsureRow, ...]:
    """The most uncertain rows, as many as the budget has two walks for."""
    per_walk = max(len(columns.varying) - 1, 1)
    budget = FOR_ROWS * len(x) // per_walk
    num = min(num_rows, int(np.sum(parts.sum(axis=1) > 0)), max(budget // 2, 1)) if columns.varying else 0
    worst = np.argsort(-parts.sum(axis=1), kind="stable")[:num]
    num_walks = min(max(budget // max(num, 1), 2), MAX_WALKS)
    return tuple(
        unsure_row(parts_at, columns, x[one], parts[one], parts[chosen], index=int(one), num_walks=num_walks)
        for one in worst
    )
