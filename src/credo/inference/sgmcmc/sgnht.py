"""The stochastic gradient Nosé–Hoover thermostat: momentum whose friction finds out how noisy the gradients are.

Ding et al., "Bayesian sampling using stochastic gradient thermostats" (2014).
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp

from credo.inference.guide import Guide
from credo.inference.plan import Plan
from credo.inference.sgmcmc.sghmc import SGHMC
from credo.typing import Array, Theta, Tree


class Thermostat(NamedTuple):
    velocity: Theta
    friction: Array


@dataclass(frozen=True, kw_only=True)
class SGNHT(SGHMC):
    """`SGHMC` with a friction α that a thermostat sets: it rises while v is hotter than the posterior allows.

        v ← (1 − α) v + ε/2 · ∇log p(theta, D) + √(aε) · η,    theta ← theta + v,
        α ← α + a² ((2 − α)|v|²/nε − 1)    for n parameters: in `SGHMC`, v has variance ε/(2 − α)

    With exact gradients α stays around a. The noise of minibatches, whatever its size, raises α by as much as it adds,
    and does not widen the posterior, if all parameters have about the same of it. The thermostat takes it to be white,
    so batches are drawn independently of each other. Far from the posterior v is hot: α goes no further than 1.

    `friction` is a, the α of exact gradients.

    >>> SGNHT(friction=0.05).plan().num_steps
    15000
    """

    guide: ClassVar[Guide] = replace(
        SGHMC.guide,
        benefits="as SGHMC, and its friction absorbs the gradient noise of minibatches",
        limits="one thermostat for all parameters; biased by its step size",
        use_cases="sampling with small minibatches",
    )

    def plan(self) -> Plan:
        return replace(super().plan(), independent_batches=True)

    def auxiliary(self, theta: Theta) -> Tree:
        return Thermostat(super().auxiliary(theta), jnp.array(self.friction))

    def move(self, theta: Theta, drift: Theta, scale: Theta, noise: Theta, aux: Any) -> tuple[Theta, Any]:
        velocity = {
            name: (1 - aux.friction) * last + drift[name] + self.friction**0.5 * scale[name] * noise[name]
            for name, last in aux.velocity.items()
        }
        heat = sum(jnp.sum((last / scale[name]) ** 2) for name, last in velocity.items())
        excess = (2 - aux.friction) * heat / sum(last.size for last in velocity.values()) - 1
        friction = jnp.minimum(aux.friction + self.friction**2 * excess, 1.0)
        return {name: theta[name] + velocity[name] for name in theta}, Thermostat(velocity, friction)
