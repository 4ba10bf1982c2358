"""Runs of a program: what it draws, in which shapes, and from which inputs; everything that is read off a trace."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers

from credo import random
from credo._checks import require_one_of
from credo._concurrency import alone
from credo._dataflow import dependencies
from credo._precision import working_precision
from credo.data import Data
from credo.models.facts import Fact, fact_of
from credo.models.inputs import NO_INPUTS, NUM_EXAMPLE_ROWS, Inputs, as_declared
from credo.models.recipe import Recipe
from credo.models.rows import ModelConfig, RowShapes, Told
from credo.models.sites import Sites, Xi, of_new_task, unconstrained_params, zeros_for_y
from credo.models.views import Views
from credo.networks.masks import Masks
from credo.typing import Array, Batch, Key, Program, Theta

T = TypeVar("T")


@dataclass(frozen=True)
class Traced:
    """A program with what it is run on. See `Model` for the fields."""

    program: Program
    # What is declared is compared once it is bound.
    inputs: Any = field(default=None, compare=False, kw_only=True)
    config: ModelConfig | None = None
    initial: Callable[[Any], Theta] | None = None
    check: Callable[[Batch], None] | None = None
    rows: RowShapes | None = None
    xi: Xi | None = None
    constants: Inputs = NO_INPUTS
    local: Literal["aleatoric", "epistemic"] = "aleatoric"
    predicts: str = "y"
    labels: bool = False
    views: Views | None = None
    recipe: Recipe | None = field(default=None, compare=False)
    trained: Callable[[Any], Theta] | None = None
    suits: Callable[[Data], Data] | None = None

    def __post_init__(self) -> None:
        require_one_of(("aleatoric", "epistemic"), local=self.local)
        object.__setattr__(self, "inputs", as_declared(self.inputs))

    @property
    def _bound(self) -> RowShapes:
        if self.rows is None:
            raise ValueError(
                "the model has not seen data, so the shapes of theta are unknown; call model.bind((x, y)) first"
            )
        return self.rows

    def example(self) -> Batch:
        """A few rows of zeros in the shape of the data: enough to trace the program."""
        return self._bound.example()

    # -- what is drawn ---------------------------------------------------------------------------------------

    @cached_property
    def _facts(self) -> dict[str, Fact]:
        """What each site is, in the order of the program: from one run of it."""
        return self._look(lambda trace: {name: fact_of(site) for name, site in trace.items()})

    def _named(self, is_one: Callable[[Fact], bool]) -> frozenset[str]:
        return frozenset(name for name, fact in self._facts.items() if is_one(fact))

    @property
    def template(self) -> dict[str, jax.ShapeDtypeStruct]:
        """theta as names, shapes and dtypes, in the order the program draws them."""
        latents = {name: fact.shape for name, fact in self._facts.items() if fact.is_latent}
        return {name: jax.ShapeDtypeStruct(shape, working_precision()) for name, shape in latents.items()}

    @property
    def num_parameters(self) -> int:
        """How many numbers theta holds."""
        return sum(leaf.size for leaf in self.template.values())

    @cached_property
    def closed_form_sites(self) -> frozenset[str]:
        """The normal latents, whose expected log density `log_parts` has in closed form."""
        return self._named(lambda fact: fact.is_normal)

    @cached_property
    def real_sites(self) -> frozenset[str]:
        """The latents on all real numbers: theta holds their values as they are."""
        return self._named(lambda fact: fact.is_real)

    @cached_property
    def coupled_sites(self) -> frozenset[str]:
        """The latents whose entries are correlated in the prior: its precision is no diagonal."""
        return self._named(lambda fact: fact.is_coupled)

    @cached_property
    def weight_names(self) -> tuple[str, ...]:
        """The paths of the network's weights; the latents of a program that has no network."""
        if self.initial is None:
            return tuple(self.template)
        own = jax.eval_shape(self.initial, self.example().x)

        def is_weight(name: str) -> bool:
            # Where weights vary between tasks, their mean starts at the network's value as well.
            return name in own and name.removesuffix(".mean") not in own.keys() - {name}

        return tuple(name for name in self._facts if is_weight(name))

    def weights(self, theta: Theta) -> Theta:
        """The weights of the network at theta, by path, whatever sites they are made of.

        Of a model of tasks they are those of a task that it has not seen.
        """
        trace = self.trace_at(theta)
        return {name: of_new_task(trace[name]) for name in self.weight_names}

    @cached_property
    def factors(self) -> frozenset[str]:
        """The sites outside the plate `data` that are observed: they condition the latents, and draw nothing."""
        return self._named(lambda fact: fact.is_factor)

    @cached_property
    def undrawn_sites(self) -> frozenset[str]:
        """The latents with a density that nothing can be drawn from: draws of theta are only starting points there."""
        return self._named(lambda fact: fact.is_undrawn)

    @cached_property
    def has_local_latents(self) -> bool:
        """Whether the program draws latents inside the plate `data`, one value per row."""
        return any(fact.is_local for fact in self._facts.values())

    @cached_property
    def summed_sites(self) -> dict[str, tuple[int, ...]]:
        """The discrete latents inside the plate `data`, and the values that each is summed over."""
        return {name: fact.values for name, fact in self._facts.items() if fact.values}

    @cached_property
    def predictable(self) -> frozenset[str]:
        """The sites that have a law to predict from: y, what is summed over, and what is integrated out by hand."""
        return self._named(lambda fact: bool(fact.values) or fact.is_marginalised) | {"y"}

    # -- xi ------------------------------------------------------------------------------------------------

    @property
    def xi_template(self) -> dict[str, jax.ShapeDtypeStruct]:
        """The xi that are left to learn, not those that are frozen: unconstrained shapes by name."""
        free = {name: shape for name, shape in self._xi_shapes.items() if name not in self.frozen_xi}
        return {name: jax.ShapeDtypeStruct(shape, working_precision()) for name, shape in free.items()}

    def initial_xi(self) -> Theta:
        """Where learning xi starts: T⁻¹(init) of each `numpyro.param(name, init)`, T the bijector to its constraint.

        An init that is a function of a key always gets the same key.
        """
        if not self.xi_template:
            return {}
        xi = _initial_params(self)
        return {name: xi[name] for name in self.xi_template}

    @property
    def frozen_xi(self) -> dict[str, np.ndarray]:
        """The xi that are constants of this model, unconstrained, by name."""
        return {} if self.xi is None else self.xi.arrays()

    @cached_property
    def _xi_shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: fact.shape for name, fact in self._facts.items() if fact.is_param}

    @cached_property
    def points(self) -> frozenset[str]:
        """The xi that are weights of point layers (`credo.priors.point`), not parameters of a prior."""
        return self._named(lambda fact: fact.is_point)

    @property
    def point_template(self) -> dict[str, jax.ShapeDtypeStruct]:
        """The points, frozen or not, as names, shapes and dtypes."""
        shapes = {name: shape for name, shape in self._xi_shapes.items() if name in self.points}
        return {name: jax.ShapeDtypeStruct(shape, working_precision()) for name, shape in shapes.items()}

    # -- inputs of its own -----------------------------------------------------------------------------------

    def with_inputs(self, batch: Batch) -> Batch:
        """The batch with the model's own inputs, so that compiled code takes them as arguments, not as constants."""
        if not self.constants.items:
            return batch
        return batch._replace(inputs=jax.tree.map(jnp.asarray, self.constants.values()))

    def _inputs_of(self, batch: Batch) -> Mapping[str, Any]:
        return self.constants.values() if batch.inputs is None else batch.inputs

    @cached_property
    def summed_inputs(self) -> frozenset[str]:
        """The inputs with a plate of their own: some of their rows can stand for all of them."""

        def plates(trace: dict[str, Any]) -> frozenset[str]:
            return frozenset(name for name, site in trace.items() if site["type"] == "plate")

        # A model without any may be asked before it is bound.
        return self._look(plates, self._whole) & self._whole.keys() if self._whole else frozenset()

    @cached_property
    def inputs_of_y(self) -> frozenset[str]:
        """The inputs that p(y | x, theta) depends on, or may: predictions cannot do without them."""

        def of_y(inputs: dict[str, Array]) -> dict[str, Any]:
            return {"y": jax.tree.leaves(self._prior_trace(jax.random.key(0), inputs)["y"]["fn"])}

        return dependencies(of_y, self._whole)["y"] if self._whole else frozenset()

    @cached_property
    def _whole(self) -> dict[str, np.ndarray]:
        """The inputs, with zeros in place of those that are not known."""
        return {name: one.placeholder() if one.value is None else one.value for name, one in self.constants.items}

    @cached_property
    def _examples(self) -> dict[str, Any]:
        """The inputs for a run that only y, or the names and shapes of theta, are asked of."""
        few = self.summed_inputs - self.inputs_of_y
        return self._whole | {name: self.constants[name].placeholder(NUM_EXAMPLE_ROWS) for name in few}

    # -- traces --------------------------------------------------------------------------------------------

    def trace_at(self, theta: Theta) -> dict[str, Any]:
        """The sites of the program, run at theta on a few rows."""
        example = self.example()
        return self._trace(theta, example.x, example.y)[0]

    def _prior_trace(self, key: Key, inputs: Mapping[str, Any] | None = None) -> dict[str, Any]:
        example, given = self.example(), self._examples if inputs is None else inputs
        skip_y = handlers.substitute(substitute_fn=zeros_for_y)
        with alone(), handlers.trace() as trace, handlers.seed(rng_seed=key), skip_y, Sites({}, self.frozen_xi):
            self.program(example.x, self._bound.parted(example.y).y, **given)
        return trace

    def _look(self, read: Callable[[dict[str, Any]], T], inputs: Mapping[str, Any] | None = None) -> T:
        """What `read` finds in a trace of the program; nothing is computed."""
        found: list[T] = []
        # Frozen values are checked against what is found here, so they must not decide it.
        free = replace(self, xi=None)
        # JAX draws Poisson numbers with threefry keys only, and a discrete latent must get as far as its refusal.
        jax.eval_shape(lambda: found.append(read(free._prior_trace(jax.random.key(0, impl="threefry2x32"), inputs))))
        return found[0]

    def _trace(
        self,
        theta: Theta,
        x: Array,
        y: Array | None,
        local: Callable[[], Key] | None = None,
        inputs: Mapping[str, Any] | None = None,
    ) -> tuple[dict[str, Any], Array]:
        """A run of the program at theta; without inputs, with some that stand for those on which y does not depend."""
        told = Told(y) if self.rows is None else self.rows.parted(y)
        gaps = self.rows is not None and self.rows.gaps
        sites = Sites(theta, self.frozen_xi, local or any_key, gaps=gaps, told=told)
        given = self._examples if inputs is None else inputs
        # Every latent is given and nobody reads an unobserved y: the compiler drops what the seed draws.
        with alone(), handlers.trace() as trace, handlers.seed(rng_seed=0), sites, Masks(theta):
            self.program(x, told.y, **given)
        return trace, sites.log_jacobian


@partial(jax.jit, static_argnums=0)
def _initial_params(model: Traced) -> Theta:
    return unconstrained_params(model._prior_trace(random.key(0)))


def any_key() -> Key:
    """For local latents on whose values nothing depends."""
    return random.key(0)
