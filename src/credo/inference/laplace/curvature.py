"""Curvature of the log likelihood at a point: how fast it falls when theta moves, in five structures.

The curvature is one of

    ggn       Σ J_wᵀ J_w of the outputs in units of information (`models.outputs`): the Fisher information of theta
    fisher    Σ g gᵀ of the gradients g of log p(y | x, theta) at the data: the empirical Fisher matrix
    hessian   −∇² Σ log p(y | x, theta) itself; what is not positive in it counts as nothing

The first two are sums of squares of gradients of *some* function of theta and a row, and all that follows sees only
that function. A curvature together with the precision of the prior, P = diag(precision), makes a covariance root of
(H + P)⁻¹. Each is a pure function of P, so that the evidence can be differentiated in it.

Dense and convolutional layers are never written out for the diagonal and Kronecker forms: see `layers`.

Martens and Grosse, "Optimizing neural networks with Kronecker-factored approximate curvature" (2015); Grosse and
Martens, "A Kronecker-factored approximate Fisher matrix for convolution layers" (2016).
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from credo import random
from credo._precision import working_precision
from credo.covariance import Blocks, Diagonal, Joined, Kronecker, Root, Shrunk
from credo.covariance.layers import Layer
from credo.covariance.layout import Layout
from credo.inference.laplace.factors import Factors
from credo.inference.laplace.nearest_product import nearest_product
from credo.inference.laplace.row_sums import Problem, blocks, diagonal, flattened, hessian, kronecker, products, some_of
from credo.typing import Array, Batch, Theta

Structure = Literal["full", "block", "kronecker", "diagonal", "low_rank"]

# Subspace iteration: columns beyond the rank, and rounds. Halko, Martinsson and Tropp (2011), sections 4.4 and 4.5.
EXTRA_COLUMNS, NUM_ROUNDS = 10, 3
# Of the diagonal of H + P, added where rounding has left it without a root: the noise is small, and H is 10⁷ × P.
SHARES = np.array([0.0, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0])
# An array outside of the layers has a full block of its own in the Kronecker form; beyond this it is too large for one.
MAX_BLOCK = 4096


class Curvature(ABC):
    """H, in a structure."""

    @abstractmethod
    def root(self, precision: Theta) -> Root:
        """√Σ of Σ = (H + diag(precision))⁻¹."""

    @abstractmethod
    def times(self, factor: Array) -> "Curvature":
        """factor · H: what a noise of another size makes of it."""

    def damped_root(self, precision: Theta) -> tuple[Root, Array]:
        """The root also where rounding has left H + diag(precision) without one; and the share of its diagonal that was
        added for it. It has no gradient.
        """
        return self.root(precision), jnp.zeros(())

    @abstractmethod
    def with_factors(self, factors: Factors) -> "Curvature":
        """H + F, or what the structure can hold of it."""

    def plus(self, couplings: Array) -> "Curvature":
        """H + a matrix over all entries: only a full one has room for it."""
        raise TypeError(f"{type(self).__name__} has no room for a full matrix")

    @abstractmethod
    def merged(self, other: Any) -> "Curvature":
        """H + another H of the same structure, or what the structure can hold of it."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BlockCurvature(Curvature):
    """H of full blocks, one for each group of arrays; one group is the full matrix."""

    matrices: Theta
    layout: Layout

    def root(self, precision: Theta) -> Blocks:
        whole = self._plus_diagonal(precision)
        return Blocks({group: _root_of_inverse(matrix)[None] for group, matrix in whole.items()}, self.layout)

    def times(self, factor: Array) -> "BlockCurvature":
        return BlockCurvature({group: factor * matrix for group, matrix in self.matrices.items()}, self.layout)

    def damped_root(self, precision: Theta) -> tuple[Blocks, Array]:
        pairs = {group: _damped_root_of_inverse(matrix) for group, matrix in self._plus_diagonal(precision).items()}
        shares = [share for _, share in pairs.values()]
        root = Blocks({group: found[None] for group, (found, _) in pairs.items()}, self.layout)
        return root, jnp.max(jnp.stack([jnp.zeros(()), *shares]))

    def with_factors(self, factors: Factors) -> "BlockCurvature":
        own = {group: factors.block([name for name, _ in arrays]) for group, arrays in self.layout.groups}
        return BlockCurvature({group: matrix + own[group] for group, matrix in self.matrices.items()}, self.layout)

    def plus(self, couplings: Array) -> "BlockCurvature":
        return BlockCurvature({"all": self.matrices["all"] + couplings}, self.layout)

    def merged(self, other: "BlockCurvature") -> "BlockCurvature":
        both = {group: matrix + other.matrices[group] for group, matrix in self.matrices.items()}
        return BlockCurvature(both, self.layout)

    def _plus_diagonal(self, precision: Theta) -> Theta:
        """H + P of each group."""
        diagonals = self.layout.gather(precision, {group: (len(matrix),) for group, matrix in self.matrices.items()})
        return {group: matrix + jnp.diag(diagonals[group]) for group, matrix in self.matrices.items()}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class DiagonalCurvature(Curvature):
    """H = diag(values)."""

    values: Theta

    def root(self, precision: Theta) -> Diagonal:
        return Diagonal({name: 1 / jnp.sqrt(value + precision[name]) for name, value in self.values.items()})

    def times(self, factor: Array) -> "DiagonalCurvature":
        return DiagonalCurvature({name: factor * value for name, value in self.values.items()})

    def with_factors(self, factors: Factors) -> "DiagonalCurvature":
        return self.merged(DiagonalCurvature(factors.diagonal(tuple(self.values))))

    def merged(self, other: "DiagonalCurvature") -> "DiagonalCurvature":
        return DiagonalCurvature({name: value + other.values[name] for name, value in self.values.items()})


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class KroneckerCurvature(Curvature):
    """H = A ⊗ G for each layer, with A of its inputs and G of its gradients; full blocks for other arrays.

    The precision must be the same for all that leaves an input of a layer: one number for a kernel, or one per row of
    its matrix; the bias has its own. `extra` is what a prior's factors add to it, by layer: of each input, the average
    over what leaves it; with a single output they are in A.
    """

    inputs: Theta
    gradients: Theta
    rest: BlockCurvature
    extra: Theta
    layers: tuple[Layer, ...]

    def root(self, precision: Theta) -> Root:
        return self._root_with(self.rest.root(precision), precision)

    def _root_with(self, rest: Blocks, precision: Theta) -> Root:
        of_inputs = {
            layer.kernel: layer.matrix(precision)[:, 0] + self.extra.get(layer.kernel, 0.0) for layer in self.layers
        }
        scaled = {name: self.inputs[name] / jnp.sqrt(jnp.outer(values, values)) for name, values in of_inputs.items()}
        a = {name: jnp.linalg.eigh(matrix) for name, matrix in scaled.items()}
        g = {name: jnp.linalg.eigh(matrix) for name, matrix in self.gradients.items()}
        root = Kronecker(
            of_inputs,
            {name: pair.eigenvectors for name, pair in a.items()},
            {name: jnp.maximum(pair.eigenvalues, 0.0) for name, pair in a.items()},
            {name: pair.eigenvectors for name, pair in g.items()},
            {name: jnp.maximum(pair.eigenvalues, 0.0) for name, pair in g.items()},
            self.layers,
        )
        return Joined((root, rest)) if self.rest.matrices else root

    def times(self, factor: Array) -> "KroneckerCurvature":
        gradients = {name: factor * matrix for name, matrix in self.gradients.items()}
        return KroneckerCurvature(self.inputs, gradients, self.rest.times(factor), self.extra, self.layers)

    def with_factors(self, factors: Factors) -> "KroneckerCurvature":
        single = [layer for layer in self.layers if layer.num_out == 1]
        others = [layer for layer in self.layers if layer.num_out > 1]
        # With one output G is a number: H + F = (A + F/G) G, as it is. Else the diagonal of F, beside P.
        added = {layer.kernel: _in_rows(factors, layer) / self.gradients[layer.kernel][0, 0] for layer in single}
        inputs = {name: matrix + added.get(name, 0.0) for name, matrix in self.inputs.items()}
        own = factors.diagonal([name for layer in others for name in layer.names]) if others else {}
        shared = {layer.kernel: jnp.mean(layer.matrix(own), axis=1) for layer in others}
        return KroneckerCurvature(inputs, self.gradients, self.rest.with_factors(factors), shared, self.layers)

    def merged(self, other: "KroneckerCurvature") -> "KroneckerCurvature":
        """The product that is nearest to the sum of two."""
        own, others = ((one.inputs, one.gradients) for one in (self, other))
        pairs = {
            name: nearest_product((own[0][name], own[1][name]), (others[0][name], others[1][name]))
            for name in self.inputs
        }
        inputs = {name: pair[0] for name, pair in pairs.items()}
        gradients = {name: pair[1] for name, pair in pairs.items()}
        return KroneckerCurvature(inputs, gradients, self.rest.merged(other.rest), self.extra, self.layers)

    def damped_root(self, precision: Theta) -> tuple[Root, Array]:
        rest, share = self.rest.damped_root(precision)
        return self._root_with(rest, precision), share


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LowRankCurvature(Curvature):
    """H = U diag(values) Uᵀ of r columns: the directions in which the data say most."""

    columns: Theta
    values: Array

    def root(self, precision: Theta) -> Shrunk:
        scale = {name: 1 / jnp.sqrt(precision[name]) for name in self.columns}
        factor = {name: scale[name][..., None] * leaf * jnp.sqrt(self.values) for name, leaf in self.columns.items()}
        return Shrunk.of(scale, factor)

    def times(self, factor: Array) -> "LowRankCurvature":
        return LowRankCurvature(self.columns, factor * self.values)

    def with_factors(self, factors: Factors) -> "LowRankCurvature":
        return self  # its columns are those of H + F

    def merged(self, other: "LowRankCurvature") -> "LowRankCurvature":
        """The directions, as many as the larger has, in which the sum says most."""
        rank = max(len(self.values), len(other.values))
        both = {
            name: jnp.concatenate([leaf * jnp.sqrt(self.values), other.columns[name] * jnp.sqrt(other.values)], axis=-1)
            for name, leaf in self.columns.items()
        }
        gram = sum(jnp.einsum("ar,as->rs", *[leaf.reshape(-1, leaf.shape[-1])] * 2) for leaf in both.values())
        values, basis = jnp.linalg.eigh(gram)
        values, basis = jnp.maximum(values[::-1][:rank], 0.0), basis[:, ::-1][:, :rank]
        # A direction of no length stays none.
        scale = jnp.where(values > 0, jax.lax.rsqrt(jnp.where(values > 0, values, 1.0)), 0.0)
        return LowRankCurvature({name: (leaf @ basis) * scale for name, leaf in both.items()}, values)


