"""Priors over the weights: which distribution each parameter of a network is drawn from.

A prior maps one parameter (its path, shape and fan-in) to a NumPyro distribution over an array of that shape.
Paper, "A good default prior": p(theta) = N(0, σ²I), the ℓ2 penalty of a point estimate.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any, ClassVar, NamedTuple, Protocol

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from credo._checks import require_one_of, require_positive
from credo._text import nearest

# What a learned scale is shared by.
SHARED_BY = ("network", "layer", "array", "input", "weight")


class Parameter(NamedTuple):
    """What a prior may look at: a parameter's dotted path, its shape, and how many inputs feed one unit."""

    path: str
    shape: tuple[int, ...]
    fan_in: int = 1


class Prior(Protocol):
    """Anything that gives a parameter its distribution."""

    def __call__(self, parameter: Parameter) -> dist.Distribution: ...
    def to_config(self) -> dict[str, Any]: ...


class Described:
    """A dataclass that is stored as its name and its numbers."""

    name: ClassVar[str]

    def to_config(self) -> dict[str, Any]:
        return {"name": self.name, **asdict(self)}  # type: ignore[call-overload]


@dataclass(frozen=True)
class _Centred(Described):
    family: ClassVar[type[dist.Distribution]]
    scale: float = 1.0

    def __call__(self, parameter: Parameter) -> dist.Distribution:
        return _fill(self.family(0.0, self.scale), parameter)


class Normal(_Centred):
    """N(0, scale²), independent for every weight. See `normal`."""

    name, family = "normal", dist.Normal


class Laplace(_Centred):
    """Laplace(0, scale): the ℓ1 penalty. See `laplace`."""

    name, family = "laplace", dist.Laplace


@dataclass(frozen=True)
class FanIn(Described):
    """N(0, scale²/fan_in) for kernels and N(0, bias_scale²) for vectors. See `fan_in`."""

    name = "fan_in"
    scale: float = 1.0
    bias_scale: float = 1.0

    def __call__(self, parameter: Parameter) -> dist.Distribution:
        is_kernel = len(parameter.shape) >= 2
        scale = self.scale / np.sqrt(parameter.fan_in) if is_kernel else self.bias_scale
        return _fill(dist.Normal(0.0, float(scale)), parameter)


@dataclass(frozen=True)
class ScaleMixture(Described):
    """π·N(0, scale²) + (1 − π)·N(0, narrow_scale²). See `scale_mixture`."""

    name = "scale_mixture"
    weight: float = 0.5
    scale: float = 1.0
    narrow_scale: float = 0.0025

    def __call__(self, parameter: Parameter) -> dist.Distribution:
        mixing = dist.Categorical(probs=jnp.array([self.weight, 1 - self.weight]))
        components = dist.Normal(jnp.zeros(2), jnp.array([self.scale, self.narrow_scale]))
        return _fill(dist.MixtureSameFamily(mixing, components), parameter)


@dataclass(frozen=True)
class Learned(Described):
    """N(0, xi²), with scales xi that are learned along with the posterior. See `learned`."""

    name = "learned"
    scale: float = 1.0
    per: str = "array"

    def __call__(self, parameter: Parameter) -> dist.Distribution:
        owner = {"network": "prior", "layer": parameter.path.rpartition(".")[0] or "prior"}
        name = f"{owner.get(self.per, parameter.path)}.scale"
        xi = numpyro.param(name, jnp.full(self._shape(parameter), self.scale), constraint=dist.constraints.positive)
        return _fill(dist.Normal(0.0, xi), parameter)

    def _shape(self, parameter: Parameter) -> tuple[int, ...]:
        if self.per == "weight":
            return parameter.shape
        if self.per == "input" and len(parameter.shape) >= 2:
            return (*parameter.shape[:-1], 1)
        return ()


