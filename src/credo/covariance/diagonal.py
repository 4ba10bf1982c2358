"""A diagonal, alone or with r columns that correlate its entries: in the covariance, or in the precision."""

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


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LowRank(Root):
    """√Σ = D [I, F] = [D, L]: a diagonal beside r columns, n·(r + 1) numbers for correlations anywhere.

    The columns are held relative to the diagonal, L = D F: numbers of order one whatever the units of theta.

    Arguments:
        scale: D, in the shape of theta.
        factor: F, with a last axis of r columns.
    """

    scale: Theta
    factor: Theta

    @property
    def rank(self) -> int:
        return next(iter(self.factor.values())).shape[-1]

    def shapes(self) -> Shapes:
        return Diagonal(self.scale).shapes()

    def noise_shapes(self) -> Shapes:
        return self.shapes() | {"columns": (self.rank,)}

    def offset(self, noise: Theta) -> Theta:
        return {
            name: scale * (noise[name] + self.factor[name] @ noise["columns"]) for name, scale in self.scale.items()
        }

    def variance(self) -> Theta:
        return {name: scale**2 * (1 + jnp.sum(self.factor[name] ** 2, axis=-1)) for name, scale in self.scale.items()}

    def half_log_det(self) -> Array:
        """½ log det Σ = log det D + ½ log det(I + FᵀF)."""
        root = jnp.linalg.cholesky(_capacity(self.factor, self.rank))
        return Diagonal(self.scale).half_log_det() + jnp.sum(jnp.log(jnp.diagonal(root)))

    def squared_length(self, offset: Theta) -> Array:
        """Woodbury: |u|² − |C⁻½ Fᵀu|², u = D⁻¹ offset, C = I + FᵀF."""
        inner = _along(self.factor, {name: offset[name] / scale for name, scale in self.scale.items()}, self.rank)
        solved = jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(_capacity(self.factor, self.rank)), True), inner)
        return Diagonal(self.scale).squared_length(offset) - jnp.sum(inner * solved)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Shrunk(Root):
    """Σ⁻¹ = D⁻¹ (I + F Fᵀ) D⁻¹: a diagonal Gaussian that r directions of data have made narrower.

        √Σ = D (I − F M Fᵀ),    M = R (I − (I + S)^{−½}) S⁻¹ Rᵀ    with FᵀF = R S Rᵀ

    Arguments:
        scale: D, in the shape of theta.
        factor: F, with a last axis of r columns.
        shrink: M, (r, r), under the name "columns".
    """

    scale: Theta
    factor: Theta
    shrink: Theta

    @classmethod
    def of(cls, scale: Theta, factor: Theta) -> "Shrunk":
        """With M worked out."""
        values, basis = jnp.linalg.eigh(_gram(factor, next(iter(factor.values())).shape[-1]))
        values = jnp.maximum(values, 0.0)
        # (1 − 1/√(1 + s))/s, without the cancellation at small s.
        root = jnp.sqrt(1 + values)
        return cls(scale, factor, {"columns": (basis / (root * (1 + root))) @ basis.T})

    @property
    def rank(self) -> int:
        return self.shrink["columns"].shape[0]

    def shapes(self) -> Shapes:
        return Diagonal(self.scale).shapes()

    def noise_shapes(self) -> Shapes:
        return self.shapes()

    def offset(self, noise: Theta) -> Theta:
        along = self.shrink["columns"] @ _along(self.factor, noise, self.rank)
        return {name: scale * (noise[name] - self.factor[name] @ along) for name, scale in self.scale.items()}

    def variance(self) -> Theta:
        inverse = jnp.linalg.inv(_capacity(self.factor, self.rank))
        return {
            name: scale**2 * (1 - jnp.einsum("...r,rs,...s->...", self.factor[name], inverse, self.factor[name]))
            for name, scale in self.scale.items()
        }

    def half_log_det(self) -> Array:
        root = jnp.linalg.cholesky(_capacity(self.factor, self.rank))
        return Diagonal(self.scale).half_log_det() - jnp.sum(jnp.log(jnp.diagonal(root)))

    def squared_length(self, offset: Theta) -> Array:
        relative = {name: offset[name] / scale for name, scale in self.scale.items()}
        return Diagonal(self.scale).squared_length(offset) + jnp.sum(_along(self.factor, relative, self.rank) ** 2)


def _gram(factor: Theta, rank: int) -> Array:
    """FᵀF."""
    columns = [leaf.reshape(-1, rank) for leaf in factor.values()]
    return sum((leaf.T @ leaf for leaf in columns), start=jnp.zeros((rank, rank)))


def _capacity(factor: Theta, rank: int) -> Array:
    """I + FᵀF."""
    return jnp.eye(rank) + _gram(factor, rank)


def _along(factor: Theta, values: Theta, rank: int) -> Array:
    """Fᵀ values."""
    products = (leaf.reshape(-1, rank).T @ values[name].ravel() for name, leaf in factor.items())
    return sum(products, start=jnp.zeros(rank))
