"""Places for dropout masks in a model, and the weights that each mask acts on.

A network with dropout layers has its places there. In any other, a mask acts on what enters each product with a kernel:
on the units of a dense layer, on the channels of a convolution. As the mask is the same for all rows, that is a mask on
the weights (paper, "Bayes via Dropout"),

    (x ∘ z) W = x (diag(z) W),

and a draw of masks is a draw of theta. The network is not asked to cooperate: `DataFlow` finds the products with arrays
of theta in its log likelihood, and what enters them is looked at.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo import random
from credo._dataflow import DataFlow, Known, Leaf, Product, plain, trace
from credo._precision import working_precision
from credo.models.program import Model
from credo.networks.masks import Masks
from credo.typing import Array, Theta

# Steps over places, which a mask on channels goes through as it is: pooling, padding, patches.
_OVER_PLACES = {"slice", "pad", "reduce_window_max", "reduce_window_sum", "reduce_max", "reduce_sum"}


@dataclass(frozen=True, eq=False)
class Place:
    """Where one mask acts.

    Arguments:
        name: of the leaf of theta that holds the mask, or of the kernel that it acts on.
        num_units: how many numbers the mask has.
        rate: of a dropout layer; None for a kernel.
        units: for each kernel that takes what was masked, the unit that each weight belongs to: numbers in a shape that
            broadcasts to the kernel's.
    """

    name: str
    num_units: int
    rate: float | None
    units: dict[str, np.ndarray]

    @property
    def is_layer(self) -> bool:
        return self.rate is not None

    def weigh(self, mean: Theta) -> Array:
        """Σ w² of the weights of each unit, (units,); zero where no kernel takes what was masked."""
        total = jnp.zeros(self.num_units)
        for kernel, units in self.units.items():
            alike = tuple(axis for axis, size in enumerate(units.shape) if size == 1)
            squares = jnp.sum(mean[kernel] ** 2, axis=alike, keepdims=True)
            total = total.at[jnp.ravel(units)].add(jnp.ravel(squares))
        return total


@lru_cache(maxsize=32)
def places_of(model: Model, *, inputs: bool = False) -> tuple[Place, ...]:
    """The places for masks in a model that is bound to data: its dropout layers, or, without any, its kernels.

    Arguments:
        inputs: whether kernels that take the inputs of the network itself are among them.

    >>> from credo.models import regression
    >>> from credo.networks import MLP
    >>> model = regression(MLP([20, 30], 1)).bind((np.zeros((5, 3)), np.zeros(5)))
    >>> [(place.name, place.num_units) for place in places_of(model)]
    [('hidden.1.kernel', 20), ('head.kernel', 30)]
    """
    example, template = model.example(), model.template
    # Layers that are points have no masks of their own, but what leaves them is inside the network.
    weights = {**template, **model.point_template}

    def log_likelihood(theta: Theta) -> Array:
        return model.log_parts(theta, example, key=random.key(0))[1]

    with Masks({}, look=True) as found:
        jax.eval_shape(log_likelihood, weights)
    masks = {layer.name: jax.ShapeDtypeStruct((layer.num_units,), working_precision()) for layer in found.layers}
    leaves = {**weights, **masks}
    flow = _Units(frozenset(masks))
    flow.look(trace(log_likelihood, leaves)[0], leaves)
    kernels = [(name, kernel) for name, kernel in flow.kernels.items() if name in template]
    if not masks:
        return tuple(
            Place(name, int(kernel.units.max()) + 1, None, {name: kernel.units})
            for name, kernel in kernels
            if inputs or kernel.is_inside
        )
    return tuple(
        Place(*layer, {name: one.units for name, one in kernels if one.mask == layer.name}) for layer in found.layers
    )


def with_masks(theta: Theta, places: Sequence[Place], masks: Theta) -> Theta:
    """theta with masks by the names of the places: leaves of their own for layers, factors of kernels elsewhere."""
    layers = {place.name: masks[place.name] for place in places if place.is_layer}
    return as_weights(theta, [place for place in places if not place.is_layer], masks) | layers


def as_weights(theta: Theta, places: Sequence[Place], masks: Theta) -> Theta:
    """theta with all masks as factors of the kernels that take what was masked: w = z m. Draws may be stacked."""
    return theta | {
        kernel: theta[kernel] * masks[place.name][..., units]
        for place in places
        for kernel, units in place.units.items()
    }


def variances(mean: Theta, places: Sequence[Place], rates: Theta) -> Theta:
    """Var[w] = m² p/(1 − p) of each kernel that masks act on."""
    return {
        kernel: mean[kernel] ** 2 * (rates[place.name] / (1 - rates[place.name]))
        for place in places
        for kernel in place.units
    }


# -- following masks -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Data(Known):
    """Data in the network.

    Arguments:
        is_inside: whether they depend on theta.
        source: the value that they were cut out of.
        num_channels: of patches, which are cut out of one value and stand side by side.
    """

    is_inside: bool
    source: Any
    num_channels: int | None


class _Kernel(NamedTuple):
    """The unit of each weight; the mask on what entered the product with it, and whether that was inside."""

    units: np.ndarray
    mask: str | None
    is_inside: bool


@dataclass
class _Units(DataFlow):
    """Follows weights and masks to the first product of each kernel. What was masked counts as its mask, reordered."""

    masks: frozenset[str]
    kernels: dict[str, _Kernel] = field(default_factory=dict)

    def is_mask(self, value: Any) -> bool:
        return isinstance(value, Leaf) and value.name in self.masks

    def is_weights(self, value: Any) -> bool:
        return isinstance(value, Leaf) and not self.is_mask(value)

    def product(self, product: Product) -> None:
        data, kernel = product.data, product.weights
        if kernel.name in self.kernels:
            return
        inputs = _inputs(product)
        if self.is_mask(data):
            entries = np.moveaxis(data.entries, product.contracted, range(len(product.contracted)))
            inputs = entries.reshape(inputs.max() + 1, -1).max(axis=1)[inputs]
        elif isinstance(data, _Data) and data.num_channels is not None:
            inputs = inputs % data.num_channels
        units = np.zeros(math.prod(kernel.shape), np.int32)
        units[kernel.entries.ravel()] = inputs.ravel()
        mask = data.name if self.is_mask(data) else None
        self.kernels[kernel.name] = _Kernel(_squeezed(units.reshape(kernel.shape)), mask, _is_inside(data))

    def compute(self, eqn: Any, inputs: list[Any]) -> list[Any]:
        outputs = super().compute(eqn, inputs)
        owned = [value for value in inputs if isinstance(value, Leaf)]
        if len({leaf.name for leaf in owned}) == 1 and self.is_mask(owned[0]):
            entries = _passed(eqn, inputs, owned[0])
            if entries is not None:
                return [replace(owned[0], value=outputs[0], entries=entries)]
        source = plain(inputs[0]) if eqn.primitive.name == "slice" else None
        is_inside = any(map(_is_inside, inputs))
        return [_Data(output, is_inside, source, _num_channels(eqn, inputs)) for output in outputs]


def _inputs(product: Product) -> np.ndarray:
    """The number of the input that each weight takes."""
    sizes = [product.weights.entries.shape[axis] for axis in product.order]
    num_inputs = math.prod(sizes[: len(product.contracted)])
    numbers = np.repeat(np.arange(num_inputs), math.prod(sizes) // num_inputs).reshape(sizes)
    if product.is_convolution:
        # The channels out come last; each group of them takes inputs of its own.
        group = np.arange(sizes[-1]) // max(sizes[-1] // product.eqn.params["feature_group_count"], 1)
        numbers = numbers + num_inputs * group
    return np.transpose(numbers, np.argsort(product.order))


def _is_inside(value: Any) -> bool:
    return isinstance(value, Leaf) or (isinstance(value, _Data) and value.is_inside)


def _num_channels(eqn: Any, values: list[Any]) -> int | None:
    """Of the patches of a convolution: slices of one value, side by side along the last axis."""
    sources = [value.source if isinstance(value, _Data) else None for value in values]
    if eqn.primitive.name != "concatenate" or any(one is None or one is not sources[0] for one in sources):
        return None
    first = values[0].value
    return first.shape[-1] if eqn.params["dimension"] == first.ndim - 1 else None


def _passed(eqn: Any, values: list[Any], mask: Leaf) -> np.ndarray | None:
    """The entries of a mask after a step that it goes through: f(z ∘ x) = z ∘ f(x) for masks z ≥ 0."""
    name, entries = eqn.primitive.name, mask.entries
    if name == "mul" or (name == "div" and mask is values[0]) or (name == "max" and _is_relu(values)):
        return np.broadcast_to(entries, eqn.outvars[0].aval.shape)
    if name == "concatenate" and all(isinstance(value, Leaf) for value in values):
        return np.concatenate([value.entries for value in values], axis=eqn.params["dimension"])
    if name not in _OVER_PLACES:
        return None
    shape = eqn.outvars[0].aval.shape
    drops = "axes" in eqn.params
    axes = eqn.params["axes"] if drops else [axis for axis in range(len(shape)) if shape[axis] != entries.shape[axis]]
    low, high = (pick(entries, axis=tuple(axes), keepdims=not drops) for pick in (np.min, np.max))
    return np.broadcast_to(high, shape) if np.array_equal(low, high) else None


def _is_relu(values: list[Any]) -> bool:
    """Whether the maximum is taken with the constant zero."""
    others = [plain(value) for value in values if not isinstance(value, Leaf)]
    return len(others) == 1 and not isinstance(others[0], jax.core.Tracer) and bool(np.all(np.asarray(others[0]) == 0))


def _squeezed(units: np.ndarray) -> np.ndarray:
    """The same numbers, with one place for each axis along which they are alike."""
    for axis in range(units.ndim):
        head = np.take(units, [0], axis)
        if np.array_equal(np.broadcast_to(head, units.shape), units):
            units = head
    return units
