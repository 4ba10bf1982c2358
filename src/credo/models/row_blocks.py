"""Sums over the rows of a batch, block of rows by block of rows: memory does not grow with the batch."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from credo._mesh import num_shares, slice_of_each
from credo.typing import Array, Batch, Key, Tree

# Of some parameters, some rows, and a function that makes a key of the rows' own: a sum over these rows.
Terms = Callable[[Any, Batch, Callable[[Key], Key]], Array]


def sum_by_block(terms: Terms, parameters: Tree, batch: Batch, num_blocks: int) -> Array:
    """terms(parameters, batch, own), which is a sum over rows, from some blocks of them.

    The gradient of a block is taken together with its value, while its rows and what was computed of them are at hand:
    nothing is kept for the way back.

    Arguments:
        terms: `own(key)` is a key of its rows.
        parameters: all that the sum may be differentiated by.
        num_blocks: at most as many as there are rows; with one it is the same program as without blocks. Where several
            devices have a share of the rows each, a block has rows of every share, and fewer blocks do.
    """
    shares = num_shares(batch)
    num_blocks = -(-num_blocks // shares)
    if num_blocks == 1:
        return terms(parameters, batch, lambda key: key)
    size, rest = divmod(batch.x.shape[0] // shares, num_blocks)

    def added(function: Callable[..., Tree], parameters: Tree) -> Tree:
        def of_block(number: Array | int, num_rows: int) -> Tree:
            block = rows_of(batch, number * size, num_rows)
            if batch.key is not None:
                block = block._replace(key=jax.random.fold_in(batch.key, number))
            return function(parameters, block, lambda key: jax.random.fold_in(key, number))

        def add(total: Tree, number: Array) -> tuple[Tree, None]:
            return jax.tree.map(jnp.add, total, of_block(number, size)), None

        nothing = jax.tree.map(
            lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(lambda: of_block(0, size))
        )
        total = jax.lax.scan(add, nothing, jnp.arange(num_blocks))[0]
        return jax.tree.map(jnp.add, total, of_block(num_blocks, rest)) if rest else total

    @jax.custom_jvp
    def value(parameters: Tree) -> Array:
        return added(terms, parameters)

    @value.defjvp
    def value_and_slope(primals: tuple[Tree], tangents: tuple[Tree]) -> tuple[Array, Array]:
        found, gradient = added(jax.value_and_grad(terms), primals[0])
        along = jax.tree.map(jnp.vdot, gradient, tangents[0])
        return found, sum(jax.tree.leaves(along), jnp.zeros_like(found))

    return value(parameters)


def rows_of(batch: Batch, first: Array | int, num_rows: int) -> Batch:
    """Rows of a batch, from the first one on; where several devices have a share of them, so many rows of each."""

    def some(array: Array) -> Array:
        return slice_of_each(array, first, num_rows, num_shares(batch))

    own = batch._replace(x=some(batch.x), y=some(batch.y), rows=None if batch.rows is None else some(batch.rows))
    own = own if batch.counts is None else own._replace(counts=some(batch.counts))
    return own if batch.num is None else own._replace(num=jnp.clip(batch.num - first, 0, num_rows))