def curvature_of(
    problem: Problem, theta: Theta, data: Batch, structure: Structure, *, rank: int = 50, seed: int = 0
) -> Curvature:
    """H at theta, summed over all rows of the data, and of the factors of the prior, if it has any.

    Arguments:
        structure: "full", "block" (per layer), "kronecker", "diagonal" or "low_rank"; of a Hessian, which is no sum of
            squares, "full" or "low_rank".
        rank, seed: of "low_rank".
    """
    found = _of_likelihood(problem, theta, data, structure, rank=rank, seed=seed)
    return found.with_factors(Factors(problem.model, theta)) if problem.model.factors else found


def _of_likelihood(
    problem: Problem, theta: Theta, data: Batch, structure: Structure, *, rank: int, seed: int
) -> Curvature:
    if structure == "low_rank":
        return _low_rank(problem, theta, data, rank, seed)
    if structure == "diagonal":
        return DiagonalCurvature(diagonal(problem, theta, data))
    if structure == "kronecker":
        check_kronecker(problem)
        sums, rest_blocks = kronecker(problem, theta, data)
        rest = BlockCurvature(rest_blocks, Layout.separate({name: theta[name] for name in problem.rest}))
        inputs = {name: pair[0] for name, pair in sums.items()}
        return KroneckerCurvature(inputs, {name: pair[1] for name, pair in sums.items()}, rest, {}, problem.layers)
    some = some_of(theta, problem.names)
    layout = Layout.together(some) if structure == "full" else Layout.by_layer(some)
    if problem.kind == "hessian":
        return BlockCurvature({"all": _positive_part(hessian(problem, theta, data))}, layout)
    return BlockCurvature(blocks(problem, theta, data, layout), layout)


