"""The stochastic model: a NumPyro program, and the densities that inference needs from it.

A Bayesian belief network is a program of `sample` statements. What is inside the plate `data` is the likelihood,
what is outside is the prior (paper, "Probabilistic graphical models"):

    log p(theta, D) = log p(theta) + N/n · Σ_batch log p(y | x, theta)

theta is a dict of *unconstrained* arrays, one per latent site; the bijector to each site's support, and the
logarithm of its Jacobian, are added here and nowhere else. A `param` statement declares one of xi, the parameters
that are learned without a prior (paper, "Learning the prior"): any theta that is passed in may hold xi as well.

A latent *inside* the plate has one value per row. It is drawn from its own distribution p(l | x, theta), so that

    Σ log p(y | x, l, theta)    is on average at most    log p(D | theta)        (Jensen's inequality)

and its own density enters nowhere: q(l) = p(l | x, theta) (paper, "Bayes by backpropagation").
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers
from numpyro.distributions import biject_to

from credo import random
from credo._checks import require_at_least
from credo.data import as_data, as_inputs
from credo.models.contract import check_program, check_xi
from credo.models.description import Description, describe
from credo.models.graph import Graph, graph_of
from credo.models.sites import (
    LOCAL_NOISE,
    Sites,
    Xi,
    in_data_plate,
    is_local,
    local_key,
    log_density,
    normal_of,
    unconstrained_latents,
    unconstrained_params,
    zeros_for_y,
)
from credo.networks.masks import Masks
from credo.predictive import Predictive, predictive
from credo.predictive.conditional import Conditional
from credo.typing import Array, Batch, Key, Program, Theta

T = TypeVar("T")


@dataclass(frozen=True)
class Model:
    """A stochastic model from a NumPyro program `program(x, y=None)` with a plate `data` and a site `y`.

    Arguments:
        program: draws the latents, opens `numpyro.plate("data", x.shape[0])`, observes `y` inside it.
        config: how to build the model again, for `credo.load`; None for a program of the user's own.
        initial: the network's own starting values, if any, as a function of an input batch.
        check: raises a ValueError if data do not fit the model; its batch has the shape of x only, and all of y.
        rows: the shape of the data, from `bind`.
        xi: constants for the params, from `freeze`.

    >>> import numpyro, numpyro.distributions as dist
    >>> def program(x, y=None):
    ...     w = numpyro.sample("w", dist.Normal(0, 1).expand([x.shape[1]]).to_event(1))
    ...     with numpyro.plate("data", x.shape[0]):
    ...         numpyro.sample("y", dist.Normal(x @ w, 0.1), obs=y)
    >>> model = Model(program).bind((np.zeros((5, 3)), np.zeros(5)))
    >>> model.describe().num_parameters
    3
    """

    program: Program
    config: "ModelConfig | None" = None
    initial: Callable[[Any], Theta] | None = None
    check: Callable[[Batch], None] | None = None
    rows: "RowShapes | None" = None
    xi: Xi | None = None

    def bind(self, data: Any) -> "Model":
        """This model for data of that shape: checked, with the names and shapes of theta known."""
        data = as_data(data)
        # The values of x decide nothing here, so they are not copied.
        x = jax.ShapeDtypeStruct(data.x.shape, jnp.float32)
        batch = Batch(x, data.scaling.targets(data.y), data.size)  # type: ignore[arg-type]
        if self.check is not None:
            self.check(batch)
        bound = replace(self, rows=RowShapes.of(batch))
        bound._look(lambda trace: check_program(trace, bound._bound.num))
        check_xi(bound._xi_shapes, bound.frozen_xi)
        for name, value in bound.initial_xi().items():
            if not np.all(np.isfinite(value)):
                raise ValueError(f"the param {name!r} starts outside its constraint, or on its boundary")
        return bound

    @property
    def _bound(self) -> "RowShapes":
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
        return self._log_sums(theta, self.example(), _any_key)[0]

    def log_likelihood(self, theta: Theta, batch: Batch, *, key: Key | None = None) -> Array:
        """Σ_batch log p(y | x, theta): what is inside the plate `data`. Local latents need a key."""
        return self._log_sums(theta, batch, lambda: _given(key))[1]

    def log_joint(self, theta: Theta, batch: Batch, *, key: Key | None = None) -> Array:
        """log p(theta) + N/n · Σ_batch log p(y | x, theta): an unbiased estimate of the log joint density."""
        log_prior, log_likelihood = self.log_parts(theta, batch, key=key)
        return log_prior + log_likelihood

    def log_parts(
        self, theta: Theta, batch: Batch, *, moments: tuple[Theta, Theta] | None = None, key: Key | None = None
    ) -> tuple[Array, Array]:
        """The two terms of the log joint: log p(theta), and N/n · Σ_batch log p(y | x, theta).

        With moments of a Gaussian q over theta, each site of `closed_form_sites` adds its expectation to the first,

            E_q[log N(w; m, s²)] = log N(E_q[w]; m, s²) − Var_q[w] / 2s²,

        with m and s at the given theta; other sites add log p(theta) at that theta. The average over theta ~ q is
        E_q[log p(theta)] if w and the latents in m and s are independent under q: if q correlates weights, leave
        `hierarchical_sites` out of the moments.

        Arguments:
            moments: means and variances of the unconstrained latents, by name; latents not named are not averaged.
            key: for local latents, drawn afresh; the average over keys is a lower bound on the log likelihood.
        """
        log_prior, log_likelihood = self._log_sums(theta, batch, lambda: _given(key), moments)
        return log_prior, batch.total / batch.x.shape[0] * log_likelihood

    def predictive(self, theta: Theta, x: Array) -> Conditional:
        """p(y | x, theta): the distribution at site `y`, one row per input.

        Given local latents too, one value per row: theta["local_noise"], a whole number (0 without it), seeds them.
        """
        return self._trace(theta, x, None, lambda: local_key(theta.get(LOCAL_NOISE, 0), x))[0]["y"]["fn"]

    def _log_sums(
        self, theta: Theta, batch: Batch, local: Callable[[], Key], moments: tuple[Theta, Theta] | None = None
    ) -> tuple[Array, Array]:
        trace, log_jacobian = self._trace(theta, batch.x, batch.y, local)
        log_prior, log_likelihood = log_jacobian, jnp.zeros(())
        for site in trace.values():
            if site["type"] != "sample" or is_local(site):
                continue
            if in_data_plate(site):
                log_likelihood = log_likelihood + log_density(site)
            else:
                log_prior = log_prior + log_density(site, moments)
        return log_prior, log_likelihood

    def _trace(
        self, theta: Theta, x: Array, y: Array | None, local: Callable[[], Key] | None = None
    ) -> tuple[dict[str, Any], Array]:
        sites = Sites(theta, self.frozen_xi, local or _any_key)
        # Every latent is given and nobody reads an unobserved y: the compiler drops what the seed draws.
        with handlers.trace() as trace, handlers.seed(rng_seed=0), sites, Masks(theta):
            self.program(x, y)
        return trace, sites.log_jacobian

    # -- theta ---------------------------------------------------------------------------------------------

    @cached_property
    def template(self) -> dict[str, jax.ShapeDtypeStruct]:
        """theta as names, shapes and dtypes, in the order the program draws them."""
        shapes = self._look(lambda trace: _shapes(unconstrained_latents(trace)))
        return {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in shapes.items()}

    @property
    def num_parameters(self) -> int:
        """How many numbers theta holds."""
        return sum(leaf.size for leaf in self.template.values())

    def describe(self) -> Description:
        """What is drawn, from which prior, and how many numbers that is."""
        example = self.example()
        shapes = {name: leaf.shape for name, leaf in self.template.items()}
        trace = self._trace({name: jnp.zeros(shape) for name, shape in shapes.items()}, example.x, example.y)[0]
        return describe(trace, shapes, self._xi_shapes, self.frozen_xi)

    @cached_property
    def closed_form_sites(self) -> frozenset[str]:
        """The normal latents, whose expected log density `log_parts` has in closed form."""
        return self._look(lambda trace: frozenset(name for name, site in trace.items() if normal_of(site) is not None))

    @cached_property
    def hierarchical_sites(self) -> frozenset[str]:
        """The latents whose prior depends on other latents: their `moments` assume independence under q."""
        graph = self.graph()

        def has_latent_above(name: str) -> bool:
            return any(parent in self.template or has_latent_above(parent) for parent in graph.parents(name))

        return frozenset(name for name in self.template if has_latent_above(name))

    @cached_property
    def has_local_latents(self) -> bool:
        """Whether the program draws latents inside the plate `data`, one value per row."""
        return self._look(lambda trace: any(is_local(site) for site in trace.values()))

    def sample_prior(self, key: Key, num: int) -> Theta:
        """`num` draws of theta from the prior: every leaf gains a leading axis."""
        return jax.vmap(lambda key: unconstrained_latents(self._prior_trace(key)))(jax.random.split(key, num))

    def initial_theta(self, key: Key) -> Theta:
        """A starting point: the network's own values where it has any, else a draw from the prior.

        A value that its prior rules out (a negative weight under a half-normal) gives way to the draw too.
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
        """theta (and xi, if it holds them) in the units of the program: a noise scale is positive again, and so on."""
        example = self.example()
        trace = self._trace(theta, example.x, example.y)[0]
        # The seed of local latents and the masks are not sites.
        return {name: trace[name]["value"] if name in trace else value for name, value in theta.items()}

    def prior_predict(self, x: Any, *, num_draws: int = 100, seed: int = 0) -> "Predictive":
        """The prior predictive p(y | x) = ∫ p(y | x, theta) p(theta) dtheta, from `num_draws` draws."""
        require_at_least(1, num_draws=num_draws)
        inputs = as_inputs(x, None if self.rows is None else self.rows.x_shape[1:])
        bound = self if self.rows is not None else replace(self, rows=RowShapes.of_inputs(inputs))
        draws = bound.sample_prior(random.key(seed), num_draws)
        if bound.has_local_latents:
            draws[LOCAL_NOISE] = jax.random.bits(random.key(seed), (num_draws,))
        return predictive(bound, draws, inputs)

    def graph(self) -> "Graph":
        """The program as a Bayesian belief network: nodes, edges and plates."""
        example = self.example()
        return graph_of(self.program, example.x, example.y)

    # -- xi ------------------------------------------------------------------------------------------------

    @property
    def xi_template(self) -> dict[str, jax.ShapeDtypeStruct]:
        """The xi that are left to learn, not those that are frozen: unconstrained shapes by name."""
        free = {name: shape for name, shape in self._xi_shapes.items() if name not in self.frozen_xi}
        return {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in free.items()}

    def initial_xi(self) -> Theta:
        """Where learning xi starts: T⁻¹(init) of each `numpyro.param(name, init)`, T the bijector to its constraint.

        An init that is a function of a key always gets the same key.
        """
        if not self.xi_template:
            return {}
        xi = jax.jit(lambda: unconstrained_params(self._prior_trace(random.key(0))))()
        return {name: xi[name] for name in self.xi_template}

    def freeze(self, xi: Theta) -> "Model":
        """This model with these xi, unconstrained and by name, as constants; the others stay as they are.

        >>> import numpyro, numpyro.distributions as dist
        >>> def program(x, y=None):
        ...     scale = numpyro.param("scale", 1.0, constraint=dist.constraints.positive)
        ...     w = numpyro.sample("w", dist.Normal(0, scale))
        ...     with numpyro.plate("data", x.shape[0]):
        ...         numpyro.sample("y", dist.Normal(w, 0.1), obs=y)
        >>> model = Model(program).bind((np.zeros((5, 3)), np.zeros(5)))
        >>> model.freeze({"scale": np.log(2.0)}).describe().sites[0].prior
        'Normal(loc=0, scale=2)'
        """
        chosen = Xi.of({**self.frozen_xi, **xi})
        for name, value in chosen.arrays().items():
            if not np.all(np.isfinite(value)):
                raise ValueError(f"xi: {name!r} has values that are not finite")
        if self.rows is not None:
            check_xi(self._xi_shapes, chosen.arrays())
        return replace(self, xi=chosen)

    @property
    def frozen_xi(self) -> dict[str, np.ndarray]:
        """The xi that are constants of this model, unconstrained, by name."""
        return {} if self.xi is None else self.xi.arrays()

    @cached_property
    def _xi_shapes(self) -> dict[str, tuple[int, ...]]:
        return self._look(lambda trace: _shapes(unconstrained_params(trace)))

    @cached_property
    def points(self) -> frozenset[str]:
        """The xi that are weights of point layers (`credo.priors.point`), not parameters of a prior."""
        return self._look(lambda trace: frozenset(name for name in self._xi_shapes if "point" in trace[name]["kwargs"]))

    # -- traces --------------------------------------------------------------------------------------------

    def _prior_trace(self, key: Key) -> dict[str, Any]:
        example = self.example()
        skip_y = handlers.substitute(substitute_fn=zeros_for_y)
        with handlers.trace() as trace, handlers.seed(rng_seed=key), skip_y, Sites({}, self.frozen_xi):
            self.program(example.x, example.y)
        return trace

    def _look(self, read: Callable[[dict[str, Any]], T]) -> T:
        """What `read` finds in a trace of the program; nothing is computed."""
        found: list[T] = []
        # Frozen values are checked against what is found here, so they must not decide it.
        free = replace(self, xi=None)
        # JAX draws Poisson numbers with threefry keys only, and a discrete latent must get as far as its refusal.
        jax.eval_shape(lambda: found.append(read(free._prior_trace(jax.random.key(0, impl="threefry2x32")))))
        return found[0]


