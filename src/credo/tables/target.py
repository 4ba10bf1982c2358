"""The target: its task, and its values as numbers or class labels."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from credo._text import nearest
from credo.data.missing import MISSING_LABEL
from credo.tables.cells import are_codes, booleans, clean, numbers, words
from credo.tables.column import ALL_ROWS, RowNumbers
from credo.tables.forms import PLAIN, Form
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
        also: the targets of further columns of numbers, predicted together with the first.
        censored: the column that says where a number is only a lower bound; "" for none.
        is_ordered: whether the order of the classes is their own: that of numbers, or of a column that says it.
        form: how its cells are written.

    >>> import polars as pl
    >>> import credo
    >>> frame = pl.DataFrame({"size": [3, 4, 5], "kind": ["flat", "house", "flat"]})
    >>> target = credo.tables.Encoding.learn(frame, "kind").target
    >>> target.task, target.labels
    ('binary', ('flat', 'house'))
    """

    name: str
    task: str
    labels: tuple[str, ...] = ()
    why: str = ""
    also: tuple["Target", ...] = ()
    censored: str = ""
    is_ordered: bool = False
    form: Form = PLAIN

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
        if chosen == "regression":
            return cls(seen.name, chosen, why=why, form=seen.form)
        is_ordered = seen.kind == "numbers" or bool(seen.order)
        return cls(seen.name, chosen, tuple(labels or ()), why, is_ordered=is_ordered, form=seen.form)

    @classmethod
    def learn_all(cls, seen: Sequence[Summary], task: str | None = None, censored: str = "") -> "Target":
        """The target of one column, or of several that hold numbers.

        Arguments:
            censored: the column that says where the target is only a lower bound.
        """
        first, *others = (cls.learn(one, task) for one in seen)
        if others and any(one.is_classes for one in (first, *others)):
            tasks = ", ".join(f"{one.name!r} is {one.task}, {one.why}" for one in (first, *others))
            raise ValueError(
                f"several targets are predicted together where all of them are numbers, and {tasks}; fit one network "
                "to each, or pass task='regression' if they are quantities"
            )
        if censored and (others or first.is_classes):
            what = "there are several" if others else f"{first.name!r} is {first.task}, {first.why}"
            raise ValueError(f"censored: {censored!r} is about one target of numbers, and {what}; leave it out")
        return replace(first, also=tuple(others), censored=censored)

    @property
    def is_classes(self) -> bool:
        return self.task != "regression"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are predicted."""
        return (self.name, *(one.name for one in self.also))

    @property
    def title(self) -> str:
        """What is predicted, by name."""
        return ", ".join(self.columns)

    @property
    def num_outputs(self) -> int:
        """Outputs a network needs: one per class or target, but a single one for two classes."""
        return len(self.labels) if self.task == "multi-class" else len(self.columns)

    @property
    def says(self) -> str:
        """What is predicted, in words."""
        classes = f" of {len(self.labels)} classes ({', '.join(self.labels[:6])}{', …' * (len(self.labels) > 6)})"
        several = f" of {len(self.columns)} targets together" if self.also else ""
        censored = f"; {self.censored} says where it is only a lower bound" if self.censored else ""
        form = f"; {self.form.says}" if self.form.says else ""
        return f"{self.task}{classes if self.is_classes else several}, {self.why}{form}{censored}"

    def read(self, batch: pl.DataFrame, *, rows: RowNumbers = ALL_ROWS) -> np.ndarray:
        """The targets of some rows as arrays have them, (rows,) or (rows, targets)."""
        found = [one.encode(batch[one.name], rows=rows) for one in (self, *self.also)]
        return np.column_stack(found) if self.also else found[0]

    def has_any(self, batch: pl.DataFrame) -> pl.Series:
        """Which rows have a target, or one of several."""
        known = [clean(batch[name]).is_not_null() for name in self.columns]
        return pl.DataFrame(known).select(pl.any_horizontal(pl.all())).to_series()

    def read_censored(self, batch: pl.DataFrame, *, rows: RowNumbers = ALL_ROWS) -> np.ndarray:
        """Which rows are censored; those without a target are not."""
        cells = clean(batch[self.censored])
        flags, values = booleans(cells), numbers(cells)
        flags = flags.zip_with(flags.is_not_null(), (values == 1).set(~values.is_in([0.0, 1.0]), None))
        unclear = (flags.is_null() & clean(batch[self.name]).is_not_null()).arg_true()
        if len(unclear):
            raise ValueError(
                f"the column {self.censored!r} says which targets are censored, and holds {cells[unclear[0]]!r} in row "
                f"{rows[unclear[0]]}; it must hold yes (or true, 1) where the target is only a lower bound, else no "
                "(or false, 0)"
            )
        return flags.fill_null(False).to_numpy()

    def encode(self, cells: pl.Series, *, rows: RowNumbers = ALL_ROWS) -> np.ndarray:
        """Cells as float64 or as int32 class labels; missing ones as NaN or `MISSING_LABEL`."""
        cleaned = clean(cells)
        typed = self.form.typed(cleaned)
        values = typed if self.is_classes else numbers(typed)
        if values.null_count() > cleaned.null_count():
            place = (values.is_null() & cleaned.is_not_null()).arg_true()[0]
            what = f"not {self.form.says}" if self.form.says else "not a number"
            raise ValueError(f"the target {self.name!r} is {cleaned[place]!r} in row {rows[place]}, {what}")
        if not self.is_classes:
            return values.cast(pl.Float64).fill_null(math.nan).to_numpy()
        found = self._labels_of(values)
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
            for label in self._labels_of(self.form.typed(clean(cells))).unique(maintain_order=True).drop_nulls()
            if label not in self.labels
        ]

    def with_classes(self, new: Sequence[str]) -> "Target":
        """The target with more classes, numbered after those that it has."""
        return replace(self, task="multi-class", labels=(*self.labels, *new), why="as new classes came on the way")

    def as_told(self, decimal: str) -> "Target":
        """The same in a table of which the decimal mark of numbers in texts is known; labels are texts."""
        if self.is_classes:
            return self
        return replace(self, form=self.form.told(decimal), also=tuple(one.as_told(decimal) for one in self.also))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    def _labels_of(self, cells: pl.Series) -> pl.Series:
        """One text for each label; yes and no as the labels spell them."""
        spelled = _spelling(self.labels)
        found = _canonical(cells)
        return booleans(found).replace_strict(spelled, return_dtype=pl.String).fill_null(found) if spelled else found


def _labels(seen: Summary) -> list[str] | None:
    """The classes if it is a category, in order; None if there are too many."""
    if seen.too_many_levels:
        return None
    if seen.kind == "booleans" and seen.is_text:
        often = sorted(seen.levels, key=lambda level: (seen.levels[level], level))
        spelled = dict(zip(booleans(pl.Series(often)), often, strict=True))
        return [spelled[truth] for truth in sorted(spelled)]
    levels = _canonical(pl.Series(list(seen.levels))).unique().to_list()
    if seen.order:
        return [level for level in seen.order if level in levels]
    return sorted(levels, key=(lambda text: float(text)) if seen.kind == "numbers" else None)


def _spelling(labels: Sequence[str]) -> dict[bool, str]:
    """How two labels spell no and yes; nothing where they are others."""
    found = dict(zip(booleans(pl.Series(labels, dtype=pl.String)), labels, strict=True))
    return found if len(labels) == 2 and found.keys() == {False, True} else {}


def label_texts(cells: Any) -> list[str | None]:
    """One text for each label: 1, 1.0 and 1e0 are the same; None where it is missing.

    >>> label_texts([1.0, float("nan"), 2.0]), label_texts(["cat", None])
    (['1', None, '2'], ['cat', None])
    """
    return _canonical(clean(pl.Series(cells))).to_list()


def _canonical(cells: pl.Series) -> pl.Series:
    """One text for each label: 1, 1.0 and 1e0 are the same."""
    values = numbers(cells)
    if values.null_count() > cells.null_count() or are_codes(cells, values):
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
        return "multi-class", "since it holds an ordered category" if seen.order else "since it holds text"
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
