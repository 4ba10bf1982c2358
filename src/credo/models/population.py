"""What tasks have in common: which weights differ between them, and where those of a new task come from.

Paper, "Meta-learning, transfer learning, and self-supervised learning": theta_t ~ p(theta_t | ξ), ξ = (m, A):

    theta_t = m + A z_t,    z_t ~ N(0, I)

for the weights that vary, with the others shared by all tasks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import numpyro

from credo import random
from credo._text import nearest
from credo.data import Scaling
from credo.models import priors
from credo.models.classification import classification
from credo.models.likelihoods import Noise
from credo.models.priors import Drawn, Parameter, Prior, draw, prior_at
from credo.models.program import Model
from credo.models.regression import regression
from credo.networks import functional
from credo.networks.functional import Network
from credo.typing import Array, Theta


class Population(NamedTuple):
    """p(theta_t | ξ) at one draw: weights that are shared, and those of a task, N(mean, root rootᵀ).

    Arguments:
        shared: by path.
        mean: by path.
        root: (entries of the mean, columns).
        noise: the scale of y; None where it has none of its own.
    """

    shared: Theta
    mean: Theta
    root: Array
    noise: Array | None


class OfTasks(Protocol):
    """The program of a model of tasks."""

    net: Any
    noise: Noise | None

    def population(self, model: Model, theta: Theta) -> Population:
        """ξ and the shared weights at theta."""

    def plain_scaling(self, scaling: Scaling) -> Scaling:
        """That of a single task, whose rows have no task column."""

    def plain(self, prior: Any, noise: Any) -> Model:
        """The model of a single task."""


@dataclass(frozen=True, eq=False)
class Varying:
    """A network of which some weights vary between tasks.

    Arguments:
        net: any network that `credo.networks.functional` takes.
        patterns: paths with wildcards of what varies.
        prior: of the shared weights, and of the means of the others.
        noise: of y; None for classes.
    """

    net: Any
    patterns: tuple[str, ...]
    prior: Prior
    noise: Noise | None

    def plain(self, prior: Any, noise: Any) -> Model:
        """The model of a single task."""
        return (
            classification(self.net, prior=prior) if noise is None else regression(self.net, prior=prior, noise=noise)
        )

    def paths(self, network: Network) -> tuple[str, ...]:
        """What varies, in the network's order."""
        known = list(network.params)
        for pattern in self.patterns:
            if not any(fnmatchcase(path, pattern) for path in known):
                raise ValueError(
                    f"varying: {pattern!r} matches no parameter{nearest(pattern, known)}; there are {', '.join(known)}"
                )
        return tuple(path for path in known if any(fnmatchcase(path, one) for one in self.patterns))

    def draw_shared(self, network: Network, varying: Sequence[str]) -> Theta:
        """The weights that all tasks share, by path."""
        drawn: Drawn = {}
        return {
            path: draw(prior_at(self.prior, path), _parameter(network, path), drawn)
            for path in network.params
            if path not in varying
        }

    def draw_mean(self, network: Network, path: str) -> Array:
        """m, the mean over tasks of a weight that varies: the site `<path>.mean`."""
        parameter = _parameter(network, path)._replace(path=mean_site(path))
        return draw(prior_at(self.prior, path), parameter, {})

    def point_mean(self, network: Network, path: str) -> Array:
        """m as one of ξ, from the network's own value on."""
        return numpyro.param(mean_site(path), jnp.asarray(network.params[path]), point=True)

    def initial(self, x: Array) -> Theta:
        """The network's own values: means start there too."""
        network = functional(self.net, x)
        means = {mean_site(path): network.params[path] for path in self.paths(network)}
        return dict(network.params) | means


def mean_site(path: str) -> str:
    return f"{path}.mean"


def as_varying(net: Any, varying: str | Sequence[str], prior: Any, noise: Noise | None) -> dict[str, Any]:
    """The fields of `Varying` from what users pass."""
    patterns = (varying,) if isinstance(varying, str) else tuple(varying)
    chosen = priors.as_prior(prior)
    if hasattr(chosen, "terms") or hasattr(chosen, "inputs"):
        raise ValueError(
            f"prior: {type(chosen).__name__} is about the weights of one network, and each task has its own; take one "
            "such as credo.priors.normal(1.0), or a dict of paths"
        )
    return {"net": net, "patterns": patterns, "prior": chosen, "noise": noise}


def flat(arrays: Theta) -> Array:
    """Arrays as one vector, in order."""
    return jnp.concatenate([jnp.ravel(leaf) for leaf in arrays.values()])


def unflat(vector: Array, like: Theta) -> Theta:
    """The inverse of `flat`."""
    ends = np.cumsum([np.size(leaf) for leaf in like.values()])[:-1]
    parts = jnp.split(vector, ends)
    return {path: part.reshape(jnp.shape(leaf)) for (path, leaf), part in zip(like.items(), parts, strict=True)}


def linear_features(network: Network, shared: Theta, like: Theta, rows: Array) -> tuple[Array, Array]:
    """f(x) = offset + Φ h for a network that is linear in the weights h: (rows, K) and (rows, K, entries of h).

    Arguments:
        shared: the weights that h does not hold.
        like: h, as arrays by path; their values do not matter.
        rows: (rows, …).
    """
    zero = jnp.zeros(sum(np.size(leaf) for leaf in like.values()))

    def outputs(vector: Array, row: Array) -> Array:
        return network.apply({**shared, **unflat(vector, like)}, row[None])[0]

    def of_row(row: Array) -> tuple[Array, Array]:
        return outputs(zero, row), jax.jacrev(outputs)(zero, row)

    return jax.vmap(of_row)(rows)


def is_linear(network: Network, varying: Sequence[str], shape: tuple[int, ...]) -> bool:
    """Whether the outputs are linear in the weights that vary: Φ at zero tells them elsewhere too."""
    keys = jax.random.split(random.key(0), len(network.params) + 1)
    own = dict(zip(network.params, keys[1:], strict=True))
    theta = {path: jax.random.normal(own[path], jnp.shape(leaf)) for path, leaf in network.params.items()}
    rows = jax.random.normal(keys[0], (8, *shape))
    head = {path: theta[path] for path in varying}
    offset, features = linear_features(network, theta, head, rows)
    found = network.apply(theta, rows)
    return bool(jnp.allclose(found, offset + features @ flat(head), rtol=1e-3, atol=1e-3))


def _parameter(network: Network, path: str) -> Parameter:
    value = network.params[path]
    return Parameter(path, value.shape, network.fan_in[path], value)
