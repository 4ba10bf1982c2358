"""Rows as scikit-learn has them, data frames and arrays of any type, as the numbers a network takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import polars as pl

from credo.tables import effects
from credo.tables.columns import Numeric
from credo.tables.cross_fitting import averaged, outputs_of
from credo.tables.frames import IN_MEMORY, FrameTable, as_table, is_frame, series_of
from credo.tables.inputs import Inputs
from credo.tables.looks import columns_of, summaries


@dataclass(frozen=True)
class Features(Inputs):
    """What was learned about the columns of X, by the rules of tables; those of an array are x0, x1, …

    Numbers without gaps go through as they are.

    >>> Features.learn(np.array([["Ulm", 2], ["Bern", None], ["Ulm", 4]], object)).names
    ('x0=Ulm', 'x1', 'x1 is missing')
    """

    @classmethod
    def learn(cls, x: Any) -> Self:
        """The columns of rows, (rows, columns)."""
        plain = _plain(x)
        if plain is not None:
            limits = zip(np.median(plain, axis=0), plain.min(axis=0), plain.max(axis=0), strict=True)
            spans = [tuple(map(float, one)) for one in limits]
            return cls(tuple(Numeric(n, fill=f, low=a, high=b) for n, (f, a, b) in zip(_names(x), spans, strict=True)))
        table = _table(x)
        found = cls(columns_of(table, summaries(table), table.columns))
        if not found.names:
            said = "; ".join(f"{column.name}: {column.says}" for column in found.columns)
            raise ValueError(f"X has no column to learn from ({said})")
        return found

    def fitted(self, x: Any, y: np.ndarray, labels: Sequence[str]) -> tuple[Self, np.ndarray]:
        """The same with what columns tell of the target, and the rows to fit to.

        Arguments:
            y: numbers, (rows,) or (rows, targets), or class labels, of which `labels` are the names.
        """
        if not effects.are_in(self.columns):
            return self, self.rows(x)
        table, targets = _table(x), averaged(y, len(labels))
        names = ["y"] if y.ndim == 1 else [f"y{place}" for place in range(y.shape[1])]
        found = replace(self, columns=effects.learned(self.columns, table, targets, outputs_of(names, labels)))
        return found, effects.of_other_rows(found.columns, table, targets, found.rows(x))

    @property
    def are_plain(self) -> bool:
        """Whether all columns are numbers that go through as they are."""
        return all(type(column) is Numeric and not column.num_missing for column in self.columns)

    def rows(self, x: Any, unknown: Any = "error") -> np.ndarray:
        """Rows as numbers, (rows, len(names)); `unknown` as for `Column.encode`."""
        plain = _plain(x) if self.are_plain else None
        if plain is not None:
            return plain
        return np.concatenate([numbers for _, numbers in self.inputs(_table(x), unknown=unknown)])

    def signs(self, monotone: Any) -> dict[Any, Any]:
        """A sign for each input that orders a column which has one.

        Arguments:
            monotone: signs by name or number of a column, or one for each, of which 0 is none.
        """
        if not isinstance(monotone, Mapping):
            signs, num_columns = np.asarray(monotone), len(self.columns)
            if signs.shape != (num_columns,):
                raise ValueError(
                    f"monotone must have a number for each of {num_columns} columns, got shape {signs.shape}"
                )
            monotone = dict(enumerate(signs.tolist()))
        return {self._place(column): sign for column, sign in monotone.items() if sign != 0}

    def _place(self, column: Any) -> Any:
        """Where the number is that orders a column, by its name or number; what is no column stays as it is."""
        names = [one.name for one in self.columns]
        found = names.index(column) if column in names else column
        if not isinstance(found, int) or not 0 <= found < len(names):
            return column
        one = self.columns[found]
        if not one.ordered_by:
            raise ValueError(f"monotone: column {one.name!r} has no direction ({one.says})")
        return self.names.index(one.ordered_by)


def _names(x: Any) -> list[str]:
    return list(map(str, x.columns)) if is_frame(x) else [f"x{place}" for place in range(x.shape[1])]


def _plain(x: Any) -> np.ndarray | None:
    """Rows as an array, if they are numbers without gaps."""
    array = np.asarray(x)
    return None if array.dtype.kind not in "biuf" or np.isnan(array).any() else array


def _table(x: Any) -> FrameTable:
    if is_frame(x):
        return as_table(x)  # type: ignore[return-value]
    names = _names(x)
    return FrameTable(
        IN_MEMORY, tuple(names), pl.DataFrame([series_of(name, x[:, place]) for place, name in enumerate(names)])
    )
