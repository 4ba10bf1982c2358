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
    compiled code serves data that grow. `counts` is how often each row was seen, its likelihood to that power; None for
    once. `total` is then the sum of that over all data, and `mean_count` its average.
    """

    x: Array
    y: Array
    total: float | Array
    rows: Array | None = None
    inputs: dict[str, Array] | None = None
    key: Key | None = None
    num: int | Array | None = None
    counts: Array | None = None
    mean_count: float | Array | None = None

    @property
    def num_rows(self) -> int | Array:
        """n: how many rows count."""
        return self.x.shape[0] if self.num is None else self.num

    def sum(self, terms: Array) -> Array:
        """The sum over rows that count, each as often as seen, of a number for each, (rows,) or (1,) for all alike."""
        terms = terms if self.counts is None else self.counts * terms
        if self.num is None:
            return jnp.sum(terms)
        return jnp.sum(jnp.where(self.counted, terms, 0.0))

    @property
    def scale(self) -> Array | float:
        """N/n: what makes a sum over these rows an estimate of that over all data, as often as they were seen."""
        share = self.total / self.num_rows
        return share if self.mean_count is None else share / self.mean_count

    @property
    def num_seen(self) -> int | Array:
        """How many rows count, each as often as it was seen."""
        return self.num_rows if self.counts is None else self.sum(jnp.ones(1))

    def taken(self, rows: Array) -> "Batch":
        """Some of the rows, by number, as a batch of the same data."""
        counts = None if self.counts is None else self.counts[rows]
        return Batch(self.x[rows], self.y[rows], self.total, counts=counts, mean_count=self.mean_count)

    @property
    def counted(self) -> Array:
        """Which rows count, (rows,)."""
        return jnp.arange(self.x.shape[0]) < self.num_rows
