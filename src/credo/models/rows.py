"""What a model knows of its data before it sees them, and how it is described: small, hashable values."""

from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp

from credo._precision import working_precision
from credo._schema import Count
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

    `gaps` says whether rows may miss some of their targets, `columns` what their columns are called.
    """

    x_shape: tuple[Count, ...]
    x_dtype: str
    y_shape: tuple[Count, ...] | None
    y_dtype: str
    gaps: bool = False
    # Not compared: models of the same rows under other names share compiled code.
    columns: tuple[str, ...] | None = field(default=None, compare=False)

    @classmethod
    def of(cls, batch: Batch, *, gaps: bool = False, columns: tuple[str, ...] | None = None) -> "RowShapes":
        # Two rows where there are two: one row would hide a program that confuses rows with columns.
        num = min(2, batch.x.shape[0])
        x, y = batch.x, batch.y
        return cls((num, *x.shape[1:]), _kind(x), (num, *y.shape[1:]), _kind(y), gaps, columns)

    @classmethod
    def of_inputs(cls, x: Any) -> "RowShapes":
        return cls((min(2, x.shape[0]), *x.shape[1:]), REAL, None, REAL)

    @property
    def num(self) -> int:
        return self.x_shape[0]

    def example(self) -> Batch:
        """Rows of zeros."""
        y = None if self.y_shape is None else _zeros(self.y_shape, self.y_dtype)
        return Batch(_zeros(self.x_shape, self.x_dtype), y, self.num)  # type: ignore[arg-type]


def _kind(values: Array) -> str:
    return REAL if jnp.issubdtype(values.dtype, jnp.floating) else str(values.dtype)


def _zeros(shape: tuple[int, ...], kind: str) -> Array:
    return jnp.zeros(shape, working_precision() if kind == REAL else kind)
