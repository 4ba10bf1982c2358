"""Many small tasks: a trunk that they share, and a linear head for each, which is integrated out.

With Φ_t the features of a task's rows, h_t ~ N(m, A Aᵀ) its head and σ the noise,

    y_t ~ N(Φ_t m, Φ_t A Aᵀ Φ_tᵀ + σ² I)

so that no head is ever drawn: a row of the data is a whole task, and thousands of tasks train the trunk and ξ = (m, A).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from credo.data import Scaling
from credo.models import likelihoods, priors
from credo.models.network import num_outputs
from credo.models.population import Population, Varying, as_varying, flat, is_linear, linear_features, mean_site
from credo.models.priors.base import fill
from credo.models.program import Model
from credo.models.rows import ModelConfig
from credo.networks import functional, network_config
from credo.typing import Array, Batch, Theta

ROOT = "heads.root"
# Added to the noise variance, for a root of the covariance in single precision where the noise is learned to be none.
LEAST_VARIANCE = 3e-5


def task_heads(net: Any, *, varying: str | Sequence[str] = "head.*", prior: Any = None, noise: Any = None) -> Model:
    """Regression tasks that share all of a network but its linear head, with the heads integrated out.

        h_t ~ N(m, A Aᵀ),    y_t | ξ ~ N(Φ_t m, Φ_t A Aᵀ Φ_tᵀ + σ² I),    ξ = (m, A)

    The rows of the data are tasks, x (tasks, shots, D) and y (tasks, shots): `credo.packed_tasks`. Trunk, m, A and σ
    are theta, so that `credo.MAP(batch_size=…)` is empirical Bayes over tasks, and a sampler has ξ in full. A new task
    is learned in closed form, `credo.adapt(posterior, (x, y))`: no steps, and exact given ξ.

    Harrison, Sharma and Pavone, "Meta-learning priors for efficient online Bayesian regression" (2018).

    Arguments:
        net: any network that `credo.networks.functional` takes, of rows (D,), with one output.
        varying: paths with `*` wildcards of the head: arrays in which the output is linear.
        prior: of the trunk and of m; N(0, 1) by default. A has N(0, 1/n) for n entries of the head.
        noise: a number, a NumPyro distribution on positive numbers, or "learned" (HalfNormal(1), the default).

    >>> from credo import packed_tasks
    >>> from credo.networks import MLP
    >>> data = packed_tasks([([[0.0], [1.0]], [0.0, 1.0]), ([[0.5]], [2.0])])
    >>> task_heads(MLP([4], out=1)).bind(data).template["heads.root"].shape
    (5, 5)
    """
    chosen = likelihoods.as_noise(noise)
    if not isinstance(chosen, likelihoods.Fixed | likelihoods.Learned) or np.ndim(getattr(chosen, "scale", 0)):
        raise ValueError(
            f"noise: {type(chosen).__name__} noise cannot be integrated together with the heads; pass a number, a "
            "distribution on positive numbers, or 'learned'"
        )
    program = HeadProgram(**as_varying(net, varying, prior, chosen))

    def check(batch: Batch) -> None:
        rows = _rows_of(batch.x)
        network = functional(net, rows)
        if batch.y.shape != batch.x.shape[:2] or num_outputs(net, rows) != 1:
            raise ValueError(
                f"y has shape {batch.y.shape} for x {batch.x.shape}; a task has one number for each of its rows, and "
                "the network one output"
            )
        if not is_linear(network, program.paths(network), rows.shape[1:]):
            raise ValueError(
                f"varying: the network's output is not linear in {', '.join(program.paths(network))}, so they cannot "
                "be integrated out; name the last layer, or take credo.models.tasks"
            )

    config = ModelConfig(
        model="task_heads",
        network=network_config(net),
        prior=program.prior.to_config(),
        varying=list(program.patterns),
        noise=chosen.to_config(),
    )
    return Model(program, config=config, initial=lambda x: program.initial(_rows_of(x)), check=check)


@dataclass(frozen=True, eq=False)
class HeadProgram(Varying):
    """The program of `task_heads`: see there."""

    def __call__(self, x: Array, y: Array | None = None) -> None:
        assert self.noise is not None
        network = functional(self.net, _rows_of(x))
        varying = self.paths(network)
        shared = self.draw_shared(network, varying)
        mean = {path: self.draw_mean(network, path) for path in varying}
        size = sum(np.size(leaf) for leaf in mean.values())
        root = numpyro.sample(ROOT, fill(dist.Normal(0.0, size**-0.5), (size, size)))
        noise = self.noise.draw(1)
        offset, features = linear_features(network, shared, mean, x.reshape(-1, *x.shape[2:]))
        offset, features = offset.reshape(x.shape[:2]), features.reshape(*x.shape[:2], size)
        columns = features @ root
        covariance = columns @ jnp.swapaxes(columns, -1, -2) + (noise**2 + LEAST_VARIANCE) * jnp.eye(x.shape[1])
        with numpyro.plate("data", x.shape[0]):
            law = dist.MultivariateNormal(offset + features @ flat(mean), covariance_matrix=covariance)
            numpyro.sample("y", law, obs=y)

    def population(self, model: Model, theta: Theta) -> Population:
        """ξ and the trunk at theta."""
        trace = model.trace_at(theta)
        names = [name.removesuffix(".mean") for name in trace if name.endswith(".mean")]
        mean = {path: trace[mean_site(path)]["value"] for path in names}
        shared = {path: trace[path]["value"] for path in model.weight_names if path in trace}
        noise = self.noise.draw(1) if isinstance(self.noise, likelihoods.Fixed) else trace["noise"]["value"]
        return Population(shared, mean, trace[ROOT]["value"], jnp.sqrt(noise**2 + LEAST_VARIANCE))

    def plain_scaling(self, scaling: Scaling) -> Scaling:
        """That of all tasks."""
        return scaling


def task_heads_from_config(config: Mapping[str, Any], net: Any) -> Model:
    """The model that a configuration describes."""
    prior, noise = priors.from_config(config["prior"]), likelihoods.from_config(config["noise"])
    return task_heads(net, varying=config["varying"], prior=prior, noise=noise)


def _rows_of(x: Any) -> Any:
    """The rows of the first task; of a shape, the shape."""
    if len(x.shape) < 3:
        raise ValueError(
            f"x has shape {x.shape}, and a row of these data is a task with rows of its own, (tasks, shots, D); make "
            "them with credo.packed_tasks"
        )
    return jax.ShapeDtypeStruct(x.shape[1:], x.dtype) if isinstance(x, jax.ShapeDtypeStruct) else x[0]
