"""The layers of a network in the order in which data pass them, whatever their names are."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax

from credo._dataflow import CALLS, CONVOLUTIONS, body, trace, walk
from credo.networks.functional import Network

# Places of layers side by side, from the input to the output: the arrays of each layer by its name.
Order = list[dict[str, tuple[str, ...]]]


def layers_in_order(network: Network, x: Any) -> Order:
    """Layers that have parameters, from the input to the output; those side by side share a place.

    A layer is the arrays whose paths differ in their last word alone ("head.kernel", "head.bias"); of names without
    dots it is a kernel, and what is added to its product. The order is that of the data flow: a layer comes before
    those whose inputs depend on it. Arrays that the output does not depend on are in no layer.

    Arguments:
        x: an example batch, of which only shape and dtype are used.

    >>> from credo.networks import MLP, functional
    >>> layers_in_order(functional(MLP([5], 1, inputs=3)), jax.ShapeDtypeStruct((2, 3), "float32"))[-1]
    {'head': ('head.bias', 'head.kernel')}
    """
    flow = _Order()
    shapes = {"theta": dict(network.params), "x": jax.ShapeDtypeStruct(x.shape, x.dtype)}
    closed, _ = trace(lambda given: network.apply(given["theta"], given["x"]), shapes)
    names = sorted(network.params)
    walk(closed, [*(_Value(frozenset([_layer(name)]), True) for name in names), _Value(frozenset())], flow)
    members: dict[str, list[str]] = defaultdict(list)
    for name in names:
        if _layer(name) in flow.before:
            members[flow.kernel_of.get(_layer(name), _layer(name))].append(name)
    num_after = {layer: len(flow.after(layer)) for layer in members}
    places = sorted(set(num_after.values()), reverse=True)
    return [{layer: tuple(members[layer]) for layer in members if num_after[layer] == place} for place in places]


@dataclass(frozen=True)
class _Value:
    """What is known of a value on its way.

    Arguments:
        layers: on which it depends.
        is_weights: whether it is made of parameters and constants alone.
        product: the layer whose product it is, as it came out of it.
    """

    layers: frozenset[str]
    is_weights: bool = False
    product: str | None = None


@dataclass
class _Order:
    """Follows the equations of a network: which layers come before which, and to whose product a vector is added."""

    before: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    kernel_of: dict[str, str] = field(default_factory=dict)

    def __call__(self, eqn: Any, inputs: list[Any]) -> Sequence[_Value]:
        if eqn.primitive.name in CALLS:
            return walk(body(eqn), inputs, self)
        values = [value if isinstance(value, _Value) else _Value(frozenset(), True) for value in inputs]
        weights, data = ([one for one in values if one.is_weights is kind] for kind in (True, False))
        entering, seen = _union(weights), _union(data)
        if not data:
            return [_Value(entering, True)] * len(eqn.outvars)
        for layer in entering:
            self.before[layer] |= seen
        return [_Value(seen | entering, product=self._product(eqn, entering, data))] * len(eqn.outvars)

    def _product(self, eqn: Any, entering: frozenset[str], data: list[_Value]) -> str | None:
        if len(entering) != 1:
            return None
        (layer,) = entering
        if eqn.primitive.name in {"dot_general", *CONVOLUTIONS}:
            return layer
        if eqn.primitive.name == "add" and data[0].product and "." not in layer:
            self.kernel_of.setdefault(layer, data[0].product)
        return None

    def after(self, layer: str) -> set[str]:
        """The layers whose inputs depend on this one."""
        found = {self.kernel_of.get(other, other) for other, before in self.before.items() if layer in before}
        return found - {layer}


def _union(values: list[_Value]) -> frozenset[str]:
    return frozenset().union(*(value.layers for value in values))


def _layer(path: str) -> str:
    return path.rpartition(".")[0] or path
