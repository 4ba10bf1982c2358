"""Layers as curvature sees them: what enters each product with weights, and the gradients of what leaves it.

For a dense layer s = aᵀW + b, the gradient of an output o in W is an outer product: ∂o/∂W = a (∂o/∂s)ᵀ. So the two
vectors of each row say all about the Jacobian of that layer, and it is never written out. Where a row meets the same
weights at several places (a convolution at its patches, a sequence at its steps) it is Σ_places a (∂o/∂s)ᵀ.

The network is not asked to cooperate: the function is traced, and a *tap* of zeros is added to each product with a leaf
of theta; the gradient in a tap is ∂o/∂s. A bias that is added to such a product belongs to its layer: an input of one.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, JaxprEqn

from credo._jaxpr import CALLS, REINDEXING, as_it_is, body, trace, walk
from credo.networks.convolution import with_patches
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
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    num_in: int
    meets_once: bool
    bias: str | None = None

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
    found = _Walk(jax.eval_shape(function, theta).shape[0])
    closed = _traced(function, theta)
    jax.eval_shape(lambda theta: found.run(closed, theta), theta)
    unclear = {name for name, uses in found.uses.items() if uses > 1}
    return tuple(_without_unclear(layer, unclear) for layer in found.layers if layer.kernel not in unclear)


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
    num_rows = jax.eval_shape(function, theta).shape[0]
    chosen = {layer.kernel: layer for layer in layers}

    def tapped(taps: Theta) -> tuple[Array, dict[str, Array]]:
        walking = _Walk(num_rows, taps)
        outputs = walking.run(closed, theta)
        return outputs, walking.inputs

    sizes = _Walk(num_rows)
    jax.eval_shape(lambda theta: sizes.run(closed, theta), theta)
    taps = {name: jnp.zeros(sizes.tap_shapes[name]) for name in chosen}
    outputs, pull, inputs = jax.vjp(tapped, taps, has_aux=True)
    # The rows do not see each other: one cotangent for each output pulls back the gradients of all rows at once.
    basis = jnp.broadcast_to(jnp.eye(outputs.shape[1])[:, None], (outputs.shape[1], *outputs.shape))
    (gradients,) = jax.vmap(pull)(basis)
    return outputs, {
        name: Jacobian(_with_one(inputs[name], layer), sizes.orders[name].gradients(gradients[name]))
        for name, layer in chosen.items()
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


# -- walking --------------------------------------------------------------------------------------------------


class _Leaf(NamedTuple):
    """An array of theta on its way to a product, and the numbers of its entries, which go the same way."""

    name: str
    shape: tuple[int, ...]
    value: Array
    entries: np.ndarray


class _Product(NamedTuple):
    """What has left a product with weights, before anything was computed with it; features along `axis`."""

    value: Array
    kernel: str
    axis: int


class _Order(NamedTuple):
    """Where the data's axes are in the operand, and in what leaves the product."""

    rows: tuple[int, ...]
    contracted: tuple[int, ...]
    kernel_first: bool

    def inputs(self, data: Array) -> Array:
        """(rows, places, in)."""
        ordered = jnp.transpose(data, (*self.rows, *self.contracted))
        places = math.prod(data.shape[axis] for axis in self.rows[1:])
        return ordered.reshape(data.shape[self.rows[0]], places, -1)

    def gradients(self, gradients: Array) -> Array:
        """(outputs, rows, places, out), from the order of what leaves the product."""
        if self.kernel_first:
            num_kernel_axes = gradients.ndim - 1 - len(self.rows)
            gradients = jnp.moveaxis(
                gradients, range(1, 1 + num_kernel_axes), range(gradients.ndim - num_kernel_axes, gradients.ndim)
            )
        num = len(self.rows)
        shape = gradients.shape
        return gradients.reshape(*shape[:2], math.prod(shape[2 : 1 + num]), math.prod(shape[1 + num :]))


