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

A *discrete* latent inside the plate is summed out (`models.summed`). So what is observed need not be what is predicted:
`Model(program, predicts="clean")` names the site that `predictive` is about, y by default.

What stands outside the plate may look at inputs that the model declares (`models.inputs`), never at the batch: a
consistency condition is a `factor` outside the plate, a part of the prior.
"""

import warnings
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import biject_to

from credo import _html, random
from credo._checks import require_at_least
from credo._concurrency import require_own_jax
from credo._dataflow import dependencies
from credo._precision import working_precision
from credo._text import nearest
from credo.data import Data, as_data, as_inputs
from credo.models import contract
from credo.models.densities import Densities
from credo.models.description import Description, describe
from credo.models.graph import Graph, graph_of
from credo.models.inputs import NO_INPUTS
from credo.models.rows import RowShapes, stand_in
from credo.models.sites import (
    LOCAL_NOISE,
    Xi,
    local_values,
    unconstrained_latents,
)
from credo.models.summed import combinations, mixture_of
from credo.predictive import Predictive, predictive
from credo.predictive.conditional import Conditional
from credo.predictive.mixed import mixed
from credo.typing import Array, Batch, Key, Theta

T = TypeVar("T")

# Draws of the latents for each draw of a prior with factors.
NUM_CANDIDATES = 50
# Rows of its own inputs, and draws of the prior, at which a model tries its factors before anything is compiled.
NUM_CHECKED, NUM_CHECKED_DRAWS = 64, 3


@dataclass(frozen=True)
class Model(Densities):
    """A stochastic model from a NumPyro program `program(x, y=None)` with a plate `data` and a site `y`.

    Arguments:
        program: draws the latents, opens `numpyro.plate("data", x.shape[0])`, observes `y` inside it.
        inputs: arrays that the prior looks at, by the names of further arguments of the program,
            `program(x, y=None, *, u)`: in the user's units, or "training" for the training inputs. See `models.inputs`.
        config: how to build the model again, for `credo.load`; None for a program of the user's own.
        initial: the network's own starting values, if any, as a function of an input batch.
        check: raises a ValueError if data do not fit the model; its batch has the shape of x only, and all of y.
        rows: the shape of the data, from `bind`.
        xi: constants for the params, from `freeze`.
        constants: the declared inputs as arrays, from `bind`.
        local: what latents inside the plate are. "aleatoric": noise of the inputs or of the data, over which
            p(y | x, theta) is averaged; "epistemic": a part of the hypothesis, drawn once for each draw of theta.
        predicts: the site to predict, where that is not what is observed: a discrete latent inside the plate that is
            summed out, or a site that the program has integrated out by hand, with `infer={"marginalised": True}`.
        labels: whether y holds class labels: whole numbers with NaN among them are labels then, some of them missing.
        views: what the likelihood of a row is averaged over, from `credo.models.augmented`.
        recipe: the network and the prior that the model is made of; None for a program of the user's own.
        trained: values of params that are constants, as a function of an input batch, from `credo.models.last_layer`.
        suits: data as the model takes them, in the unit and of the type that its likelihood has; refuses what it has no
            density for. `credo.models.counts` and others of one kind of targets have it.

    >>> import numpyro, numpyro.distributions as dist
    >>> def program(x, y=None):
    ...     w = numpyro.sample("w", dist.Normal(0, 1).expand([x.shape[1]]).to_event(1))
    ...     with numpyro.plate("data", x.shape[0]):
    ...         numpyro.sample("y", dist.Normal(x @ w, 0.1), obs=y)
    >>> model = Model(program).bind((np.zeros((5, 3)), np.zeros(5)))
    >>> model.describe().num_parameters
    3
    """

    def bind(self, data: Any) -> "Model":
        """This model for data of that shape: checked, with the names and shapes of theta known."""
        require_own_jax()
        data = self.suited(stand_in(self, data))
        seen = data.only_labelled()
        # The values of x decide nothing here, so they are not copied.
        num_rows = max(seen.size, data.capacity or 0)
        x = jax.ShapeDtypeStruct((num_rows, *seen.x.shape[1:]), working_precision())
        batch = Batch(x, seen.scaled_outcomes, seen.size)  # type: ignore[arg-type]
        rows = RowShapes.of(batch, data)
        contract.check_labels(self, rows)
        if self.check is not None:
            self.check(batch._replace(y=rows.parted(batch.y).y))
        if self.rows is not None and self.rows == rows and self.inputs is None and self.trained is None:
            # Nothing is left to look at: a loop of many fits binds its model once.
            return self if self.rows.columns == rows.columns else replace(self, rows=rows)
        constants = NO_INPUTS if self.inputs is None else self.inputs.bound(data)
        bound = replace(self, rows=rows, constants=constants)
        if self.trained is not None:
            bound = replace(bound, trained=None).freeze(self.trained(x))
        bound._look(lambda trace: contract.check_program(trace, bound._bound.num))
        bound._check_sums()
        if rows.precise:
            contract.check_precisions(bound)
        if constants.items:
            bound._look(lambda trace: contract.check_inputs(trace, bound._whole), bound._whole)
        if self.config is None:  # credo's own programs keep to it
            bound._check_prior()
            contract.check_values(bound)
        if bound.inputs_of_y:
            bound = replace(bound, constants=constants.kept(bound.inputs_of_y))
        if bound.factors:
            bound._check_factors()
        contract.check_xi(bound._xi_shapes, bound.frozen_xi)
        for name, value in bound.initial_xi().items():
            if not np.all(np.isfinite(value)):
                raise ValueError(f"the param {name!r} starts outside its constraint, or on its boundary")
        return bound

    def __copy__(self) -> "Model":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "Model":
        """Itself: nothing in it changes, and another program would be compiled anew."""
        return self

    def _shaped(self, x: Any) -> "Model":
        """This model for inputs of that shape, where there are no data."""
        return replace(self, rows=RowShapes.of_inputs(x))

    def suited(self, data: Any) -> Data:
        """Data with targets of the kind that the model takes: labels, if it is one of classes."""
        found = as_data(data).with_labels() if self.labels else as_data(data)
        return found if self.suits is None else self.suits(found)

    def like_training(self, data: Any) -> Data:
        """Suited data, with columns that have names in the order in which the model was bound to them."""
        return self.suited(data).arranged(None if self.rows is None else self.rows.columns)

    def inputs_like(self, x: Any) -> np.ndarray:
        """x as an array with rows and columns as in training, or an error that says what does not fit."""
        return as_inputs(x) if self.rows is None else as_inputs(x, self.rows.x_shape[1:], self.rows.columns)

    def _check_sums(self) -> None:
        """Refuse sums over discrete latents that are too long, and a site to predict that the program does not have."""
        if self.summed_sites:
            combinations(self.summed_sites)
        if self.predicts not in self.predictable:
            raise ValueError(
                f"predicts is {self.predicts!r}{nearest(self.predicts, self.predictable)}, and the program has "
                f"{', '.join(sorted(self.predictable))} to predict: y, discrete latents inside the plate 'data', and "
                "sites there with infer={'marginalised': True}"
            )

    def predicting(self, site: str | None) -> "Model":
        """This model, about another of its sites: `posterior.predict(x, of="y")`."""
        if site is None or site == self.predicts:
            return self
        if site not in self.predictable:
            raise ValueError(
                f"of is {site!r}{nearest(site, self.predictable)}; the model can predict "
                f"{', '.join(sorted(self.predictable))}"
            )
        return replace(self, predicts=site)

    def of_likelihood(self) -> "Model":
        """This model, whose `predictive` is the law that its likelihood has: of y, averaged over views of x."""
        found = self.predicting("y")
        return found if self.views is None else replace(found, views=replace(self.views, average=True))

    def _check_prior(self) -> None:
        """Refuse a prior that looks at the batch."""
        example = self.example()
        theta = {name: jnp.zeros(leaf.shape) for name, leaf in self.template.items()}

        def terms(batch: dict[str, Array]) -> dict[str, Array]:
            return self._prior_terms(self._trace(theta, batch["x"], batch.get("y"))[0])

        seen = {"x": example.x} if example.y is None else {"x": example.x, "y": example.y}
        contract.check_prior(dependencies(terms, seen))

    def _check_factors(self) -> None:
        """Refuse a factor that is not finite, and whatever it refuses itself, at draws from the prior."""
        example, whole = self.example(), self.constants.values()
        some = {name: value[:NUM_CHECKED] if name in self.summed_inputs else value for name, value in whole.items()}
        twice = some | {name: np.concatenate([some[name]] * 2) for name in self.summed_inputs}

        def factors(seed: int, inputs: dict[str, Any]) -> dict[str, Array]:
            # Not compiled: conditions look at the numbers themselves.
            trace = self._trace(self._prior_draw(random.key(seed)), example.x, example.y, inputs=inputs)[0]
            return self._prior_terms({name: trace[name] for name in self.factors})

        for seed in range(NUM_CHECKED_DRAWS):
            contract.check_factors(factors(seed, some), factors(seed, twice))

    # -- prediction ---------------------------------------------------------------------------------------

    def predictive(self, theta: Theta, x: Array) -> Conditional:
        """p(y | x, theta): the distribution at the site to predict, one row per input.

        Local latents that are noise (`local="aleatoric"`) are averaged over, with the same noise for every theta:

            p(y | x, theta) = ∫ p(y | x, l, theta) p(l | x, theta) dl ≈ 1/K Σₖ p(y | x, lₖ, theta)

        Those that are a part of the hypothesis are given: theta["local_noise"], a whole number, seeds them. An
        augmented model may average over views of x as well.
        """
        if self.rows is None:
            return self._shaped(x).predictive(theta, x)
        if self.views is not None and self.views.average:
            return self.views.law(partial(self._predictive_at, theta), x, self.constants.known())
        return self._predictive_at(theta, x)

    def _predictive_at(self, theta: Theta, x: Array) -> Conditional:
        """p(y | x, theta) of x as it is."""
        if not self.has_local_latents:
            return self._law(theta, x)

        def given(seed: Any) -> Conditional:
            values = local_values(lambda row, key: self._trace(theta, row, None, key)[0], seed, x)
            return self._law({**theta, **values}, x)

        if LOCAL_NOISE in theta or self.local == "epistemic":
            return given(theta.get(LOCAL_NOISE, 0))
        return mixed(given)

    def _law(self, theta: Theta, x: Array) -> Conditional:
        """The distribution at the site to predict, of which the discrete latents behind y are summed out."""
        if self.predicts == "y" and self.summed_sites:
            return mixture_of(lambda values: self._trace({**theta, **values}, x, None)[0], self.summed_sites)
        return self._trace(theta, x, None)[0][self.predicts]["fn"]

    def local_noise(self, num: int) -> Theta:
        """Seeds of the local latents of `num` draws, where these are a part of the hypothesis: leaves of theta."""
        is_hypothesis = self.has_local_latents and self.local == "epistemic"
        return {LOCAL_NOISE: np.arange(num, dtype=np.int32)} if is_hypothesis else {}

    @property
    def averages_local(self) -> bool:
        """Whether p(y | x, theta) is an average over local latents, which are noise."""
        return self.has_local_latents and self.local == "aleatoric"

    # -- theta ---------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        if self.rows is not None:
            return str(self.describe())
        name = self.program.__name__ if self.config is None else self.config["model"]
        return f"{name}: not bound to data yet; bind(data).describe() says what is drawn, and how many numbers that is"

    def _repr_html_(self) -> str:
        return _html.notebook(_html.code(str(self))) if self.rows is None else self.describe()._repr_html_()

    def describe(self) -> Description:
        """What is drawn, from which prior, and how many numbers that is."""
        example = self.example()
        shapes = {name: leaf.shape for name, leaf in self.template.items()}
        trace = self._trace({name: jnp.zeros(shape) for name, shape in shapes.items()}, example.x, example.y)[0]
        inputs = {name: one.shape for name, one in self.constants.items}
        found = describe(trace, shapes, self._xi_shapes, self.frozen_xi, inputs, self.local)
        if self.views is None:
            return found
        return replace(found, local=(*found.local, self.views.site(example.x.shape[1:])))

    @cached_property
    def hierarchical_sites(self) -> frozenset[str]:
        """The latents whose prior depends on other latents: their `moments` assume independence under q."""
        graph = self.graph()

        def has_latent_above(name: str) -> bool:
            return any(parent in self.template or has_latent_above(parent) for parent in graph.parents(name))

        return frozenset(name for name in self.template if has_latent_above(name))

    def sample_prior(self, key: Key, num: int) -> Theta:
        """`num` draws of theta from the prior, whose `factors` are not looked at: every leaf gains a leading axis."""
        return jax.vmap(self._prior_draw)(jax.random.split(key, num))

    def sample_conditioned_prior(self, key: Key, num: int) -> Theta:
        """`num` draws of theta from the prior with its `factors`, p(theta) exp(Σ factors).

        They are chosen among fifty times as many draws of p(theta), with probabilities ∝ exp(Σ factors): a warning says
        if the factors leave too few of these to choose from.
        """
        draw_key, choice_key = jax.random.split(key)
        keys = jax.random.split(draw_key, NUM_CANDIDATES * num)
        # One after another, and forgotten: all candidates of a large network would not fit into memory.
        log_weights = jax.lax.map(lambda key: self.log_factors(self._prior_draw(key)), keys, batch_size=num)
        weights = jax.nn.softmax(log_weights)
        effective = float(1 / jnp.sum(weights**2))
        if effective < num:
            warnings.warn(
                f"the prior's factors ({', '.join(sorted(self.factors))}) leave about {effective:.0f} of {len(keys):,} "
                f"draws: what is shown of the prior is rougher than {num} draws would be",
                stacklevel=3,
            )
        chosen = jax.random.choice(choice_key, len(keys), (num,), p=weights)
        return jax.vmap(self._prior_draw)(keys[chosen])

    def _prior_draw(self, key: Key) -> Theta:
        return unconstrained_latents(self._prior_trace(key))

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
        inputs = self.inputs_like(x)
        bound = self if self.rows is not None else self._shaped(inputs)
        if bound.undrawn_sites:
            raise ValueError(
                f"the prior of {sorted(bound.undrawn_sites)[0]!r} is a regularizer given as a function, from which "
                "nothing can be drawn; take one of credo.priors to see what it says of functions"
            )
        sample = bound.sample_conditioned_prior if bound.factors else bound.sample_prior
        draws = sample(random.key(seed), num_draws)
        if bound.local_noise(num_draws):
            draws[LOCAL_NOISE] = jax.random.bits(random.key(seed), (num_draws,), jnp.uint32)
        return predictive(bound, draws, inputs)

    def graph(self) -> "Graph":
        """The program as a Bayesian belief network: nodes, edges and plates."""
        example = self.example()
        # Of a condition only its points are shown, not the weights, units and tables that it works with.
        shown = {name: value for name, value in self._whole.items() if "." not in name or name in self.summed_inputs}
        others = {name: value for name, value in self._whole.items() if name not in shown}
        y = self._bound.parted(example.y).y
        found = graph_of(partial(self.program, **others), example.x, y, shown)
        return found if self.views is None else self.views.drawn(found)

    # -- xi ------------------------------------------------------------------------------------------------

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
            contract.check_xi(self._xi_shapes, chosen.arrays())
        return replace(self, xi=chosen)


# To compiled code a model is a constant; one that holds arrays of its own (`posterior.believed`) brings them along.
jax.tree_util.register_pytree_node(Model, lambda model: ((), model), lambda model, _: model)
