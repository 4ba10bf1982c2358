"""The stochastic model: a NumPyro program, and the densities that inference needs from it.

A Bayesian belief network is a program of `sample` statements. What stands inside the plate `data` is the
likelihood, what stands outside is the prior (paper, "Probabilistic graphical models"):

    log p(theta, D) = log p(theta) + N/n · Σ_batch log p(y | x, theta)

theta is a dict of *unconstrained* arrays, one per latent site; the bijector to each site's support, and the
logarithm of its Jacobian, are added here and nowhere else.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro import handlers
from numpyro.distributions import biject_to, constraints
from numpyro.primitives import Messenger

from credo import random
from credo._text import nearest
from credo.typing import Array, Batch, Key, Theta

if TYPE_CHECKING:
    from credo.models.graph import Graph
    from credo.predictive import Predictive

Program = Callable[..., Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Site:
    """One latent variable of a program: its name, its unconstrained shape and its prior in words."""

    name: str
    shape: tuple[int, ...]
    prior: str

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))


@dataclass(frozen=True)
class Description:
    """What a model draws: printable, one row per latent site."""

    sites: tuple[Site, ...]

    @property
    def num_parameters(self) -> int:
        return sum(site.size for site in self.sites)

    def __str__(self) -> str:
        header = ("site", "shape", "numbers", "prior")
        rows = [(site.name, str(site.shape), f"{site.size:,}", site.prior) for site in self.sites]
        rows.append(("total", "", f"{self.num_parameters:,}", ""))
        widths = [max(len(row[column]) for row in [header, *rows]) for column in range(4)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [header, *rows]
        ]
        return "\n".join(line.rstrip() for line in lines)


@dataclass(frozen=True)
class Model:
    """A stochastic model from a NumPyro program `program(x, y=None)` with a plate `data` and a site `y`.

    Arguments:
        program: draws the latents, opens `numpyro.plate("data", x.shape[0])`, observes `y` inside it.
        config: how to build the model again, for `credo.load`; None for a program of the user's own.
        initial: the network's own starting values as a function of an input batch, where there are any.
        check: raises ValueError where a data set does not fit the model.

    >>> import numpyro
    >>> def program(x, y=None):
    ...     w = numpyro.sample("w", dist.Normal(0, 1).expand([x.shape[1]]).to_event(1))
    ...     with numpyro.plate("data", x.shape[0]):
    ...         numpyro.sample("y", dist.Normal(x @ w, 0.1), obs=y)
    >>> model = Model(program).bind((np.zeros((5, 3)), np.zeros(5)))
    >>> model.describe().num_parameters
    3
    """

    program: Program
    config: "Config | None" = None
    initial: Callable[[Any], Theta] | None = None
    check: Callable[[Batch], None] | None = None
    rows: "Rows | None" = None

    def bind(self, data: Any) -> "Model":
        """This model for data of that shape: checked, with the names and shapes of theta known."""
        from credo.data import as_data

        batch = as_data(data).batch()
        if self.check is not None:
            self.check(batch)
        bound = replace(self, rows=Rows.of(batch))
        bound._look(lambda trace: _check_program(trace, bound._bound.num))
        return bound

    @property
    def _bound(self) -> "Rows":
        if self.rows is None:
            raise ValueError(
                "the model has not seen data, so the shapes of theta are unknown; call model.bind((x, y)) first"
            )
        return self.rows

    def example(self) -> Batch:
        """A few rows of zeros in the shape of the data: enough to trace the program."""
        return self._bound.example()

    # -- densities ---------------------------------------------------------------------------------------

    def log_prior(self, theta: Theta) -> Array:
        """log p(theta) of the unconstrained theta, log-Jacobians and factors outside the plate included."""
        return self._log_sums(theta, self.example())[0]

    def log_likelihood(self, theta: Theta, batch: Batch) -> Array:
        """Σ_batch log p(y | x, theta): what stands inside the plate `data`."""
        return self._log_sums(theta, batch)[1]

    def log_joint(self, theta: Theta, batch: Batch) -> Array:
        """log p(theta) + N/n · Σ_batch log p(y | x, theta): an unbiased estimate of the log joint density."""
        log_prior, log_likelihood = self.log_parts(theta, batch)
        return log_prior + log_likelihood

    def log_parts(self, theta: Theta, batch: Batch) -> tuple[Array, Array]:
        """The two terms of the log joint apart: log p(theta), and N/n · Σ_batch log p(y | x, theta)."""
        log_prior, log_likelihood = self._log_sums(theta, batch)
        return log_prior, batch.total / batch.x.shape[0] * log_likelihood

    def predictive(self, theta: Theta, x: Array) -> dist.Distribution:
        """p(y | x, theta): the distribution at site `y`, one row per input."""
        return self._trace(theta, x, None)[0]["y"]["fn"]

    def _log_sums(self, theta: Theta, batch: Batch) -> tuple[Array, Array]:
        trace, log_jacobian = self._trace(theta, batch.x, batch.y)
        log_prior, log_likelihood = log_jacobian, jnp.zeros(())
        for site in trace.values():
            if site["type"] != "sample":
                continue
            log_prob = jnp.sum(site["fn"].log_prob(site["value"]))
            if site["scale"] is not None:
                log_prob = site["scale"] * log_prob
            if _in_data_plate(site):
                log_likelihood = log_likelihood + log_prob
            else:
                log_prior = log_prior + log_prob
        return log_prior, log_likelihood

    def _trace(self, theta: Theta, x: Array, y: Array | None) -> tuple[dict[str, Any], Array]:
        constrain = Constrain(theta)
        # Every latent is given and an unobserved y is not looked at: the compiler drops what the seed draws.
        with handlers.trace() as trace, handlers.seed(rng_seed=0), constrain:
            self.program(x, y)
        return trace, constrain.log_jacobian

    # -- theta ---------------------------------------------------------------------------------------------

    @cached_property
    def template(self) -> dict[str, jax.ShapeDtypeStruct]:
        """theta as names, shapes and dtypes, in the order the program draws them."""
        shapes = self._look(lambda trace: {name: jnp.shape(value) for name, value in _unconstrained(trace).items()})
        return {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in shapes.items()}

    @property
    def num_parameters(self) -> int:
        """How many numbers theta holds."""
        return sum(leaf.size for leaf in self.template.values())

    def describe(self) -> Description:
        """What is drawn, with which prior, how many numbers."""
        example = self.example()
        zeros = {name: jnp.zeros(leaf.shape) for name, leaf in self.template.items()}
        trace = self._trace(zeros, example.x, example.y)[0]
        return Description(
            tuple(Site(name, leaf.shape, _in_words(trace[name]["fn"])) for name, leaf in self.template.items())
        )

    def sample_prior(self, key: Key, num: int) -> Theta:
        """`num` draws of theta from the prior: every leaf gains a leading axis."""
        return jax.vmap(lambda key: _unconstrained(self._prior_trace(key)))(jax.random.split(key, num))

    def initial_theta(self, key: Key) -> Theta:
        """A starting point: the network's own values where there are any, else a draw from the prior.

        A value that its prior rules out (a negative weight under a half-normal) is no starting point either.
        """
        theta = {name: leaf[0] for name, leaf in self.sample_prior(key, 1).items()}
        if self.initial is not None:
            example = self.example()
            own = self.initial(example.x)
            trace = self._trace(theta, example.x, example.y)[0]
            for name in own.keys() & theta.keys():
                support = trace[name]["fn"].support
                value = biject_to(support).inv(jnp.asarray(own[name]))
                theta[name] = jnp.where(jnp.all(support(own[name])), value, theta[name])
        return theta

    def constrain(self, theta: Theta) -> Theta:
        """theta in the units of the program: a noise scale is positive again, and so on."""
        example = self.example()
        trace = self._trace(theta, example.x, example.y)[0]
        return {name: trace[name]["value"] for name in theta}

    def prior_predict(self, x: Any, *, num_draws: int = 100, seed: int = 0) -> "Predictive":
        """The prior predictive p(y | x) = ∫ p(y | x, theta) p(theta) dtheta, from `num_draws` draws."""
        from credo.data import as_inputs
        from credo.predictive import predictive

        if num_draws < 1:
            raise ValueError(f"num_draws must be at least 1, got {num_draws}")
        inputs = as_inputs(x, None if self.rows is None else self.rows.x_shape[1:])
        bound = self if self.rows is not None else replace(self, rows=Rows.of_inputs(inputs))
        return predictive(bound, bound.sample_prior(random.key(seed), num_draws), inputs)

    def graph(self) -> "Graph":
        """The program as a Bayesian belief network: nodes, edges and plates."""
        from credo.models.graph import graph_of

        example = self.example()
        return graph_of(self.program, example.x, example.y)

    def _prior_trace(self, key: Key) -> dict[str, Any]:
        example = self.example()
        skip_y = handlers.substitute(substitute_fn=_zeros_for_y)
        with handlers.trace() as trace, handlers.seed(rng_seed=key), skip_y:
            self.program(example.x, example.y)
        return trace

    def _look(self, read: Callable[[dict[str, Any]], T]) -> T:
        """What `read` finds in a trace of the program, without computing anything."""
        found: list[T] = []
        # JAX draws Poisson numbers with threefry keys only, and such a latent must get as far as its refusal.
        jax.eval_shape(lambda: found.append(read(self._prior_trace(jax.random.key(0, impl="threefry2x32")))))
        return found[0]


class Config(dict[str, Any]):
    """A JSON-able dict that a frozen, hashable model may hold: equal where its text is equal."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(repr(sorted(self.items())))


