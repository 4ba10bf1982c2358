"""What wrong decisions cost, by the names of the classes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from credo._text import nearest
from credo.tables.frames import as_table

ARROW = "->"
FORM = f"truth{ARROW}decision:cost, such as sick{ARROW}well:10"
COLUMNS = ("truth", "decision", "cost")


def costs_from(text: str, labels: Sequence[str]) -> np.ndarray:
    """The cost of each decision, (truth, decision), from text such as "sick->well:10", or a file.

    A wrong decision that is not named costs 1, a right one nothing.

    Arguments:
        text: truth->decision:cost, several separated by commas; or the name of a table with columns truth, decision
            and cost.
        labels: of the classes.

    >>> costs_from("sick->well:10", ["sick", "well"])
    array([[ 0., 10.],
           [ 1.,  0.]])
    """
    if not labels:
        raise ValueError("cost is about classes, and the target holds numbers; leave it out")
    costs = 1.0 - np.eye(len(labels))
    for (truth, decision), cost in (_from_file(text) if ARROW not in text else _from_text(text)).items():
        for label in (truth, decision):
            if label not in labels:
                raise ValueError(f"cost names {label!r}; the classes are {', '.join(labels)}{nearest(label, labels)}")
        if not np.isfinite(cost):
            raise ValueError(f"cost of {truth}{ARROW}{decision} is {cost}; write a finite number")
        costs[labels.index(truth), labels.index(decision)] = cost
    return costs


def decisions(prediction: Any, costs: np.ndarray, labels: Sequence[str]) -> dict[str, pl.Series]:
    """The decision of least expected cost for each row, and that cost."""
    expected = prediction.expected_costs(costs)
    chosen = np.argmin(expected, axis=1)
    return {
        "decision": pl.Series([labels[place] for place in chosen], dtype=pl.String),
        "expected_cost": pl.Series(expected[np.arange(len(chosen)), chosen]),
    }


def _from_text(text: str) -> Mapping[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    for part in text.split(","):
        names, _, cost = part.rpartition(":")
        truth, arrow, decision = (piece.strip() for piece in names.partition(ARROW))
        try:
            found[truth, decision] = float(cost)
        except ValueError:
            arrow = ""
        if not (truth and arrow and decision):
            raise ValueError(
                f"cost: write truth{ARROW}decision:cost, such as sick{ARROW}well:10, and not {part.strip()!r}"
            )
    return found


def _from_file(text: str) -> Mapping[tuple[str, str], float]:
    if not Path(text).exists():
        raise ValueError(
            f"cost is {text!r}, which is no file; write truth{ARROW}decision:cost, such as sick{ARROW}well:10"
        )
    table = as_table(text)
    if set(table.columns) != set(COLUMNS):
        raise ValueError(f"{text} has the columns {', '.join(table.columns)}; costs have {', '.join(COLUMNS)}")
    rows = pl.concat(list(table.batches())).select(COLUMNS).rows()
    return {(str(truth).strip(), str(decision).strip()): float(cost) for truth, decision, cost in rows}
