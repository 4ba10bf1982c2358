"""What a model knows of its data before it sees them, and how it is described: small, hashable values."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp

from credo._schema import Count
from credo.typing import Batch


class ModelConfig(dict[str, Any]):
    """A JSON-able dict that a frozen, hashable model may hold: equal where its text is equal."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(repr(sorted(self.items())))


@dataclass(frozen=True)
class RowShapes:
    """Shape and dtype of a few rows: enough to trace a program, and hashable, so compiled code is shared.

    `gaps` says whether rows may miss some of their targets.
    """

    x_shape: tuple[Count, ...]
    x_dtype: str
    y_shape: tuple[Count, ...] | None
    y_dtype: str
    gaps: bool = False

    @classmethod
    def of(cls, batch: Batch, *, gaps: bool = False) -> "RowShapes":
        # Two rows where there are two: one row would hide a program that confuses rows with columns.
        num = min(2, batch.x.shape[0])
        x, y = batch.x, batch.y
        return cls((num, *x.shape[1:]), str(x.dtype), (num, *y.shape[1:]), str(y.dtype), gaps)

    @classmethod
    def of_inputs(cls, x: Any) -> "RowShapes":
        return cls((min(2, x.shape[0]), *x.shape[1:]), "float32", None, "float32")

    @property
    def num(self) -> int:
        return self.x_shape[0]

    def example(self) -> Batch:
        """Rows of zeros."""
        y = None if self.y_shape is None else jnp.zeros(self.y_shape, self.y_dtype)
        return Batch(jnp.zeros(self.x_shape, self.x_dtype), y, self.num)  # type: ignore[arg-type]
