"""What all samplers share: chains that warm up, then keep one draw every few steps."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from credo._checks import require_at_least
from credo.inference.method import Method, require_start
from credo.inference.outcome import Outcome
from credo.inference.plan import Plan
from credo.models.program import Model
from credo.posterior import Draws
from credo.typing import Array, Batch, Theta

# What to try when a sampler goes non-finite.
START_WHERE_FINITE = "start where the density is finite: start=credo.MAP(), or a narrower prior"

# Chains use one core each, and gradients of all rows wait for memory unless what they compute stays in its cache: a
# gradient of 9-100-1 on 40,000 rows took 0.55 of the time in blocks, and as much with half and with twice this.
BYTES_IN_CACHE = 2**20


@dataclass(frozen=True, kw_only=True)
class Sampler(Method):
    """Draws of theta in chains.

    Arguments:
        num_samples: draws kept per chain.
        num_warmup: steps that tune the sampler, and are dropped.
        num_chains: independent chains, spread over the cores.
        thin: steps per kept draw.
        start: "prior" (over-dispersed draws), "network" (its own values), or a method to run first, such as
            `credo.MAP()`.
    """

    num_samples: int = 1000
    num_warmup: int = 1000
    num_chains: int = 4
    thin: int = 1
    start: str | Method = "prior"

    def __post_init__(self) -> None:
        require_at_least(1, num_samples=self.num_samples, num_chains=self.num_chains, thin=self.thin)
        require_at_least(0, num_warmup=self.num_warmup)
        require_start(self.start)

    def plan(self) -> Plan:
        counts = (self.num_samples, self.num_warmup, self.thin, self.num_chains)
        return Plan(*counts, start=self.start, leaves_draws=True, fixed_density=True)

    def posterior(self, model: Model, outcome: Outcome) -> Draws:
        return outcome.to_draws(self.to_config(), model, outcome.draws)


class FlatSampler(Sampler):
    """A sampler on the flat vector of all numbers in theta, which is cheaper per gradient than the tree."""

    def posterior(self, model: Model, outcome: Outcome) -> Draws:
        return outcome.to_draws(self.to_config(), model, split_theta(model, outcome.draws))


def log_density(model: Model, batch: Batch) -> Callable[[Array], Array]:
    """log p(theta, D) as a function of the flat vector; of many rows, in blocks that stay in a core's own cache."""

    def of_position(position: Array) -> Array:
        return model.log_joint(unravel_theta(model, position), batch, activation_bytes=BYTES_IN_CACHE)

    return of_position


def flat(theta: Theta) -> Array:
    """All numbers of theta as one vector."""
    return ravel_pytree(theta)[0]


def split_theta(model: Model, positions: np.ndarray) -> Theta:
    """The same for positions (…, D) that have left the device: views, for which nothing is compiled."""
    shapes = {name: model.template[name].shape for name in sorted(model.template)}
    parts = np.split(positions, np.cumsum([math.prod(shape) for shape in shapes.values()])[:-1], axis=-1)
    leading = positions.shape[:-1]
    return {name: part.reshape(*leading, *shapes[name]) for name, part in zip(shapes, parts, strict=True)}


def unravel_theta(model: Model, position: Array) -> Theta:
    """theta from the flat vector of all its numbers."""
    zeros = {name: jnp.zeros(leaf.shape, leaf.dtype) for name, leaf in model.template.items()}
    return ravel_pytree(zeros)[1](position)
