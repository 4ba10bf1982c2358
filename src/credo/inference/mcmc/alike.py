"""Which parameters have the same law under the posterior, though each chain sees them in different parts.

The posterior does not change when two hidden units are swapped, so that the weights of one input into all of them have
one variance, and their biases have one.
"""

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

from credo._precision import working_precision
from credo.models.program import Model
from credo.networks.exchangeable import exchangeable
from credo.typing import Array, Theta


def alike(model: Model) -> np.ndarray | None:
    """A number for each entry of the flat vector of theta, (D,), from 0: the same for those of the same law.

    None where arrays of a belief stand in place of the prior: it has learned which unit is which.
    """
    return None if jax.tree.leaves(model) else _alike(model, working_precision())


# A program is traced for this once, and not in each fit of it.
@lru_cache(maxsize=16)
def _alike(model: Model, precision: np.dtype) -> np.ndarray:
    rows = model.example().x
    # Rows and columns are not alike, and no two numbers are: nothing is computed with them.
    x = np.arange(rows.size).reshape(rows.shape).astype(rows.dtype)

    def density(theta: Theta) -> tuple[list[Array], Array]:
        return jax.tree.leaves(model.predictive(theta, jnp.asarray(x))), model.log_prior(theta)

    found = exchangeable(density, {name: np.zeros(leaf.shape, leaf.dtype) for name, leaf in model.template.items()})
    numbers, offset = list[np.ndarray](), 0
    for name in sorted(found):
        numbers.append(found[name].ravel() + offset)
        offset += int(np.max(found[name])) + 1
    return np.concatenate(numbers)
