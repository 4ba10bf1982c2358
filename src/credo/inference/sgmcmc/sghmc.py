"""Stochastic gradient Hamiltonian Monte Carlo: SGD with momentum, and noise that its friction balances.

Paper, "MCMC algorithms based on the SGD dynamic": SGLD and its kin.

Chen, Fox & Guestrin, "Stochastic gradient Hamiltonian Monte Carlo" (2014), equation (15).
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from credo.inference.guide import Guide
from credo.inference.sgmcmc.dynamics import Dynamics
from credo.inference.sgmcmc.schedules import Schedule
from credo.inference.sgmcmc.sgld import SGLD
from credo.typing import Theta, Tree


@dataclass(frozen=True, kw_only=True)
class SGHMC(Dynamics):
    """Stochastic gradient Hamiltonian Monte Carlo, as SGD with momentum 1 − α and learning rate ε/2.

        v ← (1 − α) v + ε/2 · ∇log p(theta, D) + √(αε) · η,    theta ← theta + v,    η ~ N(0, I),    ε = step_size/N

    Chen et al. write η for the learning rate ε/2; their estimate of the gradient noise is zero here. With α = 1 this is
    `SGLD`, step for step. Where the posterior is wide, a step goes as far as 1/α steps of SGLD of the same size, and
    its bias is smaller: a normal posterior of precision λ is sampled with variance 1/(λ(1 − ελ/(8 − 4α))). But the
    gradient noise of minibatches counts up to 1/α times as much, too. At the default friction, the default step_size
    takes a chain as far as SGLD's own.

    Arguments:
        friction: α, above 0 and at most 1.

    >>> SGHMC(num_samples=500, num_warmup=1000, friction=0.05).plan().num_steps
    6000
    """

    guide: ClassVar[Guide] = replace(
        SGLD.guide,
        benefits="as SGLD, with momentum: further moves and a smaller bias",
        limits="gradient noise of small batches counts for more; a friction to set",
        use_cases="sampling with large data, where SGLD moves too slowly",
    )

    step_size: float | Schedule = 1e-3
    friction: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.friction <= 1:
            raise ValueError(f"friction must be above 0 and at most 1 (momentum is 1 − friction), got {self.friction}")

    def auxiliary(self, theta: Theta) -> Tree:
        """The velocity v."""
        return jax.tree.map(jnp.zeros_like, theta)

    def move(self, theta: Theta, drift: Theta, scale: Theta, noise: Theta, aux: Any) -> tuple[Theta, Any]:
        velocity = {
            name: (1 - self.friction) * last + drift[name] + self.friction**0.5 * scale[name] * noise[name]
            for name, last in aux.items()
        }
        return {name: theta[name] + velocity[name] for name in theta}, velocity
