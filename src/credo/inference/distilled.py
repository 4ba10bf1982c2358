"""A student that learns beside a running sampler: nothing is stored but the student. Paper, "Bayesian teachers".

Korattikara, Rathod, Murphy and Welling, "Bayesian dark knowledge" (2015), algorithm 1.
"""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from credo import networks, random
from credo._checks import require_at_least, require_positive
from credo._precision import working_precision
from credo.inference.guide import Guide
from credo.inference.method import Method, Wrapper, all_finite
from credo.inference.needs import Needs
from credo.inference.outcome import Outcome
from credo.inference.plan import Plan
from credo.inference.sampler import Sampler, unravel_theta
from credo.inference.sgmcmc.sgld import SGLD
from credo.models.program import Model
from credo.models.rows import REAL, RowShapes
from credo.models.student import DirichletHead, Head, NormalHead, student
from credo.networks import Network, functional
from credo.posterior import Student
from credo.predictive.conditional import Conditional, class_probs
from credo.typing import Array, Batch, Key, Theta, Tree


class DistilledState(NamedTuple):
    """The sampler's state, the student's weights and those of its optimiser, and the spread of the inputs."""

    step: Array
    sampler: Tree
    weights: Theta
    optimizer: Tree
    x_scale: Array


class DistilledInfo(NamedTuple):
    """The sampler's log joint, and the average of log q over the rows that the student has just seen."""

    log_joint: Array
    expected_log: Array


