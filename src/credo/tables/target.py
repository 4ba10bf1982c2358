"""The target: its task, and its values as numbers or class labels."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from credo._text import nearest
from credo.data.missing import MISSING_LABEL
from credo.tables.cells import clean, numbers, words
from credo.tables.columns import ALL_ROWS, RowNumbers
from credo.tables.learning import MAX_LEVELS, Summary

TASKS = ("regression", "binary", "multi-class")
# Up to this many whole numbers counting from 0 or 1 are classes, if there are a few rows of each.
MAX_NUMBERED_CLASSES, MIN_ROWS_PER_CLASS = 10, 5


@dataclass(frozen=True)
class Target:
    """What to predict.

    Arguments:
        name: of its column.
        task: "regression", "binary" or "multi-class".
        labels: of the classes, in the order of their numbers; empty for a regression.
        why: how the task was found, in words.
    """

    name: str
    task: str
    labels: tuple[str, ...] = ()
    why: str = ""

    @classmethod
    def learn(cls, seen: Summary, task: str | None = None) -> "Target":
        """The target of a column, for the given task or the one that its values suggest."""
        labels = _labels(seen)
        if labels is not None and len(labels) == 1:
            raise ValueError(
                f"the target {seen.name!r} is always {labels[0]!r}: there is nothing to learn; choose another target, "
                "or a table in which it varies"
            )
        checked = None if task is None else _checked(task, seen, labels)
        chosen, why = _suggested(seen, labels)
        if checked not in (None, chosen):
            chosen, why = str(checked), "as requested"
        return cls(seen.name, chosen, () if chosen == "regression" else tuple(labels or ()), why)

    @property
    def is_classes(self) -> bool:
        return self.task != "regression"

    @property
    def num_outputs(self) -> int:
        """Outputs a network needs: one per class, but a single one for two classes."""
        return len(self.labels) if self.task == "multi-class" else 1

    @property
    def says(self) -> str:
        """What is predicted, in words."""
        classes = f" of {len(self.labels)} classes ({', '.join(self.labels[:6])}{', …' * (len(self.labels) > 6)})"
        return f"{self.task}{classes if self.is_classes else ''}, {self.why}"

    def encode(self, cells: pl.Series, *, rows: RowNumbers = ALL_ROWS) -> np.ndarray:
        """Cells as float64 or as int32 class labels; missing ones as NaN or `MISSING_LABEL`."""
        cleaned = clean(cells)
        if not self.is_classes:
            values = numbers(cleaned)
            if values.null_count() > cleaned.null_count():
                place = (values.is_null() & cleaned.is_not_null()).arg_true()[0]
                raise ValueError(f"the target {self.name!r} is {cleaned[place]!r} in row {rows[place]}, not a number")
            return values.cast(pl.Float64).fill_null(math.nan).to_numpy()
        found = _canonical(cleaned)
        places = found.cast(pl.Enum(self.labels), strict=False)
        if places.null_count() > found.null_count():
            place = (places.is_null() & found.is_not_null()).arg_true()[0]
            raise ValueError(
                f"the target {self.name!r} is {found[place]!r} in row {rows[place]}, and the classes are "
                f"{', '.join(self.labels)}{nearest(str(found[place]), self.labels)}"
            )
        return places.to_physical().cast(pl.Int64).fill_null(MISSING_LABEL).to_numpy().astype(np.int32)

    def new_classes(self, cells: pl.Series) -> list[str]:
        """Labels among the cells that are no class yet, in the order in which they come."""
        return [
            label
            for label in _canonical(clean(cells)).unique(maintain_order=True).drop_nulls()
            if label not in self.labels
        ]

    def with_classes(self, new: Sequence[str]) -> "Target":
        """The target with more classes, numbered after those that it has."""
        return replace(self, task="multi-class", labels=(*self.labels, *new), why="as new classes came on the way")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def _labels(seen: Summary) -> list[str] | None:
    """The classes if it is a category, in order; None if there are too many."""
    if seen.too_many_levels:
        return None
    levels = _canonical(pl.Series(list(seen.levels))).unique().to_list()
    return sorted(levels, key=(lambda text: float(text)) if seen.kind == "numbers" else None)


def label_texts(cells: Any) -> list[str | None]:
    """One text for each label: 1, 1.0 and 1e0 are the same; None where it is missing.

    >>> label_texts([1.0, float("nan"), 2.0]), label_texts(["cat", None])
    (['1', None, '2'], ['cat', None])
    """
    return _canonical(clean(pl.Series(cells))).to_list()


def _canonical(cells: pl.Series) -> pl.Series:
    """One text for each label: 1, 1.0 and 1e0 are the same."""
    values = numbers(cells)
    if values.null_count() > cells.null_count():
        return words(cells)
    return pl.Series(cells.name, [_number(value) for value in values.to_list()], dtype=pl.String)


def _number(value: float | None) -> str | None:
    return None if value is None else str(int(value)) if math.isfinite(value) and value == int(value) else repr(value)


def _suggested(seen: Summary, labels: list[str] | None) -> tuple[str, str]:
    """The task that the values suggest, and why."""
    if labels is None:
        if seen.kind != "numbers":
            raise ValueError(
                f"the target {seen.name!r} is text of more than {MAX_LEVELS} different values: too many classes to "
                "learn; choose another target, or group its values"
            )
        return "regression", "since it holds many different numbers"
    if len(labels) == 2:
        return "binary", "since it holds two different values"
    if seen.kind != "numbers":
        return "multi-class", "since it holds text"
    values = [float(label) for label in labels]
    runs = values in ([float(n) for n in range(len(values))], [float(n) for n in range(1, len(values) + 1)])
    if runs and len(labels) <= MAX_NUMBERED_CLASSES and seen.num_known >= MIN_ROWS_PER_CLASS * len(labels):
        return (
            "multi-class",
            f"since it holds only the numbers {labels[0]} to {labels[-1]} (for quantities: task='regression')",
        )
    return "regression", "since it holds numbers"


def _checked(task: str, seen: Summary, labels: list[str] | None) -> str:
    if task not in (*TASKS, "classification"):
        raise ValueError(f"task is {task!r}; it is one of {', '.join(TASKS)}{nearest(task, TASKS)}")
    if task == "regression":
        if seen.kind != "numbers":
            example = next((level for level in sorted(seen.levels) if not _is_number(level)), "text")
            raise ValueError(
                f"task is regression, but the target {seen.name!r} holds {example!r}; write numbers, or choose "
                "task='classification'"
            )
        return task
    if labels is None:
        raise ValueError(
            f"task is {task}, but the target {seen.name!r} has more than {MAX_LEVELS} different values; choose "
            "task='regression', or group its values"
        )
    fitting = "binary" if len(labels) == 2 else "multi-class"
    if task not in (fitting, "classification"):
        raise ValueError(
            f"task is {task}, but the target {seen.name!r} has {len(labels)} different values; choose task={fitting!r}"
        )
    return fitting


def _is_number(text: str) -> bool:
    return numbers(pl.Series([text])).null_count() == 0
