"""Likelihoods: the distribution of y around the network's output.

A `Noise` turns network outputs into p(y | x, theta) for regression. What it draws outside the plate `data`
(a noise scale, a correlation matrix) is part of theta.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from credo._checks import require_one_of
from credo.models.priors import Described, distribution_from_config, distribution_to_config
from credo.typing import Array


class Noise(Protocol):
    """How targets scatter around the network's output."""

    def num_outputs(self, num_targets: int) -> int:
        """How many outputs per row the network must have."""

    def draw(self, num_targets: int) -> Any:
        """The latents of the noise, outside the plate `data`."""

    def around(self, outputs: Array, drawn: Any) -> dist.Distribution:
        """p(y | outputs), for outputs of shape (rows, num_outputs)."""

    def to_config(self) -> dict[str, Any]: ...


def num_targets(noise: Noise, outputs: int) -> int:
    """How many targets a network with so many outputs is for."""
    return outputs // noise.num_outputs(1)


def means(noise: Noise, outputs: Array) -> Array:
    """The outputs that are means of targets, which come first."""
    return outputs[..., : num_targets(noise, outputs.shape[-1])]


class _Independent(Described):
    """The outputs are the means of independent targets; what is drawn is their scales."""

    def num_outputs(self, num_targets: int) -> int:
        return num_targets

    def around(self, outputs: Array, drawn: Array) -> dist.Distribution:
        return _normal(outputs, drawn)


class _Correlated(_Independent):
    """The outputs are the means of correlated targets; what is drawn is a Cholesky root of their covariance."""

    def around(self, outputs: Array, drawn: Array) -> dist.Distribution:
        return dist.MultivariateNormal(outputs, scale_tril=drawn)


@dataclass(frozen=True)
class Fixed(_Independent):
    """y ~ N(f(x), scale²) with a known scale: one number, or one per output."""

    name = "fixed"
    scale: float | tuple[float, ...]

    def draw(self, num_targets: int) -> Array:
        return jnp.asarray(self.scale)


@dataclass(frozen=True)
class FixedCovariance(_Correlated):
    """y ~ N(f(x), Σ) with a known full covariance between the outputs."""

    name = "fixed_covariance"
    covariance: tuple[tuple[float, ...], ...]

    def draw(self, num_targets: int) -> Array:
        return jnp.linalg.cholesky(jnp.asarray(self.covariance))


@dataclass(frozen=True, eq=False)
class Learned(_Independent):
    """y ~ N(f(x), diag(noise²)), noise ~ prior: one positive scale per output, part of theta."""

    name = "learned"
    prior: dist.Distribution

    def draw(self, num_targets: int) -> Array:
        if num_targets == 1:
            return numpyro.sample("noise", self.prior)
        return numpyro.sample("noise", self.prior.expand([num_targets]).to_event(1))

    def to_config(self) -> dict[str, Any]:
        return {"name": self.name, **distribution_to_config(self.prior)}


@dataclass(frozen=True)
class Tuned(_Independent):
    """y ~ N(f(x), diag(noise²)) with noise one of xi: tuned by the evidence or the ELBO, without a prior.

    It starts at `scale`: 1 is the noise of standardised targets of which nothing is explained yet.
    """

    name = "tuned"
    scale: float = 1.0

    def draw(self, num_targets: int) -> Array:
        start = jnp.full(() if num_targets == 1 else (num_targets,), self.scale)
        return numpyro.param("noise", start, constraint=dist.constraints.positive)


@dataclass(frozen=True)
class FullCovariance(_Correlated):
    """y ~ N(f(x), Σ), Σ = diag(s) C diag(s), s ~ HalfNormal(scale), C ~ LKJ(concentration): all learned."""

    name = "full"
    scale: float = 1.0
    concentration: float = 1.0

    def draw(self, num_targets: int) -> Array:
        scales = numpyro.sample("noise", dist.HalfNormal(self.scale).expand([num_targets]).to_event(1))
        correlation = numpyro.sample("noise_correlation", dist.LKJCholesky(num_targets, self.concentration))
        return scales[..., None] * correlation


@dataclass(frozen=True)
class Heteroscedastic(Described):
    """y ~ N(f(x), s(x)²): the second half of the network's outputs is the scale, through a softplus.

    `minimum` keeps the density of a perfectly fitted point finite.
    """

    name = "heteroscedastic"
    minimum: float = 1e-3

    def num_outputs(self, num_targets: int) -> int:
        return 2 * num_targets

    def draw(self, num_targets: int) -> None:
        return None

    def around(self, outputs: Array, drawn: None) -> dist.Distribution:
        mean, raw = jnp.split(outputs, 2, axis=-1)
        return _normal(mean, self.minimum + jax.nn.softplus(raw))


