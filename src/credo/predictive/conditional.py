"""p(y | x, theta): the distribution of y in some rows, given theta, and what a prediction asks of it.

Most often it is a NumPyro distribution. What kinds of distribution answer differently is dispatched on their type, so
that another kind is registered here, or from outside.
"""

from collections.abc import Callable
from functools import lru_cache, singledispatch
from typing import Any, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from credo._precision import working_precision
from credo.typing import Array, Key, Theta

T = TypeVar("T")


class Conditional(Protocol):
    """p(y | x, theta) of each row, the rows independent of each other."""

    def shape(self) -> tuple[int, ...]:
        """Of y, (rows, output…)."""

    @property
    def mean(self) -> Array:
        """E[y | x, theta], (rows, output…)."""

    @property
    def variance(self) -> Array:
        """Of each output alone, in the shape of the mean. Where outputs are correlated, see `covariance_of`."""

    def log_prob(self, value: Array) -> Array:
        """log p(y | x, theta) of each row, (rows,)."""

    def sample(self, key: Key) -> Array:
        """One y for each row."""


class ConditionalOf(Protocol):
    """p(y | x, theta) as a function of theta and the rows x, such as `Model.predictive`."""

    def __call__(self, theta: Theta, x: Array, /) -> Conditional: ...

    def __hash__(self) -> int: ...  # equal ones share compiled code


@singledispatch
def class_probs(conditional: Conditional) -> Array | None:
    """The probabilities of the classes, (rows, classes), two for a binary y; None where y is no class label."""
    return None


for kind in (dist.CategoricalLogits, dist.CategoricalProbs):
    class_probs.register(kind, lambda conditional: conditional.probs)
for kind in (dist.BernoulliLogits, dist.BernoulliProbs):
    class_probs.register(kind, lambda conditional: jnp.stack([1 - conditional.probs, conditional.probs], axis=-1))


@class_probs.register
def _(conditional: dist.ExpandedDistribution) -> Array | None:
    probs = class_probs(conditional.base_dist)
    return None if probs is None else jnp.broadcast_to(probs, (*conditional.batch_shape, probs.shape[-1]))


@singledispatch
def each_output(conditional: Conditional) -> Any:
    """The distribution of each output alone, with its `cdf` and `icdf` if there are any: a tree, to be stacked."""
    return conditional


# What is repeated over rows broadcasts against the values that it is asked about.
for kind in (dist.Independent, dist.ExpandedDistribution):
    each_output.register(kind, lambda conditional: each_output(conditional.base_dist))
for kind in (dist.MultivariateNormal, dist.LowRankMultivariateNormal):
    each_output.register(kind, lambda normal: dist.Normal(normal.mean, jnp.sqrt(normal.variance)))


def is_discrete(conditional: Any) -> bool:
    """Whether y is a whole number."""
    return bool(getattr(conditional, "is_discrete", False))


def output_shape(conditional: Conditional) -> tuple[int, ...]:
    """Of the y of a row."""
    return conditional.shape()[1:]


def sample_of(conditional: Conditional, key: Key) -> Array:
    """One y for each row, with a key of any generator."""
    if is_discrete(conditional) and class_probs(conditional) is None:
        # JAX draws counts with threefry keys only.
        key = jax.random.wrap_key_data(jax.random.bits(key, (2,), jnp.uint32), impl="threefry2x32")
    return conditional.sample(key)


def mean_of(conditional: Conditional) -> Array:
    """E[y | x, theta]; the probabilities of the classes."""
    probs = class_probs(conditional)
    return conditional.mean if probs is None else probs


@singledispatch
def covariance_of(conditional: Any) -> Array:
    """Covariance of y given theta, (rows, outputs, outputs): diagonal, unless it has a `covariance_matrix`."""
    if hasattr(conditional, "covariance_matrix"):
        return jnp.broadcast_to(conditional.covariance_matrix, (*conditional.mean.shape, conditional.mean.shape[-1]))
    variance = as_vector(conditional.variance)
    return variance[..., None] * jnp.eye(variance.shape[-1])


def as_vector(values: Array) -> Array:
    """One output as a vector of one: (rows, outputs)."""
    return values[:, None] if values.ndim == 1 else values


def is_classes(conditional_of: ConditionalOf, draws: Theta, x: np.ndarray) -> bool:
    """Whether y is a class label, found without computing anything."""
    return look(conditional_of, draws, x, _has_class_probs)


def _has_class_probs(conditional: Conditional) -> bool:
    return class_probs(conditional) is not None


def refuse_several_labels(conditional: Any) -> None:
    """Refuse a y of several class labels at once, which has neither a mean nor probabilities."""
    law = getattr(conditional, "parts", conditional)
    is_several = isinstance(law, dist.Independent) and class_probs(law.base_dist) is not None
    if is_several and not hasattr(conditional, "errors"):
        raise ValueError(
            "y holds several labels in each row, which depend on each other through the true one: they have no mean "
            "and no probabilities of their own. Predict the true label, without of='y'"
        )


def is_normal(conditional_of: ConditionalOf, draws: Theta, x: np.ndarray) -> bool:
    """Whether each output is normal, given theta."""
    return look(conditional_of, draws, x, _is_normal)


def _is_normal(conditional: Conditional) -> bool:
    return isinstance(each_output(conditional), dist.Normal)


def look(conditional_of: ConditionalOf, draws: Theta, x: np.ndarray, question: Callable[[Conditional], T]) -> T:
    """What a question about p(y | x, theta) of one draw and one row is answered with; nothing is computed.

    Arguments:
        question: a function of a module: its answer is kept, since a prediction of one row takes less than a look.
    """
    theta = tuple((name, leaf.shape[1:], np.dtype(leaf.dtype)) for name, leaf in draws.items())
    return _looked(question, conditional_of, theta, x.shape[1:], working_precision())


@lru_cache(maxsize=64)
def _looked(
    question: Callable[[Conditional], T],
    conditional_of: ConditionalOf,
    theta: tuple[tuple[str, tuple[int, ...], np.dtype], ...],
    row: tuple[int, ...],
    precision: np.dtype,
) -> T:
    found: list[T] = []

    def ask(theta: Theta, rows: Array) -> Array:
        found.append(question(conditional_of(theta, rows)))
        return jnp.zeros(())

    first = {name: jax.ShapeDtypeStruct(shape, dtype) for name, shape, dtype in theta}
    jax.eval_shape(ask, first, jax.ShapeDtypeStruct((1, *row), precision))
    return found[0]