@dataclass(frozen=True)
class Rows:
    """Shape and dtype of a few rows: enough to trace a program, and hashable, so compiled code is shared."""

    x_shape: tuple[int, ...]
    x_dtype: str
    y_shape: tuple[int, ...] | None
    y_dtype: str

    @classmethod
    def of(cls, batch: Batch) -> "Rows":
        # Two rows where there are two: one row would hide a program that confuses rows with columns.
        num = min(2, batch.x.shape[0])
        return cls((num, *batch.x.shape[1:]), str(batch.x.dtype), (num, *batch.y.shape[1:]), str(batch.y.dtype))

    @classmethod
    def of_inputs(cls, x: Any) -> "Rows":
        return cls((min(2, x.shape[0]), *x.shape[1:]), "float32", None, "float32")

    @property
    def num(self) -> int:
        return self.x_shape[0]

    def example(self) -> Batch:
        """Rows of zeros."""
        y = None if self.y_shape is None else jnp.zeros(self.y_shape, self.y_dtype)
        return Batch(jnp.zeros(self.x_shape, self.x_dtype), y, self.num)  # type: ignore[arg-type]


class Constrain(Messenger):
    """Sets each latent site to T(theta[name]), T the bijector to its support, and sums log |det T′|."""

    def __init__(self, theta: Theta) -> None:
        super().__init__(None)
        self.theta = theta
        self.log_jacobian: Array = jnp.zeros(())

    def process_message(self, msg: dict[str, Any]) -> None:
        if not _is_latent(msg) or msg["name"] not in self.theta:
            return
        unconstrained = self.theta[msg["name"]]
        if _is_real(msg["fn"].support):
            msg["value"] = unconstrained
            return
        transform = biject_to(msg["fn"].support)
        msg["value"] = transform(unconstrained)
        self.log_jacobian += jnp.sum(transform.log_abs_det_jacobian(unconstrained, msg["value"]))