@dataclass(frozen=True)
class HeavyTailed(Described):
    """y ~ StudentT(3 + tail, f(x), s(x)), log s(x) the second half of the network's outputs, tail ~ Gamma(2, 0.1).

    A few targets far off do not pull the function, nor widen the noise of all others. The prior of the tail is that of
    Juárez and Steel (2010); with more than three degrees of freedom the noise has a variance whatever the tail.
    `minimum`, one number or one for each target, bounds the scale from below: see `credo.models.table`.
    """

    name = "heavy_tailed"
    minimum: float | tuple[float, ...] = 1e-3

    def __post_init__(self) -> None:
        if not isinstance(self.minimum, float):  # as JSON has it
            object.__setattr__(self, "minimum", tuple(self.minimum))

    def num_outputs(self, num_targets: int) -> int:
        return 2 * num_targets

    def draw(self, num_targets: int) -> Array:
        prior = dist.Gamma(2.0, 0.1)
        return numpyro.sample("tail", prior if num_targets == 1 else prior.expand([num_targets]).to_event(1))

    def around(self, outputs: Array, drawn: Array) -> dist.Distribution:
        mean, log_scale = jnp.split(outputs, 2, axis=-1)
        df, scale = 3.0 + drawn, jnp.hypot(jnp.asarray(self.minimum), jnp.exp(log_scale))
        if mean.shape[-1] == 1:
            return dist.StudentT(df, mean[..., 0], scale[..., 0])
        return dist.StudentT(df, mean, scale).to_event(1)


def as_noise(noise: Any) -> Noise:
    """A noise model from what users pass: see `credo.models.regression`."""
    if isinstance(noise, Fixed | FixedCovariance | Learned | Tuned | FullCovariance | Heteroscedastic | HeavyTailed):
        return noise
    if isinstance(noise, dist.Distribution):
        return _learned(noise)
    if noise is None or isinstance(noise, str):
        return _by_name("learned" if noise is None else noise)
    return _fixed(np.asarray(noise))


def from_config(config: Mapping[str, Any]) -> Noise:
    """The noise model that `to_config` described."""
    name, arguments = config["name"], {key: value for key, value in config.items() if key != "name"}
    if name == "learned":
        return Learned(distribution_from_config(arguments))
    if name == "fixed":
        return _fixed(np.asarray(arguments["scale"]))
    if name == "fixed_covariance":
        return _fixed(np.asarray(arguments["covariance"]))
    kinds = (FullCovariance, Heteroscedastic, HeavyTailed, Tuned)
    others: dict[str, Callable[..., Noise]] = {one.name: one for one in kinds}
    require_one_of(others, noise=name)
    return others[name](**arguments)


def check_targets(noise: Noise, num_targets: int) -> None:
    """Refuse a noise model that is meant for another number of targets."""
    if isinstance(noise, FullCovariance) and num_targets < 2:
        raise ValueError("noise: 'full' needs at least two targets to correlate, and y has 1; use 'learned'")
    size = num_targets
    if isinstance(noise, FixedCovariance):
        size = len(noise.covariance)
    elif isinstance(noise, Fixed) and isinstance(noise.scale, tuple):
        size = len(noise.scale)
    if size != num_targets:
        raise ValueError(f"noise: it is for {size} target(s), but y has {num_targets}; pass one per target")


def _by_name(name: str) -> Noise:
    named = (Learned(dist.HalfNormal(1.0)), Tuned(), Heteroscedastic(), HeavyTailed(), FullCovariance())
    known = {one.name: one for one in named}
    require_one_of(known, noise=name)
    return known[name]


def _learned(prior: dist.Distribution) -> Learned:
    is_positive = prior.support in (dist.constraints.positive, dist.constraints.nonnegative) or bool(
        np.all(np.asarray(getattr(prior.support, "lower_bound", -1.0)) >= 0)
    )
    if prior.batch_shape or prior.event_shape or not is_positive:
        raise ValueError(
            f"noise: a prior for the noise scale must be a scalar distribution on positive numbers, got "
            f"{type(prior).__name__} with shape {prior.batch_shape + prior.event_shape}; try HalfNormal(1.0)"
        )
    return Learned(prior)


def _fixed(values: np.ndarray) -> Noise:
    if values.dtype.kind not in "fiu" or not np.all(np.isfinite(values)):
        raise ValueError(
            "noise: expected a positive number, one per output, a covariance matrix, a NumPyro distribution, "
            f"'learned', 'tuned', 'heteroscedastic' or 'full'; got {values!r}"
        )
    if values.shape == (1, 1):
        return _fixed(np.sqrt(values[0, 0]) if values[0, 0] > 0 else values[0, 0])
    if values.ndim == 2:
        if values.shape[0] != values.shape[1] or not np.allclose(values, values.T):
            raise ValueError(f"noise: a covariance must be a symmetric square matrix, got shape {values.shape}")
        if np.linalg.eigvalsh(values).min() <= 0:
            raise ValueError("noise: the covariance matrix is not positive definite")
        return FixedCovariance(tuple(tuple(row) for row in values.tolist()))
    if values.ndim > 2 or np.any(values <= 0):
        raise ValueError(f"noise: scales must be positive numbers, got {values.tolist()}")
    return Fixed(float(values) if values.ndim == 0 else tuple(values.tolist()))


def _normal(mean: Array, scale: Array) -> dist.Distribution:
    """Independent normals; one output gives scalars, so that targets of shape (rows,) fit."""
    if mean.shape[-1] == 1:
        return dist.Normal(mean[..., 0], scale[..., 0] if jnp.ndim(scale) == jnp.ndim(mean) else scale)
    return dist.Normal(mean, scale).to_event(1)
