"""Meta-learning as hierarchical Bayes: tasks that resemble each other. Paper, "Meta-learning, transfer learning, …"."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from credo._checks import require_one_of, require_positive
from credo._precision import working_precision
from credo.data import Data, Scaling
from credo.models import likelihoods, priors
from credo.models.classification import check_labels, class_distribution
from credo.models.inputs import Input, Inputs
from credo.models.network import num_outputs
from credo.models.population import Population, Varying, as_varying, flat, mean_site
from credo.models.priors.base import fill
from credo.models.program import Model
from credo.models.regression import check_outputs
from credo.models.rows import ModelConfig
from credo.networks import functional, network_config
from credo.networks.functional import Network
from credo.typing import Array, Batch, Theta

LIKELIHOODS = ("regression", "classification")
# Where the spread between tasks starts if it is learned: tasks that are alike, and free to part.
INITIAL_SPREAD = 0.3


def tasks(
    net: Any,
    *,
    varying: str | Sequence[str] = "*",
    xi: str = "full",
    groups: Sequence[Any] | None = None,
    prior: Any = None,
    spread: Any = None,
    likelihood: Any = "regression",
) -> Model:
    """A network for each of several tasks, whose weights come from a population that is learned with them.

        p(theta, ξ | D) ∝ (Π_t p(D_t | theta_t) p(theta_t | ξ)) p(ξ),    theta_t = m + s z_t, z_t ~ N(0, 1), ξ = (m, s)

    with an s for each array. A task with few rows leans on the others, one with many rows stands alone. The last column
    of x is the number of the task (`credo.tasks_data`); one more task than there are has a prior and no data: a number
    that the model does not know (−1) is predicted with it, from the population. `credo.adapt` learns a new task.

    Arguments:
        net: any network that `credo.networks.functional` takes, of the columns of x but the last.
        varying: paths with `*` wildcards of the arrays that vary between tasks ("head.*"); the others are shared.
        xi: "full" (m and s are drawn, with the priors below) or "point" (learned without, by the ELBO: empirical
            Bayes; before methods that cannot learn them, variational inference finds them).
        groups: for each task the number of its group, if tasks come in groups: theta_t ~ N(theta_group, s²) and
            theta_group ~ N(m, s′²). For further levels a list of such lists, from the tasks up.
        prior: of the shared weights and of m; N(0, 1) by default.
        spread: of the tasks around their group: a positive number that is known, or a NumPyro distribution over
            positive numbers; HalfNormal(1) by default.
        likelihood: "classification", "regression" (with a learned noise), or the noise of a regression, as
            `credo.models.regression` takes it.

    >>> from credo import tasks_data
    >>> from credo.networks import MLP
    >>> schools = tasks_data({"a": ([[0.0], [1.0]], [0.0, 1.0]), "b": ([[0.5]], [2.0])})
    >>> model = tasks(MLP([], out=1)).bind(schools)
    >>> {name: leaf.shape for name, leaf in model.template.items() if name.endswith(".z")}
    {'head.bias.z': (3, 1), 'head.kernel.z': (3, 1, 1)}
    """
    require_one_of(("full", "point"), xi=xi)
    noise = _noise_of(likelihood)
    depth = 1 if groups is None else 1 + len(_levels(groups))
    program = TaskProgram(**as_varying(net, varying, prior, noise), xi=xi, spread=_spread_of(spread), depth=depth)

    def check(batch: Batch) -> None:
        rows = _without_task(batch.x)
        program.paths(functional(net, rows))
        outputs = num_outputs(net, rows)
        check_labels(batch, outputs) if noise is None else check_outputs(batch, outputs, noise)

    config = ModelConfig(
        model="tasks",
        network=network_config(net),
        prior=program.prior.to_config(),
        varying=list(program.patterns),
        xi=xi,
        depth=depth,
        spread=_spread_config(program.spread),
        likelihood="classification" if noise is None else noise.to_config(),
    )
    return Model(
        program,
        inputs=Tree(groups, depth),
        config=config,
        initial=lambda x: program.initial(_without_task(x)),
        check=check,
        labels=noise is None,
    )


@dataclass(frozen=True, eq=False)
class TaskProgram(Varying):
    """The program of `tasks`: see there.

    Arguments:
        depth: how many levels there are between the tasks and the population, 1 where tasks come in no groups.
    """

    xi: str
    spread: float | dist.Distribution | None
    depth: int

    def __call__(self, x: Array, y: Array | None = None, **tree: Array) -> None:
        rows, parents = _without_task(x), [jnp.asarray(tree[f"tree.{level}"]) for level in range(self.depth)]
        network = functional(self.net, rows)
        varying = self.paths(network)
        shared = self.draw_shared(network, varying)
        theta = {path: self.draw_tasks(network, path, parents) for path in varying}
        place = _place(x[:, -1], len(parents[0]))

        def of_row(own: Theta, row: Array) -> Array:
            return network.apply({**shared, **own}, row[None])[0]

        outputs = jax.vmap(of_row)({path: leaf[place] for path, leaf in theta.items()}, rows)
        drawn = None if self.noise is None else self.noise.draw(likelihoods.num_targets(self.noise, outputs.shape[-1]))
        with numpyro.plate("data", x.shape[0]):
            if self.noise is None:
                numpyro.sample("y", class_distribution(outputs), obs=y)
            else:
                seen = None if y is None else y.astype(working_precision())
                numpyro.sample("y", self.noise.around(outputs, drawn), obs=seen)

    def draw_tasks(self, network: Network, path: str, parents: Sequence[Array]) -> Array:
        """theta_t of each task and of a new one, (tasks + 1, …), level by level from the population down."""
        mean = self.point_mean(network, path) if self.xi == "point" else self.draw_mean(network, path)
        above, shape = jnp.asarray(mean)[None], jnp.shape(mean)
        for level in reversed(range(self.depth)):
            # One more than there are, below one more than there are: what is new above is new here.
            place = jnp.append(parents[level], above.shape[0] - 1)
            name = _site(path, level)
            spread = self._draw_spread(name)
            with numpyro.plate("tasks" if level == 0 else f"groups{'' if level == 1 else f' {level}'}", place.shape[0]):
                z = numpyro.sample(f"{name}.z", fill(dist.Normal(0.0, 1.0), shape))
                above = numpyro.deterministic(name, above[place] + spread * z)
        return above

    def _draw_spread(self, name: str) -> Any:
        if isinstance(self.spread, float):
            return self.spread
        if self.xi == "point":
            return numpyro.param(f"{name}.spread", INITIAL_SPREAD, constraint=dist.constraints.positive)
        return numpyro.sample(f"{name}.spread", dist.HalfNormal(1.0) if self.spread is None else self.spread)

    def population(self, model: Model, theta: Theta) -> Population:
        """ξ and the shared weights at theta; a new task's spread is that of all levels together."""
        trace = model.trace_at(theta)
        names = [path for path in model.weight_names if mean_site(path) in trace]

        def spread(path: str, level: int) -> Any:
            return self.spread if isinstance(self.spread, float) else trace[f"{_site(path, level)}.spread"]["value"]

        mean = {path: trace[mean_site(path)]["value"] for path in names}
        scale = {
            path: jnp.full(jnp.shape(mean[path]), jnp.sqrt(sum(spread(path, n) ** 2 for n in range(self.depth))))
            for path in names
        }
        shared = {path: trace[path]["value"] for path in model.weight_names if path not in mean}
        return Population(shared, mean, jnp.diag(flat(scale)), _noise_value(self.noise, trace))

    def plain_scaling(self, scaling: Scaling) -> Scaling:
        """Without the task column."""
        own = {name: getattr(scaling, name) for name in ("x_mean", "x_scale")}
        return replace(scaling, **{name: value[:-1] if value.ndim else value for name, value in own.items()})


