"""Counts: whole numbers from 0 on, how often something happened.

    rate(x) = base · exp(f_theta(x)),    y ~ Poisson(rate(x))    or    y ~ NegativeBinomial(rate(x), d)

with mean rate and variance rate + d² rate²: d is the relative standard deviation of what makes rows with the same x
differ, beyond chance. McCullagh and Nelder, "Generalized linear models" (1989), chapter 6.
"""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from credo._checks import require_one_of, require_positive
from credo.data import Data, as_whole
from credo.models.laws import dispersed, dispersion, model_of, numbers_of, refuse
from credo.models.program import Model
from credo.typing import Array

Kind = Literal["negative_binomial", "poisson"]
KINDS = ("negative_binomial", "poisson")
# The least dispersion: beyond a size 1/d² of 400 single precision loses more than 1e-4 of log Γ(size), and so of F(y).
# Counts that chance alone tells apart are Poisson's.
LEAST_DISPERSION = 0.05
# Whole numbers are held in 32 bits.
LARGEST = np.iinfo(np.int32).max


def counts(net: Any, kind: Kind = "negative_binomial", *, prior: Any = None, base: float = 1.0) -> Model:
    """A network whose output is the logarithm of a rate, and counts around it.

        theta ~ p(theta),    rate = base · exp(f_theta(x)),    y ~ NegativeBinomial(rate, d),    d ~ HalfNormal(1)

    y holds whole numbers, as integers or as floats; they are never standardised, the inputs may be.

    Arguments:
        net: one output, the log rate; a negative binomial may have a second one, the log of the dispersion d.
        kind: "negative_binomial", with variance rate + d² rate²; "poisson", with variance rate.
        prior: of the weights, as for `credo.models.regression`.
        base: the rate where the network says 0; best the mean of y, so that the prior is about relative changes.

    >>> from credo.networks import MLP
    >>> model = counts(MLP([20], out=1), base=3.5).bind(([1.0, 2.0, 3.0], [0, 4, 2]))
    >>> model.describe().sites[-1].name
    'dispersion'
    """
    require_one_of(KINDS, kind=kind)
    require_positive(base=base)
    return model_of(Counts(kind, float(base)), net, prior)


@dataclass(frozen=True)
class Counts:
    """y ~ Poisson or NegativeBinomial around a rate; see `counts`."""

    name: ClassVar[str] = "counts"
    kind: Kind = "negative_binomial"
    base: float = 1.0

    @property
    def outputs(self) -> dict[int, str]:
        rate = {1: "the log rate"}
        return rate if self.kind == "poisson" else rate | {2: "the log rate and the log dispersion"}

    def suited(self, data: Data) -> Data:
        y = numbers_of(data, self.name)
        refuse(
            y,
            (y < 0) | (y != np.round(y)) & np.isfinite(y) | (y > LARGEST),
            self.name,
            f"whole numbers from 0 to {LARGEST:,}; credo.models.positive is for amounts, regression for any number",
        )
        return data.with_unit(as_whole(data.y))

    def draw(self, num_outputs: int) -> Array | None:
        return dispersion(num_outputs) if self.kind == "negative_binomial" else None

    def answer(self, outputs: Array) -> Array:
        return self.base * jnp.exp(outputs[..., :1])

    def around(self, outputs: Array, drawn: Array | None) -> dist.Distribution:
        if self.kind == "poisson":
            return dist.Poisson(self.answer(outputs)[..., 0])
        log_rate, spread = dispersed(outputs, drawn)
        size = 1 / (LEAST_DISPERSION**2 + spread**2)
        return dist.NegativeBinomialLogits(size, log_rate + np.log(self.base) - jnp.log(size))

    def to_config(self) -> dict[str, Any]:
        return asdict(self)
