"""Network weights as latent variables: what every model with a network shares."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
from numpyro import handlers

from credo._concurrency import alone
from credo.models.imposed import impose
from credo.models.priors import (
    ByPath,
    Consistent,
    Drawn,
    LastLayers,
    Parameter,
    Prior,
    Transferred,
    draw,
    on_network,
    prior_at,
    terms_of,
)
from credo.networks.functional import Network, functional
from credo.networks.symmetries import symmetries
from credo.typing import Array, Theta

# Site names that the models use themselves.
RESERVED = ("y", "data", "noise", "noise_correlation", "dispersion", "shares")


def draw_weights(network: Network, prior: Prior, inputs: Mapping[str, Any] | None = None) -> Theta:
    """theta ~ p(theta): every weight of a network from its prior, by path. Called inside a NumPyro program.

    Arguments:
        inputs: of the model's own, among them what the prior looks at.
    """
    check_paths(list(network.params), prior)
    drawn: Drawn = {name: (None, value) for name, value in (inputs or {}).items()}
    return {
        path: draw(prior, Parameter(path, value.shape, network.fan_in[path], value), drawn)
        for path, value in network.params.items()
    }


def drawn_outputs(
    net: Any, prior: Prior, answer: Callable[[Array], Array], x: Array, inputs: Mapping[str, Array]
) -> Array:
    """f_theta(x), theta ~ p(theta) with the conditions of the prior, (rows, outputs). Called inside a NumPyro program.

    Arguments:
        answer: what is predicted, from the outputs, which conditions are about.
        inputs: of the model's own.
    """
    network = functional(net, x)
    theta = draw_weights(network, on_network(prior, network, x), inputs)
    impose(terms_of(prior), partial(network.apply, theta), answer, inputs)
    return network.apply(theta, x)


def initial_weights(net: Any) -> Any:
    """The network's own values as a function of an input batch: where optimisation starts."""

    def initial(x: Array) -> Theta:
        return functional(net, x).params

    return initial


def num_outputs(net: Any, x: Array) -> int:
    """How many outputs the network has per row; refuses anything but (rows, outputs)."""
    network = functional(net, x)
    shape = jax.eval_shape(network.apply, network.params, x).shape
    if len(shape) != 2 or shape[0] != x.shape[0]:
        raise ValueError(
            f"the network maps inputs of shape {x.shape} to {shape}; expected ({x.shape[0]}, number of outputs)"
        )
    return shape[1]


def check_paths(paths: list[str], prior: Prior) -> None:
    """Refuse names that the model uses itself, and prior patterns that match nothing."""
    taken = [path for path in paths if path in RESERVED]
    if taken:
        raise ValueError(f"the network has a parameter named {taken[0]!r}, which is a site of the model; rename it")
    if isinstance(prior, ByPath | Consistent | LastLayers | Transferred):
        prior.check(paths)


def check_symmetries(net: Any, prior: Prior, x: Any) -> None:
    """Refuse a prior that removes a symmetry which the network does not have: it would remove functions instead."""
    network = functional(net, x)
    prior = on_network(prior, network, x)
    own = {path: prior_at(prior, path) for path in network.params}
    claims = {path: one.breaks for path, one in own.items() if hasattr(one, "breaks")}
    if not claims:
        return
    with alone(), handlers.seed(rng_seed=0):  # what a prior refuses by itself comes first
        jax.eval_shape(partial(draw_weights, network, prior))
    groups = symmetries(net, x).groups
    units = {"permutable": groups, "rescalable": [group for group in groups if group.rescalable]}
    for path, claim in claims.items():
        known = {member.path for group in units[claim] for member in group.members if member.role != "in"}
        if path not in known:
            raise ValueError(
                f"prior: {own[path]!r} removes a symmetry of {claim} units, and those of {path!r} are none, so it "
                f"would remove functions instead; the network has {', '.join(sorted(known)) or 'no such units'}"
            )
