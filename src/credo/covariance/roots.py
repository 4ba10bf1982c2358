"""Covariance roots: how a Gaussian over many parameters is stored, drawn from and measured.

Paper, appendix "Implementing parameter-efficient normal distributions": with ε ~ N(0, I),

    theta = mean + √Σ ε,    √Σ √Σᵀ = Σ

and √Σ has one of three shapes: diagonal, block-diagonal (one block is the full Cholesky root), or [D, L], a diagonal
beside r columns. Two more come from a precision, Σ⁻¹ = P + H with P diagonal: H of Kronecker factors per layer, or of
low rank. They are shared by variational inference, Laplace and SWAG. theta stays a tree of named arrays; a root holds
arrays that follow it, and may leave out arrays that are known for certain.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from credo import random
from credo.covariance.layers import Layer
from credo.covariance.layout import Layout, Template
from credo.typing import Array, Key, Theta


class Root(Protocol):
    """√Σ of a Gaussian over theta. Every answer is a function of the root alone, so that gradients flow through it."""

    def offset(self, noise: Theta) -> Theta:
        """√Σ ε for standard normal noise as `noise_shapes` asks."""

    def noise_shapes(self) -> dict[str, tuple[int, ...]]:
        """What `offset` needs: ε has n entries, or n + r."""

    def variance(self) -> Theta:
        """The diagonal of Σ, in the shape of theta."""

    def log_det(self) -> Array:
        """½ log det Σ."""

    def squared_length(self, offset: Theta) -> Array:
        """offsetᵀ Σ⁻¹ offset."""


def draw_noise(key: Key, root: Root) -> Theta:
    """Standard normal noise for a root, a key of its own for each array."""
    shapes = root.noise_shapes()
    keys = jax.random.split(key, len(shapes))
    return {name: random.normal(own, shape) for own, (name, shape) in zip(keys, shapes.items(), strict=True)}


def entropy(root: Root, num_parameters: int) -> Array:
    """H[N(mean, Σ)] = ½ log det Σ + n/2 log(2πe)."""
    return root.log_det() + 0.5 * num_parameters * math.log(2 * math.pi * math.e)


def log_density(root: Root, offset: Theta, num_parameters: int) -> Array:
    """log N(mean + offset; mean, Σ)."""
    return -0.5 * root.squared_length(offset) - root.log_det() - 0.5 * num_parameters * math.log(2 * math.pi)


def names_of(root: Root) -> tuple[str, ...]:
    """The arrays of theta that a root covers."""
    leaves, structure = jax.tree.flatten(root)
    return _names(structure, tuple(jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves))


@cache
def _names(structure: Any, leaves: tuple[jax.ShapeDtypeStruct, ...]) -> tuple[str, ...]:
    """Found by tracing once: predictions ask each time."""
    return tuple(jax.eval_shape(lambda leaves: jax.tree.unflatten(structure, leaves).variance(), leaves))


def dense(root: Root, template: Template) -> np.ndarray:
    """Σ as a matrix over the entries of theta in order: for tests, and for small models."""
    shapes = root.noise_shapes()
    sizes = [math.prod(shape) for shape in shapes.values()]
    parts = np.split(np.eye(sum(sizes), dtype=np.float32), np.cumsum(sizes)[:-1], axis=1)
    noise = {name: part.reshape(-1, *shape) for part, (name, shape) in zip(parts, shapes.items(), strict=True)}
    offset = jax.jit(jax.vmap(root.offset))(noise)
    columns = np.concatenate(
        [np.reshape(offset[leaf], (sum(sizes), -1)) for leaf in template if leaf in offset], axis=1
    )
    return columns.T @ columns


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Diagonal:
    """√Σ = diag(scale): n numbers, no correlations."""

    scale: Theta

    def noise_shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: leaf.shape for name, leaf in self.scale.items()}

    def offset(self, noise: Theta) -> Theta:
        return {name: scale * noise[name] for name, scale in self.scale.items()}

    def variance(self) -> Theta:
        return {name: scale**2 for name, scale in self.scale.items()}

    def log_det(self) -> Array:
        return sum((jnp.sum(jnp.log(scale)) for scale in self.scale.values()), start=jnp.zeros(()))

    def squared_length(self, offset: Theta) -> Array:
        return sum((jnp.sum((offset[name] / scale) ** 2) for name, scale in self.scale.items()), start=jnp.zeros(()))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LowRank:
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

    def noise_shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: leaf.shape for name, leaf in self.scale.items()} | {"columns": (self.rank,)}

    def offset(self, noise: Theta) -> Theta:
        return {
            name: scale * (noise[name] + self.factor[name] @ noise["columns"]) for name, scale in self.scale.items()
        }

    def variance(self) -> Theta:
        return {name: scale**2 * (1 + jnp.sum(self.factor[name] ** 2, axis=-1)) for name, scale in self.scale.items()}

    def log_det(self) -> Array:
        """½ log det Σ = log det D + ½ log det(I + FᵀF)."""
        root = jnp.linalg.cholesky(self._capacity())
        return Diagonal(self.scale).log_det() + jnp.sum(jnp.log(jnp.diagonal(root)))

    def squared_length(self, offset: Theta) -> Array:
        """Woodbury: |u|² − |C⁻½ Fᵀu|², u = D⁻¹ offset, C = I + FᵀF."""
        inner = sum(self._columns(name).T @ (offset[name] / self.scale[name]).ravel() for name in self.scale)
        solved = jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(self._capacity()), True), inner)
        return Diagonal(self.scale).squared_length(offset) - jnp.sum(inner * solved)

    def _columns(self, name: str) -> Array:
        return self.factor[name].reshape(-1, self.rank)

    def _capacity(self) -> Array:
        return jnp.eye(self.rank) + _gram(self.factor, self.rank)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Blocks:
    """√Σ of lower-triangular blocks, each over consecutive entries of a group of arrays; one block is a full root.

    Arguments:
        roots: for each group its blocks, (number of blocks, width, width), lower triangular.
        layout: what belongs to which group.
    """

    roots: Theta
    layout: Layout

    def noise_shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: blocks.shape[:2] for name, blocks in self.roots.items()}

    def offset(self, noise: Theta) -> Theta:
        products = {name: jnp.einsum("bij,bj->bi", blocks, noise[name]) for name, blocks in self.roots.items()}
        return self.layout.scatter(products)

    def variance(self) -> Theta:
        return self.layout.scatter({name: jnp.sum(blocks**2, axis=-1) for name, blocks in self.roots.items()})

    def log_det(self) -> Array:
        diagonals = [jnp.diagonal(blocks, axis1=1, axis2=2) for blocks in self.roots.values()]
        # Entries that only fill up the last block have scale one and add nothing.
        return sum((jnp.sum(jnp.log(diagonal)) for diagonal in diagonals), start=jnp.zeros(()))

    def squared_length(self, offset: Theta) -> Array:
        parts = self.layout.gather(offset, {name: blocks.shape[:2] for name, blocks in self.roots.items()})
        whitened = [
            jax.scipy.linalg.solve_triangular(self.roots[name], part[..., None], lower=True)
            for name, part in parts.items()
        ]
        return sum((jnp.sum(part**2) for part in whitened), start=jnp.zeros(()))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Kronecker:
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

    def noise_shapes(self) -> dict[str, tuple[int, ...]]:
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

    def log_det(self) -> Array:
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


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Shrunk:
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
        rank = next(iter(factor.values())).shape[-1]
        values, basis = jnp.linalg.eigh(_gram(factor, rank))
        values = jnp.maximum(values, 0.0)
        # (1 − 1/√(1 + s))/s, without the cancellation at small s.
        root = jnp.sqrt(1 + values)
        return cls(scale, factor, {"columns": (basis / (root * (1 + root))) @ basis.T})

    @property
    def rank(self) -> int:
        return self.shrink["columns"].shape[0]

    def noise_shapes(self) -> dict[str, tuple[int, ...]]:
        return Diagonal(self.scale).noise_shapes()

    def offset(self, noise: Theta) -> Theta:
        along = self.shrink["columns"] @ self._along(noise)
        return {name: scale * (noise[name] - self.factor[name] @ along) for name, scale in self.scale.items()}

    def variance(self) -> Theta:
        inverse = jnp.linalg.inv(jnp.eye(self.rank) + _gram(self.factor, self.rank))
        return {
            name: scale**2 * (1 - jnp.einsum("...r,rs,...s->...", self.factor[name], inverse, self.factor[name]))
            for name, scale in self.scale.items()
        }

    def log_det(self) -> Array:
        root = jnp.linalg.cholesky(jnp.eye(self.rank) + _gram(self.factor, self.rank))
        return Diagonal(self.scale).log_det() - jnp.sum(jnp.log(jnp.diagonal(root)))

    def squared_length(self, offset: Theta) -> Array:
        relative = {name: offset[name] / scale for name, scale in self.scale.items()}
        return Diagonal(self.scale).squared_length(offset) + jnp.sum(self._along(relative) ** 2)

    def _along(self, values: Theta) -> Array:
        """Fᵀ values."""
        return sum(
            (self.factor[name].reshape(-1, self.rank).T @ values[name].ravel() for name in self.factor),
            start=jnp.zeros(self.rank),
        )


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Joined:
    """Roots over different arrays of theta, independent of each other."""

    parts: tuple[Any, ...]

    def noise_shapes(self) -> dict[str, tuple[int, ...]]:
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

    def log_det(self) -> Array:
        return sum((part.log_det() for part in self.parts), start=jnp.zeros(()))

    def squared_length(self, offset: Theta) -> Array:
        return sum((part.squared_length(offset) for part in self.parts), start=jnp.zeros(()))


def _gram(factor: Theta, rank: int) -> Array:
    """FᵀF."""
    columns = [leaf.reshape(-1, rank) for leaf in factor.values()]
    return sum((leaf.T @ leaf for leaf in columns), start=jnp.zeros((rank, rank)))
