"""Weights of a posterior back in a PyTorch module."""

from typing import Any

import jax
import numpy as np

from credo import random
from credo.networks.lora import FACTORS
from credo.networks.trained import matched
from credo.typing import Theta

# Of a posterior that has no mean of its own, so many draws are averaged at most.
NUM_AVERAGED = 1000


def to_torch(posterior: Any, module: Any, *, seed: int | None = None) -> dict[str, Any]:
    """A state dict for a module, with the mean of a posterior, or a draw, in the place of its parameters.

    Whatever else the module has (buffers, frozen parameters) is that of the module, which is left as it is; tied
    parameters stay tied. Low-rank adapters are added to the weights that they adapt. A posterior of standardised data
    is one of a network that sees them standardised.

    Arguments:
        posterior: of a model around that module.
        module: of the same architecture, on any device and in any precision.
        seed: of a draw of theta; the mean where None.

    >>> module.load_state_dict(to_torch(posterior, module))                                 # doctest: +SKIP
    """
    if len(posterior.models) > 1:
        raise ValueError("posterior is of several models; pass one of its members, which has the weights of one")
    import torch

    state = {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}
    own = {name: tensor for name, tensor in module.named_parameters() if tensor.requires_grad}
    expected = {name: tensor.detach().to("cpu", torch.float32).numpy() for name, tensor in own.items()}
    values = matched(expected, _merged(_weights(posterior, seed), expected))
    names = {id(tensor): name for name, tensor in own.items()}
    for name, tensor in module.named_parameters(remove_duplicate=False):
        if id(tensor) in names:
            state[name] = torch.as_tensor(np.array(values[names[id(tensor)]])).to(state[name])
    return state


def _weights(posterior: Any, seed: int | None) -> Theta:
    """The weights of the network by path: the mean, or a draw."""
    weights = jax.jit(jax.vmap(posterior.model.weights))
    if seed is not None:
        theta, shares = posterior.sample(random.key(seed), 1), np.ones(1)
    elif hasattr(posterior, "mean"):
        theta, shares = {name: leaf[None] for name, leaf in posterior.mean.items()}, np.ones(1)
    else:
        theta, shares = posterior.weighted_draws(NUM_AVERAGED)
    drawn = jax.device_get(weights(theta))
    return {name: np.tensordot(shares / shares.sum(), leaf, axes=1) for name, leaf in drawn.items()}


def _merged(weights: Theta, own: Theta) -> Theta:
    """The weights of the module with their adapters added, where the posterior is of adapters."""
    first, second = (f".{factor}" for factor in FACTORS)
    adapted = [name.removesuffix(first) for name in weights if name.endswith(first)]
    if not adapted:
        return weights
    return own | {name: own[name] + weights[name + first] @ weights[name + second] for name in adapted}
