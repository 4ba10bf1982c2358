"""The stochastic gradient Nosé–Hoover thermostat: momentum whose friction finds out how noisy the gradients are.

Ding et al., "Bayesian sampling using stochastic gradient thermostats" (2014).
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp

from credo.inference.guide import Guide
from credo.inference.sgmcmc.sghmc import SGHMC
from credo.typing import Array, Theta, Tree


class Thermostat(NamedTuple):
    velocity: Theta
    friction: Array


@dataclass(frozen=True)
class SGNHT(SGHMC):
    """`SGHMC` with a friction α that a thermostat sets: it rises while v is hotter than the posterior allows.

        v ← (1 − α) v + ε/2 · ∇log p(theta, D) + √(aε) · η,    theta ← theta + v,    α ← α + a² (|v|²/(nε/2) − 1)

    for n parameters. Where the gradients are exact, α stays around a. The noise of minibatches, whatever its size,
    makes α larger by as much as it adds, and does not widen the posterior, if all parameters have about the same of it.

    Arguments:
        friction: a, above 0 and at most 1: the α of exact gradients.

    >>> SGNHT(num_samples=500, num_warmup=1000).plan().num_steps
    6000
    """

    guide: ClassVar[Guide] = replace(
        SGHMC.guide,
        benefits="as SGHMC, and its friction absorbs the gradient noise of minibatches",
        limits="one thermostat for all parameters; biased by its step size",
        use_cases="sampling with small minibatches",
    )

    def auxiliary(self, theta: Theta) -> Tree:
        return Thermostat(super().auxiliary(theta), jnp.array(self.friction))

    def move(self, theta: Theta, drift: Theta, scale: Theta, noise: Theta, aux: Any) -> tuple[Theta, Any]:
        velocity = {
            name: (1 - aux.friction) * last + drift[name] + self.friction**0.5 * scale[name] * noise[name]
            for name, last in aux.velocity.items()
        }
        heat = sum(jnp.sum((last / scale[name]) ** 2) for name, last in velocity.items())
        excess = 2 * heat / sum(last.size for last in velocity.values()) - 1
        moved = {name: theta[name] + velocity[name] for name in theta}
        return moved, Thermostat(velocity, aux.friction + self.friction**2 * excess)
