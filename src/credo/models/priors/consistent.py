"""Priors with consistency conditions: knowledge about the function, beside that about the weights."""

from dataclasses import dataclass, replace
from typing import Any, Self, get_args

import numpy as np
import numpyro.distributions as dist

from credo._checks import require_one_of, require_positive
from credo.models.conditions import as_condition
from credo.models.imposed import Per, Term
from credo.models.priors.base import Drawn, Parameter, Prior, draw, inputs_of, prior_at
from credo.models.priors.by_path import as_prior
from credo.models.priors.last_layers import on_network
from credo.networks.functional import Network
from credo.typing import Array

# Names of sites and units that a model has besides its conditions.
TAKEN = ("y", "data", "noise", "noise_correlation", "scaling")


@dataclass(frozen=True)
class Consistent:
    """p(theta) of the base prior, and conditions on the function. See `consistent`.

    >>> from credo import conditions, priors
    >>> prior = priors.consistent(priors.normal(), conditions.smooth())
    >>> prior.base, [term.name for term in prior.terms]
    (Normal(scale=1.0), ['smooth'])
    """

    base: Prior
    terms: tuple[Term, ...]

    def __call__(self, parameter: Parameter) -> dist.Distribution:
        return self.base(parameter)

    def draw(self, parameter: Parameter, drawn: Drawn) -> Array:
        return draw(self.base, parameter, drawn)

    def at(self, path: str) -> Prior:
        """The base prior of one parameter."""
        return prior_at(self.base, path)

    def check(self, paths: list[str]) -> None:
        """Refuse what the base prior refuses."""
        if hasattr(self.base, "check"):
            self.base.check(paths)

    def on(self, network: Network, x: Any) -> Self:
        """This prior, for a network."""
        return replace(self, base=on_network(self.base, network, x))

    def inputs(self) -> dict[str, np.ndarray]:
        """What the base prior asks the model to hold."""
        return inputs_of(self.base)

    def to_config(self) -> dict[str, Any]:
        return {"name": "consistent", "base": self.base.to_config(), "terms": [term.to_config() for term in self.terms]}


def consistent(
    base: Any, condition: Any, *, inputs: Any = None, strength: float | None = None, per: Per = "all"
) -> Consistent:
    """A prior with knowledge about the function, a consistency condition C(theta, x) ≥ 0.

        p(theta | D_x) ∝ p(theta) exp(−strength · 1/M Σ C(theta, xᵢ))    per="all": the same for any number M of inputs
        p(theta | D_x) ∝ p(theta) exp(−strength · Σ C(theta, xᵢ))        per="point": each input counts, as data do

    The paper writes the first ("Prior with a consistency condition"), its supplement the second. When the training set,
    at which it is imposed, grows, the data outvote a condition per="all" in the end; one per="point" keeps its weight.

    Arguments:
        base: p(theta), anything that `prior=` takes.
        condition: of `credo.conditions`, any function `(function, x) -> penalties (rows,)`, or a list of them.
        inputs: points (M, …) in the user's units where it is imposed; the training inputs by default. Unlabelled inputs
            are welcome: a condition needs no targets.
        strength: of the condition. In all, 1,000 by default for what a function keeps or breaks (`bounded`,
            `invariant`, an equation: with C = r², a residual r of 0.1 everywhere costs ten nats), 3,000 for `monotone`,
            and 10 for what is a matter of degree (`smooth`, `sparse`, `neighbours`, `fisher_snedecor`, `low_density`).
            Per point it has no default.
        per: "all" or "point".

    >>> from credo import conditions
    >>> from credo.models.priors import normal
    >>> prior = consistent(normal(), conditions.monotone({0: "+"}))
    >>> prior.terms[0].name
    'monotone'
    """
    if strength is not None:
        require_positive(strength=strength)
    elif per == "point":
        raise ValueError("strength: a condition per point is as strong as you say; pass strength=…")
    require_one_of(get_args(Per), per=per)
    chosen = as_prior(base)
    terms = list(terms_of(chosen))
    for one in map(as_condition, condition if isinstance(condition, list | tuple) else [condition]):
        wanted = f"{one.name} condition" if one.name in TAKEN else one.name
        num_alike = sum(term.condition.name == one.name for term in terms)
        name = f"{wanted} {num_alike + 1}" if num_alike else wanted
        points = None if inputs is None else np.asarray(inputs)
        own = one.strength if strength is None else strength
        terms.append(Term(name, one, float(own), per, points is not None, points))
    return Consistent(chosen.base if isinstance(chosen, Consistent) else chosen, tuple(terms))


def terms_of(prior: Prior) -> tuple[Term, ...]:
    """The conditions of a prior; most have none.

    >>> from credo import conditions, priors
    >>> smooth = priors.consistent(priors.normal(), conditions.smooth())
    >>> len(priors.terms_of(priors.normal())), len(priors.terms_of(smooth))
    (0, 1)
    """
    return prior.terms if isinstance(prior, Consistent) else ()