def _is_real(support: Any) -> bool:
    while isinstance(support, constraints.independent):
        support = support.base_constraint
    return support is constraints.real


def _is_latent(site: Mapping[str, Any]) -> bool:
    return site["type"] == "sample" and not site["is_observed"] and site["name"] != "y"


def _zeros_for_y(site: Mapping[str, Any]) -> Array | None:
    """Values for targets that nobody looks at: drawing them costs time, and JAX's Poisson takes no key of ours."""
    is_unseen = site["type"] == "sample" and site["name"] == "y" and not site["is_observed"]
    return jnp.zeros(site["fn"].shape()) if is_unseen else None


def _in_data_plate(site: Mapping[str, Any]) -> bool:
    return any(frame.name == "data" for frame in site["cond_indep_stack"])


def _unconstrained(trace: Mapping[str, Any]) -> Theta:
    """The latents of a trace in unconstrained form: theta."""
    return {
        name: jnp.asarray(biject_to(site["fn"].support).inv(site["value"]), jnp.float32)
        for name, site in trace.items()
        if _is_latent(site)
    }


def _in_words(distribution: dist.Distribution) -> str:
    while isinstance(distribution, dist.Independent | dist.ExpandedDistribution):
        distribution = distribution.base_dist
    numbers = []
    for name in type(distribution).arg_constraints:
        value = vars(distribution).get(name)
        if value is None:
            continue
        value = np.unique(np.asarray(value))
        numbers.append(f"{name}={value[0]:.4g}" if value.size == 1 else f"{name}=[{value.size} values]")
    return f"{type(distribution).__name__}({', '.join(numbers)})"


def _check_program(trace: Mapping[str, Any], num_rows: int) -> None:
    """The contract of a program, told before anything is compiled."""
    if "y" not in trace:
        names = [name for name, site in trace.items() if site["type"] == "sample"]
        raise ValueError(
            f"the program has no site 'y'{nearest('y', names)}; it draws {names or 'nothing'}. Observe the targets "
            "with numpyro.sample('y', ..., obs=y)"
        )
    if not _in_data_plate(trace["y"]):
        raise ValueError(
            "the site 'y' is not inside a plate 'data'; write `with numpyro.plate('data', x.shape[0]):` around it, "
            "so that the likelihood can be told from the prior"
        )
    size, subsample = trace["data"]["args"]
    if size != num_rows or subsample not in (None, size):
        raise ValueError(
            f"the plate 'data' has size {size} (subsample {subsample}) for {num_rows} rows; its size must be "
            "x.shape[0]: minibatches and the N/n scaling are the library's business"
        )
    for name, site in trace.items():
        if site["type"] == "param":
            raise ValueError(
                f"the site {name!r} is a `param`, which no method here learns; give it a prior with numpyro.sample"
            )
        if _is_latent(site) and _in_data_plate(site):
            raise ValueError(
                f"the latent site {name!r} is inside the plate 'data': one value per row cannot be drawn from "
                "minibatches; marginalise it out, or move it outside the plate"
            )
        if _is_latent(site) and site["fn"].support.is_discrete:
            raise ValueError(
                f"the latent site {name!r} is discrete; gradient-based inference needs it summed out of the program"
            )
    if not any(_is_latent(site) for site in trace.values()):
        raise ValueError("the program draws no latent variable: there is nothing to infer")
