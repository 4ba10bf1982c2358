"""Sums over the rows of the data that make a curvature, block of rows by block of rows.

All of them are Σ JᵀJ, or a part of it, of one function of theta and a row: `Problem.informed`. See `curvature`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from credo._mesh import num_shares, of_shares, slice_of_each
from credo._precision import working_precision
from credo.covariance.layers import Jacobian, Layer, jacobians, layers_of, row_jacobian
from credo.covariance.layout import Layout, single_layers
from credo.data import is_observed
from credo.models.outputs import NormalOutputs, Outputs, outputs_of
from credo.models.program import Model
from credo.predictive.censored import log_prob_of
from credo.predictive.missing import observed_log_prob
from credo.typing import Array, Batch, Theta

CurvatureKind = Literal["ggn", "fisher", "hessian"]

# Numbers that one block of rows may hold at once: activations and gradients of 8 MB stay near the cache.
NUMBERS_PER_BLOCK = 2**21
MAX_ROWS_PER_BLOCK = 1024


@partial(jax.tree_util.register_dataclass, data_fields=["model"], meta_fields=["names", "kind", "outputs", "layers"])
@dataclass(frozen=True)
class Problem:
    """Whose curvature is asked for: static but for what the model holds as arrays, so that compiled code is shared.

    Arguments:
        names: the arrays of theta that are uncertain; the others are constants.
        outputs: of the model, for "ggn".
        layers: of the network, as far as they are made of `names`.
    """

    model: Model
    names: tuple[str, ...]
    kind: CurvatureKind
    outputs: Outputs | None
    layers: tuple[Layer, ...]

    @classmethod
    def of(cls, model: Model, theta: Theta, names: tuple[str, ...], kind: CurvatureKind) -> "Problem":
        # The curvature is that of what was observed, whatever is predicted.
        model = model.of_likelihood()
        if model.views is not None and not model.labels:
            raise ValueError(
                "Laplace: the likelihood of an augmented model of numbers is a mixture, whose curvature credo does not "
                "know; classes can be had, or another method, such as credo.SWAG() or credo.BayesByBackprop()"
            )
        if kind == "ggn" and model.rows is not None and model.rows.censored:
            raise ValueError(
                "Laplace: some targets are censored, and tell less than the Fisher information of y; use "
                "curvature='fisher', from the gradients of the data, with prediction='draws'"
            )
        outputs = outputs_of(model, theta) if kind == "ggn" else None
        found = cls(model, names, kind, outputs, ())
        example = model.example()
        return replace(found, layers=layers_of(found.function(theta, example.x, example.y), some_of(theta, names)))

    @property
    def rest(self) -> tuple[str, ...]:
        """The arrays that belong to no layer."""
        taken = {name for layer in self.layers for name in layer.names}
        return tuple(name for name in self.names if name not in taken)

    def informed(self, theta: Theta, some: Theta, x: Array, y: Array) -> Array:
        """The function of `some` arrays and rows whose squared gradients, at those of theta, are H: (rows, outputs).

        The units are taken at theta, apart from `some`: gradients of H in what else theta holds go through them.
        """
        distribution, targets = self._given({**theta, **some}, x, y)
        if self.outputs is None:
            return self._log_prob(distribution, targets)[:, None]
        at = self.outputs.read(self._given(theta, x, y)[0])
        informed = self.outputs.informed(self.outputs.read(distribution), at)
        return jnp.where(self._observed(targets, informed.shape[1]), informed, 0.0) if self.has_gaps else informed

    def _given(self, theta: Theta, x: Array, y: Array) -> tuple[Any, Array]:
        """p(y | x, theta) of rows of a batch, and y as it takes it."""
        law = self.model.predictive(theta, x)
        return (law, y) if self.model.rows is None else self.model.rows.given(law, y)

    @property
    def has_gaps(self) -> bool:
        """Whether rows miss some of their targets."""
        return self.model.rows is not None and self.model.rows.gaps

    def _observed(self, y: Array, num: int) -> Array:
        """Which outputs are of targets that are there: the others are not informed by the row."""
        if not isinstance(self.outputs, NormalOutputs):
            raise ValueError(
                "Laplace: some targets of a row are missing, and outputs of this likelihood cannot be told apart; use "
                "curvature='hessian' with structure='full', or 'fisher', independent noise, or another method"
            )
        return jnp.tile(is_observed(y), (1, num // y.shape[1]))

    def _log_prob(self, distribution: Any, y: Array) -> Array:
        return observed_log_prob(distribution, y) if self.has_gaps else log_prob_of(distribution, y)

    def log_likelihood(self, theta: Theta, x: Array, y: Array, seen: Array) -> Array:
        """Σ log p(y | x, theta) over the rows that count."""
        return jnp.sum(seen**2 * self._log_prob(*self._given(theta, x, y)))

    def function(self, theta: Theta, x: Array, y: Array, seen: Array | None = None) -> Callable[[Theta], Array]:
        """`informed` as a function of some arrays alone, times what the rows count in a sum of squares."""
        counts = jnp.ones(x.shape[0]) if seen is None else seen
        return lambda some: counts[:, None] * self.informed(theta, some, x, y)


def _over_blocks(add: Callable[..., Any], start: Any, data: Batch, size: int) -> Any:
    """add(sum, x, y, seen) over blocks of rows of one size; `seen` is one for rows that count, zero for others.

    A row that was seen several times has the root of that number: sums are of squares. The last block begins early
    enough to be a whole one, and its rows that were in the one before count nothing. Where several devices have a share
    of the rows each, a block has rows of every share.
    """
    shares = num_shares(data)
    num = data.x.shape[0] // shares
    size, arrays = min(size, num), [data.x, data.y, *([] if data.counts is None else [data.counts])]

    def body(index: Array, total: Any) -> Any:
        first = jnp.minimum(index * size, num - size)
        x, y, *counts = (slice_of_each(array, first, size, shares) for array in arrays)
        rows = jnp.tile(first + jnp.arange(size), shares)
        seen = ((rows >= index * size) & (rows < data.num_rows)).astype(working_precision())
        return add(total, x, y, seen * jnp.sqrt(counts[0]) if counts else seen)

    return jax.lax.fori_loop(0, -(-num // size), body, start)


def _rows_per_block(numbers_per_row: int) -> int:
    return max(1, min(MAX_ROWS_PER_BLOCK, NUMBERS_PER_BLOCK // max(numbers_per_row, 1)))


def _num_outputs(problem: Problem, theta: Theta) -> int:
    example = problem.model.example()
    return jax.eval_shape(problem.function(theta, example.x, example.y), theta).shape[1]


def _size(problem: Problem, names: tuple[str, ...]) -> int:
    return sum(math.prod(problem.model.template[name].shape) for name in names)


def _numbers_in_layers(problem: Problem, theta: Theta, *, whole: bool) -> int:
    """What the Jacobians of all layers hold per row; `whole` for those that are written out."""
    example = problem.model.example()
    some = some_of(theta, problem.names)
    function = problem.function(theta, example.x, example.y)
    shapes = jax.eval_shape(lambda some: jacobians(function, some, problem.layers)[1], some)
    total = _num_outputs(problem, theta) * _size(problem, problem.rest)
    for layer in problem.layers:
        inputs, gradients = shapes[layer.kernel]
        total += (inputs.size + gradients.size) // example.x.shape[0]
        if whole and not layer.meets_once:
            total += gradients.shape[0] * inputs.shape[-1] * gradients.shape[-1]
    return total


def _layer_jacobians(problem: Problem, theta: Theta, x: Array, y: Array, seen: Array) -> Any:
    """The factors of each layer's Jacobian, those of rows that do not count at zero."""
    function = problem.function(theta, x, y, seen)
    return jacobians(function, some_of(theta, problem.names), problem.layers)[1] if problem.layers else {}


