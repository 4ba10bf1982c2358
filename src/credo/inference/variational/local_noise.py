"""Noise of its own for every example, where the weights are independent Gaussians N(mean, scale²).

One draw of the weights for a whole minibatch correlates the errors of all its examples, and a larger batch hardly
lessens the variance of the gradient. Two remedies leave the law of each example's output as it is:

    local     out = x @ mean + √(x² @ scale²) ∘ ε           ε ~ N(0, 1) for each number of the output
    flipout   out = x @ mean + ((x ∘ s) @ ΔW) ∘ r           ΔW = W − mean, one draw W; signs s, r for each example

The first is the local reparametrisation of Kingma et al. (2015): the sum of independent Gaussians is Gaussian. The
second is of Wen et al. (2018): a symmetric ΔW has the law of ΔW ∘ s rᵀ. Where one example meets the same weights more
than once (at the places of a convolution, at the steps of a sequence) noise independent per place would be another
model: there both kinds are flipout, with signs per example and channel that all places share.

The network is not asked to cooperate: `function` is traced to a jaxpr, and the matrix products and convolutions with
a leaf of theta are replaced in it. So it works for flax, equinox and plain functions alike.

**The axis of the examples** is the first axis of the data that the product neither sums over nor shares with the
weights; axis 0 of x stays there in flax, and under the `vmap` of equinox. Products that see different numbers of rows
(a network that folds time into the rows) are refused.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, JaxprEqn

from credo import random
from credo._jaxpr import CALLS, REINDEXING, as_it_is, body, trace, walk
from credo.typing import Array, Key, Theta, Tree

Kind = Literal["local", "flipout"]

# Kernels may also be turned round, and broadcasts that add axes of 1 hand them on too.
_REINDEXING = REINDEXING | {"rev"}
_PRODUCTS = {"dot_general", "conv_general_dilated"}
_INSTEAD = "take estimator='weights'"


def kernels(function: Callable[[Theta], Tree], theta: Theta) -> frozenset[str]:
    """The leaves of theta that are the weights of one dense product or convolution each.

    Leaves that are vectors, or are only added to something larger (biases), are none, and share one draw. Any other
    use of a leaf (an embedding, tied weights, a loop over layers) is a ValueError that names it.

    Arguments:
        function: of theta alone; what it does not return (a prior next to the likelihood) is not looked at.
        theta: arrays, or `jax.ShapeDtypeStruct`s, by name.

    >>> x = jnp.ones((8, 3))
    >>> kernels(lambda theta: x @ theta["w"] + theta["b"], {"w": jnp.ones((3, 2)), "b": jnp.ones(2)})
    frozenset({'w'})
    """
    return _find(trace(function, theta)[0], theta)


def apply(function: Callable[[Theta], Tree], theta: Theta, mean: Theta, scale: Theta, key: Key, *, kind: Kind) -> Tree:
    """function(theta), but every example has its own noise in the weights that `kernels` finds.

        local     x @ mean + √(x² @ scale²) ∘ ε         flipout     x @ mean + ((x ∘ s) @ (theta − mean)) ∘ r

    Gradients reach `mean` and `scale` by differentiation; for flipout `scale` counts as far as theta is made from it.

    Arguments:
        function: of theta alone, over a batch: its log likelihood, or any tree of arrays.
        theta: one draw by name. Leaves that are no kernels take it as it is; kernels take theta − mean for flipout
            (convolutions and sequences: always), and for the dense products of "local" it is not looked at.
        mean, scale: of the independent Gaussians, with the names and shapes of theta.
        key: of the noise per example.
        kind: "local" or "flipout".

    >>> x, w, key = jnp.ones((8, 3)), {"w": jnp.ones((3, 2))}, jax.random.key(0)
    >>> apply(lambda theta: x @ theta["w"], w, w, {"w": 0.1 * w["w"]}, key, kind="local").shape
    (8, 2)
    """
    if kind not in get_args(Kind):
        raise ValueError(f"kind must be one of {get_args(Kind)}, got {kind!r}")
    if not theta.keys() == mean.keys() == scale.keys():
        raise ValueError(f"theta, mean and scale differ in names: {sorted(theta)}, {sorted(mean)}, {sorted(scale)}")
    jaxpr, structure = trace(function, theta)
    found = _find(jaxpr, theta)
    inputs = [
        _Kernel(name, mean[name], scale[name], theta[name] - mean[name]) if name in found else theta[name]
        for name in sorted(theta)
    ]
    return jax.tree.unflatten(structure, _Walk(kind, key).run(jaxpr, inputs))


class _Kernel(NamedTuple):
    """Stochastic weights on their way from theta to a product: reindexed, never computed with."""

    name: str
    mean: Array
    scale: Array
    delta: Array

    def map(self, reindex: Callable[[Array], Array]) -> "_Kernel":
        return _Kernel(self.name, *(reindex(part) for part in self[1:]))


@dataclass
class _Walk:
    """Evaluates a jaxpr, with noise in the products with kernels; notes how each kernel is used."""

    kind: Kind
    key: Key
    uses: dict[str, list[str]] = field(default_factory=dict)
    num_examples: dict[str, int] = field(default_factory=dict)

    def run(self, closed: Any, inputs: Iterable[Any]) -> list[Any]:
        return walk(closed, inputs, self.equation)

    def equation(self, eqn: JaxprEqn, inputs: list[Any]) -> list[Any]:
        entering = [value for value in inputs if isinstance(value, _Kernel)]
        if entering and eqn.primitive.name in CALLS:
            return self.run(body(eqn), inputs)
        if len(entering) == 1:
            if _is_reindexing(eqn, entering[0]):
                return [entering[0].map(lambda part: eqn.primitive.bind(part, **eqn.params))]
            sides = _data_and_kernel(eqn, inputs)
            if sides is not None:
                return [self.product(eqn, *sides)]
        plain = [value.mean if isinstance(value, _Kernel) else value for value in inputs]
        outputs = as_it_is(eqn, plain)
        for kernel in entering:
            is_bias = eqn.primitive.name == "add" and outputs[0].size > kernel.mean.size
            self.note(kernel, "a bias" if is_bias else f"`{eqn.primitive.name}`")
        return outputs

    def note(self, kernel: _Kernel, use: str) -> None:
        self.uses.setdefault(kernel.name, []).append(use)

    def product(self, eqn: JaxprEqn, data: Array, kernel: _Kernel, side: int) -> Array:
        """x @ mean plus noise per example; `side` is the position of the data among the operands."""
        self.note(kernel, "a product")
        # Each product has a key of its own, by its place in the program.
        key = jax.random.fold_in(self.key, len(self.num_examples))

        def times(data: Array, weights: Array) -> Array:
            return eqn.primitive.bind(*((data, weights) if side == 0 else (weights, data)), **eqn.params)

        center = times(data, kernel.mean)
        layout = _layout(eqn, side, data.shape, center.shape)
        self.num_examples[kernel.name] = layout.num_examples
        if self.kind == "local" and layout.meets_once:
            variance = times(data * data, kernel.scale * kernel.scale)
            # At variance 0 the slope of a root is infinite, and 0 · ∞ is no gradient. The smallest normal number
            # keeps it finite (4.6e18 in float32) and lies 19 digits below any standard deviation that matters.
            deviation = jnp.sqrt(variance + jnp.finfo(variance.dtype).tiny)
            return center + deviation * random.normal(key, center.shape)
        keys = jax.random.split(key)
        flipped = data * jax.random.rademacher(keys[0], layout.input_signs, data.dtype)
        signs = jax.random.rademacher(keys[1], layout.output_signs, center.dtype)
        return center + times(flipped, kernel.delta) * signs


class _Layout(NamedTuple):
    """Shapes of the signs, with 1 for the axes along which an example meets the same weights again."""

    num_examples: int
    meets_once: bool
    input_signs: tuple[int, ...]
    output_signs: tuple[int, ...]


def _layout(eqn: JaxprEqn, side: int, data: tuple[int, ...], output: tuple[int, ...]) -> _Layout:
    numbers = eqn.params["dimension_numbers"]
    if eqn.primitive.name == "conv_general_dilated":
        # (rows, channels, places…). With groups of channels each weight still has one s and one r of its own.
        row, _, *places = numbers.lhs_spec
        return _Layout(data[row], False, _ones(data, places), _ones(output, numbers.out_spec[2:]))
    contracted, batch = numbers
    free = [axis for axis in range(len(data)) if axis not in (*contracted[side], *batch[side])]
    # The output has the batch axes, then the free ones of the left operand, then those of the right.
    first = len(batch[side]) if side == 0 else len(output) - len(free)
    again = range(first + 1, first + len(free))
    return _Layout(data[free[0]] if free else 1, len(free) <= 1, _ones(data, free[1:]), _ones(output, again))


def _ones(shape: tuple[int, ...], axes: Iterable[int]) -> tuple[int, ...]:
    return tuple(1 if axis in axes else size for axis, size in enumerate(shape))


def _is_reindexing(eqn: JaxprEqn, kernel: _Kernel) -> bool:
    if eqn.primitive.name == "broadcast_in_dim":
        return math.prod(eqn.params["shape"]) == kernel.mean.size
    return eqn.primitive.name in _REINDEXING


def _data_and_kernel(eqn: JaxprEqn, inputs: list[Any]) -> tuple[Array, _Kernel, int] | None:
    """The two operands of a product and the side of the data, if this is a product that takes noise."""
    if eqn.primitive.name not in _PRODUCTS:
        return None
    side = 1 if isinstance(inputs[0], _Kernel) else 0
    # Weights on the left of a convolution slide over the data, and batch groups have weights for each group of rows.
    is_convolution = eqn.primitive.name == "conv_general_dilated"
    if is_convolution and (side == 1 or eqn.params["batch_group_count"] > 1):
        return None
    return inputs[side], inputs[1 - side], side


def _find(jaxpr: ClosedJaxpr, theta: Theta) -> frozenset[str]:
    """Walk over shapes alone, and see what becomes of each leaf."""
    walk = _Walk("flipout", random.key(0))

    def look(theta: Theta) -> None:
        for output in walk.run(jaxpr, [_Kernel(name, leaf, leaf, leaf) for name, leaf in sorted(theta.items())]):
            if isinstance(output, _Kernel):
                walk.note(output, "`return`")

    jax.eval_shape(look, theta)
    _check_uses(walk.uses, theta)
    found = {name for name, uses in walk.uses.items() if uses == ["a product"]}
    # Noise for a single row is one draw for whoever uses it: always right.
    rows = {walk.num_examples[name]: name for name in sorted(found) if walk.num_examples[name] > 1}
    if len(rows) > 1:
        (one, first), (other, second) = list(rows.items())[:2]
        raise ValueError(
            f"the weights {first!r} meet {one} rows and {second!r} meet {other}: which rows are of one example is not "
            f"to be seen; keep the examples as the first axis all the way, or {_INSTEAD}"
        )
    return frozenset(found)


def _check_uses(all_uses: dict[str, list[str]], theta: Theta) -> None:
    for name, uses in all_uses.items():
        if theta[name].ndim < 2 or uses == ["a product"] or set(uses) == {"a bias"}:
            continue
        odd = [use for use in uses if use.startswith("`")]
        why = "flipout and local reparametrisation know dense layers and convolutions"
        if not odd:
            why = "each would draw noise of its own, but they are the same weights"
        raise ValueError(f"the weights {name!r} are used by {odd[0] if odd else ' and '.join(uses)}: {why}; {_INSTEAD}")
