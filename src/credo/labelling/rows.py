"""A pool of rows of a table."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from credo._text import nearest
from credo.labelling.pool import Pool, digest, numbered, require_items
from credo.tables.files import open_table
from credo.tables.looks import summaries
from credo.tables.source import Source
from credo.tables.target import label_texts


@dataclass(frozen=True, eq=False)
class RowPool(Pool):
    """Rows of a table. A target that some of them have already is the label to begin with."""

    frame: pl.DataFrame | None = None
    kind: ClassVar[str] = "row"
    network: ClassVar[str] = "mlp:30"

    @classmethod
    def read(cls, source: Source, target: str | None) -> "RowPool":
        """The rows of a file; the column of that name is what people are asked for, and need not be there."""
        table = open_table(source)
        path = table.path
        near = nearest(target, table.columns) if target is not None and target not in table.columns else ""
        if near:
            raise ValueError(f"{path} has no column {target!r}{near}; a column that is not there yet needs a new name")
        frame = pl.concat(list(table.batches()) or [pl.DataFrame()])
        require_items(path, range(len(frame)), "add rows below the names")
        shown = frame.drop(target or "", strict=False)
        columns = [seen.column() for name, seen in summaries(table).items() if name != target]
        if not any(column.is_used for column in columns):
            said = "; ".join(f"{column.name}: {column.says}" for column in columns)
            raise ValueError(f"{path} has no column to learn from ({said or 'it has no other column'})")
        x = standardised(np.concatenate([column.encode(shown[column.name]) for column in columns], axis=1))
        ids = numbered(len(frame))
        texts = shown.select(pl.all().cast(pl.String).fill_null(""))
        labels = label_texts(frame[target]) if target in frame.columns else [None] * len(frame)
        given = {item: label for item, label in zip(ids, labels, strict=True) if label is not None}
        return cls(path, ids, x, tuple(digest(*row) for row in texts.iter_rows()), given, frame=texts)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, without the target."""
        return () if self.frame is None else tuple(self.frame.columns)

    def fields(self, item: str) -> tuple[tuple[str, str], ...]:
        """The names and cells of a row."""
        if self.frame is None:
            return ()
        return tuple(self.frame.row(self.place(item), named=True).items())


def standardised(x: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and standard deviation 1; constant ones are 0.

    >>> standardised(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    centred, spread = x - x.mean(axis=0), x.std(axis=0)
    return centred / np.where(spread > 0, spread, 1.0)