@dataclass(frozen=True, eq=False)
class Tree:
    """Which task belongs to which group, as inputs of the model: `tree.0` for the tasks, `tree.1` for their groups."""

    groups: Sequence[Any] | None
    depth: int

    def bound(self, data: Data) -> Inputs:
        num = _num_tasks(data)
        if self.groups is None and self.depth > 1:
            raise ValueError("groups are saved with the posterior, not with its model; make the model again")
        levels = [] if self.groups is None else _levels(self.groups)
        found = {}
        for level, parents in enumerate(levels):
            found[f"tree.{level}"] = _checked_level(parents, num, "tasks" if level == 0 else "groups")
            num = int(parents.max()) + 1
        found[f"tree.{len(levels)}"] = np.zeros(num, np.int32)
        return Inputs.of({name: Input.of(array) for name, array in found.items()})


def tasks_from_config(config: Mapping[str, Any], net: Any) -> Model:
    """The model of tasks that a configuration describes; the groups are inputs that are saved with its posterior."""
    spread, likelihood = config["spread"], config["likelihood"]
    model = tasks(
        net,
        varying=config["varying"],
        xi=config["xi"],
        prior=priors.from_config(config["prior"]),
        spread=priors.distribution_from_config(spread) if isinstance(spread, dict) else spread,
        likelihood=likelihood if isinstance(likelihood, str) else likelihoods.from_config(likelihood),
    )
    program: Any = model.program
    depth = config["depth"]
    return replace(model, program=replace(program, depth=depth), inputs=Tree(None, depth), config=ModelConfig(config))


