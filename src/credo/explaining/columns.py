"""The inputs of a table by column: all numbers of a column are replaced together, by those of other rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from credo.data import Data

# A column with more different settings is a curve over some of them, evenly spaced in rank.
MAX_SETTINGS = 12


@dataclass(frozen=True, eq=False)
class Columns:
    """Rows of a table in a random order, and which of their numbers belong together.

    Arguments:
        x: (rows, numbers).
        places: of the numbers of each column, by its name.
        names: of the numbers.
    """

    x: np.ndarray
    places: dict[str, np.ndarray]
    names: tuple[str, ...]

    @classmethod
    def of(cls, data: Data, x: np.ndarray) -> "Columns":
        """Those of `data`, for rows x of it; a number is a column of its own where the data does not say otherwise."""
        names = data.names or tuple(f"x{place + 1}" for place in range(x.shape[1]))
        belongs = np.array(data.columns or names)
        # Names that are not unique belong to different columns all the same, if the data does not join them.
        if data.columns is None and len(set(names)) < len(names):
            belongs = np.array([f"{name} ({place + 1})" for place, name in enumerate(names)])
        return cls(x, {name: np.flatnonzero(belongs == name) for name in dict.fromkeys(belongs.tolist())}, names)

    @cached_property
    def varying(self) -> tuple[str, ...]:
        """The columns that are not the same in every row: others cannot be told from a constant."""
        return tuple(name for name, place in self.places.items() if np.ptp(self.x[:, place], axis=0).any())

    def replaced(self, rows: np.ndarray, name: str, values: np.ndarray) -> np.ndarray:
        """Rows with other numbers in one column, (rows, numbers)."""
        changed = rows.copy()
        changed[:, self.places[name]] = values
        return changed

    def settings(self, name: str) -> np.ndarray:
        """Numbers that stand for the column, (settings, its numbers): rows that it has, in order.

        All of them if they are few; else some evenly spaced in rank of the first number, where the others that are but
        0 or 1, as the one for missing cells is, have their most frequent value.
        """
        own = self.x[:, self.places[name]]
        different, counts = np.unique(own, axis=0, return_counts=True)
        if own.shape[1] > 1 and np.isin(own, (0, 1)).all():  # a category: its levels in order, or the most frequent
            different, counts = different[::-1], counts[::-1]
            return different[np.sort(np.argsort(-counts, kind="stable")[:MAX_SETTINGS])]
        if len(different) <= MAX_SETTINGS:
            return different
        flags = np.isin(own, (0, 1)).all(axis=0)
        own = own[(own[:, flags] == np.round(own[:, flags].mean(axis=0))).all(axis=1)]
        ordered = own[np.argsort(own[:, 0], kind="stable")]
        chosen = ordered[np.linspace(0, len(ordered) - 1, MAX_SETTINGS).round().astype(int)]
        return chosen[np.append(True, np.diff(chosen[:, 0]) > 0)]

    def is_ordered(self, name: str) -> bool:
        """Whether its first number orders it: a curve, in place of levels side by side."""
        first = self.x[:, self.places[name][0]]
        return len(np.unique(first)) > 2

    def in_words(self, name: str, values: np.ndarray) -> str:
        """What the numbers of a column say: a number, or the level whose number is 1."""
        own = [self.names[place] for place in self.places[name]]
        levels = [one.removeprefix(f"{name}=").removeprefix(f"{name} is ") for one in own]
        if len(own) == 1 and levels == own:
            return f"{values[0]:.4g}"
        on = [level for level, value, one in zip(levels, values, own, strict=True) if value == 1 and level != one]
        if on:
            return on[0]
        return f"{values[0]:.4g}" if levels[0] == own[0] else f"not {levels[0]}" if len(own) == 1 else "none of them"

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


def functions_of(prediction: Any) -> tuple[np.ndarray, np.ndarray]:
    """E[y | x, theta] of every draw, (draws, rows, outputs), and the weights of the draws."""
    drawn = np.asarray(prediction.functions, np.float64)
    # A linearised network, whose marginal is in closed form, draws functions where they are asked for.
    weights = prediction.weights if len(prediction.weights) == len(drawn) else np.full(len(drawn), 1 / len(drawn))
    return drawn.reshape(*drawn.shape[:2], -1), np.asarray(weights, np.float64)


def over_draws(values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sd over draws, (draws, …), with the unbiased variance that predictions have; 0 for a single draw."""
    mean = np.tensordot(weights, values, axes=1)
    spread = np.tensordot(weights, (values - mean) ** 2, axes=1)
    return mean, np.sqrt(spread / (1 - np.sum(weights**2))) if np.max(weights) < 1 else np.zeros_like(mean)
