"""What all samplers share: chains that warm up, then keep one draw every few steps."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
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
        theta = jax.vmap(jax.vmap(lambda position: unravel_theta(model, position)))(outcome.draws)
        return outcome.to_draws(self.to_config(), model, theta)


def log_density(model: Model, batch: Batch) -> Callable[[Array], Array]:
    """log p(theta, D) as a function of the flat vector."""
    return lambda position: model.log_joint(unravel_theta(model, position), batch)


def flat(theta: Theta) -> Array:
    """All numbers of theta as one vector."""
    return ravel_pytree(theta)[0]


def unravel_theta(model: Model, position: Array) -> Theta:
    """theta from the flat vector of all its numbers."""
    zeros = {name: jnp.zeros(leaf.shape, leaf.dtype) for name, leaf in model.template.items()}
    return ravel_pytree(zeros)[1](position)
