"""The curvature of what a prior's factors say of theta, F = −∇² Σ factors.

A consistency condition couples the weights, so that it is no part of the prior's precision, which is a diagonal: it is
added to the curvature of the likelihood. A full matrix, blocks and low-rank products take F as it is; the diagonal form
takes its diagonal, and so do the layers of the Kronecker form that have several outputs.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from credo import random
from credo.inference.laplace.row_sums import flattened
from credo.models.program import Model
from credo.typing import Array, Theta

# A diagonal of up to so many entries is computed one by one, a longer one estimated from random signs: with 256 of them
# an entry is off by about a sixteenth of the root of the squares beside it (Bekas, Kokiopoulou and Saad, 2007).
MAX_EXACT = 2048
NUM_SIGNS = 256
# Products of F with vectors that are computed side by side.
VECTORS_AT_ONCE = 64


class Factors(NamedTuple):
    """F of a model at theta."""

    model: Model
    theta: Theta

    def block(self, names: Sequence[str]) -> Array:
        """F over these arrays, one after another: (size, size)."""
        return self.products(names, jnp.eye(self._size(names)))

    def diagonal(self, names: Sequence[str]) -> Theta:
        """The diagonal of F by name; where it is curved the wrong way, zero."""
        size = self._size(names)
        if size <= MAX_EXACT:
            # One unit vector at a time: all of them together would be as large as F.
            found = jax.lax.map(
                lambda index: self._product(names, jax.nn.one_hot(index, size))[index],
                jnp.arange(size),
                batch_size=VECTORS_AT_ONCE,
            )
        else:
            signs = jnp.sign(random.normal(random.key(0), (NUM_SIGNS, size)))
            found = jnp.mean(signs * self.products(names, signs), axis=0)
        return flattened(self.theta, names)[1](jnp.maximum(found, 0.0))

    def products(self, names: Sequence[str], vectors: Array) -> Array:
        """F v of each row v of `vectors`."""
        return jax.lax.map(lambda vector: self._product(names, vector), vectors, batch_size=VECTORS_AT_ONCE)

    def _product(self, names: Sequence[str], vector: Array) -> Array:
        flat, unravel = flattened(self.theta, names)

        def factors(flat: Array) -> Array:
            return -self.model.log_factors({**self.theta, **unravel(flat)})

        return jax.jvp(jax.grad(factors), (flat,), (vector,))[1]

    def _size(self, names: Sequence[str]) -> int:
        return sum(self.model.template[name].size for name in names)
