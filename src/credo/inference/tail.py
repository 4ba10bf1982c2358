"""Averages of the last iterates of a stochastic climb, which are closer to where it leads than any one of them.

Where the iterates φₜ wander around an optimum, the error of one stays as large as the rate lets it be; that of their
average falls as 1/√steps, as fast as that of any estimate (Polyak and Juditsky, "Acceleration of stochastic
approximation by averaging", 1992). The two halves of the tail are averaged apart: they differ by twice the standard
error of the whole, and by more where the climb has not arrived.
"""

from collections.abc import Callable
from operator import itemgetter
from typing import Any, NamedTuple, Self, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from credo.typing import Array, Tree

T = TypeVar("T")
# The share of a run that is averaged.
SHARE = 0.5
# Neighbouring iterates are much alike, and an average of large trees is a tenth of a step: one in so many is taken.
EVERY = 10


class Tail(NamedTuple):
    """The number of iterates in each half of the tail, (2,), and their means: leaves are (2, …)."""

    num: Array
    means: Tree

    @classmethod
    def none(cls, phi: Tree) -> Self:
        """Before the tail begins."""
        return cls(jnp.zeros(2, jnp.int32), jax.tree.map(lambda leaf: jnp.zeros((2, *leaf.shape)), phi))

    def after(self, step: Array, num_steps: int, phi: Tree) -> Self:
        """After a step, numbered from one, of a run of so many."""
        length = max(int(SHARE * num_steps), 1)
        place = step - 1 - (num_steps - length)
        half = jnp.clip(2 * place // length, 0, 1)
        taken = (place >= 0) & ((num_steps - step) % EVERY == 0)

        def add(_: Array, tail: "Tail") -> "Tail":
            num = tail.num.at[half].add(1)
            share = 1 / num[half]
            means = jax.tree.map(lambda mean, leaf: mean.at[half].add(share * (leaf - mean[half])), tail.means, phi)
            return Tail(num, means)

        # A loop of one round or none works in place; the branches of a cond would copy all that they return.
        return jax.lax.fori_loop(0, taken.astype(jnp.int32), add, self)

    def mean(self, phi: Tree) -> Tree:
        """Of the whole tail; phi where there is none."""
        if not np.any(self.num):
            return phi
        shares = np.asarray(self.num) / np.sum(self.num)
        return jax.tree.map(lambda halves: np.tensordot(shares, halves, 1).astype(halves.dtype), self.means)

    def each(self, function: Callable[[Any], T]) -> list[T]:
        """A function of the mean of each half, where both have one; else nothing."""
        if not np.all(self.num):
            return []
        return [function(jax.tree.map(itemgetter(half), self.means)) for half in (0, 1)]
