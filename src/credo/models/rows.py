"""What a model knows of its data before it sees them, and how it is described: small, hashable values."""

from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp

from credo._precision import working_precision
from credo._schema import Count
from credo.data import Data, FileData, parted
from credo.typing import Array, Batch

# Real numbers, of whatever precision is the working one: a model does not depend on it.
REAL = "float32"


class ModelConfig(dict[str, Any]):
    """A JSON-able dict that a frozen, hashable model may hold: equal where its text is equal."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(repr(sorted(self.items())))


@dataclass(frozen=True)
class RowShapes:
    """Shape and dtype of a few rows: enough to trace a program, and hashable, so compiled code is shared.

    `gaps` says whether rows may miss some of their targets, `columns` what their columns are called, `censored` whether
    y of a batch has a second column that says which targets are censored; `y_shape` is without it.
    """

    x_shape: tuple[Count, ...]
    x_dtype: str
    y_shape: tuple[Count, ...] | None
    y_dtype: str
    gaps: bool = False
    # Not compared: models of the same rows under other names share compiled code.
    columns: tuple[str, ...] | None = field(default=None, compare=False)
    censored: bool = False

    @classmethod
    def of(cls, batch: Batch, data: Data) -> "RowShapes":
        """Of a batch of the data."""
        # Two rows where there are two: one row would hide a program that confuses rows with columns.
        num = min(2, batch.x.shape[0])
        x, y, censored = batch.x, batch.y, data.censored is not None
        own = y.shape[1:-1] if censored else y.shape[1:]
        return cls((num, *x.shape[1:]), _kind(x), (num, *own), _kind(y), data.has_gaps, data.names, censored)

    @classmethod
    def of_inputs(cls, x: Any) -> "RowShapes":
        return cls((min(2, x.shape[0]), *x.shape[1:]), REAL, None, REAL)

    @property
    def num(self) -> int:
        return self.x_shape[0]

    def batch_y_shape(self, num_rows: int) -> tuple[int, ...]:
        """The shape of y in a batch of so many rows."""
        own = (self.y_shape or (0,))[1:]
        return (num_rows, *own, 2) if self.censored else (num_rows, *own)

    def parted(self, y: Any) -> tuple[Any, Any]:
        """y of a batch as a program takes it, and which rows are censored; None where none may be."""
        return parted(y) if self.censored and y is not None else (y, None)

    def example(self) -> Batch:
        """Rows of zeros."""
        y = None if self.y_shape is None else _zeros(self.batch_y_shape(self.num), self.y_dtype)
        return Batch(_zeros(self.x_shape, self.x_dtype), y, self.num)  # type: ignore[arg-type]


def stand_in(model: Any, data: Any) -> Any:
    """Of rows in files some that stand for all: shapes, ranges and scaling are the same. Other data as they are."""
    if not isinstance(data, FileData):
        return data
    if model.suits is not None or model.inputs is not None:
        raise ValueError(
            "the model looks at all rows before it starts (conditions, or a likelihood that finds its unit), and the "
            "data are rows in files; take credo.models.regression or classification, or fit some of the rows, "
            "data.read(0, 10_000)"
        )
    return data.sample


def _kind(values: Array) -> str:
    return REAL if jnp.issubdtype(values.dtype, jnp.floating) else str(values.dtype)


def _zeros(shape: tuple[int, ...], kind: str) -> Array:
    return jnp.zeros(shape, working_precision() if kind == REAL else kind)
