"""Several covariances side by side."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.covariance.layers import Layer
from credo.covariance.root import Function, Root, Shapes, under
from credo.typing import Array, Theta


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Joined(Root):
    """Roots over different arrays of theta, independent of each other."""

    parts: tuple[Root, ...]

    def shapes(self) -> Shapes:
        return {name: shape for part in self.parts for name, shape in part.shapes().items()}

    def noise_shapes(self) -> Shapes:
        return {
            f"{index}/{name}": shape
            for index, part in enumerate(self.parts)
            for name, shape in part.noise_shapes().items()
        }

    def offset(self, noise: Theta) -> Theta:
        offset: Theta = {}
        for index, part in enumerate(self.parts):
            offset |= part.offset({name: noise[f"{index}/{name}"] for name in part.noise_shapes()})
        return offset

    def variance(self) -> Theta:
        return {name: leaf for part in self.parts for name, leaf in part.variance().items()}

    def half_log_det(self) -> Array:
        return sum((part.half_log_det() for part in self.parts), start=jnp.zeros(()))

    def squared_length(self, offset: Theta) -> Array:
        return sum((part.squared_length(offset) for part in self.parts), start=jnp.zeros(()))

    def output_covariance(self, function: Function, mean: Theta, x: Array, layers: Collection[Layer]) -> Array:
        return sum((part.output_covariance(function, mean, x, layers) for part in self.parts), start=jnp.zeros(()))

    def largest_jacobian(self, layers: Collection[Layer]) -> int:
        return max(part.largest_jacobian(layers) for part in self.parts)

    def config(self) -> dict[str, Any]:
        return super().config() | {"parts": [part.config() for part in self.parts]}

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Those of each part, under its number."""
        arrays = enumerate(part.to_arrays() for part in self.parts)
        return {f"{index}/{path}": leaf for index, part in arrays for path, leaf in part.items()}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
        configs = enumerate(config["parts"])
        return {"parts": tuple(Root.from_arrays(part, under(str(index), arrays)) for index, part in configs)}