def _without_task(x: Any) -> Any:
    """The rows that the network sees; of a shape, the shape."""
    if len(x.shape) != 2 or x.shape[1] < 2:
        raise ValueError(
            f"x has rows of shape {x.shape[1:]}, and a model of tasks takes columns of which the last is the number of "
            "the task; make them with credo.tasks_data"
        )
    if isinstance(x, jax.ShapeDtypeStruct):
        return jax.ShapeDtypeStruct((x.shape[0], x.shape[1] - 1), x.dtype)
    return x[:, :-1]


def _place(column: Array, num: int) -> Array:
    """Where a row's task is among those of the model: a number that it does not know is the new one's."""
    known = (column > -0.5) & (column < num - 0.5)
    return jnp.where(known, jnp.round(column), num).astype(jnp.int32)


def _site(path: str, level: int) -> str:
    return path if level == 0 else f"{path}.group{'' if level == 1 else level}"


def _num_tasks(data: Data) -> int:
    """How many tasks there are, from the column that numbers them."""
    numbers = data.x[:, -1]
    if not np.array_equal(numbers, np.round(numbers)) or numbers.min() < 0:
        strange = numbers[(numbers != np.round(numbers)) | (numbers < 0)][0]
        raise ValueError(
            f"x has {strange:g} in its last column, which is the number of a task: 0, 1, …; make it with "
            "credo.tasks_data. Rows of tasks that are not known cannot be learned from"
        )
    num = int(numbers.max()) + 1
    if data.tasks is not None:
        return max(num, len(data.tasks))
    empty = np.setdiff1d(np.arange(num), numbers)
    if len(empty):
        raise ValueError(f"x has no rows of task {empty[0]}; number the tasks in its last column 0, 1, … without gaps")
    return num


def _levels(groups: Sequence[Any]) -> list[np.ndarray]:
    several = len(groups) > 0 and np.ndim(groups[0]) > 0
    return [np.asarray(level) for level in (groups if several else [groups])]


def _checked_level(parents: np.ndarray, num: int, what: str) -> np.ndarray:
    if parents.shape != (num,) or parents.dtype.kind not in "iu" or parents.min() < 0:
        raise ValueError(
            f"groups is {parents.tolist()} for {num} {what}; pass the number of its group, 0, 1, …, for each of them"
        )
    return parents.astype(np.int32)


def _spread_of(spread: Any) -> float | dist.Distribution | None:
    if isinstance(spread, dist.Distribution):
        if spread.shape() or spread.support not in (dist.constraints.positive, dist.constraints.nonnegative):
            raise ValueError(
                f"spread must be a scalar distribution on positive numbers, got {spread}; try HalfNormal(1.0)"
            )
        return spread
    if spread is None:
        return None
    require_positive(spread=spread)
    return float(spread)


def _spread_config(spread: float | dist.Distribution | None) -> Any:
    return priors.distribution_to_config(spread) if isinstance(spread, dist.Distribution) else spread


def _noise_of(likelihood: Any) -> likelihoods.Noise | None:
    if isinstance(likelihood, str) and likelihood in LIKELIHOODS:
        return None if likelihood == "classification" else likelihoods.as_noise(None)
    return likelihoods.as_noise(likelihood)


def _noise_value(noise: likelihoods.Noise | None, trace: Mapping[str, Any]) -> Array | None:
    """The scales of y at one draw, where they are independent of x."""
    if isinstance(noise, likelihoods.Fixed):
        return jnp.asarray(noise.scale)
    return trace["noise"]["value"] if isinstance(noise, likelihoods.Learned | likelihoods.Tuned) else None
