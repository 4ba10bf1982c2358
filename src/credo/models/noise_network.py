"""A second network of x, for noise that depends on the inputs: its weights are latents like those of the first."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import jax
from numpyro import handlers

from credo._concurrency import alone
from credo.models import priors
from credo.models.network import draw_weights, num_outputs
from credo.models.priors import Prior
from credo.networks import MLP, Network, from_config, functional, network_config
from credo.typing import Array, Theta

# Its sites begin so, that they do not clash with those of the first network.
PREFIX = "noise_net"
NUM_UNITS = 16
# In a configuration, for a network that is not stored.
OUTSIDE = "outside"


@dataclass(frozen=True, eq=False)
class NoiseNetwork:
    """A small network, and the prior of its weights.

    Arguments:
        net: None for one hidden layer, with the outputs that are needed.
        prior: N(0, 1/fan-in) by default, under which the noise depends little on x.
    """

    net: Any
    prior: Prior

    @classmethod
    def of(cls, net: Any, prior: Any) -> Self:
        """From what users pass."""
        return cls(net, priors.as_prior(priors.fan_in() if prior is None else prior))

    def draw(self, x: Array, default: int) -> Array:
        """Its outputs, (rows, outputs), of weights that are drawn at sites of their own."""
        network = self._functional(x, default)
        with handlers.scope(prefix=PREFIX, divider="."):
            weights = draw_weights(network, self.prior)
        return network.apply(weights, x)

    def initial(self, x: Array, default: int) -> Theta:
        """Its own values, by the names of the sites."""
        return {f"{PREFIX}.{path}": value for path, value in self._functional(x, default).params.items()}

    def check(self, x: Any, default: int, allowed: tuple[int, ...]) -> None:
        """Refuse a network with another number of outputs."""
        outputs = num_outputs(self._net(default), x)
        if outputs not in allowed:
            raise ValueError(
                f"noise_net has {outputs} outputs per row; it needs {' or '.join(map(str, sorted(set(allowed))))}: see "
                "credo.models.noisy_labels"
            )
        with alone(), handlers.seed(rng_seed=0):  # what the prior refuses
            jax.eval_shape(lambda: draw_weights(self._functional(x, default), self.prior))

    def to_config(self) -> dict[str, Any]:
        """As JSON; a network from outside credo.networks has none."""
        net = None if self.net is None else network_config(self.net) or OUTSIDE
        return {"prior": self.prior.to_config(), "net": net}

    @staticmethod
    def arguments(config: Mapping[str, Any]) -> dict[str, Any]:
        """What users passed for it."""
        net = config["net"]
        if net == OUTSIDE:
            raise ValueError(
                "noise_net was a network from outside credo.networks, which is not stored; make the model again and "
                "pass it: credo.load(folder, model=model)"
            )
        return {
            "errors": priors.from_config(config["prior"]),
            "noise_net": None if net is None else from_config(net),
        }

    def _net(self, default: int) -> Any:
        return MLP([NUM_UNITS], default, activation="tanh") if self.net is None else self.net

    def _functional(self, x: Array, default: int) -> Network:
        return functional(self._net(default), x)
