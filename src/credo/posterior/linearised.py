"""Predictions of a linearised network: what a Gaussian over theta says about the outputs, in closed form.

Around the centre theta* of a Gaussian N(theta*, Σ) the outputs o of the model (`models.outputs`) are

    o(x, theta) ≈ o(x, theta*) + J(x) (theta − theta*),    so that    o(x) ~ N(o(x, theta*), J Σ Jᵀ)

This is the generalised linear model whose posterior a Laplace approximation with the GGN is, and it predicts better
than draws of theta put through the network. For dense and convolutional layers with a diagonal or Kronecker Σ the
Jacobian is never written out: with J = a gᵀ of a layer and Σ = U diag(v) Uᵀ, J Σ Jᵀ is a sum of squares.

Immer, Korzepa and Bauer, "Improving predictions of Bayesian neural nets via local linearization" (2021).
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo._blocks import block_size, by_block, joined
from credo.covariance.layers import Jacobian, Layer, jacobians, layers_of, row_jacobian
from credo.covariance.layout import Layout, single_layers
from credo.covariance.roots import Blocks, Diagonal, Joined, Kronecker, Root, names_of
from credo.models.outputs import Outputs, outputs_of
from credo.models.program import Model
from credo.typing import Array, Theta

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
        found = cls(model, outputs_of(model, mean), 0, ())
        some = {name: jnp.asarray(mean[name]) for name in names_of(root)}
        function = found.function(mean, model.example().x)
        return found._replace(num_outputs=jax.eval_shape(function, some).shape[1], layers=layers_of(function, some))

    def function(self, mean: Theta, x: Array) -> Callable[[Theta], Array]:
        """o as a function of the uncertain arrays, (rows, K)."""
        return lambda some: self.outputs.read(self.model.predictive({**mean, **some}, x))


@partial(jax.jit, static_argnums=0)
def output_moments(linearisation: Linearisation, mean: Theta, root: Root, x: Array) -> tuple[Array, Array]:
    """o(x, theta*), (rows, K), and J Σ Jᵀ, (rows, K, K)."""
    function = linearisation.function(mean, x)
    outputs = function({})
    covariance = jnp.zeros((*outputs.shape, outputs.shape[-1]))
    for part in root.parts if isinstance(root, Joined) else (root,):
        covariance += _covariance(linearisation, mean, part, x)
    return outputs, covariance


def _covariance(linearisation: Linearisation, mean: Theta, root: Root, x: Array) -> Array:
    names = names_of(root)
    layers = _layers_for(linearisation, root)
    function = linearisation.function(mean, x)
    total: Any = 0.0
    if layers:
        _, found = jacobians(function, {name: mean[name] for name in names}, layers)
        for layer in layers:
            total += _layer_covariance(layer, found[layer.kernel], root)
    rest = tuple(name for name in names if not any(name in layer.names for layer in layers))
    if rest:
        features = _features(linearisation, mean, _restricted(root, rest), rest, x)
        total += jnp.einsum("nkf,nlf->nkl", features, features)
    return total


def _layers_for(linearisation: Linearisation, root: Root) -> tuple[Layer, ...]:
    """The layers whose part of J Σ Jᵀ needs no Jacobian written out."""
    if isinstance(root, Kronecker):
        return root.layers
    if isinstance(root, Blocks) and all(blocks.shape[0] == 1 for blocks in root.roots.values()):
        return tuple(layer for layer in single_layers(root.layout, linearisation.layers).values() if layer.meets_once)
    return linearisation.layers if isinstance(root, Diagonal) else ()


def _layer_covariance(layer: Layer, jacobian: Jacobian, root: Any) -> Array:
    """J Σ Jᵀ of one layer, (rows, K, K)."""
    if isinstance(root, Blocks):
        group = next(group for group, one in single_layers(root.layout, [layer]).items() if one == layer)
        # Entries of the root in the order of the layer's matrix: a and g are contracted one after the other.
        back = np.argsort(root.layout.order(group, layer))
        factor = root.roots[group][0][back].reshape(jacobian.inputs.shape[-1], layer.num_out, -1)
        along = jnp.einsum("ni,iof->nof", jacobian.inputs[:, 0], factor)
        features = jnp.einsum("kno,nof->nkf", jacobian.gradients[:, :, 0], along)
        return jnp.einsum("nkf,nlf->nkl", features, features)
    if isinstance(root, Kronecker):
        name = layer.kernel
        variance = root.shrinkage(name)
        jacobian = Jacobian(jacobian.inputs @ root.input_root(name), jacobian.gradients @ root.output_basis[name])
    else:
        variance = layer.matrix(root.variance())
    if layer.meets_once:
        gradients = jacobian.gradients[:, :, 0]
        weights = jacobian.inputs[:, 0] ** 2 @ variance
        return jnp.einsum("kno,no,lno->nkl", gradients, weights, gradients)
    whole = jacobian.whole() * jnp.sqrt(variance)
    return jnp.einsum("knio,lnio->nkl", whole, whole)


def _features(linearisation: Linearisation, mean: Theta, root: Root, names: tuple[str, ...], x: Array) -> Array:
    """J √Σ, (rows, K, entries of ε): its squares add up to the covariance, within a row and between rows."""
    some = {name: mean[name] for name in names}
    found = row_jacobian(lambda some, x: linearisation.function(mean, x)(some), some, x)
    shapes = {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in root.noise_shapes().items()}
    transpose = jax.linear_transpose(root.offset, shapes)

    def feature(gradient: Theta) -> Array:
        (noise,) = transpose(gradient)
        return jnp.concatenate([noise[name].ravel() for name in shapes])

    return jax.vmap(jax.vmap(feature))(found)


def _restricted(root: Root, names: tuple[str, ...]) -> Root:
    """A root of some of its arrays, where their entries are independent of the others."""
    if isinstance(root, Diagonal):
        return Diagonal({name: root.scale[name] for name in names})
    if isinstance(root, Blocks):
        groups = tuple((group, arrays) for group, arrays in root.layout.groups if arrays[0][0] in names)
        return Blocks({group: root.roots[group] for group, _ in groups}, Layout(groups))
    return root


@partial(jax.jit, static_argnums=0)
def output_features(linearisation: Linearisation, mean: Theta, root: Root, x: Array) -> Array:
    """J √Σ of all uncertain arrays, (rows, K, entries of ε)."""
    return _features(linearisation, mean, root, names_of(root), x)


# -- blocks of rows ---------------------------------------------------------------------------------------------


def moments_by_block(linearisation: Linearisation, mean: Theta, root: Root, x: np.ndarray) -> tuple[Any, Any]:
    """`output_moments` of many rows, block by block."""
    numbers = _largest_jacobian(linearisation, root)
    return _by_block(output_moments, numbers, linearisation, mean, root, x)


def features_by_block(linearisation: Linearisation, mean: Theta, root: Root, x: np.ndarray) -> np.ndarray:
    """`output_features` of many rows, block by block."""
    return _by_block(output_features, _size(mean, names_of(root)), linearisation, mean, root, x)


def _by_block(function: Any, numbers: int, linearisation: Linearisation, mean: Theta, root: Root, x: np.ndarray) -> Any:
    """function(linearisation, mean, root, rows)."""
    limit = NUMBERS_PER_BLOCK // (linearisation.num_outputs * max(numbers, 1))
    size = block_size(len(x), math.prod(x.shape[1:]), max(1, min(MAX_ROWS_PER_BLOCK, limit)))
    return joined(by_block(partial(function, linearisation, mean, root), [x], size))


def _largest_jacobian(linearisation: Linearisation, root: Root) -> int:
    """Numbers per row and output in the largest Jacobian that is written out."""
    sizes = [1]
    for part in root.parts if isinstance(root, Joined) else (root,):
        layers = _layers_for(linearisation, part)
        closed = {name for layer in layers for name in layer.names}
        sizes += [math.prod(layer.shape) for layer in layers if not layer.meets_once or isinstance(part, Blocks)]
        sizes.append(_size(linearisation.model.template, tuple(name for name in names_of(part) if name not in closed)))
    return max(sizes)


def _size(template: Any, names: tuple[str, ...]) -> int:
    return sum(math.prod(np.shape(template[name])) for name in names)
