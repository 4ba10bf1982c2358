"""A prior for each parameter, by its path; and priors from what users pass."""

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpyro.distributions as dist

from credo._text import nearest
from credo.models.priors.base import Drawn, Parameter, Prior, draw
from credo.models.priors.custom import Custom
from credo.models.priors.independent import Normal
from credo.models.priors.points import point
from credo.typing import Array


@dataclass(frozen=True)
class ByPath:
    """A prior for each parameter path; the first pattern that matches decides. See `by_path`.

    >>> from credo import priors
    >>> prior = priors.by_path({"*.bias": priors.normal(10.0)}, default=priors.fan_in())
    >>> prior.at("head.bias"), prior.at("head.kernel")
    (Normal(scale=10.0), FanIn(scale=1.0, bias_scale=1.0))
    """

    patterns: tuple[tuple[str, Prior], ...]
    default: Prior

    def __call__(self, parameter: Parameter) -> dist.Distribution:
        return self.at(parameter.path)(parameter)

    def draw(self, parameter: Parameter, drawn: Drawn) -> Array:
        return draw(self.at(parameter.path), parameter, drawn)

    def at(self, path: str) -> Prior:
        """The prior of one parameter."""
        return next((prior for pattern, prior in self.patterns if fnmatchcase(path, pattern)), self.default)

    def check(self, paths: list[str]) -> None:
        """Refuse a pattern that matches nothing: a typo would silently leave weights on the default prior."""
        for pattern, _ in self.patterns:
            if not any(fnmatchcase(path, pattern) for path in paths):
                raise ValueError(
                    f"prior: the path {pattern!r} matches no parameter{nearest(pattern, paths)}; "
                    f"the parameters are {', '.join(paths)}"
                )

    def to_config(self) -> dict[str, Any]:
        patterns = {pattern: prior.to_config() for pattern, prior in self.patterns}
        return {"name": "by_path", "patterns": patterns, "default": self.default.to_config()}


def by_path(patterns: Mapping[str, Any], default: Any = None) -> ByPath:
    """A prior for each path, with `*` wildcards: `{"*.bias": normal(10.0), "head.*": laplace()}`.

    The first pattern that matches decides; a parameter that none matches gets `default` (N(0, 1)).
    A pattern that matches no parameter is an error.

    >>> from credo import priors
    >>> priors.by_path({"head.*": priors.laplace(0.1)}).at("head.kernel")
    Laplace(scale=0.1)
    """
    pairs = tuple((pattern, as_prior(prior)) for pattern, prior in patterns.items())
    for pattern, prior in pairs:
        if hasattr(prior, "terms"):
            raise ValueError(
                f"prior: {pattern!r} has a consistency condition, which is about the whole network, not about some of "
                "its weights; write credo.priors.consistent({…paths…}, condition)"
            )
        if hasattr(prior, "inputs"):
            raise ValueError(
                f"prior: {pattern!r} has a prior from a posterior, which is about several arrays at once; write "
                "credo.priors.from_posterior(posterior, select=…, others={…paths…})"
            )
    return ByPath(pairs, as_prior(default))


def as_prior(prior: Any) -> Prior:
    """A prior from what users pass: None (N(0, 1)), "point", a prior, a NumPyro distribution, or a dict of paths.

    >>> from credo import priors
    >>> priors.as_prior(None), priors.as_prior("point")
    (Normal(scale=1.0), Point(regularised_by=None))
    """
    if prior is None:
        return Normal()
    if isinstance(prior, str) and prior == "point":
        return point()
    if isinstance(prior, Mapping):
        return by_path(prior)
    if isinstance(prior, dist.Distribution):
        return Custom(prior)
    if callable(prior) and hasattr(prior, "to_config"):
        return prior
    raise ValueError(
        f"prior: {prior!r} is not a prior; pass one of credo.priors (such as normal, fan_in, laplace, horseshoe, "
        "learned), 'point', a NumPyro distribution, or a dict such as {'*.bias': credo.priors.normal(10.0)}"
    )