def _row_jacobian(problem: Problem, theta: Theta, names: tuple[str, ...], x: Array, y: Array, seen: Array) -> Any:
    """∂w/∂theta written out as matrices, (rows · outputs, size), by name."""
    if not names:
        return {}
    some = some_of(theta, names)
    found = row_jacobian(lambda some, x, y: problem.informed(theta, some, x, y), some, x, y)
    return {
        name: (leaf.reshape(*leaf.shape[:2], -1) * seen[:, None, None]).reshape(-1, math.prod(leaf.shape[2:]))
        for name, leaf in found.items()
    }


@of_shares
@jax.jit
def diagonal(problem: Problem, theta: Theta, data: Batch) -> Theta:
    """Σ J²: for a layer that a row meets once, (a²)ᵀ Σ_k g_k²."""

    def add(total: Theta, x: Array, y: Array, seen: Array) -> Theta:
        found = _layer_jacobians(problem, theta, x, y, seen)
        squares: Theta = {}
        for layer in problem.layers:
            jacobian = found[layer.kernel]
            if layer.meets_once:
                matrix = jacobian.inputs[:, 0].T ** 2 @ jnp.sum(jacobian.gradients[:, :, 0] ** 2, axis=0)
            else:
                matrix = jnp.sum(jacobian.whole() ** 2, axis=(0, 1))
            squares |= layer.arrays(matrix)
        rest = _row_jacobian(problem, theta, problem.rest, x, y, seen)
        squares |= {name: jnp.sum(leaf**2, axis=0).reshape(theta[name].shape) for name, leaf in rest.items()}
        return {name: total[name] + squares[name] for name in total}

    start = {name: jnp.zeros(jnp.shape(theta[name])) for name in problem.names}
    return _over_blocks(add, start, data, _rows_per_block(_numbers_in_layers(problem, theta, whole=True)))