@dataclass
class _Walk:
    """Evaluates a jaxpr with taps at its products with arrays of theta; notes the layers and what enters them."""

    num_rows: int
    taps: Theta = field(default_factory=dict)
    layers: list[Layer] = field(default_factory=list)
    inputs: dict[str, Array] = field(default_factory=dict)
    tap_shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    orders: dict[str, _Order] = field(default_factory=dict)
    uses: dict[str, int] = field(default_factory=dict)

    def run(self, closed: ClosedJaxpr, theta: Theta) -> Array:
        leaves = [
            _Leaf(name, value.shape, value, np.arange(math.prod(value.shape)).reshape(value.shape))
            for name, value in sorted(theta.items())
        ]
        (outputs,) = walk(closed, leaves, self.equation)
        return _plain(outputs)

    def equation(self, eqn: JaxprEqn, inputs: list[Any]) -> list[Any]:
        name = eqn.primitive.name
        leaves = [value for value in inputs if isinstance(value, _Leaf)]
        if leaves and name in CALLS:
            return walk(body(eqn), inputs, self.equation)
        if len(inputs) == 1 and (name in REINDEXING or _only_adds_axes(eqn)):
            return [_moved(eqn, inputs[0])]
        if len(leaves) == 1 and name == "dot_general":
            layer = self.product(eqn, inputs)
            if layer is not None:
                return [layer]
        for leaf in leaves:
            if not (name == "add" and self.is_bias(inputs, leaf)):
                # Used by something that is no layer, or by more than one.
                self.uses[leaf.name] = self.uses.get(leaf.name, 0) + 2
        return as_it_is(eqn, [_plain(value) for value in inputs])

    def product(self, eqn: JaxprEqn, inputs: list[Any]) -> _Product | None:
        """A product of data with a leaf of theta, tapped; None where the rows of the data cannot be told."""
        side = 1 if isinstance(inputs[0], _Leaf) else 0
        data, leaf = _plain(inputs[side]), inputs[1 - side]
        contracted, batch = eqn.params["dimension_numbers"]
        rows = tuple(axis for axis in range(data.ndim) if axis not in contracted[side])
        if batch[side] or not rows or data.shape[rows[0]] != self.num_rows:
            return None
        free = [axis for axis in range(leaf.value.ndim) if axis not in contracted[1 - side]]
        num_in = math.prod(leaf.value.shape[axis] for axis in contracted[1 - side])
        entries = np.transpose(leaf.entries, (*contracted[1 - side], *free)).ravel()
        axes = _axes(leaf.shape, entries)
        if axes is None:
            return None
        self.uses[leaf.name] = self.uses.get(leaf.name, 0) + 1
        order = _Order(rows, tuple(contracted[side]), kernel_first=side == 1)
        output = eqn.primitive.bind(*[_plain(value) for value in inputs], **eqn.params)
        self.layers.append(Layer(leaf.name, leaf.shape, axes, num_in, len(rows) == 1))
        self.inputs[leaf.name] = order.inputs(data)
        self.tap_shapes[leaf.name], self.orders[leaf.name] = output.shape, order
        if leaf.name in self.taps:
            output = output + self.taps[leaf.name]
        # The features of several axes are no axis that a bias is known by.
        axis = (0 if order.kernel_first else output.ndim - 1) if len(free) == 1 else -1
        return _Product(output, leaf.name, axis)

    def is_bias(self, inputs: list[Any], leaf: _Leaf) -> bool:
        """Whether a vector is added to what has just left a product, along its features: then it is its bias."""
        product = next((value for value in inputs if isinstance(value, _Product)), None)
        if product is None or product.axis < 0:
            return False
        expected = [1] * product.value.ndim
        expected[product.axis] = product.value.shape[product.axis]
        index = next(index for index, layer in enumerate(self.layers) if layer.kernel == product.kernel)
        is_vector = leaf.shape == (product.value.shape[product.axis],)
        if not is_vector or list(leaf.value.shape) != expected or self.layers[index].bias is not None:
            return False
        self.uses[leaf.name] = self.uses.get(leaf.name, 0) + 1
        self.layers[index] = replace(self.layers[index], bias=leaf.name)
        return True


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, _Leaf | _Product) else value


def _moved(eqn: JaxprEqn, value: Any) -> Any:
    """What reindexing makes of a value: a leaf stays a leaf; a product stays one while its features stay an axis."""
    (moved,) = as_it_is(eqn, [_plain(value)])
    if isinstance(value, _Leaf):
        if eqn.primitive.name == "transpose":
            return value._replace(value=moved, entries=np.transpose(value.entries, eqn.params["permutation"]))
        return value._replace(value=moved, entries=value.entries.reshape(moved.shape))
    if isinstance(value, _Product) and value.axis >= 0:
        if eqn.primitive.name == "transpose":
            return _Product(moved, value.kernel, eqn.params["permutation"].index(value.axis))
        is_last = value.axis == value.value.ndim - 1
        if is_last and moved.ndim and moved.shape[-1] == value.value.shape[-1]:
            return _Product(moved, value.kernel, moved.ndim - 1)
    return moved


def _only_adds_axes(eqn: JaxprEqn) -> bool:
    before, after = (math.prod(getattr(one.aval, "shape", ())) for one in (eqn.invars[0], eqn.outvars[0]))
    return eqn.primitive.name == "broadcast_in_dim" and before == after


def _axes(shape: tuple[int, ...], entries: np.ndarray) -> tuple[int, ...] | None:
    """The order of the axes of an array that gives its entries in that order; None where there is none."""
    numbers = np.arange(entries.size).reshape(shape)
    orders = permutations(range(len(shape)))
    return next((order for order in orders if np.array_equal(np.transpose(numbers, order).ravel(), entries)), None)


def _with_one(inputs: Array, layer: Layer) -> Array:
    if layer.bias is None:
        return inputs
    return jnp.concatenate([inputs, jnp.ones((*inputs.shape[:2], 1))], axis=-1)


def _without_unclear(layer: Layer, unclear: set[Any]) -> Layer:
    return replace(layer, bias=None) if layer.bias in unclear else layer


def _traced(function: Callable[[Theta], Array], theta: Theta) -> ClosedJaxpr:
    return trace(with_patches(function, everywhere=True), theta)[0]
