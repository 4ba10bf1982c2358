"""A normal prior whose means and covariance were learned on other data: what `from_posterior` makes.

Paper, "Meta-learning, transfer learning, and self-supervised learning": p(theta | ξ) = N((sel(ξ), 0), Σ).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.distributions import constraints

from credo._precision import working_precision
from credo.models.priors.base import Drawn, Parameter, Prior, draw, inputs_of
from credo.typing import Array, Key

TransferStructure = Literal["full", "diagonal"]


class JointNormal(dist.Distribution):
    """One array of several that are jointly normal, given those before it.

    With A the inverse of the Cholesky root of the covariance, A (w − mean) ~ N(0, I): what the rows of one array say
    is z = shift + root (w − loc), with `shift` what the arrays before it add.

    Arguments:
        loc: the mean, in the shape of the array.
        root: the square block of A on the diagonal, (n, n), lower triangular.
        shift: (n,).

    >>> import jax
    >>> import jax.numpy as jnp
    >>> from credo import priors
    >>> law = priors.JointNormal(jnp.array([1.0, 2.0]), 2.0 * jnp.eye(2), jnp.zeros(2))
    >>> law.sample(jax.random.key(0)).shape, round(float(law.log_prob(jnp.array([1.0, 2.0]))), 3)
    ((2,), -0.452)
    """

    arg_constraints = {"loc": constraints.real, "root": constraints.real}  # noqa: RUF012
    pytree_data_fields = ("loc", "root", "shift")
    couples_entries = True

    def __init__(self, loc: Array, root: Array, shift: Array, *, validate_args: bool | None = None) -> None:
        self.loc, self.root, self.shift = loc, root, shift
        super().__init__(batch_shape=(), event_shape=jnp.shape(loc), validate_args=validate_args)

    @property
    def support(self) -> Any:
        return constraints.independent(constraints.real, len(self.event_shape))

    def sample(self, key: Key, sample_shape: tuple[int, ...] = ()) -> Array:
        noise = jax.random.normal(key, (self.root.shape[0], math.prod(sample_shape))) - self.shift[:, None]
        offset = jax.scipy.linalg.solve_triangular(self.root, noise, lower=True).T
        return self.loc + offset.reshape(*sample_shape, *self.event_shape)

    def log_prob(self, value: Array) -> Array:
        size = self.root.shape[0]
        offset = (value - self.loc).reshape(*jnp.shape(value)[: jnp.ndim(value) - len(self.event_shape)], size)
        white = self.shift + offset @ self.root.T
        log_det = jnp.sum(jnp.log(jnp.diagonal(self.root)))
        return log_det - 0.5 * jnp.sum(white**2, axis=-1) - 0.5 * size * math.log(2 * math.pi)


@dataclass(frozen=True, eq=False)
class Transferred:
    """N(mean, covariance) over some arrays of a network, and another prior for the others. See `from_posterior`.

    The numbers are inputs of the model, `prior.<path>.…`, so that they are saved with its posterior.

    Arguments:
        shapes: of the arrays, in the order in which each depends on those before it.
        structure: "full", or "diagonal".
        others: the prior of all other arrays.
        arrays: by the names of the model's inputs; None where the prior comes from a configuration.
        noise: what is known of the noise scale, a prior for `noise=`; None where it was not selected.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.3)
    >>> first = credo.fit(model, credo.datasets.gap(20), credo.ClosedForm())
    >>> prior = credo.priors.from_posterior(first)
    >>> prior.structure, prior.shapes
    ('full', {'head.bias': (1,), 'head.kernel': (1, 1)})
    """

    shapes: dict[str, tuple[int, ...]]
    structure: TransferStructure
    others: Prior
    arrays: dict[str, np.ndarray] | None = field(default=None, repr=False)
    noise: dist.Distribution | None = None

    @classmethod
    def of(
        cls, mean: Mapping[str, np.ndarray], spread: Mapping[str, np.ndarray] | np.ndarray, others: Prior, **more: Any
    ) -> "Transferred":
        """From means by path, and standard deviations by path, or the covariance of all entries in that order."""
        arrays = {_mean(path): value for path, value in mean.items()}
        if isinstance(spread, np.ndarray):
            arrays |= _rows_of_inverse_root(mean, spread)
        else:
            arrays |= {_scale(path): spread[path] for path in mean}
        structure: Any = "full" if isinstance(spread, np.ndarray) else "diagonal"
        single = {name: np.asarray(value, working_precision()) for name, value in arrays.items()}
        return cls({path: value.shape for path, value in mean.items()}, structure, others, single, **more)

    def __call__(self, parameter: Parameter) -> dist.Distribution:
        if parameter.path not in self.shapes:
            return self.others(parameter)
        if self.structure == "full":
            raise ValueError(
                f"prior: {parameter.path!r} depends on other arrays here, so it has no distribution of its own; draw "
                "it with credo.models.priors.draw(prior, parameter, {})"
            )
        return self._law(parameter.path, {})

    def draw(self, parameter: Parameter, drawn: Drawn) -> Array:
        path = parameter.path
        if path not in self.shapes:
            return draw(self.others, parameter, drawn)
        if parameter.shape != self.shapes[path]:
            raise ValueError(
                f"prior: {path!r} has shape {parameter.shape} in this network and {self.shapes[path]} in the posterior "
                "that the prior comes from; leave it out, select=…, or give the layers the same size"
            )
        return self._drawn(path, drawn)

    def _drawn(self, path: str, drawn: Drawn) -> Array:
        if path not in drawn:
            drawn[path] = self, numpyro.sample(path, self._law(path, drawn))
        return drawn[path][1]

    def _law(self, path: str, drawn: Drawn) -> dist.Distribution:
        mean = self._number(_mean(path), drawn)
        if self.structure == "diagonal":
            return dist.Normal(mean, self._number(_scale(path), drawn)).to_event(len(self.shapes[path]))
        before = list(self.shapes)[: list(self.shapes).index(path)]
        offsets = [jnp.ravel(self._drawn(one, drawn) - self._number(_mean(one), drawn)) for one in before]
        rows = jnp.asarray(self._number(_root(path), drawn))
        place = rows.shape[1] - rows.shape[0]
        shift = rows[:, :place] @ jnp.concatenate([jnp.zeros(0), *offsets])
        return JointNormal(jnp.asarray(mean), rows[:, place:], shift)

    def _number(self, name: str, drawn: Drawn) -> Any:
        """One of the arrays: an input of the model, or as it was given."""
        if name in drawn:
            return drawn[name][1]
        if self.arrays is None:
            raise ValueError(_UNKNOWN)
        return self.arrays[name]

    def check(self, paths: list[str]) -> None:
        """Refuse a network that lacks some of the arrays."""
        absent = [path for path in self.shapes if path not in paths]
        if absent:
            raise ValueError(
                f"prior: the network has no {', '.join(absent)}, which the posterior has handed over; its arrays are "
                f"{', '.join(paths)}. Select fewer, such as select='features.*'"
            )

    def inputs(self) -> dict[str, np.ndarray]:
        """What the model must hold, by name."""
        if self.arrays is None:
            raise ValueError(_UNKNOWN)
        return self.arrays | inputs_of(self.others)

    def to_config(self) -> dict[str, Any]:
        shapes = {path: list(shape) for path, shape in self.shapes.items()}
        return {"name": "transferred", "shapes": shapes, "structure": self.structure, "others": self.others.to_config()}


_UNKNOWN = (
    "prior: its means and covariance came from a posterior, and are saved with the posterior of a model, not with its "
    "description; make it again with credo.priors.from_posterior(…)"
)


def _mean(path: str) -> str:
    return f"prior.{path}.mean"


def _scale(path: str) -> str:
    return f"prior.{path}.scale"


def _root(path: str) -> str:
    return f"prior.{path}.root"


def _rows_of_inverse_root(mean: Mapping[str, np.ndarray], covariance: np.ndarray) -> dict[str, np.ndarray]:
    """Rows of A, Σ⁻¹ = AᵀA, for each array: (its entries, those before it and its own)."""
    try:
        root = np.linalg.cholesky(np.asarray(covariance, np.float64))
    except np.linalg.LinAlgError as error:
        raise ValueError(
            "structure='full' needs a covariance of full rank, and this one has directions without any spread; take "
            "structure='diagonal'"
        ) from error
    inverse, first = np.linalg.inv(root), 0
    found = {}
    for path, value in mean.items():
        last = first + np.size(value)
        found[_root(path)] = np.tril(inverse)[first:last, :last]
        first = last
    return found
