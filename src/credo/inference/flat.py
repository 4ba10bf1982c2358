"""Chains on the flat vector of all numbers in theta, which is cheaper per gradient of a small network than the tree."""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from credo.inference.method import Method
from credo.models.program import Model
from credo.typing import Array, Theta

if TYPE_CHECKING:
    from credo.inference.engine import Run
    from credo.posterior import Draws


def unravel_theta(model: Model, position: Array) -> Theta:
    """theta from the flat vector of all its numbers."""
    zeros = {name: jnp.zeros(leaf.shape, leaf.dtype) for name, leaf in model.template.items()}
    return ravel_pytree(zeros)[1](position)


def posterior_of_positions(method: Method, model: Model, run: "Run") -> "Draws":
    """The posterior of a run whose draws are flat vectors, (chains, draws, D)."""
    from credo.posterior import Draws

    theta = jax.vmap(jax.vmap(lambda position: unravel_theta(model, position)))(run.draws)
    return Draws.from_run(method, model, theta, run)
