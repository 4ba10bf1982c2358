"""A model whose prior is what is believed already: the posterior of the data before.

    log p(theta | before) = λ log q(theta) + (1 − λ) log p(theta)

with q the belief, p(theta) the model's own prior, and λ the share of the belief that is kept: 1 is Bayes' rule. Where
both are normal the natural parameters move towards those of the prior, λ Σ⁻¹ + (1 − λ) P: what a row said counts λᵏ
after k steps. With λ < 1 it is known up to a constant.
"""

from dataclasses import dataclass, field, fields
from typing import Any

import jax
import jax.numpy as jnp

from credo._precision import working_precision
from credo.models.program import Model
from credo.posterior.belief import Belief
from credo.typing import Array, Key, Theta


@dataclass(frozen=True, eq=False)
class Believed(Model):
    """A model with a belief in place of its prior. Its arrays are arguments of compiled code, not constants of it.

    Arguments:
        belief: q(theta), over all of theta.
        kept: λ.
        forgets: whether λ is below one.
    """

    belief: Belief = field(default=None)  # type: ignore[assignment]
    kept: Any = 1.0
    forgets: bool = False

    @classmethod
    def of(cls, model: Model, belief: Belief, kept: float = 1.0) -> "Believed":
        """The model, bound to its data, with that belief; a ValueError if the belief is of another theta."""
        expected = {name: leaf.shape for name, leaf in model.template.items()}
        found = {name: jnp.shape(leaf) for name, leaf in belief.centre.items()}
        if found != expected:
            names = sorted(name for name in expected | found if expected.get(name) != found.get(name))
            raise ValueError(
                "the model has another theta than what was learned before: "
                + "; ".join(f"{name}: {found.get(name)} before, {expected.get(name)} now" for name in names[:4])
            )
        return cls._made(model, belief, jnp.asarray(kept, working_precision()), kept < 1)

    @classmethod
    def _made(cls, model: Model, belief: Belief, kept: Any, forgets: bool) -> "Believed":
        own = {item.name: getattr(model, item.name) for item in fields(Model)}
        # What is made of the recipe has the prior of the recipe.
        return cls(**own | {"recipe": None}, belief=belief, kept=kept, forgets=forgets)

    @property
    def original(self) -> Model:
        """The model with its own prior."""
        return Model(**{item.name: getattr(self, item.name) for item in fields(Model)})

    @property
    def couples(self) -> bool:
        """Whether it correlates entries of theta."""
        own = self.forgets and bool(self.original.coupled_sites or self.original.factors)
        return own or not self.belief.is_diagonal

    @property
    def bytes_per_row(self) -> int:
        """As of the model with its own prior: the rows do not meet the belief."""
        return self.original.bytes_per_row

    # -- densities -------------------------------------------------------------------------------------------

    def _log_prior_of(
        self, theta: Theta, trace: dict[str, Any], log_jacobian: Array, moments: tuple[Theta, Theta] | None
    ) -> Array:
        believed = self._log_belief(theta, moments)
        if not self.forgets:
            return believed
        return self.kept * believed + (1 - self.kept) * super()._log_prior_of(theta, trace, log_jacobian, moments)

    def _log_belief(self, theta: Theta, moments: tuple[Theta, Theta] | None) -> Array:
        """log q(theta), or its expectation over theta with these moments, where it has one in closed form."""
        if moments is not None and self.belief.is_diagonal and moments[0].keys() >= self.belief.centre.keys():
            return self.belief.expected_log_density(*moments)
        return self.belief.log_density(theta)

    def log_factors(self, theta: Theta) -> Array:
        """None: conditions of the prior are a part of the belief."""
        return jnp.zeros(())

    @property
    def factors(self) -> frozenset[str]:
        return frozenset()

    @property
    def coupled_sites(self) -> frozenset[str]:
        return frozenset(self.template) if self.couples else frozenset()

    @property
    def hierarchical_sites(self) -> frozenset[str]:
        return self.original.hierarchical_sites if self.forgets else frozenset()

    # -- where to start --------------------------------------------------------------------------------------

    def initial_theta(self, key: Key) -> Theta:
        """A typical point of the belief: of a Gaussian, its mean."""
        return self.belief.typical()

    def sample_prior(self, key: Key, num: int) -> Theta:
        """`num` draws of theta from the belief."""
        return self.belief.draws(key, num)


def _flattened(model: Believed) -> tuple[tuple[Any, Any], tuple[Model, bool]]:
    return (model.belief, model.kept), (model.original, model.forgets)


def _unflattened(static: tuple[Model, bool], arrays: tuple[Any, Any]) -> Believed:
    return Believed._made(static[0], arrays[0], arrays[1], static[1])


jax.tree_util.register_pytree_node(Believed, _flattened, _unflattened)
