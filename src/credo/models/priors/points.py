"""Point layers: weights that are learned as one value each, next to others that are random variables.

Paper, "Bayesian inference on the (n-)last layer(s) only": a stochastic head on features that are points.
"""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.distributions import constraints

from credo.models.priors.base import Composite, Drawn, Parameter, Prior
from credo.models.priors.custom import Custom
from credo.models.priors.learned import Learned
from credo.typing import Array


@dataclass(frozen=True)
class Point(Composite):
    """One value that is learned, from the network's own on. See `point`.

    >>> from credo import priors
    >>> priors.by_path({"hidden.*": "point"}).at("hidden.0.kernel")
    Point(regularised_by=None)
    """

    name = "point"
    regularised_by: Prior | None = None

    def draw(self, parameter: Parameter, drawn: Drawn) -> Array:
        if parameter.initial is None:
            raise ValueError(
                f"prior: {parameter.path!r} cannot be a point, since it has no value from which learning could start; "
                "give it a prior, such as credo.priors.normal()"
            )
        # The keyword tells weights from the parameters of a prior: `Model.points`.
        value = numpyro.param(parameter.path, jnp.asarray(parameter.initial), point=True)
        self._regularise(parameter, value)
        return value

    def draw_rate(self, parameter: Parameter) -> Array:
        """A rate from 0 to 1 that is learned; the density is that of its log-odds."""
        unit = constraints.unit_interval
        rate = numpyro.param(parameter.path, jnp.asarray(parameter.initial), constraint=unit, point=True)
        self._regularise(parameter, jnp.log(rate) - jnp.log1p(-rate))
        return rate

    def _regularise(self, parameter: Parameter, value: Array) -> None:
        if self.regularised_by is not None:
            density = self.regularised_by(parameter)
            _require_real(density, parameter)
            numpyro.factor(f"{parameter.path}.prior", jnp.sum(density.log_prob(value)))

    def to_config(self) -> dict[str, Any]:
        return {"name": "point", "regularised_by": self.regularised_by and self.regularised_by.to_config()}


def point(regularised_by: Any = None) -> Point:
    """A layer without uncertainty: each weight is one value, learned along with q or before the posterior.

        maximise over w:    log p(D | w) + log p(w),    with p(w) = 1 where nothing regularises

    `credo.BayesByBackprop` and `credo.MCDropout` learn it along with the other weights, by climbing the ELBO. For all
    other methods a run of the former finds the points first; then they are constants, and a warning says so. In a dict
    of paths the word "point" is enough: `{"features.*": "point", "head.*": credo.priors.normal(1.0)}`.

    Arguments:
        regularised_by: a prior with a density on all real numbers, such as `credo.priors.normal(1.0)`, or a NumPyro
            distribution: its log density at the value is added to the log prior.

    >>> point(Custom(dist.Normal(0.0, 2.0))).to_config()["regularised_by"]["distribution"]
    'Normal'
    """
    density = Custom(regularised_by) if isinstance(regularised_by, dist.Distribution) else regularised_by
    if density is None:
        return Point()
    if hasattr(density, "draw") or not hasattr(density, "to_config"):
        raise ValueError(
            f"regularised_by must be a prior with one known density, such as credo.priors.normal(1.0), got {density!r}"
        )
    if isinstance(density, Learned):
        raise ValueError(
            "regularised_by: the scale of a learned prior would shrink around a point without end; take "
            "credo.priors.normal(scale)"
        )
    return Point(density)


def _require_real(density: dist.Distribution, parameter: Parameter) -> None:
    support = density.support
    while isinstance(support, constraints.independent):
        support = support.base_constraint
    if support is not constraints.real:
        raise ValueError(
            f"regularised_by: the density for {parameter.path!r} is on {density.support}, and a point moves over all "
            "real numbers; take one such as credo.priors.normal(1.0)"
        )
