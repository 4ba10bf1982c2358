"""A prior of the last layers; all others are points. Paper, "Bayesian inference on the (n-)last layer(s) only"."""

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Self

import numpyro.distributions as dist

from credo._text import nearest
from credo.models.priors.base import Drawn, Parameter, Prior, draw, prior_at
from credo.models.priors.learned import Learned
from credo.models.priors.points import Point
from credo.networks.functional import Network
from credo.networks.layers import layers_in_order
from credo.typing import Array


@dataclass(frozen=True)
class LastLayers:
    """A prior of some layers, and points for the others. See `credo.models.last_layer`.

    Which layers those are is known once the network is: see `on`.

    Arguments:
        base: the prior of those layers; where it is one density of all real numbers, it regularises the points too.
        patterns: of their paths; without any, they are the last ones.
        num_layers: how many of the last ones.
        regularised: whether the points are; constants need not be.
        drawn: the paths of their arrays, from `on`.

    >>> import jax.numpy as jnp
    >>> import credo
    >>> network = credo.networks.functional(credo.networks.MLP([5], out=1, inputs=2))
    >>> prior = credo.priors.LastLayers(credo.priors.normal(0.5)).on(network, jnp.zeros((1, 2)))
    >>> sorted(prior.drawn), prior.at("head.kernel")
    (['head.bias', 'head.kernel'], Normal(scale=0.5))
    """

    base: Prior
    patterns: tuple[str, ...] = ()
    num_layers: int = 1
    regularised: bool = True
    drawn: frozenset[str] = frozenset()

    def __call__(self, parameter: Parameter) -> dist.Distribution:
        return self.at(parameter.path)(parameter)

    def draw(self, parameter: Parameter, drawn: Drawn) -> Array:
        return draw(self.at(parameter.path), parameter, drawn)

    def at(self, path: str) -> Prior:
        """The prior of one parameter."""
        own = prior_at(self.base, path)
        if path in self.drawn:
            return own
        # What is made of other sites, or learned, is no density that could regularise.
        is_density = self.regularised and not hasattr(own, "draw") and not isinstance(own, Learned)
        return Point(own if is_density else None)

    def check(self, paths: list[str]) -> None:
        """Refuse what the base prior refuses."""
        if hasattr(self.base, "check"):
            self.base.check(paths)

    def on(self, network: Network, x: Any) -> Self:
        """This prior, for the layers of a network; refuses to choose none of them, or all."""
        places = layers_in_order(network, x)
        layers = {name: paths for place in places for name, paths in place.items()}
        if self.patterns:
            return replace(self, drawn=self._matching(layers))
        if self.num_layers >= len(places):
            raise ValueError(
                f"num_layers is {self.num_layers}, and the network has {len(places)} layer(s) with parameters, "
                f"{', '.join(layers)}: none would be left to be points; pass fewer, or leave last_layer out to have a "
                "distribution over all of them"
            )
        chosen = places[-self.num_layers :]
        return replace(self, drawn=frozenset(path for place in chosen for paths in place.values() for path in paths))

    def _matching(self, layers: dict[str, tuple[str, ...]]) -> frozenset[str]:
        paths = [path for own in layers.values() for path in own]
        found = {pattern: {path for path in paths if fnmatchcase(path, pattern)} for pattern in self.patterns}
        for pattern, matched in found.items():
            if not matched:
                hint = nearest(pattern, [*(f"{layer}.*" for layer in layers), *paths])
                raise ValueError(
                    f"bayesian: the pattern {pattern!r} matches no layer{hint}; from the input to the output, the "
                    f"layers are {', '.join(layers)}, with the arrays {', '.join(paths)}"
                )
        drawn = frozenset[str]().union(*found.values())
        if drawn.issuperset(paths):
            raise ValueError(
                f"bayesian: {', '.join(map(repr, self.patterns))} matches all layers, {', '.join(layers)}: none would "
                "be left to be points; leave last_layer out to have a distribution over all of them"
            )
        return drawn

    def to_config(self) -> dict[str, Any]:
        return {
            "name": "last_layers",
            "base": self.base.to_config(),
            "patterns": list(self.patterns),
            "num_layers": self.num_layers,
            "regularised": self.regularised,
        }


def on_network(prior: Prior, network: Network, x: Any) -> Prior:
    """The prior for a network: most are the same for all.

    >>> import credo
    >>> network = credo.networks.functional(credo.networks.MLP([5], out=1, inputs=2))
    >>> credo.priors.on_network(credo.priors.normal(), network, [[0.0, 0.0]])
    Normal(scale=1.0)
    """
    own = getattr(prior, "on", None)
    return prior if own is None else own(network, x)