@dataclass(frozen=True)
class Distilled(Wrapper):
    """A student that learns beside a running sampler, from each of its draws, of which none is kept.

        theta ← a step of the sampler,    ω ← ω + ε ∇_ω E_{p(y | x, theta)} log q_ω(f_theta(x), y | x)

    The gradient at one draw is an unbiased estimate of that of `credo.distill` over all draws. The student learns after
    the warm-up, at rows of the training with noise of their own in each step; there is one chain, since each would have
    a student of its own.

    Arguments:
        sampler: any sampler, such as `credo.SGLD()`.
        student: its network, as in `credo.networks.from_text`; outputs are added as they are needed.
        beyond: the largest noise of the inputs, in standard deviations of each column.
        learning_rate: ε at the beginning; it falls to zero along a cosine.
        batch_size: rows per step of the student.

    >>> import credo
    >>> method = Distilled(credo.SGLD(num_samples=50, num_warmup=100), student="mlp:10")
    >>> model = credo.models.regression(credo.networks.MLP([5], out=1))
    >>> credo.fit(model, credo.datasets.gap(), method).predict([[0.0]]).std.shape
    (1,)

    Reference: Korattikara et al., Bayesian dark knowledge, 2015.
    """

    guide: ClassVar[Guide] = Guide(
        exact="approximate",
        benefits="the answers of a long chain, in the memory of one network",
        limits="the draws are gone: no functions, no R-hat, and a student that learns poorly cannot be taught again",
        use_cases="chains whose draws would not fit into memory; predictions that must be fast",
        stores="the weights of the student",
        costs="a step of the sampler, and a gradient of the student",
        if_non_finite="lower the learning rate of the student, or take smaller steps of the sampler",
    )

    sampler: Sampler = field(default_factory=SGLD)
    student: str = "mlp:50,50"
    beyond: float = 0.5
    learning_rate: float = 1e-2
    batch_size: int = 256

    def __post_init__(self) -> None:
        if not isinstance(self.sampler, Sampler):
            raise ValueError(f"sampler must be one such as credo.SGLD(), got {self.sampler!r}")
        networks.from_text(self.student, 1)
        require_positive(beyond=self.beyond, learning_rate=self.learning_rate)
        require_at_least(1, batch_size=self.batch_size)

    @property
    def inner(self) -> Method:
        return self.sampler

    def plan(self) -> Plan:
        # The student sees inputs, and not the features of a sampler whose first layers are points.
        return replace(self.sampler.plan(), num_chains=1, leaves_draws=False, acts_inside=True)

    def init(self, key: Key, model: Model, theta: Theta, data: Batch, held_out: Batch | None) -> DistilledState:
        weights = self._network(model).params
        sampler = self.sampler.init(key, model, theta, data, held_out)
        counted = data.counted.reshape(-1, *[1] * (data.x.ndim - 1))
        spread = jnp.std(data.x, axis=0, where=None if data.num is None else counted)
        return DistilledState(jnp.array(0), sampler, weights, self._optimizer.init(weights), spread)

    def step(self, key: Key, model: Model, state: DistilledState, batch: Batch) -> tuple[DistilledState, DistilledInfo]:
        sampler_key, rows_key = jax.random.split(key)
        sampler, info = self.sampler.step(sampler_key, model, state.sampler, batch)
        state = state._replace(step=state.step + 1, sampler=sampler)
        theta = self._theta(model, self.sampler.draw(model, sampler))

        def learned() -> tuple[DistilledState, Array]:
            x = self._rows(rows_key, batch, state.x_scale)
            value, slope = jax.value_and_grad(lambda weights: self._loss(model, theta, weights, x))(state.weights)
            updates, optimizer = self._optimizer.update(slope, state.optimizer, state.weights)
            return state._replace(weights=optax.apply_updates(state.weights, updates), optimizer=optimizer), -value

        plan = self.plan()
        is_warm = (state.step - 1) % plan.steps_per_cycle >= plan.num_warmup
        state, value = jax.lax.cond(is_warm, learned, lambda: (state, jnp.array(jnp.nan)))
        return state, DistilledInfo(info.log_joint, value)

    def leaves(self, model: Model, data: Any) -> Model:
        return self._student(model.bind(data))

    def draw(self, model: Model, state: DistilledState) -> Tree:
        return ()

    def healthy(self, state: DistilledState) -> Array | bool:
        return all_finite(state.weights) and self.sampler.healthy(state.sampler)

    def status_line(self, infos: DistilledInfo) -> str:
        return f"log joint {float(infos.log_joint[-1]):.5g}, log q {float(infos.expected_log[-1]):.3g}"

    @property
    def words(self) -> Guide:
        return self.guide

    def stores(self, model: Model) -> Needs:
        """What a run will hold in memory: the student, its optimiser, and a state of the sampler."""
        num = self._student(model).num_parameters
        return Needs(num, "1 student", working_precision().itemsize * (4 * num + 2 * model.num_parameters))

    def posterior(self, model: Model, outcome: Outcome) -> Student:
        weights = {name: np.asarray(leaf) for name, leaf in outcome.state.weights.items()}
        return Student(self._student(model), weights, outcome.provenance(self.to_config()), outcome.trace())

    # -- the student ---------------------------------------------------------------------------------------

    @property
    def _optimizer(self) -> optax.GradientTransformation:
        plan = self.plan()
        num_steps = plan.num_cycles * plan.num_records * plan.thin
        return optax.adam(optax.cosine_decay_schedule(self.learning_rate, num_steps))

    def _network(self, model: Model) -> Network:
        return functional(networks.from_text(self.student, _head(model).num_outputs), model.example().x)

    def _student(self, model: Model) -> Model:
        """The student's own model, bound to the statistics that it has learned."""
        head, rows = _head(model), model.example()
        net = networks.from_text(self.student, head.num_outputs)
        outputs = jax.ShapeDtypeStruct((rows.x.shape[0], head.num_outputs), working_precision())
        shape = jax.eval_shape(head.own, outputs).shape
        columns = model.rows.columns if model.rows else None
        own = RowShapes(rows.x.shape, REAL, shape, REAL, columns=columns)
        return replace(student(net, head), rows=own)

    def _rows(self, key: Key, batch: Batch, x_scale: Array) -> Array:
        """Rows of a batch: half of them as they are, half with noise of all scales up to `beyond`."""
        row_key, scale_key, noise_key = jax.random.split(key, 3)
        rows = batch.x[jax.random.randint(row_key, (self.batch_size,), 0, batch.num_rows)]
        scales = jax.random.uniform(scale_key, (self.batch_size, *[1] * (rows.ndim - 1)), minval=-1.0)
        return rows + self.beyond * jnp.maximum(scales, 0.0) * x_scale * random.normal(noise_key, rows.shape)

    def _loss(self, model: Model, theta: Theta, weights: Theta, x: Array) -> Array:
        head = _head(model)
        outputs = self._network(model).apply(weights, x)
        statistics = jax.lax.stop_gradient(head.of_draw(model.predictive(theta, x), outputs))
        return -jnp.mean(head.expected_log(outputs, statistics))

    def _theta(self, model: Model, drawn: Any) -> Theta:
        return drawn if isinstance(drawn, dict) else unravel_theta(model, drawn)


def _head(model: Model) -> Head:
    """The head that suits what a model predicts."""
    found: list[Head] = []

    def look(theta: Theta) -> None:
        conditional: Conditional = model.predictive(theta, model.example().x)
        probs, shape = class_probs(conditional), conditional.shape()
        num_targets = 1 if len(shape) == 1 else shape[1]
        found.append(NormalHead(num_targets, len(shape) == 1) if probs is None else DirichletHead(probs.shape[-1]))

    jax.eval_shape(look, model.template)
    return found[0]
