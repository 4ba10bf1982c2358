"""Minibatches drawn on the device, inside compiled code.

Every epoch visits the rows in a new order without repeating one. The order is a keyed permutation that is
evaluated only at the positions of one batch, so a step costs O(n), needs no state, and is a function of the
key and the step number alone: any step can be computed without the steps before it.
"""

from typing import Any

import jax
import jax.numpy as jnp

from credo.random import mix
from credo.typing import Array, Batch, Key

# Four rounds of a Feistel network with a good round function are a pseudo-random permutation (Luby & Rackoff, 1988);
# two more hide that the halves are a few bits wide. For up to 16 rows they are two bits, and with six rounds some pairs
# of neighbours would come 30% too often; with twelve, 200,000 permutations show nothing.
NUM_ROUNDS, NUM_ROUNDS_OF_FEW = 6, 12


def minibatch(key: Key, step: Array, data: Batch, size: int, *, independent: bool = False) -> Batch:
    """Rows of batch number `step`: `size` of them, without repetition within an epoch.

    A last batch that would be short is left out; which rows it would have held changes from epoch to epoch.

    Arguments:
        independent: whether batches have nothing to do with each other; then a row may come twice in one.
    """
    if independent:
        rows = jax.random.randint(jax.random.fold_in(key, step), (size,), 0, data.num_rows)
        return data.taken(rows)
    if size >= data.x.shape[0]:
        return data
    # Of padded data it is not known beforehand whether they fill a batch.
    num_batches = data.num_rows // size if data.num is None else jnp.maximum(data.num_rows // size, 1)
    epoch, position = step // num_batches, step % num_batches
    positions = position * size + jnp.arange(size)
    if data.num is None:
        rows = permute(jax.random.fold_in(key, epoch), positions, data.x.shape[0])
        return data.taken(rows)
    few = data.num <= size
    rows = permute(jax.random.fold_in(key, epoch), jnp.where(few, 0, positions), data.num)
    rows = jnp.where(few, positions, rows)
    return data.taken(rows)._replace(num=jnp.minimum(data.num, size))


def some_inputs(
    key: Key, step: Array, inputs: dict[str, Array], names: frozenset[str], size: int, *, independent: bool = False
) -> dict[str, Array]:
    """The model's own inputs with `size` rows of those named, which go with batch number `step`.

    Rows at equal distances, from one that is random in each epoch and moves on by one in each step: all are equally
    probable, and none comes twice in an epoch. It costs next to nothing.

    Arguments:
        independent: whether batches have nothing to do with each other: each begins at a random row.
    """
    some = dict(inputs)
    for number, name in enumerate(sorted(names)):
        num_rows = inputs[name].shape[0]
        if size < num_rows:
            per_epoch = num_rows // size
            epoch, position = (step, 0) if independent else (step // per_epoch, step % per_epoch)
            # A key of its own: neither that of the rows of the data nor that of another input.
            own = jax.random.fold_in(jax.random.fold_in(key, 2**31 + number), epoch)
            first = jax.random.randint(own, (), 0, num_rows) + position
            some[name] = inputs[name][(first + per_epoch * jnp.arange(size)) % num_rows]
    return some


def permute(key: Key, positions: Array, num: int | Array) -> Array:
    """π(positions) for a random permutation π of 0 … num−1 that is fixed by the key.

    A Feistel network permutes the next power of four; positions that leave the range walk on along their
    cycle until they return to it, which keeps π a permutation. A traced num gives the same π.

    >>> sorted(permute(jax.random.key(0), jnp.arange(10), 10).tolist()) == list(range(10))
    True
    """
    if isinstance(num, int):
        half_bits: Any = max((max(num - 1, 1).bit_length() + 1) // 2, 1)
    else:
        num = num.astype(jnp.uint32)
        half_bits = (33 - jax.lax.clz(jnp.maximum(num - 1, 1))) // 2
    are_few = half_bits <= 2
    # An even number of rounds leaves the halves in their places, so that the further ones can be taken or left.
    num_rounds = NUM_ROUNDS if are_few is False else NUM_ROUNDS_OF_FEW
    round_keys = jax.random.bits(key, (num_rounds,), jnp.uint32)

    def feistel(values: Array) -> Array:
        mask = jnp.uint32((1 << half_bits) - 1)
        left, right = values >> half_bits, values & mask
        for number, round_key in enumerate(round_keys):
            if number == NUM_ROUNDS:
                shorter = (left << half_bits) | right
            left, right = right, left ^ (mix(right + round_key) & mask)
        found = (left << half_bits) | right
        return found if isinstance(are_few, bool) else jnp.where(are_few, found, shorter)

    def walk(values: Array) -> Array:
        return jnp.where(values < num, values, feistel(values))

    permuted = feistel(positions.astype(jnp.uint32))
    permuted = jax.lax.while_loop(lambda values: jnp.any(values >= num), walk, permuted)
    return permuted.astype(jnp.int32)