@dataclass(frozen=True, eq=False)
class Custom:
    """Any NumPyro distribution: a scalar one, repeated over the array, or one of exactly its shape."""

    distribution: dist.Distribution

    def __call__(self, parameter: Parameter) -> dist.Distribution:
        own = self.distribution.batch_shape + self.distribution.event_shape
        if own == parameter.shape:
            return self.distribution.to_event(len(self.distribution.batch_shape))
        if own in ((), (1,)) and not self.distribution.event_shape:
            return _fill(self.distribution, parameter)
        raise ValueError(
            f"prior: the distribution for {parameter.path!r} has shape {own}, but the parameter has shape "
            f"{parameter.shape}; pass a scalar distribution, or one of exactly that shape"
        )

    def to_config(self) -> dict[str, Any]:
        return {"name": "distribution", **distribution_to_config(self.distribution)}


@dataclass(frozen=True)
class ByPath:
    """A prior for each parameter path; the first pattern that matches decides. See `by_path`."""

    patterns: tuple[tuple[str, Prior], ...]
    default: Prior

    def __call__(self, parameter: Parameter) -> dist.Distribution:
        return self._find(parameter.path)(parameter)

    def _find(self, path: str) -> Prior:
        return next((prior for pattern, prior in self.patterns if fnmatchcase(path, pattern)), self.default)

    def check(self, paths: list[str]) -> None:
        """Refuse a pattern that matches nothing: a typo would silently leave weights on the default prior."""
        for pattern, _ in self.patterns:
            if not any(fnmatchcase(path, pattern) for path in paths):
                raise ValueError(
                    f"prior: the path {pattern!r} matches no parameter{nearest(pattern, paths)}; "
                    f"the parameters are {', '.join(paths)}"
                )

    def to_config(self) -> dict[str, Any]:
        patterns = {pattern: prior.to_config() for pattern, prior in self.patterns}
        return {"name": "by_path", "patterns": patterns, "default": self.default.to_config()}


def normal(scale: float = 1.0) -> Normal:
    """The default prior N(0, σ²I): `scale` is σ, not σ² (the paper prints σI for the covariance).

    >>> normal(2.0)(Parameter("head.bias", (3,))).event_shape
    (3,)
    """
    return Normal(_positive("scale", scale))


def fan_in(scale: float = 1.0, bias_scale: float = 1.0) -> FanIn:
    """N(0, σ²/fan_in): the size of the function stays the same whatever the width (Neal, 1996).

    Kernels get σ² = scale²/fan_in; biases and other vectors N(0, bias_scale²).

    >>> round(float(fan_in(2.0)(Parameter("head.kernel", (100, 1), 100)).variance[0, 0]), 4)
    0.04
    """
    return FanIn(_positive("scale", scale), _positive("bias_scale", bias_scale))


def laplace(scale: float = 1.0) -> Laplace:
    """Laplace(0, scale), density exp(−|w|/scale)/(2·scale): the ℓ1 penalty, many weights near zero.

    >>> laplace(0.5)(Parameter("head.bias", (3,))).event_shape
    (3,)
    """
    return Laplace(_positive("scale", scale))


def scale_mixture(weight: float = 0.5, scale: float = 1.0, narrow_scale: float = 0.0025) -> ScaleMixture:
    """π·N(0, σ₁²) + (1 − π)·N(0, σ₂²), the spike and slab of Blundell et al. (2015, section 3.3).

    >>> scale_mixture(0.25, 1.0, 0.01)(Parameter("head.bias", (3,))).event_shape
    (3,)
    """
    if not 0 < weight < 1:
        raise ValueError(f"weight must be between 0 and 1, got {weight}")
    return ScaleMixture(weight, _positive("scale", scale), _positive("narrow_scale", narrow_scale))


def learned(scale: float = 1.0, *, per: str = "array") -> Learned:
    """N(0, xi²) with scales xi that are learned: empirical Bayes, the paper's "Learning the prior".

    Variational inference learns them along with the posterior, by climbing the ELBO, a lower bound on the evidence;
    Laplace climbs its own approximation of the evidence; for other methods, variational inference finds them first.

    Arguments:
        scale: where learning starts.
        per: what has a scale of its own: the "network", each "layer", "array" (a kernel, a bias), "input" of a kernel
            (automatic relevance determination: inputs that do not help are switched off), or "weight".

    >>> learned(0.1)
    Learned(scale=0.1, per='array')
    """
    require_one_of(SHARED_BY, per=per)
    return Learned(_positive("scale", scale), per)


