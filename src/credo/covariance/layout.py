"""Which arrays of theta make one block of a covariance or a curvature."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from credo.covariance.layers import Layer
from credo.typing import Theta

Template = Mapping[str, Any]


@jax.tree_util.register_static
@dataclass(frozen=True)
class Layout:
    """Which arrays of theta belong to which group of blocks, with their shapes, in order."""

    groups: tuple[tuple[str, tuple[tuple[str, tuple[int, ...]], ...]], ...]

    @classmethod
    def by_layer(cls, template: Template) -> Self:
        """A group per layer: what shares a path up to its last dot, such as a kernel and its bias."""
        members: dict[str, list[tuple[str, tuple[int, ...]]]] = {}
        for name, leaf in template.items():
            members.setdefault(name.rpartition(".")[0] or name, []).append((name, tuple(leaf.shape)))
        return cls(tuple((layer, tuple(arrays)) for layer, arrays in members.items()))

    @classmethod
    def together(cls, template: Template) -> Self:
        """All arrays in one group."""
        return cls((("all", tuple((name, tuple(leaf.shape)) for name, leaf in template.items())),))

    @classmethod
    def separate(cls, template: Template) -> Self:
        """A group for each array."""
        return cls(tuple((name, ((name, tuple(leaf.shape)),)) for name, leaf in template.items()))

    def sizes(self) -> dict[str, int]:
        """How many numbers each group holds."""
        return {group: sum(math.prod(shape) for _, shape in arrays) for group, arrays in self.groups}

    def order(self, group: str, layer: Layer) -> np.ndarray:
        """For each entry of a group that is one layer, its place in the matrix of that layer."""
        num_rows = layer.num_in + (layer.bias is not None)
        places = layer.arrays(np.arange(num_rows * layer.num_out).reshape(num_rows, layer.num_out))
        return np.concatenate([np.ravel(places[name]) for name, _ in dict(self.groups)[group]])

    def scatter(self, blocks: Theta) -> Theta:
        """From blocks of each group back to the arrays of theta."""
        theta: Theta = {}
        for group, arrays in self.groups:
            vector, first = blocks[group].ravel(), 0
            for name, shape in arrays:
                theta[name] = vector[first : first + math.prod(shape)].reshape(shape)
                first += math.prod(shape)
        return theta

    def gather(self, theta: Theta, shapes: Mapping[str, tuple[int, ...]]) -> Theta:
        """The inverse of `scatter`; what only fills up the last block is zero."""
        blocks: Theta = {}
        for group, arrays in self.groups:
            vector = jnp.concatenate([theta[name].ravel() for name, _ in arrays])
            size = math.prod(shapes[group])
            blocks[group] = jnp.pad(vector, (0, size - vector.size)).reshape(shapes[group])
        return blocks


def single_layers(layout: Layout, layers: Sequence[Layer]) -> dict[str, Layer]:
    """The groups of a layout that are one layer each."""
    found = {frozenset(layer.names): layer for layer in layers}
    sets = {group: frozenset(name for name, _ in arrays) for group, arrays in layout.groups}
    return {group: found[names] for group, names in sets.items() if names in found}
