"""Any NumPyro distribution as a prior, and distributions as JSON."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from credo.models.priors.base import Parameter, fill


@dataclass(frozen=True, eq=False)
class Custom:
    """Any NumPyro distribution: a scalar one, repeated over the array, or one of exactly its shape.

    >>> import numpyro.distributions as dist
    >>> from credo import priors
    >>> priors.as_prior(dist.StudentT(4.0))(priors.Parameter("head.bias", (3,))).event_shape
    (3,)
    """

    distribution: dist.Distribution

    def __call__(self, parameter: Parameter) -> dist.Distribution:
        own = self.distribution.batch_shape + self.distribution.event_shape
        if own == parameter.shape:
            return self.distribution.to_event(len(self.distribution.batch_shape))
        if own in ((), (1,)) and not self.distribution.event_shape:
            return fill(self.distribution, parameter.shape)
        raise ValueError(
            f"prior: the distribution for {parameter.path!r} has shape {own}, but the parameter has shape "
            f"{parameter.shape}; pass a scalar distribution, or one of exactly that shape"
        )

    def to_config(self) -> dict[str, Any]:
        return {"name": "distribution", **distribution_to_config(self.distribution)}


def distribution_to_config(distribution: dist.Distribution) -> dict[str, Any]:
    """A NumPyro distribution as JSON: its class name and the arguments of its constructor, nested if need be.

    >>> import numpyro.distributions as dist
    >>> from credo import priors
    >>> priors.distribution_to_config(dist.Laplace(0.0, 0.5))
    {'distribution': 'Laplace', 'arguments': {'loc': 0.0, 'scale': 0.5}}
    """
    names = [name for name in inspect.signature(type(distribution)).parameters if name != "validate_args"]
    if "scale_tril" in names:
        # A multivariate normal holds one matrix in three forms, and its constructor takes only one.
        names = [name for name in names if name not in ("covariance_matrix", "precision_matrix")]
    arguments = {name: _to_json(getattr(distribution, name)) for name in names if hasattr(distribution, name)}
    return {"distribution": type(distribution).__name__, "arguments": arguments}


def distribution_from_config(config: Mapping[str, Any]) -> dist.Distribution:
    """The distribution that `distribution_to_config` described; it can only be one of NumPyro's own.

    >>> import numpyro.distributions as dist
    >>> from credo import priors
    >>> float(priors.distribution_from_config(priors.distribution_to_config(dist.Normal(1.0, 2.0))).mean)
    1.0
    """
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
