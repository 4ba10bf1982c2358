"""The networks and data of the MCMC benchmarks, for credo, for NumPyro, and written by hand."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

import credo

NOISE = 0.1
NUM_PROBES = 40


@dataclass(frozen=True)
class Problem:
    """A tanh network with weights N(0, 1) and known noise, on N points of a smooth function."""

    sizes: tuple[int, ...]
    num_data: int
    noise: float = NOISE

    @property
    def name(self) -> str:
        return f"{'-'.join(map(str, self.sizes))}, N={self.num_data:,}"

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(0)
        x = rng.normal(size=(self.num_data, self.sizes[0]))
        y = np.sin(x.sum(axis=1) / np.sqrt(self.sizes[0]) * 2) + self.noise * rng.normal(size=self.num_data)
        return x.astype(np.float32), y.astype(np.float32)

    def model(self) -> credo.Model:
        net = credo.networks.MLP(list(self.sizes[1:-1]), out=self.sizes[-1], activation="tanh")
        return credo.models.regression(net, noise=self.noise)

    def model_of_bde(self) -> credo.Model:
        """What sklearn-contrib-bde samples: ReLU units, weights N(0, 1), and a scale that the network gives too."""
        net = credo.networks.MLP(list(self.sizes[1:-1]), out=2, activation="relu")
        return credo.models.regression(net, noise="heteroscedastic")

    def probes(self) -> np.ndarray:
        """Inputs at which functions are compared."""
        x, _ = self.arrays()
        return x[np.linspace(0, len(x) - 1, NUM_PROBES).round().astype(int)]

    def numpyro_program(self) -> Callable[..., None]:
        def program(x: Any, y: Any = None) -> None:
            outputs = x
            for layer, (inputs, units) in enumerate(zip(self.sizes[:-1], self.sizes[1:], strict=True)):
                kernel = numpyro.sample(f"kernel{layer}", dist.Normal(0, 1).expand([inputs, units]).to_event(2))
                bias = numpyro.sample(f"bias{layer}", dist.Normal(0, 1).expand([units]).to_event(1))
                outputs = outputs @ kernel + bias
                outputs = jnp.tanh(outputs) if layer < len(self.sizes) - 2 else outputs
            with numpyro.plate("data", x.shape[0]):
                numpyro.sample("y", dist.Normal(outputs[:, 0], self.noise), obs=y)

        return program

    def unflatten(self, flat: Any) -> list[tuple[Any, Any]]:
        layers, first = [], 0
        for inputs, units in zip(self.sizes[:-1], self.sizes[1:], strict=True):
            kernel = flat[first : first + inputs * units].reshape(inputs, units)
            first += inputs * units
            layers.append((kernel, flat[first : first + units]))
            first += units
        return layers

    @property
    def num_parameters(self) -> int:
        return sum((inputs + 1) * units for inputs, units in zip(self.sizes[:-1], self.sizes[1:], strict=True))

    def apply(self, flat: Any, x: Any) -> Any:
        *hidden, (kernel, bias) = self.unflatten(flat)
        for hidden_kernel, hidden_bias in hidden:
            x = jnp.tanh(x @ hidden_kernel + hidden_bias)
        return (x @ kernel + bias)[:, 0]

    def hand_written(self) -> Callable[[Any], Any]:
        """The log density as one would write it by hand, on a flat vector."""
        x, y = map(jnp.asarray, self.arrays())

        def log_density(flat: Any) -> Any:
            return -0.5 * jnp.sum(flat**2) - 0.5 * jnp.sum((y - self.apply(flat, x)) ** 2) / self.noise**2

        return log_density

    def start(self) -> Any:
        return 0.1 * jax.random.normal(jax.random.key(0), (self.num_parameters,))


SMALL = Problem((1, 50, 1), 100)
MEDIUM = Problem((8, 50, 50, 1), 1_000)
LARGE = Problem((8, 50, 50, 1), 10_000)
