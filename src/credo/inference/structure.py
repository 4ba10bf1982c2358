"""Covariance roots: how a Gaussian over many parameters is stored, drawn from and measured.

Paper, appendix "Implementing parameter-efficient normal distributions": with ε ~ N(0, I),

    theta = mean + √Σ ε,    √Σ √Σᵀ = Σ

and √Σ has one of three shapes: diagonal, block-diagonal (one block is the full Cholesky root), or [D, L], a diagonal
beside r columns. They are shared by variational inference, Laplace and SWAG. theta stays a tree of named arrays; a
root holds arrays that follow it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol, Self

import jax
import jax.numpy as jnp
import numpy as np

from credo import random
from credo.typing import Array, Key, Theta

Template = Mapping[str, Any]


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


def dense(root: Root, template: Template) -> np.ndarray:
    """Σ as a matrix over the entries of theta in order: for tests, and for small models."""
    shapes = root.noise_shapes()
    columns = []
    for name, shape in shapes.items():
        for index in np.ndindex(*shape):
            noise = {other: jnp.zeros(size) for other, size in shapes.items()}
            noise[name] = noise[name].at[index].set(1.0)
            offset = root.offset(noise)
            columns.append(np.concatenate([np.ravel(offset[leaf]) for leaf in template]))
    matrix = np.stack(columns, axis=1)
    return matrix @ matrix.T


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
        return jnp.eye(self.rank) + sum(self._columns(name).T @ self._columns(name) for name in self.scale)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Blocks:
    """√Σ of lower-triangular blocks, each over consecutive entries of a group of arrays; one block is a full root.

    Arguments:
        roots: for each group its blocks, (number of blocks, width, width), lower triangular.
        layout: what belongs to which group.
    """

    roots: Theta
    layout: "Layout"

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

    def sizes(self) -> dict[str, int]:
        """How many numbers each group holds."""
        return {group: sum(math.prod(shape) for _, shape in arrays) for group, arrays in self.groups}

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


# -- storage -----------------------------------------------------------------------------------------------

ROOTS: dict[str, Any] = {kind.__name__: kind for kind in (Diagonal, LowRank, Blocks)}


def root_config(root: Root) -> dict[str, Any]:
    """What JSON must know of a root, beside its arrays."""
    layout = {"layout": root.layout.groups} if isinstance(root, Blocks) else {}
    return {"kind": type(root).__name__} | layout


def root_arrays(root: Root) -> dict[str, np.ndarray]:
    """The arrays of a root, by field and name."""
    parts = {field.name: getattr(root, field.name) for field in fields(root)}  # type: ignore[arg-type]
    trees = {name: part for name, part in parts.items() if isinstance(part, dict)}
    return {f"{part}/{name}": np.asarray(leaf) for part, tree in trees.items() for name, leaf in tree.items()}


def root_from_arrays(config: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Root:
    """The inverse of `root_config` and `root_arrays`."""
    kind = ROOTS[config["kind"]]
    # A model without theta, all of whose weights are parameters, has empty trees.
    trees: dict[str, Theta] = {field.name: {} for field in fields(kind) if field.name != "layout"}
    for path, leaf in arrays.items():
        part, _, name = path.partition("/")
        trees[part][name] = leaf
    if "layout" not in config:
        return kind(**trees)
    groups = tuple(
        (group, tuple((name, tuple(shape)) for name, shape in members)) for group, members in config["layout"]
    )
    return Blocks(**trees, layout=Layout(groups))
