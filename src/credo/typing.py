"""The type names that the whole package shares."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

Array = jax.Array
Key = jax.Array
# JAX arrays inside compiled code, NumPy arrays outside it.
Theta = dict[str, Any]
Tree = Any
# A NumPyro program `program(x, y=None)`, with the model's own inputs as keywords.
Program = Callable[..., Any]


class Batch(NamedTuple):
    """Some rows of a data set of `total` rows: what `Model.log_joint` sees in compiled code.

    `total` is N in log p(theta) + N/n · Σ log p(y | x, theta); n is the number of rows here. `rows` are their numbers
    in the data set, for a chain that sees rows of its own; otherwise None. `inputs` are those of the model's own by
    name, or some rows of them; None for all of them, which the model holds. `key` is for what the likelihood averages
    over (augmentations), another one in each step of a method that allows it; None for always the same draws. `num` is
    how many of the rows count, from the first on: the others are padding; None where all do. It is traced, so that
    compiled code serves data that grow.
    """

    x: Array
    y: Array
    total: int | Array
    rows: Array | None = None
    inputs: dict[str, Array] | None = None
    key: Key | None = None
    num: int | Array | None = None

    @property
    def num_rows(self) -> int | Array:
        """n: how many rows count."""
        return self.x.shape[0] if self.num is None else self.num

    def sum(self, terms: Array) -> Array:
        """The sum of a number for each row, (rows,) or (1,) for all alike, over the rows that count."""
        if self.num is None:
            return jnp.sum(terms)
        return jnp.sum(jnp.where(self.counted, terms, 0.0))

    @property
    def counted(self) -> Array:
        """Which rows count, (rows,)."""
        return jnp.arange(self.x.shape[0]) < self.num_rows
