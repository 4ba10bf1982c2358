"""Places for dropout masks in a model, and the weights that each mask acts on.

A network with dropout layers has its places there. In any other, a mask acts on what enters each product with a kernel:
on the units of a dense layer, on the channels of a convolution. As the mask is the same for all rows, that is a mask on
the weights (paper, "Bayes via Dropout"),

    (x ∘ z) W = x (diag(z) W),

and a draw of masks is a draw of theta. The network is not asked to cooperate: the log likelihood is traced, and what
enters its products with the leaves of theta is looked at.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import JaxprEqn

from credo import random
from credo._jaxpr import CALLS, REINDEXING, as_it_is, body, trace, walk
from credo.models.program import Model
from credo.networks.masks import Masks
from credo.typing import Array, Theta

# Steps over places, which a mask on channels goes through as it is: pooling, padding, patches.
_OVER_PLACES = {"slice", "pad", "reduce_window_max", "reduce_window_sum"}


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

    def log_likelihood(theta: Theta) -> Array:
        return model.log_parts(theta, example, key=random.key(0))[1]

    with Masks({}, look=True) as found:
        jax.eval_shape(log_likelihood, template)
    if not found.layers:
        uses = _uses(log_likelihood, template, {})
        return tuple(
            Place(use.kernel, int(use.units.max()) + 1, None, {use.kernel: use.units})
            for use in uses
            if inputs or use.is_inside
        )
    masks = {layer.name: jax.ShapeDtypeStruct((layer.num_units,), jnp.float32) for layer in found.layers}
    uses = _uses(log_likelihood, template, masks)
    return tuple(
        Place(*layer, {use.kernel: use.units for use in uses if use.mask == layer.name}) for layer in found.layers
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


# -- walking -------------------------------------------------------------------------------------------------


class _Value(NamedTuple):
    """A value on its way through the program, and what is known of it.

    Arguments:
        owner: the leaf of theta that it is in another order, or the mask that it was multiplied by.
        entries: for each number of it, the number of the owner's entry.
        is_masked: whether the owner is a mask.
        is_inside: whether it depends on theta.
        source: the value that it was cut out of.
        num_channels: of patches, which are cut out of one value and stand side by side.
    """

    array: Array
    owner: str | None = None
    entries: np.ndarray | None = None
    is_masked: bool = False
    is_inside: bool = False
    source: Any = None
    num_channels: int | None = None


class _Use(NamedTuple):
    """A product with a kernel: the unit of each weight; the mask on what entered, and whether that was inside."""

    kernel: str
    units: np.ndarray
    mask: str | None
    is_inside: bool


def _uses(function: Callable[[Theta], Array], template: Theta, masks: Theta) -> list[_Use]:
    """The first product of each kernel, in the order of the program."""
    leaves = {**template, **masks}
    closed, _ = trace(function, leaves)
    found = _Walk({name: leaf.shape for name, leaf in leaves.items()})

    def look(theta: Theta) -> None:
        values = [
            _Value(leaf, name, np.arange(leaf.size).reshape(leaf.shape), name in masks, name not in masks)
            for name, leaf in sorted(theta.items())
        ]
        walk(closed, values, found.equation)

    jax.eval_shape(look, leaves)
    return list(found.uses.values())


@dataclass
class _Walk:
    """Follows weights and masks to the products in which they meet."""

    shapes: dict[str, tuple[int, ...]]
    uses: dict[str, _Use] = field(default_factory=dict)

    def equation(self, eqn: JaxprEqn, inputs: list[Any]) -> list[Any]:
        values = [value if isinstance(value, _Value) else _Value(value) for value in inputs]
        if eqn.primitive.name in CALLS:
            return walk(body(eqn), values, self.equation)
        if eqn.primitive.name in ("dot_general", "conv_general_dilated"):
            self.product(eqn, values)
        outputs = as_it_is(eqn, [value.array for value in values])
        is_inside = any(value.is_inside for value in values)
        if len(outputs) > 1:
            return [_Value(output, is_inside=is_inside) for output in outputs]
        return [_followed(eqn, values, _Value(outputs[0], is_inside=is_inside))]

    def product(self, eqn: JaxprEqn, values: list[_Value]) -> None:
        side = 1 if values[0].owner is not None and not values[0].is_masked else 0
        data, kernel = values[side], values[1 - side]
        if kernel.owner is None or kernel.entries is None or kernel.is_masked or kernel.owner in self.uses:
            return
        inputs, of_data = _inputs(eqn, kernel.array.shape, data.array.shape, side)
        if data.is_masked and data.entries is not None:
            inputs = np.max(np.transpose(data.entries, of_data).reshape(inputs.max() + 1, -1), axis=1)[inputs]
        elif data.num_channels is not None:
            inputs = inputs % data.num_channels
        shape = self.shapes[kernel.owner]
        units = np.zeros(math.prod(shape), np.int32)
        units[np.ravel(kernel.entries)] = np.ravel(inputs)
        mask = data.owner if data.is_masked else None
        self.uses[kernel.owner] = _Use(kernel.owner, _squeezed(units.reshape(shape)), mask, data.is_inside)


def _inputs(
    eqn: JaxprEqn, kernel: tuple[int, ...], data: tuple[int, ...], side: int
) -> tuple[np.ndarray, tuple[int, ...]]:
    """The number of the input that each weight takes, and the axes of the data with those of the inputs first."""
    numbers = eqn.params["dimension_numbers"]
    if eqn.primitive.name == "conv_general_dilated":
        out, own = (np.arange(kernel[axis]) for axis in numbers.rhs_spec[:2])
        group = out // max(len(out) // eqn.params["feature_group_count"], 1)
        inputs = group[:, None] * len(own) + own
        spread = inputs.reshape(*inputs.shape, *[1] * (len(kernel) - 2))
        ordered = np.broadcast_to(spread, [kernel[axis] for axis in numbers.rhs_spec])
        first: tuple[int, ...] = (numbers.lhs_spec[1],)
        inputs = np.transpose(ordered, np.argsort(numbers.rhs_spec))
    else:
        first, of_kernel = numbers[0][side], numbers[0][1 - side]
        sizes = [kernel[axis] for axis in of_kernel]
        shape = [1] * len(kernel)
        inputs = np.zeros(shape, int)
        for position, axis in enumerate(of_kernel):
            steps = np.arange(kernel[axis]) * math.prod(sizes[position + 1 :])
            inputs = inputs + steps.reshape([-1 if other == axis else 1 for other in range(len(kernel))])
        inputs = np.broadcast_to(inputs, kernel)
    return inputs, (*first, *(axis for axis in range(len(data)) if axis not in first))


def _followed(eqn: JaxprEqn, values: list[_Value], output: _Value) -> _Value:
    """An output with what is known of it from the inputs."""
    name, shape = eqn.primitive.name, output.array.shape
    owned = [value for value in values if value.owner is not None]
    if not owned and name == "slice":
        return output._replace(source=values[0].array)
    if not owned and name == "concatenate":
        return output._replace(num_channels=_num_channels(eqn, values))
    if len({value.owner for value in owned}) != 1:
        return output
    first = owned[0]
    entries = _reindexed(eqn, first, shape)
    if entries is None and first.is_masked:
        entries = _passed(eqn, values, shape)
    return output if entries is None else output._replace(owner=first.owner, entries=entries, is_masked=first.is_masked)


def _num_channels(eqn: JaxprEqn, values: list[_Value]) -> int | None:
    """Of the patches of a convolution: slices of one value, side by side along the last axis."""
    first = values[0]
    is_patches = first.source is not None and all(value.source is first.source for value in values)
    return first.array.shape[-1] if is_patches and eqn.params["dimension"] == first.array.ndim - 1 else None


def _reindexed(eqn: JaxprEqn, value: _Value, shape: tuple[int, ...]) -> np.ndarray | None:
    """The entries after a step that hands each number on as it is."""
    entries: Any = value.entries
    if eqn.primitive.name == "transpose":
        return np.transpose(entries, eqn.params["permutation"])
    if eqn.primitive.name in REINDEXING:
        return entries.reshape(shape)
    if eqn.primitive.name == "rev":
        return np.flip(entries, eqn.params["dimensions"])
    if eqn.primitive.name == "broadcast_in_dim":
        axes = eqn.params["broadcast_dimensions"]
        sizes = [entries.shape[axes.index(axis)] if axis in axes else 1 for axis in range(len(shape))]
        return np.broadcast_to(entries.reshape(sizes), shape)
    return None


def _passed(eqn: JaxprEqn, values: list[_Value], shape: tuple[int, ...]) -> np.ndarray | None:
    """The entries of a mask after a step that it goes through: f(z ∘ x) = z ∘ f(x) for masks z ≥ 0."""
    name, first = eqn.primitive.name, next(value for value in values if value.owner is not None)
    entries: Any = first.entries
    if name == "mul" or (name == "div" and first is values[0]) or (name == "max" and _is_relu(values)):
        return np.broadcast_to(entries, shape)
    if name == "concatenate" and all(value.owner is not None for value in values):
        return np.concatenate([value.entries for value in values], axis=eqn.params["dimension"])
    if name in ("reduce_max", "reduce_sum"):
        axes = tuple(eqn.params["axes"])
        return np.max(entries, axis=axes) if _is_alike(entries, axes) else None
    if name in _OVER_PLACES:
        places = tuple(axis for axis, size in enumerate(shape) if size != entries.shape[axis])
        alike = np.max(entries, axis=places, keepdims=True)
        return np.broadcast_to(alike, shape) if _is_alike(entries, places) else None
    return None


def _is_relu(values: list[_Value]) -> bool:
    """Whether the maximum is taken with the constant zero."""
    others = [value.array for value in values if value.owner is None]
    return len(others) == 1 and not isinstance(others[0], jax.core.Tracer) and bool(np.all(np.asarray(others[0]) == 0))


def _is_alike(entries: np.ndarray, axes: tuple[int, ...]) -> bool:
    return bool(np.all(np.max(entries, axis=axes) == np.min(entries, axis=axes)))


def _squeezed(units: np.ndarray) -> np.ndarray:
    """The same numbers, with one place for each axis along which they are alike."""
    for axis in range(units.ndim):
        head = np.take(units, [0], axis)
        if np.array_equal(np.broadcast_to(head, units.shape), units):
            units = head
    return units
