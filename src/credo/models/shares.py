"""Shares: numbers between 0 and 1, such as rates, fractions and probabilities.

    mean(x) = sigmoid(f_theta(x)),    y ~ Beta(mean/d², (1 − mean)/d²)

with variance mean (1 − mean) d²/(1 + d²). Ferrari and Cribari-Neto, "Beta regression for modelling rates and
proportions" (2004), with the precision 1/d².
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpyro.distributions as dist

from credo.data import Data
from credo.models.laws import dispersed, dispersion, model_of, numbers_of, refuse
from credo.models.program import Model
from credo.typing import Array

# The least dispersion, an sd of 0.01 around ½: single precision keeps 2e-3 of log Γ(1/d²) = 17,000, and so of F(y).
LEAST_DISPERSION = 0.02
# A mean is no nearer to 0 or 1 than this, so that both parameters of the law are positive numbers.
LEAST_MEAN = 1e-6


def shares(net: Any, *, prior: Any = None) -> Model:
    """A network whose output is the logit of a mean share, and shares around it.

        theta ~ p(theta),    mean = sigmoid(f_theta(x)),    y ~ Beta(mean/d², (1 − mean)/d²),    d ~ HalfNormal(1)

    y lies between 0 and 1, ends excluded, and is never standardised.

    Arguments:
        net: one output, the logit of the mean; a second one is the log of the dispersion d.
        prior: of the weights, as for `credo.models.regression`.

    >>> from credo.networks import MLP
    >>> model = shares(MLP([20], out=1)).bind(([1.0, 2.0, 3.0], [0.1, 0.5, 0.9]))
    >>> model.describe().sites[-1].name
    'dispersion'
    """
    return model_of(Shares(), net, prior)


@dataclass(frozen=True)
class Shares:
    """y ~ Beta around a mean; see `shares`."""

    name: ClassVar[str] = "shares"

    @property
    def outputs(self) -> dict[int, str]:
        return {1: "the logit of the mean", 2: "the logit of the mean and the log dispersion"}

    def suited(self, data: Data) -> Data:
        y = numbers_of(data, self.name)
        refuse(
            y,
            (y <= 0) | (y >= 1),
            self.name,
            "numbers between 0 and 1, ends excluded; divide percentages by 100, and move exact zeros and ones inside, "
            "(y · (N − 1) + 1/2)/N for N rows (Smithson and Verkuilen, 2006)",
        )
        return data.with_unit(data.y if data.y.dtype.kind == "f" else y)

    def draw(self, num_outputs: int) -> Array | None:
        return dispersion(num_outputs)

    def answer(self, outputs: Array) -> Array:
        return jax.nn.sigmoid(outputs[..., :1])

    def around(self, outputs: Array, drawn: Array | None) -> dist.Distribution:
        logit, spread = dispersed(outputs, drawn)
        precision = 1 / (LEAST_DISPERSION**2 + spread**2)
        mean, rest = (jnp.maximum(jax.nn.sigmoid(sign * logit), LEAST_MEAN) for sign in (1, -1))
        return dist.Beta(mean * precision, rest * precision)

    def to_config(self) -> dict[str, Any]:
        return {}