def _in_rows(factors: Factors, layer: Layer) -> Array:
    """F over a layer of one output, in the order of its matrix."""
    layout = Layout.together({name: factors.model.template[name] for name in layer.names})
    order = np.argsort(layout.order("all", layer))
    return factors.block(layer.names)[order][:, order]


def check_kronecker(problem: Problem) -> None:
    """Refuse arrays that neither are a layer's nor small enough for a block of their own."""
    for name in problem.rest:
        shape = problem.model.template[name].shape
        if math.prod(shape) > MAX_BLOCK:
            raise ValueError(
                f"structure='kronecker': the weights {name!r} of shape {shape} are not those of one dense layer or "
                "convolution, and too many for a block of their own; take structure='diagonal' or 'low_rank', or a "
                "subset that leaves them out"
            )


def _low_rank(problem: Problem, theta: Theta, data: Batch, rank: int, seed: int) -> LowRankCurvature:
    """The largest eigenvalues of H and their vectors, by subspace iteration from random columns."""
    flat, unravel = flattened(theta, problem.names)
    rank = min(rank, flat.size)
    width = min(rank + EXTRA_COLUMNS, flat.size)
    columns = random.normal(random.key(seed), (flat.size, width))
    for _ in range(NUM_ROUNDS):
        basis, _ = jnp.linalg.qr(columns)
        columns = products(problem, theta, data, basis.T).T
        if problem.model.factors:
            columns += Factors(problem.model, theta).products(problem.names, basis.T).T
    small = basis.T @ columns
    values, vectors = jnp.linalg.eigh((small + small.T) / 2)
    top = (basis @ vectors)[:, ::-1][:, :rank]
    leaves = [unravel(column) for column in top.T]
    stacked = {name: jnp.stack([leaf[name] for leaf in leaves], axis=-1) for name in leaves[0]}
    return LowRankCurvature(stacked, jnp.maximum(values[::-1][:rank], 0.0))


