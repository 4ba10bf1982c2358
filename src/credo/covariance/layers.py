"""Layers as curvature sees them: what enters each product with weights, and the gradients of what leaves it.

For a dense layer s = aᵀW + b, the gradient of an output o in W is an outer product: ∂o/∂W = a (∂o/∂s)ᵀ. So the two
vectors of each row say all about the Jacobian of that layer, and it is never written out. Where a row meets the same
weights at several places (a convolution at its patches, a sequence at its steps) it is Σ_places a (∂o/∂s)ᵀ.

The network is not asked to cooperate: `DataFlow` finds its products with arrays of theta. A *tap* of zeros is added to
each of them, and the gradient in a tap is ∂o/∂s. A bias that is added to a product belongs to its layer: an input of 1.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr

from credo._dataflow import DataFlow, Leaf, Output, Product, leaves, plain, trace
from credo._schema import Count, Positive
from credo.networks.patches import with_patches
from credo.typing import Array, Theta


@jax.tree_util.register_static
@dataclass(frozen=True)
class Layer:
    """One product with weights, s = aᵀW + b.

    Arguments:
        kernel, bias: names in theta. W is the kernel with its axes in the order `axes`, as a matrix (in, out).
        shape: of the kernel.
        meets_once: whether a row meets the weights at one place only.
    """

    kernel: str
    shape: tuple[Positive, ...]
    axes: tuple[Count, ...]
    num_in: Positive
    meets_once: bool
    bias: str | None = None

    def __post_init__(self) -> None:
        if sorted(self.axes) != list(range(len(self.shape))) or math.prod(self.shape) % self.num_in:
            raise ValueError(f"a kernel of shape {self.shape} has no {self.num_in} inputs along the axes {self.axes}")

    @property
    def num_out(self) -> int:
        return math.prod(self.shape) // self.num_in

    @property
    def names(self) -> tuple[str, ...]:
        """The arrays of theta that belong to the layer."""
        return (self.kernel,) if self.bias is None else (self.kernel, self.bias)

    def matrix(self, theta: Theta) -> Array:
        """(in, out): the kernel, and below it the bias as one more row."""
        kernel = jnp.transpose(theta[self.kernel], self.axes).reshape(self.num_in, self.num_out)
        if self.bias is None:
            return kernel
        return jnp.concatenate([kernel, theta[self.bias].reshape(1, self.num_out)])

    def arrays(self, matrix: Any) -> Theta:
        """The inverse of `matrix`."""
        permuted = matrix[: self.num_in].reshape([self.shape[axis] for axis in self.axes])
        kernel = permuted.transpose(np.argsort(self.axes).tolist())
        return {self.kernel: kernel} if self.bias is None else {self.kernel: kernel, self.bias: matrix[-1]}


class Jacobian(NamedTuple):
    """Of one layer, in factors: J = Σ_places a (∂o/∂s)ᵀ for each row and output.

    Arguments:
        inputs: a, (rows, places, in); with a bias, the last input is one.
        gradients: ∂o/∂s, (outputs, rows, places, out).
    """

    inputs: Array
    gradients: Array

    def whole(self) -> Array:
        """(outputs, rows, in, out): as large as it looks."""
        return jnp.einsum("npi,knpo->knio", self.inputs, self.gradients)


def layers_of(function: Callable[[Theta], Array], theta: Theta) -> tuple[Layer, ...]:
    """The layers of a function of theta over rows of data; arrays that are used otherwise belong to none.

    Arguments:
        function: of theta alone, with the rows first in what it returns.

    >>> x = jnp.ones((8, 3))
    >>> layers_of(lambda theta: x @ theta["w"] + theta["b"], {"w": jnp.ones((3, 2)), "b": jnp.ones(2)})[0].names
    ('w', 'b')
    """
    closed = _traced(function, theta)
    found = _Taps(closed.out_avals[0].shape[0])
    found.look(closed, theta)
    unclear = {name for name, uses in found.uses.items() if len(uses) > 1}
    return tuple(
        replace(layer, bias=None) if layer.bias in unclear else layer
        for layer in found.layers.values()
        if layer.kernel not in unclear
    )


def jacobians(
    function: Callable[[Theta], Array], theta: Theta, layers: Sequence[Layer]
) -> tuple[Array, dict[str, Jacobian]]:
    """The outputs, (rows, outputs), and the Jacobian of each layer in factors, by the name of its kernel.

    >>> x, w = jnp.ones((8, 3)), {"w": jnp.ones((3, 2))}
    >>> layers = layers_of(lambda theta: x @ theta["w"], w)
    >>> outputs, found = jacobians(lambda theta: x @ theta["w"], w, layers)
    >>> found["w"].inputs.shape, found["w"].gradients.shape
    ((8, 1, 3), (2, 8, 1, 2))
    """
    closed = _traced(function, theta)

    def tapped(taps: Theta) -> tuple[Array, dict[str, Array]]:
        flow = _Taps(closed.out_avals[0].shape[0], taps)
        (outputs,) = flow.run(closed, leaves(theta))
        return outputs, flow.inputs

    _, sizes = jax.eval_shape(tapped, {})
    taps = {layer.kernel: jnp.zeros((*sizes[layer.kernel].shape[:2], layer.num_out)) for layer in layers}
    outputs, pull, inputs = jax.vjp(tapped, taps, has_aux=True)
    # The rows do not see each other: one cotangent for each output pulls back the gradients of all rows at once.
    basis = jnp.broadcast_to(jnp.eye(outputs.shape[1])[:, None], (outputs.shape[1], *outputs.shape))
    (gradients,) = jax.vmap(pull)(basis)
    return outputs, {
        layer.kernel: Jacobian(_with_one(inputs[layer.kernel], layer), gradients[layer.kernel]) for layer in layers
    }


def row_jacobian(function: Callable[..., Array], theta: Theta, *by_row: Array) -> dict[str, Array]:
    """∂o/∂theta written out, each (rows, outputs, …).

    Arguments:
        function: of theta and rows of data.
        by_row: arrays of as many rows.
    """

    def of_row(*row: Array) -> dict[str, Array]:
        one = [value[None] for value in row]
        return jax.jacrev(lambda theta: function(theta, *one)[0])(theta)

    return jax.vmap(of_row)(*by_row)


# -- taps -----------------------------------------------------------------------------------------------------


@dataclass
class _Taps(DataFlow):
    """Adds a tap, (rows, places, out), to each product with an array of theta.

    It notes the layers, and what enters them, (rows, places, in).
    """

    num_rows: int
    taps: Theta = field(default_factory=dict)
    layers: dict[str, Layer] = field(default_factory=dict)
    inputs: dict[str, Array] = field(default_factory=dict)

    def product(self, product: Product) -> Array | None:
        """The product, tapped; None where the rows of the data cannot be told."""
        data, leaf, free = plain(product.data), product.weights, product.free
        has_batch = len(free) + len(product.contracted) < data.ndim
        if has_batch or product.is_convolution or isinstance(product.data, Leaf):
            return None
        axes = _axes(leaf.shape, np.transpose(leaf.entries, product.order))
        if axes is None or not free or data.shape[free[0]] != self.num_rows:
            return None
        name, output = leaf.name, product.times(data, leaf.value)
        num_in = math.prod(data.shape[axis] for axis in product.contracted)
        num_places = math.prod(data.shape[axis] for axis in free[1:])
        self.layers[name] = Layer(name, leaf.shape, axes, num_in, meets_once=len(free) == 1)
        self.inputs[name] = jnp.transpose(data, (*free, *product.contracted)).reshape(self.num_rows, num_places, num_in)
        return output + _like(output, self.taps[name], product.free_after) if name in self.taps else output

    def bias(self, leaf: Leaf, output: Output) -> None:
        if self.layers[output.kernel].bias is None:
            self.layers[output.kernel] = replace(self.layers[output.kernel], bias=leaf.name)


def _like(output: Array, tap: Array, free: tuple[int, ...]) -> Array:
    """A tap, (rows, places, out), in the shape of an output whose axes `free` are those of rows and places."""
    order = (*free, *(axis for axis in range(output.ndim) if axis not in free))
    return jnp.transpose(tap.reshape([output.shape[axis] for axis in order]), np.argsort(order).tolist())


def _axes(shape: tuple[int, ...], entries: np.ndarray) -> tuple[int, ...] | None:
    """The order of the axes of an array that gives its entries in that order; None where there is none."""
    numbers = np.arange(math.prod(shape)).reshape(shape)
    orders = permutations(range(len(shape)))
    return next(
        (order for order in orders if np.array_equal(np.ravel(numbers.transpose(order)), entries.ravel())), None
    )


def _with_one(inputs: Array, layer: Layer) -> Array:
    if layer.bias is None:
        return inputs
    return jnp.concatenate([inputs, jnp.ones((*inputs.shape[:2], 1))], axis=-1)


def _traced(function: Callable[[Theta], Array], theta: Theta) -> ClosedJaxpr:
    return trace(with_patches(function), theta)[0]
