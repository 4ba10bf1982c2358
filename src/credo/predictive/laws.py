"""The law of each output alone: its distribution function, from a formula or from samples of y."""

import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from credo import random
from credo._precision import working_precision
from credo.predictive.conditional import Conditional, ConditionalOf, each_output, is_discrete, look, sample_of
from credo.typing import Array, Key, Theta

# Samples that stand for a law without a formula: the 2.5 % quantile has the level 2.5 ± 0.25 %.
NUM_SAMPLES = 4000
# The leaf of theta that holds the number of a draw, which seeds its samples.
NUMBER = "draw_number"


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class MixtureOutputs:
    """The law of each output of a mixture: F = Σₖ pₖ Fₖ.

    Arguments:
        probs: of the components, along `axis`.
        parts: their laws, along the same axis.
        axis: counted from the end.
    """

    probs: Array
    parts: Any
    axis: int = field(metadata={"static": True})

    def cdf(self, value: Array) -> Array:
        """P(Y ≤ value) of each output alone."""
        return jnp.sum(self.probs * cdf_of(self.parts, jnp.expand_dims(value, self.axis)), self.axis)


def _mixture_outputs(mixture: dist.MixtureSameFamily) -> MixtureOutputs:
    outputs = tuple(range(-mixture.event_dim, 0))
    probs = jnp.expand_dims(mixture.mixing_distribution.probs, outputs)
    return MixtureOutputs(probs, each_output(mixture.component_distribution), mixture.mixture_dim)


def _student_outputs(student: dist.MultivariateStudentT) -> dist.StudentT:
    scale = jnp.sqrt(jnp.sum(student.scale_tril**2, axis=-1))
    return dist.StudentT(jnp.expand_dims(student.df, -1), student.loc, scale)


each_output.register(dist.MixtureSameFamily, _mixture_outputs)
each_output.register(dist.MultivariateStudentT, _student_outputs)


def cdf_of(law: Any, value: Array) -> Array:
    """P(Y ≤ value), also beyond the bounds of y, where the formulas of NumPyro's distributions do not hold."""
    low, high = _bounds(law)
    value = jnp.floor(value) if is_discrete(law) else value
    inside = value if low is None else jnp.maximum(value, low)
    levels = law.cdf(inside if high is None else jnp.minimum(inside, high))
    levels = levels if low is None else jnp.where(value < low, 0.0, levels)
    return levels if high is None else jnp.where(value >= high, 1.0, levels)


def within(law: Any, value: Array) -> Array:
    """The value, or the bound of y that it lies beyond."""
    return jnp.clip(value, *_bounds(law))


def _bounds(law: Any) -> tuple[Any, Any]:
    """The least and the greatest y, each None where there is none."""
    support = getattr(law, "support", None)
    return getattr(support, "lower_bound", None), getattr(support, "upper_bound", None)


def has_cdf(conditional: Conditional) -> bool:
    """Whether each output has a distribution function."""
    return _answers(each_output(conditional), "cdf", conditional.shape())


def has_icdf(conditional: Conditional) -> bool:
    """Whether each output has a distribution function that is continuous, and an inverse of it."""
    return not is_discrete(conditional) and _answers(each_output(conditional), "icdf", conditional.shape())


def _answers(law: Any, function: str, shape: tuple[int, ...]) -> bool:
    """NumPyro declares every function for every distribution: which there are is found by asking, without computing."""
    if not hasattr(law, function):
        return False
    try:
        jax.eval_shape(getattr(law, function), jax.ShapeDtypeStruct(shape, working_precision()))
    except (NotImplementedError, ImportError):  # some inverses need a library that is not among credo's
        return False
    return True


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Empirical:
    """Samples of y as its law: the share of them up to a value is F.

    Arguments:
        values: (samples, rows, output…).
        is_discrete: whether they are whole numbers.
    """

    values: Array
    is_discrete: bool = field(metadata={"static": True})

    def shape(self) -> tuple[int, ...]:
        """Of y, (rows, output…)."""
        return self.values.shape[1:]

    @property
    def mean(self) -> Array:
        """The average of the samples."""
        return jnp.mean(self.values, axis=0)

    @property
    def variance(self) -> Array:
        """The spread of the samples."""
        return jnp.var(self.values, axis=0)

    def cdf(self, value: Array) -> Array:
        """The share of samples up to the value."""
        return jnp.mean(self.values <= value, axis=0)


@dataclass(frozen=True)
class Sampled:
    """p(y | x, theta) by samples, the same ones at every call: seeded by the number of the draw and by the row."""

    conditional_of: ConditionalOf
    num: int

    def __call__(self, theta: Theta, x: Array) -> Any:
        own = {name: leaf for name, leaf in theta.items() if name != NUMBER}
        keys = jax.random.split(jax.random.fold_in(random.key(0), theta[NUMBER]), self.num)
        values = jax.lax.map(lambda key: sample_rows(self.conditional_of, own, x, key), keys)
        return Empirical(values, is_discrete(self.conditional_of(own, x)))


def sample_rows(conditional_of: ConditionalOf, theta: Theta, x: Array, key: Key, numbers: Array | None = None) -> Array:
    """One y for each row, (rows, output…), with noise that does not depend on what else is asked.

    Arguments:
        numbers: tell equal rows apart; without them these have equal noise.
    """

    def of_row(row: Array, number: Array) -> Array:
        own = jax.random.fold_in(jax.random.fold_in(key, random.content(row)), number)
        return sample_of(conditional_of(theta, row[None]), own)[0]

    return jax.vmap(of_row)(x, jnp.zeros(x.shape[0], jnp.uint32) if numbers is None else numbers)


def occurrences(rows: np.ndarray) -> np.ndarray:
    """How many equal rows come before each.

    >>> print(occurrences(np.array([[1.0], [2.0], [1.0]])))
    [0 0 1]
    """
    seen: Counter[int] = Counter()
    numbers = np.empty(len(rows), np.uint32)
    for index, row in enumerate(rows):
        content = hash(row.tobytes())
        numbers[index] = seen[content]
        seen[content] += 1
    return numbers


def by_samples(
    conditional_of: ConditionalOf, draws: Theta, weights: np.ndarray, name: str
) -> tuple[ConditionalOf, Theta]:
    """A prediction's laws from samples: p(y | x, theta) and its draws; a warning says so, and how good they are.

    The share of samples below a value has the variance Σᵢ wᵢ² Fᵢ(1 − Fᵢ)/num: at most ¼ Σᵢ wᵢ²/num.

    Arguments:
        name: of the law that has no distribution function.
    """
    concentration = float(np.sum(weights**2))
    num = max(1, round(NUM_SAMPLES * concentration))
    warnings.warn(
        f"quantiles are from samples, since {name} has no distribution function; their levels are off by up to "
        f"±{np.sqrt(concentration / num) / 2:.1g} (one standard error)",
        stacklevel=5,
    )
    return Sampled(conditional_of, num), {**draws, NUMBER: np.arange(len(weights), dtype=np.uint32)}


def name_without_cdf(conditional_of: ConditionalOf, draws: Theta, x: np.ndarray) -> str | None:
    """The name of the law of y, where it has no distribution function; None where it has one."""
    return look(conditional_of, draws, x, _name_without_cdf)


def _name_without_cdf(conditional: Conditional) -> str | None:
    return None if has_cdf(conditional) else type(each_output(conditional)).__name__