@of_shares
@jax.jit
def kronecker(problem: Problem, theta: Theta, data: Batch) -> tuple[dict[str, tuple[Array, Array]], Theta]:
    """For each layer A = Σ a aᵀ / (N · places) and G = Σ g gᵀ, over rows, places and outputs; blocks of the rest."""
    template = problem.model.template

    def add(total: Any, x: Array, y: Array, seen: Array) -> Any:
        pairs, blocks = total
        found = _layer_jacobians(problem, theta, x, y, seen)
        moved = {}
        for name, (a, g) in pairs.items():
            inputs, gradients = found[name]
            counted = (inputs * seen[:, None, None]).reshape(-1, inputs.shape[-1])
            gradients = gradients.reshape(-1, gradients.shape[-1])
            share = 1 / (data.num_seen * inputs.shape[1])
            moved[name] = a + share * counted.T @ counted, g + gradients.T @ gradients
        rest = _row_jacobian(problem, theta, problem.rest, x, y, seen)
        return moved, {name: block + rest[name].T @ rest[name] for name, block in blocks.items()}

    pairs = {}
    for layer in problem.layers:
        num_in = layer.num_in + (layer.bias is not None)
        pairs[layer.kernel] = jnp.zeros((num_in, num_in)), jnp.zeros((layer.num_out, layer.num_out))
    blocks = {name: jnp.zeros([math.prod(template[name].shape)] * 2) for name in problem.rest}
    rows = _rows_per_block(_numbers_in_layers(problem, theta, whole=False))
    return _over_blocks(add, (pairs, blocks), data, rows)


@of_shares
@partial(jax.jit, static_argnums=3)
def blocks(problem: Problem, theta: Theta, data: Batch, layout: Layout) -> Theta:
    """Σ JᵀJ of each group of arrays; a group that is one layer has it from the factors of its Jacobian."""
    alone = {group: layer for group, layer in single_layers(layout, problem.layers).items() if layer.meets_once}
    written = tuple(name for group, arrays in layout.groups if group not in alone for name, _ in arrays)

    def add(total: Theta, x: Array, y: Array, seen: Array) -> Theta:
        factors = _layer_jacobians(replace(problem, layers=tuple(alone.values())), theta, x, y, seen)
        found = _row_jacobian(problem, theta, written, x, y, seen)
        added = {}
        for group, arrays in layout.groups:
            if group in alone:
                added[group] = _factored_block(alone[group], factors[alone[group].kernel], layout, group)
            else:
                rows = jnp.concatenate([found[name] for name, _ in arrays], axis=1)
                added[group] = rows.T @ rows
        return {group: matrix + added[group] for group, matrix in total.items()}

    start = {group: jnp.zeros((size, size)) for group, size in layout.sizes().items()}
    numbers = 2 * _num_outputs(problem, theta) * _size(problem, written)
    numbers += sum((layer.num_in + 1) * layer.num_out**2 for layer in alone.values())
    return _over_blocks(add, start, data, _rows_per_block(numbers))


