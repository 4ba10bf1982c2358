"""Regularisers as priors: minimising loss + reg(w) is maximising p(D | w) p(w) with p(w) ∝ exp(−reg(w)).

Paper, "The link between regularization and priors".
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import gammaln
from numpyro.distributions import constraints

from credo._checks import require_one_of, require_positive
from credo._precision import working_precision
from credo.models.priors.base import Described, Parameter, Prior, positive
from credo.models.priors.independent import Laplace, Normal
from credo.typing import Array, Key

Penalty = Callable[[Array], Array]
NAMES = ("l1", "l2", "group_lasso")


class RadialLaplace(dist.Distribution):
    """The density of vectors that depends on their length alone, and falls like a Laplace density:

        p(w) = strength^d / (S_d Γ(d)) · exp(−strength ‖w‖),    S_d = 2 π^(d/2) / Γ(d/2)

    with S_d the surface of the unit sphere in d dimensions: the length is Gamma(d, strength), the direction uniform.

    >>> round(float(RadialLaplace(2.0, 1).log_prob(jnp.array([0.5]))), 4), float(dist.Laplace(0.0, 0.5).log_prob(0.5))
    (-1.0, -1.0)
    """

    arg_constraints = {"strength": constraints.positive}  # noqa: RUF012
    support = constraints.real_vector

    def __init__(self, strength: float, size: int, *, validate_args: bool | None = None) -> None:
        self.strength = strength
        super().__init__(batch_shape=(), event_shape=(size,), validate_args=validate_args)

    def sample(self, key: Key, sample_shape: tuple[int, ...] = ()) -> Array:
        of_direction, of_length = jax.random.split(key)
        vector = jax.random.normal(of_direction, (*sample_shape, *self.event_shape))
        length = jax.random.gamma(of_length, float(self.event_shape[0]), (*sample_shape, 1)) / self.strength
        return length * vector / jnp.linalg.norm(vector, axis=-1, keepdims=True)

    def log_prob(self, value: Array) -> Array:
        size = self.event_shape[0]
        log_surface = jnp.log(2.0) + size / 2 * jnp.log(jnp.pi) - gammaln(size / 2)
        return size * jnp.log(self.strength) - log_surface - gammaln(float(size)) - self.strength * _norm(value)


class Unnormalised(dist.Distribution):
    """exp(−strength · reg(w)), up to a constant that nobody knows.

    Optimisers and samplers need no more, but draws of it cannot be made: `sample` gives N(0, 1), places to start from,
    and `draws_are_starts` tells whoever would take them for draws of the prior.

    >>> import jax.numpy as jnp
    >>> from credo import priors
    >>> law = priors.from_regularizer(lambda w: jnp.sum(w**4))(priors.Parameter("head.bias", (2,)))
    >>> law.draws_are_starts
    True
    """

    arg_constraints = {"strength": constraints.positive}  # noqa: RUF012
    draws_are_starts = True

    def __init__(
        self, penalty: Penalty, strength: float, shape: tuple[int, ...], *, validate_args: bool | None = None
    ) -> None:
        self.penalty, self.strength = penalty, strength
        super().__init__(batch_shape=(), event_shape=shape, validate_args=validate_args)

    @property
    def support(self) -> Any:
        return constraints.independent(constraints.real, len(self.event_shape))

    def sample(self, key: Key, sample_shape: tuple[int, ...] = ()) -> Array:
        return jax.random.normal(key, (*sample_shape, *self.event_shape))

    def log_prob(self, value: Array) -> Array:
        penalty = self.penalty
        for _ in range(jnp.ndim(value) - len(self.event_shape)):
            penalty = jax.vmap(penalty)
        return -self.strength * penalty(value)


@dataclass(frozen=True)
class GroupLasso(Described):
    """exp(−strength Σ ‖w_g‖): what leaves one input of a kernel is a group; a vector is one. See `from_regularizer`.

    >>> from credo import priors
    >>> priors.group_lasso(2.0)
    GroupLasso(strength=2.0)
    """

    name = "group_lasso"
    strength: float = 1.0

    def __call__(self, parameter: Parameter) -> dist.Distribution:
        if not parameter.shape:
            return dist.Laplace(0.0, 1 / self.strength)
        *inputs, size = parameter.shape
        return RadialLaplace(self.strength, size).expand(inputs).to_event(len(inputs))


@dataclass(frozen=True)
class Regularized:
    """exp(−strength · penalty(w)) of a function of the user's. See `from_regularizer`.

    >>> import jax.numpy as jnp
    >>> from credo import priors
    >>> prior = priors.from_regularizer(lambda w: jnp.sum(w**4), 0.5)
    >>> float(prior(priors.Parameter("head.bias", (2,))).log_prob(jnp.array([1.0, 1.0])))
    -1.0
    """

    penalty: Penalty
    strength: float = 1.0

    def __call__(self, parameter: Parameter) -> dist.Distribution:
        _check_penalty(self.penalty, parameter)
        return Unnormalised(self.penalty, self.strength, parameter.shape)

    def to_config(self) -> dict[str, Any]:
        # Functions are code, which is not stored; making the prior again fails with a clear error.
        return {"name": "regularizer", "function": _name(self.penalty), "strength": self.strength}


def from_regularizer(regularizer: str | Penalty, strength: float = 1.0) -> Prior:
    """The prior p(w) ∝ exp(−strength · reg(w)): its MAP is the minimum of loss + strength · reg(w).

    The loss is −log p(D | w), summed over the rows. Paper, "The link between regularization and priors":

        "l2"           strength Σ w²       N(0, 1/(2 strength))
        "l1"           strength Σ |w|      Laplace(0, 1/strength)
        "group_lasso"  strength Σ ‖w_g‖    strength^d / (S_d Γ(d)) exp(−strength ‖w_g‖) for each group of d weights:
                                           what leaves one input of a kernel (its last axis), or a whole bias

    Arguments:
        regularizer: a name, or a function `reg(w)` of one array that gives a number, zero or more. The density of a
            function is known up to a constant, and no draws of it can be made: fit it with a method that starts
            anywhere (MAP, samplers, variational inference). It must grow with w, or else there is no such prior.
        strength: positive.

    >>> from_regularizer("l2", 2.0), from_regularizer("l1", 2.0)
    (Normal(scale=0.5), Laplace(scale=0.5))
    """
    require_positive(strength=strength)
    if callable(regularizer):
        return Regularized(regularizer, float(strength))
    require_one_of(NAMES, regularizer=regularizer)
    if regularizer == "l2":
        return Normal(float(np.sqrt(1 / (2 * strength))))
    return Laplace(1 / float(strength)) if regularizer == "l1" else GroupLasso(float(strength))


def group_lasso(strength: float = 1.0) -> GroupLasso:
    """exp(−strength Σ ‖w_g‖): `from_regularizer("group_lasso", strength)` by its name, as it is stored.

    Yuan and Lin, "Model selection and estimation in regression with grouped variables" (2006).

    >>> group_lasso(2.0)(Parameter("hidden.kernel", (3, 5))).event_shape
    (3, 5)
    """
    return GroupLasso(positive("strength", strength))


def _norm(vector: Array) -> Array:
    """‖w‖ along the last axis; at zero, where it has no gradient, the gradient is zero."""
    square = jnp.sum(vector**2, axis=-1)
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)


def _check_penalty(penalty: Penalty, parameter: Parameter) -> None:
    """Refuse what is no penalty, at a value that is as good as any."""
    value = np.random.default_rng(0).normal(size=parameter.shape).astype(working_precision())
    with jax.ensure_compile_time_eval():
        found = np.asarray(penalty(jnp.asarray(value)))
    if found.shape or not np.isfinite(found) or found < 0:
        what = f"an array of shape {found.shape}" if found.shape else f"{found}"
        raise ValueError(
            f"regularizer: {_name(penalty)} gives {what} for {parameter.path!r}; it must give one finite number, "
            "zero or more"
        )


def _name(function: Any) -> str:
    return getattr(function, "__qualname__", type(function).__name__)
