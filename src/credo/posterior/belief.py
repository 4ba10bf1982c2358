"""A density of theta as the prior of what comes next: p(theta | D₁, D₂) ∝ p(D₂ | theta) p(theta | D₁)."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp

from credo.covariance import Diagonal, Root
from credo.covariance.warp import Warp
from credo.typing import Array, Key, Theta


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Belief:
    """q(theta) over the unconstrained theta: theta = centre + √Σ ε, or √Σ f(ε) of a flow.

    Arguments:
        centre: theta where the offset is zero.
        spread: √Σ, or √Σ f, of `credo.covariance`.
    """

    centre: Theta
    spread: Root | Warp

    @property
    def is_diagonal(self) -> bool:
        """Whether it is normal and independent for every entry."""
        return isinstance(self.spread, Diagonal)

    def log_density(self, theta: Theta) -> Array:
        """log q(theta)."""
        return self.spread.log_density(self._offset(theta))

    def expected_log_density(self, mean: Theta, variance: Theta) -> Array:
        """E[log q(theta)] over any theta with these moments, for a diagonal q: log q(mean) − ½ Σ variance/scale²."""
        scale = self.spread.scale  # type: ignore[union-attr]
        wider = sum((jnp.sum(variance[name] / scale[name] ** 2) for name in self.centre), jnp.zeros(()))
        return self.log_density(mean) - 0.5 * wider

    def typical(self) -> Theta:
        """theta where ε is zero: the mean of a Gaussian, amid the mass of a flow."""
        if isinstance(self.spread, Root):
            return dict(self.centre)
        size = sum(jnp.size(leaf) for leaf in self.centre.values())
        offset = self.spread.offset_and_log_q(jnp.zeros(size))[0]
        return {name: leaf + offset[name] for name, leaf in self.centre.items()}

    @partial(jax.jit, static_argnames="num")
    def draws(self, key: Key, num: int) -> Theta:
        """`num` draws of theta: every leaf gains a leading axis."""

        def draw(key: Key) -> Theta:
            offset = self.spread.draw_and_log_q(key)[0]
            return {name: leaf + offset[name] for name, leaf in self.centre.items()}

        return jax.lax.map(draw, jax.random.split(key, num))

    def _offset(self, theta: Theta) -> Theta:
        return {name: theta[name] - leaf for name, leaf in self.centre.items()}