def _factored_block(layer: Layer, jacobian: Jacobian, layout: Layout, group: str) -> Array:
    """Σ_n (a aᵀ) ⊗ (Σ_k g gᵀ): K times cheaper than from the Jacobians of K outputs written out."""
    inputs, gradients = jacobian.inputs[:, 0], jacobian.gradients[:, :, 0]
    between = jnp.einsum("kno,knp->nop", gradients, gradients)
    num_in, num_out = inputs.shape[1], between.shape[1]
    left = (inputs[:, :, None, None] * between[:, None]).reshape(len(inputs), -1)
    block = (left.T @ inputs).reshape(num_in, num_out, num_out, num_in)
    matrix = jnp.transpose(block, (0, 1, 3, 2)).reshape(num_in * num_out, -1)
    order = layout.order(group, layer)
    return matrix[order][:, order]


@of_shares
@jax.jit
def log_likelihood(problem: Problem, theta: Theta, data: Batch) -> Array:
    """Σ log p(y | x, theta) over all rows, block by block."""

    def add(total: Array, x: Array, y: Array, seen: Array) -> Array:
        return total + problem.log_likelihood(theta, x, y, seen)

    return _over_blocks(add, jnp.zeros(()), data, MAX_ROWS_PER_BLOCK)


@of_shares
@jax.jit
def gradient(problem: Problem, theta: Theta, data: Batch) -> Theta:
    """Of the log joint density over all rows, in the uncertain arrays."""
    some = some_of(theta, problem.names)
    slope = jax.grad(lambda some: log_likelihood(problem, {**theta, **some}, data))(some)
    prior = jax.grad(lambda some: problem.model.log_prior({**theta, **some}))(some)
    return {name: slope[name] + prior[name] for name in some}


@of_shares
@jax.jit
def hessian(problem: Problem, theta: Theta, data: Batch) -> Array:
    """−∇² of the log likelihood over the flat vector of the uncertain arrays."""
    flat, unravel = flattened(theta, problem.names)

    def add(total: Array, x: Array, y: Array, seen: Array) -> Array:
        def loss(vector: Array) -> Array:
            return -problem.log_likelihood({**theta, **unravel(vector)}, x, y, seen)

        return total + jax.hessian(loss)(flat)

    return _over_blocks(add, jnp.zeros((flat.size, flat.size)), data, _rows_per_block(flat.size))


@of_shares
@jax.jit
def products(problem: Problem, theta: Theta, data: Batch, vectors: Array) -> Array:
    """H v of each row v of `vectors`."""
    flat, unravel = flattened(theta, problem.names)

    def add(total: Array, x: Array, y: Array, seen: Array) -> Array:
        function = problem.function(theta, x, y, seen)

        def informed(vector: Array) -> Array:
            return function(unravel(vector))

        def loss(vector: Array) -> Array:
            return -problem.log_likelihood({**theta, **unravel(vector)}, x, y, seen)

        def product(vector: Array) -> Array:
            if problem.kind == "hessian":
                return jax.jvp(jax.grad(loss), (flat,), (vector,))[1]
            _, along = jax.jvp(informed, (flat,), (vector,))
            return jax.vjp(informed, flat)[1](along)[0]

        return total + jax.lax.map(product, vectors)

    return _over_blocks(add, jnp.zeros_like(vectors), data, MAX_ROWS_PER_BLOCK)


def some_of(theta: Theta, names: Sequence[str]) -> Theta:
    """Those arrays of theta."""
    return {name: jnp.asarray(theta[name]) for name in names}


def flattened(theta: Theta, names: Sequence[str]) -> tuple[Array, Callable[[Array], Theta]]:
    """Those arrays of theta as one vector, in that order, and the way back."""
    some = some_of(theta, names)
    flat, unravel = ravel_pytree(tuple(some.values()))
    return flat, lambda vector: dict(zip(some, unravel(vector), strict=True))
