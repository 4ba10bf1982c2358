"""Noise of its own for every example, where the weights are independent Gaussians N(mean, scale²).

One draw of the weights for a whole minibatch correlates the errors of all its examples, and a larger batch hardly
lessens the variance of the gradient. Two remedies leave the law of each example's output as it is:

    local     out = x @ mean + √(x² @ scale²) ∘ ε           ε ~ N(0, 1) for each number of the output
    flipout   out = x @ mean + ((x ∘ s) @ ΔW) ∘ r           ΔW = W − mean, one draw W; signs s, r for each example

The first is the local reparametrisation of Kingma et al. (2015): the sum of independent Gaussians is Gaussian. The
second is of Wen et al. (2018): a symmetric ΔW has the law of ΔW ∘ s rᵀ. Where one example meets the same weights more
than once (at the places of a convolution, at the steps of a sequence) noise independent per place would be another
model: there both kinds are flipout, with signs per example and channel that all places share.

The network is not asked to cooperate: `DataFlow` finds the matrix products and convolutions with an array of theta, and
they are computed another way. So it works for flax, equinox and plain functions alike.

**The axis of the examples** is the first axis of the data that the product neither sums over nor shares with the
weights; axis 0 of x stays there in flax, and under the `vmap` of equinox. Products that see different numbers of rows
(a network that folds time into the rows) are refused.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr

from credo import random
from credo._dataflow import DataFlow, Leaf, Product, leaves, plain, trace
from credo.typing import Array, Key, Theta, Tree

LocalEstimator = Literal["local", "flipout"]

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


def apply(
    function: Callable[[Theta], Tree], theta: Theta, mean: Theta, scale: Theta, key: Key, *, kind: LocalEstimator
) -> Tree:
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
    if kind not in get_args(LocalEstimator):
        raise ValueError(f"kind must be one of {get_args(LocalEstimator)}, got {kind!r}")
    if not theta.keys() == mean.keys() == scale.keys():
        raise ValueError(f"theta, mean and scale differ in names: {sorted(theta)}, {sorted(mean)}, {sorted(scale)}")
    jaxpr, structure = trace(function, theta)
    kernels = {name: _Kernel(mean[name], scale[name], theta[name] - mean[name]) for name in sorted(_find(jaxpr, theta))}
    return jax.tree.unflatten(structure, _Noise(kind, key).run(jaxpr, theta | leaves(kernels)))


class _Kernel(NamedTuple):
    """Stochastic weights: all three are reindexed on the way from theta to a product."""

    mean: Array
    scale: Array
    delta: Array


@dataclass
class _Noise(DataFlow):
    """Adds noise per example to the products with kernels."""

    kind: LocalEstimator
    key: Key
    num_products: int = 0

    def product(self, product: Product) -> Array:
        """x @ mean plus noise."""
        data, kernel = plain(product.data), product.weights.value
        # Each product has a key of its own, by its place in the program.
        key = jax.random.fold_in(self.key, self.num_products)
        self.num_products += 1
        center = product.times(data, kernel.mean)
        places = product.free[1:]
        if self.kind == "local" and not places:
            variance = product.times(data * data, kernel.scale * kernel.scale)
            # At variance 0 the slope of a root is infinite, and 0 · ∞ is no gradient. The smallest normal number
            # keeps it finite (4.6e18 in float32) and lies 19 digits below any standard deviation that matters.
            deviation = jnp.sqrt(variance + jnp.finfo(variance.dtype).tiny)
            return center + deviation * random.normal(key, center.shape)
        # The places of an example share their signs. With groups of channels each weight still has one s and one r.
        keys = jax.random.split(key)
        flipped = data * jax.random.rademacher(keys[0], _ones(data.shape, places), data.dtype)
        signs = jax.random.rademacher(keys[1], _ones(center.shape, product.free_after[1:]), center.dtype)
        return center + product.times(flipped, kernel.delta) * signs


def _ones(shape: tuple[int, ...], axes: Iterable[int]) -> tuple[int, ...]:
    return tuple(1 if axis in axes else size for axis, size in enumerate(shape))


@dataclass
class _Uses(DataFlow):
    """Notes how many rows each array of theta meets in a product."""

    num_rows: dict[str, int] = field(default_factory=dict)

    def product(self, product: Product) -> Array | None:
        data, leaf = plain(product.data), product.weights
        is_repeated = leaf.entries.size > math.prod(leaf.shape)
        if is_repeated or isinstance(product.data, Leaf):
            return None
        self.num_rows[leaf.name] = data.shape[product.free[0]] if product.free else 1
        return product.times(data, leaf.value)


def _find(jaxpr: ClosedJaxpr, theta: Theta) -> frozenset[str]:
    """Look at what becomes of each array of theta."""
    flow = _Uses()
    flow.look(jaxpr, theta)
    _check_uses(flow.uses, theta)
    found = {name for name, uses in flow.uses.items() if uses == ["a product"]}
    # Noise for a single row is one draw for whoever uses it: always right.
    rows = {flow.num_rows[name]: name for name in sorted(found) if flow.num_rows[name] > 1}
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