def _root_of_inverse(precision: Array) -> Array:
    """The lower triangular L with L Lᵀ = precision⁻¹.

    With C Cᵀ the Cholesky factors of the matrix in reverse order, L is C⁻ᵀ in reverse order. Each entry is first
    divided by the scale of its row and column: parameters of very different precision would cost digits.
    """
    scale = 1 / jnp.sqrt(jnp.diagonal(precision))
    even = precision * jnp.outer(scale, scale)
    factor = jnp.linalg.cholesky(even[::-1, ::-1])
    inverse = jax.scipy.linalg.solve_triangular(factor, jnp.eye(len(scale)), lower=True)
    return scale[:, None] * inverse.T[::-1, ::-1]


def _damped_root_of_inverse(precision: Array) -> tuple[Array, Array]:
    """The same with the least of the shares of its diagonal added that gives it a root; and that share."""
    diagonal, shares = jnp.diag(jnp.diagonal(precision)), jnp.asarray(SHARES, working_precision())

    def attempt(index: Array) -> tuple[Array, Array]:
        return index, _root_of_inverse(precision + shares[index] * diagonal)

    def failed(tried: tuple[Array, Array]) -> Array:
        index, root = tried
        return ~jnp.all(jnp.isfinite(root)) & (index < len(SHARES) - 1)

    index, root = jax.lax.while_loop(failed, lambda tried: attempt(tried[0] + 1), attempt(jnp.array(0)))
    return root, shares[index]


def _positive_part(matrix: Array) -> Array:
    """The matrix without its negative eigenvalues: directions in which the likelihood is not at a maximum."""
    values, vectors = np.linalg.eigh(np.asarray(matrix, np.float64))
    return jnp.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T, working_precision())
