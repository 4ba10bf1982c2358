"""A covariance from Kronecker factors of each layer's curvature."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo._schema import checked, require_numbers
from credo.covariance.layers import Jacobian, Layer
from credo.covariance.root import Root, Shapes, layer_covariance
from credo.typing import Array, Theta


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Kronecker(Root):
    """Σ⁻¹ = √P (A ⊗ G + I) √P for each layer, with P = diag(precision) of its inputs; A and G by their eigenvectors.

        √Σ ε = P^{−½} U_A (ε / √(1 + a gᵀ)) U_Gᵀ        for ε, theta as matrices (in, out); a, g the eigenvalues

    Arguments:
        precision: P, (in,), by the name of the kernel, as all that follow.
        input_basis, input_values: U_A, (in, in), and a, (in,).
        output_basis, output_values: U_G, (out, out), and g, (out,).
        layers: which arrays of theta make the matrix of a layer.
    """

    precision: Theta
    input_basis: Theta
    input_values: Theta
    output_basis: Theta
    output_values: Theta
    layers: tuple[Layer, ...]

    def shapes(self) -> Shapes:
        return {
            name: layer.shape if name == layer.kernel else (layer.num_out,)
            for layer in self.layers
            for name in layer.names
        }

    def noise_shapes(self) -> Shapes:
        return {name: (*leaf.shape, *self.output_values[name].shape) for name, leaf in self.input_values.items()}

    def shrinkage(self, name: str) -> Array:
        """1 / (1 + a gᵀ), (in, out): the variance that the data leave, in the basis and in units of the prior."""
        return 1 / (1 + jnp.outer(self.input_values[name], self.output_values[name]))

    def input_root(self, name: str) -> Array:
        """P^{−½} U_A."""
        return self.input_basis[name] / jnp.sqrt(self.precision[name])[:, None]

    def offset(self, noise: Theta) -> Theta:
        offset: Theta = {}
        for layer in self.layers:
            name = layer.kernel
            inner = noise[name] * jnp.sqrt(self.shrinkage(name))
            offset |= layer.arrays(self.input_root(name) @ inner @ self.output_basis[name].T)
        return offset

    def variance(self) -> Theta:
        variance: Theta = {}
        for layer in self.layers:
            name = layer.kernel
            squares = self.input_root(name) ** 2 @ self.shrinkage(name) @ self.output_basis[name].T ** 2
            variance |= layer.arrays(squares)
        return variance

    def half_log_det(self) -> Array:
        total = jnp.zeros(())
        for name, values in self.output_values.items():
            total += 0.5 * jnp.sum(jnp.log(self.shrinkage(name)))
            total -= 0.5 * values.size * jnp.sum(jnp.log(self.precision[name]))
        return total

    def squared_length(self, offset: Theta) -> Array:
        total = jnp.zeros(())
        for layer in self.layers:
            name = layer.kernel
            scaled = jnp.sqrt(self.precision[name])[:, None] * layer.matrix(offset)
            inner = self.input_basis[name].T @ scaled @ self.output_basis[name]
            total += jnp.sum(inner**2 / self.shrinkage(name))
        return total

    def by_layer(self, layers: Collection[Layer]) -> dict[Layer, Callable[[Jacobian], Array]]:
        return {layer: partial(self._of_layer, layer) for layer in self.layers}

    def _of_layer(self, layer: Layer, jacobian: Jacobian) -> Array:
        name = layer.kernel
        turned = Jacobian(jacobian.inputs @ self.input_root(name), jacobian.gradients @ self.output_basis[name])
        return layer_covariance(layer, turned, self.shrinkage(name))

    def config(self) -> dict[str, Any]:
        return super().config() | {"layers": [asdict(layer) for layer in self.layers]}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
        layers = tuple(checked("layers", layer, Layer) for layer in config["layers"])
        for layer in layers:
            num_rows, num_out = layer.num_in + (layer.bias is not None), layer.num_out
            for field, shape in (("input_basis", (num_rows, num_rows)), ("output_basis", (num_out, num_out))):
                require_numbers("root", field, arrays[f"{field}/{layer.kernel}"], shape=shape)
        return {"layers": layers}
