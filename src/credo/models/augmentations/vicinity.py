"""Points in the vicinity of a row: noise, and part of the way to a neighbour."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo import random
from credo._checks import require_at_least, require_positive
from credo._precision import working_precision
from credo.models.augmentations.augmentation import Augmentation
from credo.typing import Array, Key


@dataclass(frozen=True)
class Noise(Augmentation):
    """See `noise`.

    >>> from credo import augmentations
    >>> augmentations.noise(0.1)
    Noise(scale=0.1)
    """

    name = "noise"
    scale: float | tuple[float, ...]

    def __call__(self, key: Key, x: Array, **constants: Any) -> Array:
        return x + jnp.asarray(self.scale, x.dtype) * random.normal(key, x.shape)

    def check(self, shape: tuple[int, ...]) -> None:
        if isinstance(self.scale, tuple) and len(self.scale) != shape[-1]:
            raise ValueError(f"noise: there are {len(self.scale)} scales for rows of {shape[-1]} columns")


@dataclass(frozen=True)
class Interpolate(Augmentation):
    """See `interpolate`.

    >>> from credo import augmentations
    >>> augmentations.interpolate(0.5)
    Interpolate(reach=0.5, nearest_of=8)
    """

    name = "interpolate"
    reach: float
    nearest_of: int

    def constants(self, x: np.ndarray) -> dict[str, np.ndarray]:
        return {"points": np.asarray(x, working_precision())}

    def __call__(self, key: Key, x: Array, **constants: Any) -> Array:
        points = jnp.asarray(constants["points"])
        choice_key, reach_key = jax.random.split(key)
        others = points[jax.random.randint(choice_key, (self.nearest_of,), 0, points.shape[0])]
        distances = jnp.sum((others - x) ** 2, axis=tuple(range(1, others.ndim)))
        # A point is not its own neighbour.
        nearest = others[jnp.argmin(jnp.where(distances > 0, distances, jnp.inf))]
        return x + self.reach * jax.random.uniform(reach_key) * (nearest - x)


def noise(scale: Any = 0.1) -> Noise:
    """x′ ~ N(x, scale²): errors of measurement, vicinal risk (Chapelle et al., 2000).

    Arguments:
        scale: in the user's units; one number, or one per column.

    >>> noise(0.1)(random.key(0), jnp.zeros(3)).shape
    (3,)
    """
    scales = np.asarray(scale)
    if scales.ndim > 1 or scales.dtype.kind not in "iuf" or not np.all((scales >= 0) & (scales < np.inf)):
        raise ValueError(f"scale must be a number, or one per column, not below zero, got {scale!r}")
    if not scales.any():
        raise ValueError(f"scale is {scale!r}: that is no noise")
    return Noise(tuple(map(float, scales)) if scales.ndim else float(scales))


def interpolate(reach: float = 0.5, *, nearest_of: int = 8) -> Interpolate:
    """x′ = x + u (xⱼ − x), u ~ U(0, reach): part of the way to a training input nearby. Mixup's honest relative.

    Mixup also mixes the labels, λ log p(yᵢ | x′) + (1 − λ) log p(yⱼ | x′): each label counts in many pairs, and what is
    raised to the power λ is no density of anything observed, so there is no posterior behind it. Here x′ is integrated
    out and each label counts once. It assumes that the label stays that of x up to `reach` of the way, half-way at
    most.

    Arguments:
        reach: at most 0.5, from where on xⱼ is nearer.
        nearest_of: xⱼ is the nearest of so many training inputs, drawn at random: with 1 anyone, with more a neighbour.

    >>> points = {"points": jnp.array([[0.0], [1.0]])}
    >>> bool(0 <= interpolate(0.5)(random.key(0), jnp.array([0.0]), **points)[0] <= 0.5)
    True

    Reference: Zhang et al., 2018, mixup: beyond empirical risk minimization.
    """
    require_positive(reach=reach)
    require_at_least(1, nearest_of=nearest_of)
    if reach > 0.5:
        raise ValueError(f"reach must be at most 0.5, got {reach!r}: beyond half-way x′ is another point's neighbour")
    return Interpolate(float(reach), int(nearest_of))
