"""Sums over the rows of a batch, block of rows by block of rows: memory does not grow with the batch."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from credo.typing import Array, Batch, Key


def sum_by_block(terms: Callable[[Batch, Callable[[Key], Key]], Array], batch: Batch, num_blocks: int) -> Array:
    """terms(batch, own), which is a sum over rows, from some blocks of them; with one block it is the same program.

    A block is computed again when the sum is differentiated, in place of keeping the values of all of them.

    Arguments:
        terms: of some of the rows; `own(key)` is a key of theirs.
        num_blocks: at most as many as there are rows.
    """
    if num_blocks == 1:
        return terms(batch, lambda key: key)
    size, rest = divmod(batch.x.shape[0], num_blocks)

    def of_block(number: Array | int, num_rows: int) -> Array:
        block = rows_of(batch, number * size, num_rows)
        if batch.key is not None:
            block = block._replace(key=jax.random.fold_in(batch.key, number))
        return terms(block, lambda key: jax.random.fold_in(key, number))

    total = jnp.sum(jax.lax.map(jax.checkpoint(lambda number: of_block(number, size)), jnp.arange(num_blocks)))
    return total + of_block(num_blocks, rest) if rest else total


def rows_of(batch: Batch, first: Array | int, num_rows: int) -> Batch:
    """Rows of a batch, from the first one on."""

    def some(array: Array) -> Array:
        return jax.lax.dynamic_slice_in_dim(array, first, num_rows)

    own = batch._replace(x=some(batch.x), y=some(batch.y), rows=None if batch.rows is None else some(batch.rows))
    return own if batch.num is None else own._replace(num=jnp.clip(batch.num - first, 0, num_rows))
