"""Scales that are drawn too: half-Cauchy, horseshoe, and a relevance for each input.

Paper, "Setting the priors": where nobody knows the scale of the weights, it gets a prior of its own. A scale with a
heavy tail and much mass near zero switches off what the data do not ask for, and leaves alone what they do.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from credo._checks import require_one_of
from credo.models.priors.base import Composite, Drawn, Parameter, fill, positive
from credo.models.priors.scales import SHARED_BY, scale_shape, scale_site
from credo.typing import Array


@dataclass(frozen=True)
class HalfCauchy(Composite):
    """w = τ z with τ ~ HalfCauchy(scale). See `half_cauchy`.

    >>> from credo import priors
    >>> priors.half_cauchy(0.5, per="layer")
    HalfCauchy(scale=0.5, per='layer', centred=False)
    """

    name = "half_cauchy"
    scale: float = 1.0
    per: str = "array"
    centred: bool = False

    def draw(self, parameter: Parameter, drawn: Drawn) -> Array:
        site = scale_site(self.per, parameter.path)
        if site not in drawn:
            law = fill(dist.HalfCauchy(self.scale), scale_shape(self.per, parameter))
            drawn[site] = self, numpyro.sample(site, law)
        owner, tau = drawn[site]
        if owner != self:
            raise ValueError(
                f"prior: the scale {site!r} is shared by weights with two priors, {owner} and {self}; give them the "
                "same one, or scales of their own with per='array'"
            )
        return _scaled(parameter, tau, self.centred)


@dataclass(frozen=True)
class Horseshoe(Composite):
    """w = τ λ̃ z, with a λ for each weight and a τ for each array. See `horseshoe`.

    >>> from credo import priors
    >>> priors.horseshoe(0.01).to_config()
    {'name': 'horseshoe', 'scale': 0.01, 'slab': 2.0, 'centred': False}
    """

    name = "horseshoe"
    scale: float = 0.1
    slab: float = 2.0
    centred: bool = False

    def draw(self, parameter: Parameter, drawn: Drawn) -> Array:
        path, shape = parameter.path, parameter.shape
        tau = numpyro.sample(f"{path}.scale", dist.HalfCauchy(self.scale))
        lam = numpyro.sample(f"{path}.local", fill(dist.HalfCauchy(1.0), shape))
        return _scaled(parameter, tau * lam / jnp.hypot(1.0, tau * lam / self.slab), self.centred)


def half_cauchy(scale: float = 1.0, *, per: str = "array", centred: bool = False) -> HalfCauchy:
    """N(0, τ²) with a scale that is drawn, τ ~ HalfCauchy(scale).

    A program draws `<path>.z` ~ N(0, 1) and the scale, and w = τ z: between z and τ there is no funnel, the narrow
    neck in which w and τ hold each other and samplers get stuck (Betancourt and Girolami, 2015). Where the data say
    much about every weight, centred=True is the better one: it draws w itself.

    Gelman, "Prior distributions for variance parameters in hierarchical models" (2006).

    Arguments:
        scale: the median of τ.
        per: what has a τ of its own: the "network", each "layer", "array", "input" of a kernel, or "weight".
        centred: whether w is a site, and not z.

    >>> half_cauchy(0.5, per="layer")
    HalfCauchy(scale=0.5, per='layer', centred=False)
    """
    require_one_of(SHARED_BY, per=per)
    return HalfCauchy(positive("scale", scale), per, _is_set("centred", centred))


def relevance(scale: float = 1.0) -> HalfCauchy:
    """Automatic relevance determination: the weights that leave one input of a kernel share a half-Cauchy scale.

    Inputs that do not help are switched off. `half_cauchy(scale, per="input")`; a bias has one scale.

    MacKay (1994) and Neal, "Bayesian learning for neural networks" (1996, section 4.3).

    >>> relevance()
    HalfCauchy(scale=1.0, per='input', centred=False)
    """
    return half_cauchy(scale, per="input")


def horseshoe(scale: float = 0.1, *, slab: float = 2.0, centred: bool = False) -> Horseshoe:
    """The regularised horseshoe: most weights near zero, a few as large as the slab allows.

        w = τ λ̃ z,    λ̃² = c² λ² / (c² + τ² λ²),    z ~ N(0, 1),    λ ~ HalfCauchy(1),    τ ~ HalfCauchy(scale)

    with a λ for each weight and a τ for each array. Where τλ is far below c, w is N(0, τ²λ²); far above, N(0, c²).
    Piironen and Vehtari, "Sparsity information and regularization in the horseshoe" (2017); c is a constant here.

    Arguments:
        scale: of τ. If p₀ of D weights are thought to matter, p₀/(D − p₀) · σ/√N for N rows with noise σ (section 3).
        slab: c, the standard deviation of the weights that matter.
        centred: whether w is a site, and not z; see `half_cauchy`.

    >>> horseshoe(0.01, slab=1.0)
    Horseshoe(scale=0.01, slab=1.0, centred=False)
    """
    return Horseshoe(positive("scale", scale), positive("slab", slab), _is_set("centred", centred))


def _scaled(parameter: Parameter, scale: Array, centred: bool) -> Array:
    """w ~ N(0, scale²): drawn, or made from a standard normal."""
    if centred:
        return numpyro.sample(parameter.path, fill(dist.Normal(0.0, scale), parameter.shape))
    z = numpyro.sample(f"{parameter.path}.z", fill(dist.Normal(0.0, 1.0), parameter.shape))
    return numpyro.deterministic(parameter.path, scale * z)


def _is_set(name: str, flag: bool) -> bool:
    if not isinstance(flag, bool):
        raise ValueError(f"{name} must be True or False, got {flag!r}")
    return flag
