"""A diagonal covariance."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp

from credo.covariance.layers import Jacobian, Layer
from credo.covariance.root import Root, Shapes, layer_covariance
from credo.typing import Array, Theta


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Diagonal(Root):
    """√Σ = diag(scale): n numbers, no correlations."""

    scale: Theta

    def shapes(self) -> Shapes:
        return {name: leaf.shape for name, leaf in self.scale.items()}

    def noise_shapes(self) -> Shapes:
        return self.shapes()

    def offset(self, noise: Theta) -> Theta:
        return {name: scale * noise[name] for name, scale in self.scale.items()}

    def variance(self) -> Theta:
        return {name: scale**2 for name, scale in self.scale.items()}

    def half_log_det(self) -> Array:
        return sum((jnp.sum(jnp.log(scale)) for scale in self.scale.values()), start=jnp.zeros(()))

    def squared_length(self, offset: Theta) -> Array:
        return sum((jnp.sum((offset[name] / scale) ** 2) for name, scale in self.scale.items()), start=jnp.zeros(()))

    def restricted(self, names: Collection[str]) -> "Diagonal":
        return Diagonal({name: self.scale[name] for name in names})

    def by_layer(self, layers: Collection[Layer]) -> dict[Layer, Callable[[Jacobian], Array]]:
        return {layer: partial(self._of_layer, layer) for layer in layers}

    def _of_layer(self, layer: Layer, jacobian: Jacobian) -> Array:
        return layer_covariance(layer, jacobian, layer.matrix(self.variance()))
