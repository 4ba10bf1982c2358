"""Chains on the flat vector of all numbers in theta, which is cheaper per gradient of a small network than the tree."""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from credo.inference.method import Method
from credo.inference.run import Run
from credo.models.program import Model
from credo.posterior import Draws
from credo.typing import Array, Theta


def unravel_theta(model: Model, position: Array) -> Theta:
    """theta from the flat vector of all its numbers."""
    zeros = {name: jnp.zeros(leaf.shape, leaf.dtype) for name, leaf in model.template.items()}
    return ravel_pytree(zeros)[1](position)


def posterior_of_positions(method: Method, model: Model, run: "Run") -> "Draws":
    """The posterior of a run whose draws are flat vectors, (chains, draws, D)."""
    theta = jax.vmap(jax.vmap(lambda position: unravel_theta(model, position)))(run.draws)
    return run.to_draws(method.to_config(), model, theta)
