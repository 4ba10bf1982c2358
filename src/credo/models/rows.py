"""What a model knows of its data before it sees them, and how it is described: small, hashable values."""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax.numpy as jnp

from credo._precision import working_precision
from credo._schema import Count
from credo.data import Data, FileData, parted
from credo.predictive.sharpened import sharpened
from credo.typing import Array, Batch

# Real numbers, of whatever precision is the working one: a model does not depend on it.
REAL = "float32"


class ModelConfig(dict[str, Any]):
    """A JSON-able dict that a frozen, hashable model may hold: equal where its text is equal."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(repr(sorted(self.items())))


class Told(NamedTuple):
    """What a batch tells of y: as a program takes it, which rows are censored, and their precisions, if any are."""

    y: Any
    censored: Any = None
    precisions: Any = None


@dataclass(frozen=True)
class RowShapes:
    """Shape and dtype of a few rows: enough to trace a program, and hashable, so compiled code is shared.

    `gaps` says whether rows may miss some of their targets, `columns` what their columns are called, `censored` whether
    y of a batch has a second column that says which targets are censored, `precise` whether its last column holds
    precisions; `y_shape` is without them.
    """

    x_shape: tuple[Count, ...]
    x_dtype: str
    y_shape: tuple[Count, ...] | None
    y_dtype: str
    gaps: bool = False
    # Not compared: models of the same rows under other names share compiled code.
    columns: tuple[str, ...] | None = field(default=None, compare=False)
    censored: bool = False
    precise: bool = False

    @classmethod
    def of(cls, batch: Batch, data: Data) -> "RowShapes":
        """Of a batch of the data."""
        # Two rows where there are two: one row would hide a program that confuses rows with columns.
        num = min(2, batch.x.shape[0])
        x, y, own = batch.x, batch.y, data.y.shape[1:]
        more = data.censored is not None, data.precisions is not None
        return cls((num, *x.shape[1:]), _kind(x), (num, *own), _kind(y), data.has_gaps, data.names, *more)

    @classmethod
    def of_inputs(cls, x: Any) -> "RowShapes":
        return cls((min(2, x.shape[0]), *x.shape[1:]), REAL, None, REAL)

    @property
    def num(self) -> int:
        return self.x_shape[0]

    @property
    def _told_shape(self) -> tuple[int, ...]:
        """What a batch tells of the target of a row, but its precision."""
        own = (self.y_shape or (0,))[1:]
        return (*own, 2) if self.censored else own

    def batch_y_shape(self, num_rows: int) -> tuple[int, ...]:
        """The shape of y in a batch of so many rows."""
        return (num_rows, math.prod(self._told_shape) + 1) if self.precise else (num_rows, *self._told_shape)

    def _without_precisions(self, y: Any) -> tuple[Any, Any]:
        if not self.precise:
            return y, None
        if y.shape != self.batch_y_shape(len(y)):
            raise ValueError("the rows have no precisions, and those of the fit had; pass precisions=… with them")
        return y[:, :-1].reshape(len(y), *self._told_shape), y[:, -1]

    def parted(self, y: Any) -> Told:
        """y of a batch as a program takes it, and what its further columns say."""
        if y is None:
            return Told(y)
        y, precisions = self._without_precisions(y)
        y, censored = parted(y) if self.censored else (y, None)
        return Told(y, censored, precisions)

    def given(self, law: Any, y: Any) -> tuple[Any, Any]:
        """p(y | x, theta) of rows of a batch, with the noise that their precisions leave, and y without these."""
        y, precisions = self._without_precisions(y)
        return law if precisions is None else sharpened(law, precisions), y

    def example(self) -> Batch:
        """Rows of zeros, of precision one."""
        y = None if self.y_shape is None else _zeros(self.batch_y_shape(self.num), self.y_dtype)
        y = y.at[:, -1].set(1) if y is not None and self.precise else y
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
