"""Predictions of a linearised network: what a Gaussian over theta says about the outputs, in closed form.

Around the centre theta* of a Gaussian N(theta*, Σ) the outputs o of the model (`models.outputs`) are

    o(x, theta) ≈ o(x, theta*) + J(x) (theta − theta*),    so that    o(x) ~ N(o(x, theta*), J Σ Jᵀ)

This is the generalised linear model whose posterior a Laplace approximation with the GGN is, and it predicts better
than draws of theta put through the network. For dense and convolutional layers with a diagonal or Kronecker Σ the
Jacobian is never written out: with J = a gᵀ of a layer and Σ = U diag(v) Uᵀ, J Σ Jᵀ is a sum of squares.

Immer, Korzepa and Bauer, "Improving predictions of Bayesian neural nets via local linearization" (2021).
"""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo._blocks import block_size, by_block
from credo._precision import in_working_precision
from credo.covariance import Root
from credo.covariance.layers import Layer, layers_of
from credo.covariance.root import Function
from credo.models.outputs import Outputs, outputs_of
from credo.models.program import Model
from credo.typing import Array, Key, Theta

# Numbers that the Jacobian of one block of rows may hold.
NUMBERS_PER_BLOCK = 2**23
MAX_ROWS_PER_BLOCK = 1024


class Linearisation(NamedTuple):
    """A model around a point: static, so that compiled code is shared.

    Arguments:
        num_outputs: K.
        layers: of the network, as far as they are made of the uncertain arrays.
    """

    model: Model
    outputs: Outputs
    num_outputs: int
    layers: tuple[Layer, ...]

    @classmethod
    def of(cls, model: Model, mean: Theta, root: Root) -> "Linearisation":
        """Of a Gaussian N(mean, √Σ √Σᵀ); arrays that the root does not cover are certain."""
        found, x = cls(model, outputs_of(model, mean), 0, ()), model.example().x
        some = {name: jnp.asarray(mean[name]) for name in root.names}
        function = found.function(mean)
        layers = layers_of(lambda some: function(some, x), some)
        return found._replace(num_outputs=jax.eval_shape(function, some, x).shape[1], layers=layers)

    def function(self, mean: Theta) -> Function:
        """o as a function of the uncertain arrays and the rows, (rows, K)."""
        return lambda some, x: self.outputs.read(self.model.predictive({**mean, **some}, x))


@partial(jax.jit, static_argnums=0)
def output_moments(linearisation: Linearisation, mean: Theta, root: Root, x: Array) -> tuple[Array, Array]:
    """o(x, theta*), (rows, K), and J Σ Jᵀ, (rows, K, K)."""
    mean, root = in_working_precision((mean, root))
    function = linearisation.function(mean)
    outputs = function({}, x)
    covariance = root.output_covariance(function, mean, x, linearisation.layers)
    return outputs, jnp.broadcast_to(covariance, (*outputs.shape, outputs.shape[-1]))


@partial(jax.jit, static_argnums=0)
def output_features(linearisation: Linearisation, mean: Theta, root: Root, x: Array) -> Array:
    """J √Σ of all uncertain arrays, (rows, K, entries of ε)."""
    mean, root = in_working_precision((mean, root))
    return root.output_features(linearisation.function(mean), mean, x)


@partial(jax.jit, static_argnums=0)
def output_draws(linearisation: Linearisation, mean: Theta, root: Root, keys: Key, x: Array) -> Array:
    """o(x, theta*) + J √Σ ε, (rows, keys, K), with the ε that each key makes: no Jacobian is written out."""
    mean, root = in_working_precision((mean, root))
    function = linearisation.function(mean)
    outputs, along = jax.linearize(lambda some: function(some, x), {name: mean[name] for name in root.names})
    return jnp.moveaxis(jax.lax.map(lambda key: outputs + along(root.draw(key)), keys), 0, 1)


# -- blocks of rows ---------------------------------------------------------------------------------------------


def moments_by_block(linearisation: Linearisation, mean: Theta, root: Root, x: np.ndarray) -> tuple[Any, Any]:
    """`output_moments` of many rows, block by block."""
    numbers = root.largest_jacobian(linearisation.layers)
    return _by_block(output_moments, numbers, linearisation, mean, root, x)


def features_by_block(linearisation: Linearisation, mean: Theta, root: Root, x: np.ndarray) -> np.ndarray:
    """`output_features` of many rows, block by block."""
    return _by_block(output_features, root.num_entries, linearisation, mean, root, x)


def draws_by_block(linearisation: Linearisation, mean: Theta, root: Root, keys: Key, x: np.ndarray) -> np.ndarray:
    """`output_draws` of many rows, block by block: each draw is one function of all of them."""
    drawn = partial(output_draws, linearisation, mean, root, keys)
    size = block_size(len(x), math.prod(x.shape[1:]), MAX_ROWS_PER_BLOCK)
    return by_block(drawn, [x], size)


def _by_block(function: Any, numbers: int, linearisation: Linearisation, mean: Theta, root: Root, x: np.ndarray) -> Any:
    """function(linearisation, mean, root, rows)."""
    limit = NUMBERS_PER_BLOCK // (linearisation.num_outputs * max(numbers, 1))
    size = block_size(len(x), math.prod(x.shape[1:]), max(1, min(MAX_ROWS_PER_BLOCK, limit)))
    return by_block(partial(function, linearisation, mean, root), [x], size)
