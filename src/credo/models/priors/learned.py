"""Normal priors whose scales are learned: the paper's "Learning the prior"."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from credo._checks import require_one_of
from credo.models.priors.base import Described, Parameter, fill, positive
from credo.models.priors.scales import SHARED_BY, scale_shape, scale_site


@dataclass(frozen=True)
class Learned(Described):
    """N(0, xi²), with scales xi that are learned along with the posterior. See `learned`.

    >>> from credo import priors
    >>> priors.learned(0.1, per="layer")
    Learned(scale=0.1, per='layer')
    """

    name = "learned"
    scale: float = 1.0
    per: str = "array"

    def __call__(self, parameter: Parameter) -> dist.Distribution:
        start = jnp.full(scale_shape(self.per, parameter), self.scale)
        xi = numpyro.param(scale_site(self.per, parameter.path), start, constraint=dist.constraints.positive)
        return fill(dist.Normal(0.0, xi), parameter.shape)


def learned(scale: float = 1.0, *, per: str = "array") -> Learned:
    """N(0, xi²) with scales xi that are learned: empirical Bayes, the paper's "Learning the prior".

    Variational inference learns them along with the posterior, by climbing the ELBO, a lower bound on the evidence;
    Laplace climbs its own approximation of the evidence; for other methods, variational inference finds them first.

    Arguments:
        scale: where learning starts.
        per: what has a scale of its own: the "network", each "layer", "array" (a kernel, a bias), "input" of a kernel
            (automatic relevance determination: inputs that do not help are switched off), or "weight".

    >>> learned(0.1)
    Learned(scale=0.1, per='array')
    """
    require_one_of(SHARED_BY, per=per)
    return Learned(positive("scale", scale), per)