def by_path(patterns: Mapping[str, Any], default: Any = None) -> ByPath:
    """A prior for each path, with `*` wildcards: `{"*.bias": normal(10.0), "head.*": laplace()}`.

    The first pattern that matches decides; a parameter that none matches gets `default` (N(0, 1)).
    A pattern that matches no parameter is an error.
    """
    pairs = tuple((pattern, as_prior(prior)) for pattern, prior in patterns.items())
    return ByPath(pairs, as_prior(default))


def as_prior(prior: Any) -> Prior:
    """A prior from what users pass: None (N(0, 1)), a prior, a NumPyro distribution, or a dict of paths."""
    if prior is None:
        return Normal()
    if isinstance(prior, Mapping):
        return by_path(prior)
    if isinstance(prior, dist.Distribution):
        return Custom(prior)
    if callable(prior) and hasattr(prior, "to_config"):
        return prior
    raise ValueError(
        f"prior: {prior!r} is not a prior; pass one of credo.priors (normal, fan_in, laplace, scale_mixture, learned), "
        "a NumPyro distribution, or a dict such as {'*.bias': credo.priors.normal(10.0)}"
    )


def from_config(config: Mapping[str, Any]) -> Prior:
    """The prior that `to_config` described."""
    name, arguments = config["name"], {key: value for key, value in config.items() if key != "name"}
    if name == "distribution":
        return Custom(distribution_from_config(arguments))
    if name == "by_path":
        patterns = {pattern: from_config(prior) for pattern, prior in arguments["patterns"].items()}
        return by_path(patterns, from_config(arguments["default"]))
    makers: list[Callable[..., Prior]] = [normal, fan_in, laplace, scale_mixture, learned]
    by_name = {maker.__name__: maker for maker in makers}
    require_one_of(by_name, prior=name)
    return by_name[name](**arguments)


def distribution_to_config(distribution: dist.Distribution) -> dict[str, Any]:
    """A NumPyro distribution as JSON: its class name and the arguments of its constructor, nested if need be."""
    names = [name for name in inspect.signature(type(distribution)).parameters if name != "validate_args"]
    if "scale_tril" in names:
        # A multivariate normal holds one matrix in three forms, and its constructor takes only one.
        names = [name for name in names if name not in ("covariance_matrix", "precision_matrix")]
    arguments = {name: _to_json(getattr(distribution, name)) for name in names if hasattr(distribution, name)}
    return {"distribution": type(distribution).__name__, "arguments": arguments}


def distribution_from_config(config: Mapping[str, Any]) -> dist.Distribution:
    """The distribution that `distribution_to_config` described; it can only be one of NumPyro's own."""
    name = config["distribution"]
    kind = getattr(dist, name, None)
    if not (isinstance(kind, type) and issubclass(kind, dist.Distribution)):
        raise ValueError(f"{name!r} is not one of NumPyro's distributions")
    try:
        return kind(**{key: _from_json(key, value) for key, value in config["arguments"].items()})
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"the distribution {name} cannot be rebuilt from its description: {error}") from error


def _to_json(value: Any) -> Any:
    if isinstance(value, dist.Distribution):
        return distribution_to_config(value)
    array = np.asarray(value)
    # Transforms are code, which is not stored; rebuilding such a distribution fails with a clear error.
    return None if array.dtype == object else array.tolist()


def _from_json(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return distribution_from_config(value)
    if name == "batch_shape":
        return tuple(value)
    return value if value is None or isinstance(value, str | int) else jnp.asarray(value)


def _fill(scalar: dist.Distribution, parameter: Parameter) -> dist.Distribution:
    return scalar.expand(parameter.shape).to_event(len(parameter.shape))


def _positive(name: str, value: float) -> float:
    require_positive(**{name: value})
    return float(value)