def _shapes(arrays: Theta) -> dict[str, tuple[int, ...]]:
    return {name: jnp.shape(value) for name, value in arrays.items()}


def _any_key() -> Key:
    """For local latents on whose values nothing depends."""
    return random.key(0)


def _given(key: Key | None) -> Key:
    if key is None:
        raise ValueError(
            "the model draws latents inside the plate 'data', one value per row, and its likelihood needs a key to "
            "draw them: log_parts(theta, batch, key=key). credo.BayesByBackprop trains it; samplers cannot"
        )
    return key


class ModelConfig(dict[str, Any]):
    """A JSON-able dict that a frozen, hashable model may hold: equal where its text is equal."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(repr(sorted(self.items())))


@dataclass(frozen=True)
class RowShapes:
    """Shape and dtype of a few rows: enough to trace a program, and hashable, so compiled code is shared."""

    x_shape: tuple[int, ...]
    x_dtype: str
    y_shape: tuple[int, ...] | None
    y_dtype: str

    @classmethod
    def of(cls, batch: Batch) -> "RowShapes":
        # Two rows where there are two: one row would hide a program that confuses rows with columns.
        num = min(2, batch.x.shape[0])
        return cls((num, *batch.x.shape[1:]), str(batch.x.dtype), (num, *batch.y.shape[1:]), str(batch.y.dtype))

    @classmethod
    def of_inputs(cls, x: Any) -> "RowShapes":
        return cls((min(2, x.shape[0]), *x.shape[1:]), "float32", None, "float32")

    @property
    def num(self) -> int:
        return self.x_shape[0]

    def example(self) -> Batch:
        """Rows of zeros."""
        y = None if self.y_shape is None else jnp.zeros(self.y_shape, self.y_dtype)
        return Batch(jnp.zeros(self.x_shape, self.x_dtype), y, self.num)  # type: ignore[arg-type]
