"""Positive numbers that are skewed: amounts, prices, durations, concentrations.

    log(y / unit) = spread · (f_theta(x) + noise),    so that    p(y) = p(log y)/y

All of it is regression on log y, with answers in the units of y: medians and intervals are those of log y, the mean is
exp(mean + sd²/2) of it. The noise is normal: with the tails of a Student the mean of y would be infinite.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from credo._checks import require_positive
from credo.data import Data
from credo.models import likelihoods
from credo.models.laws import model_of, numbers_of, refuse
from credo.models.likelihoods import Fixed, Heteroscedastic, Learned, Noise, Tuned
from credo.models.program import Model
from credo.typing import Array


def positive(net: Any, *, prior: Any = None, noise: Any = None, spread: float = 1.0) -> Model:
    """A network whose output is the logarithm of the median, and log-normal noise around it.

        theta ~ p(theta),    y ~ LogNormal(spread · f_theta(x), (spread · noise)²)

    Standardised targets are seen in units of their geometric mean, the exponential of the mean of log y.

    Arguments:
        net: one output, the log median; two for heteroscedastic noise.
        prior: of the weights, as for `credo.models.regression`.
        noise: of log y / spread: a number, a NumPyro distribution on positive numbers, "learned" (the default), "tuned"
            or "heteroscedastic", as for `credo.models.regression`.
        spread: one unit of the network, on the log scale; best the sd of log y, so that the prior fits as it does for
            standardised targets.

    >>> from credo.networks import MLP
    >>> data = Data([1.0, 2.0, 3.0], [0.1, 10.0, 1000.0], standardise=True)
    >>> float(positive(MLP([20], out=1)).suited(data).scaling.y_scale.round(3))
    10.0
    """
    require_positive(spread=spread)
    chosen = likelihoods.as_noise(noise)
    if not isinstance(chosen, Fixed | Learned | Tuned | Heteroscedastic) or isinstance(
        getattr(chosen, "scale", 0.0), tuple
    ):
        raise ValueError(
            f"noise: {chosen.to_config()['name']!r} is not for positive numbers, whose logarithm is normal; take "
            "a number, 'learned', 'tuned' or 'heteroscedastic'"
        )
    return model_of(Positive(chosen, float(spread)), net, prior)


@dataclass(frozen=True)
class Positive:
    """y ~ LogNormal; see `positive`."""

    name: ClassVar[str] = "positive"
    noise: Noise
    spread: float = 1.0

    @property
    def outputs(self) -> dict[int, str]:
        num = self.noise.num_outputs(1)
        return {num: "the log median" if num == 1 else "the log median and its noise"}

    def suited(self, data: Data) -> Data:
        y = numbers_of(data, self.name, censored=True)
        refuse(
            y,
            y <= 0,
            self.name,
            "numbers above 0; for amounts that are often 0 take the default regression, for whole numbers counts",
        )
        if not np.any(data.scaling.y_mean) and data.y.dtype.kind == "f":
            return data.with_unit(data.y, float(data.scaling.y_scale))
        unit = np.exp(np.mean(np.log(y[np.isfinite(y)]))) if data.standardise or np.any(data.scaling.y_mean) else 1.0
        return data.with_unit(y, unit)

    def draw(self, num_outputs: int) -> Any:
        return self.noise.draw(1)

    def answer(self, outputs: Array) -> Array:
        return jnp.exp(self.spread * outputs[..., :1])

    def around(self, outputs: Array, drawn: Any) -> dist.Distribution:
        normal = self.noise.around(outputs, drawn)
        return LogNormal(self.spread * normal.loc, self.spread * normal.scale)

    def to_config(self) -> dict[str, Any]:
        return {"noise": self.noise.to_config(), "spread": self.spread}


class LogNormal(dist.LogNormal):
    """exp of a normal; with its variance to all digits, also where the scale is small."""

    @property
    def variance(self) -> Array:
        return jnp.expm1(self.scale**2) * jnp.exp(2 * self.loc + self.scale**2)
