"""theta from a network that was trained elsewhere: its weights as they are, in the unconstrained units of a model."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from credo import random
from credo._precision import working_precision
from credo.models.program import Model
from credo.networks.trained import matched
from credo.typing import Theta


def trained_theta(model: Model, params: Any = None) -> tuple[Theta, frozenset[str]]:
    """theta with the weights of a trained network, and the names of the latents that it does not tell (a noise scale).

    Those are at a draw from the prior.

    Arguments:
        model: bound to the shape of the data.
        params: anything that `credo.networks.load_params` takes, and it may hold other latents of the model too, in the
            units of the program; the values of the network that the model was made with where None.

    >>> from credo.models import regression
    >>> from credo.networks import MLP
    >>> theta, unknown = trained_theta(regression(MLP([4], 1)).bind((np.zeros((5, 3)), np.zeros(5))))
    >>> sorted(unknown)
    ['noise']
    """
    own: Theta = dict(model.template) if model.initial is None else model.initial(model.example().x)
    if params is None and model.initial is None:
        raise ValueError(
            "params: the model is a program of its own, without a network whose values could be taken; pass a value "
            f"for each of its latents, {', '.join(own)}"
        )
    values = own if params is None else _matched(model, own, params)
    elsewhere = [name for name in values if name not in model.template]
    if elsewhere:
        raise ValueError(
            f"params: {elsewhere[0]!r} is no latent of the model: its prior makes it from other sites, or it is a "
            "point, so a trained value has no place; take a prior that draws the weights themselves, such as "
            "credo.priors.normal(), or fit the model"
        )

    def placed(values: Theta) -> tuple[Theta, Theta]:
        theta = replace(model, initial=lambda _: values).initial_theta(random.key(0))
        return theta, model.constrain(theta)

    theta, found = jax.device_get(jax.jit(placed)(values))
    for name in values:
        if not np.allclose(found[name], values[name], rtol=1e-4, atol=1e-6):
            raise ValueError(f"params: the prior of {name!r} rules out some of its values; choose a wider prior")
    return theta, frozenset(model.template) - frozenset(values)


def _matched(model: Model, own: Theta, params: Any) -> Theta:
    """The weights by the names of the network, and other latents of the model by theirs."""
    given = {}
    if isinstance(params, Mapping):
        given = {name: params[name] for name in model.template if name not in own and name in params}
        params = {name: value for name, value in params.items() if name not in given}
    return matched(own, params) | {name: np.asarray(value, working_precision()) for name, value in given.items()}
