"""The law of y in rows that are measured more precisely than others, or less: noise of variance σ²/w.

    y = f(x) + σ ε    becomes    y = f(x) + σ/√w ε

for noise with a scale: normal, of one target or of several that are correlated, Student's, and of log y.
"""

from dataclasses import dataclass
from functools import singledispatch
from typing import Any, NoReturn

import jax.numpy as jnp
import numpyro.distributions as dist

from credo.predictive.conditional import Conditional, ConditionalOf
from credo.typing import Array, Theta


def sharpened(law: Any, precisions: Array) -> Any:
    """The law of rows of the precisions w, (rows,), from that of rows of precision one.

    >>> print(sharpened(dist.Normal(jnp.zeros(2), 1.0), jnp.array([1.0, 4.0])).scale)
    [1.  0.5]
    """
    num_axes = len(getattr(law, "batch_shape", (0,)))
    return divided(law, jnp.sqrt(precisions).reshape(-1, *[1] * (num_axes - 1)))


@singledispatch
def divided(law: Any, root: Array) -> Any:
    """The law with a noise that is a root of w smaller, which broadcasts against its rows and outputs."""
    refuse_precisions(f"y is drawn from {type(law).__name__}, whose spread is no noise of its own")


def refuse_precisions(why: str) -> NoReturn:
    """Say what has precisions, and what to use instead."""
    raise ValueError(
        f"precisions: {why}; they are w of normal, Student's or log-normal noise with the variance σ²/w. Of a row that "
        "stands for several, pass how many as counts; else leave the precisions out"
    )


for kind in (dist.Normal, dist.LogNormal):
    divided.register(kind, lambda law, root: type(law)(law.loc, law.scale / root))
divided.register(dist.StudentT, lambda law, root: dist.StudentT(law.df, law.loc, law.scale / root))


@divided.register
def _(law: dist.MultivariateNormal, root: Array) -> Any:
    return dist.MultivariateNormal(law.loc, scale_tril=law.scale_tril / root[..., None, None])


@divided.register
def _(law: dist.Independent, root: Array) -> Any:
    num = law.reinterpreted_batch_ndims
    return divided(law.base_dist, root.reshape(*root.shape, *[1] * num)).to_event(num)


@divided.register
def _(law: dist.ExpandedDistribution, root: Array) -> Any:
    return divided(law.base_dist, root).expand(law.batch_shape)


@dataclass(frozen=True)
class Sharpened:
    """p(y | x, theta) of rows whose precisions stand in a last column, beside x as a row of numbers.

    Arguments:
        row: the shape of x in a row.
    """

    conditional_of: ConditionalOf
    row: tuple[int, ...]

    def __call__(self, theta: Theta, rows: Array) -> Conditional:
        return sharpened(self.conditional_of(theta, rows[:, :-1].reshape(-1, *self.row)), rows[:, -1])
