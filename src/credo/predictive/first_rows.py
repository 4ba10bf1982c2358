"""The first rows of a prediction, as a notebook shows them."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from credo import _html

NUM_ROWS = 5
# Of each row so many outputs.
NUM_CELLS = 10

Answers = Mapping[str, Callable[[Any], np.ndarray]]

OF_NUMBERS: Answers = {
    "mean": lambda one: one.mean,
    "sd": lambda one: one.std,
    "epistemic sd": lambda one: np.sqrt(one.epistemic),
    "aleatoric sd": lambda one: np.sqrt(one.aleatoric),
}
OF_CLASSES: Answers = {
    "label": lambda one: one.label,
    "probability": lambda one: one.probs.max(axis=-1),
    "epistemic (nats)": lambda one: one.epistemic,
    "aleatoric (nats)": lambda one: one.aleatoric,
}


def shown(prediction: Any, answers: Answers) -> str:
    """What it is, and the answers about its first rows: (row) or (row, output…), then one column for each answer."""
    first = prediction[:NUM_ROWS]
    columns = {name: answer(first) for name, answer in answers.items()}
    places = list(np.ndindex(next(iter(columns.values())).shape))[:NUM_CELLS]
    several = any(len(place) > 1 for place in places)
    rows = [[", ".join(map(str, place)), *(f"{one[place]:.4g}" for one in columns.values())] for place in places]
    table = _html.table(["row, output" if several else "row", *columns], rows, range(len(columns) + 1))
    return _html.notebook(_html.code(repr(prediction)), table)
