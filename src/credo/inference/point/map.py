"""Point estimates: the maximum of the likelihood (MLE) and of the posterior (MAP).

Paper, "What is a Bayesian Neural Network?": training with a cost function is MLE, with a regulariser MAP. A point
estimate is the posterior of someone who is certain; it is kept as `Draws` with a single draw.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo._checks import require_at_least
from credo.inference.guide import Guide, Reach
from credo.inference.method import all_finite
from credo.inference.optimised import Ascent, LearningRate
from credo.inference.outcome import Outcome
from credo.inference.plan import Plan
from credo.inference.settling import Settling
from credo.models.program import Model
from credo.posterior import Draws
from credo.typing import Array, Batch, Key, Theta, Tree

# It falls late: where the mode is far, each step counts. On boston, in minibatches of 32, the log joint of a net was 13
# nats lower with a fall over half of the steps, and 33 with none.
RATE = Settling(1e-2, share=0.25)


class PointState(NamedTuple):
    """theta and the optimiser's state; with held-out data also the best theta so far and how long ago it was."""

    step: Array
    theta: Theta
    optimizer: Tree
    best: "Best | None"
    held_out: Batch | None


class Best(NamedTuple):
    """The best theta so far by held-out data, and how many looks at them ago that was."""

    theta: Theta
    score: Array
    checks_since: Array

    @classmethod
    def first(cls, theta: Theta) -> "Best":
        """Before any look."""
        return cls(theta, jnp.array(-jnp.inf), jnp.array(0))

    def after(self, theta: Theta, score: Array) -> "Best":
        """After a look at theta."""
        newer, older = Best(theta, score, jnp.array(0)), self._replace(checks_since=self.checks_since + 1)
        return jax.tree.map(lambda new, old: jnp.where(score > self.score, new, old), newer, older)


class PointInfo(NamedTuple):
    """log_joint = log_prior + log_likelihood, each for the whole data set, estimated on the batch."""

    log_joint: Array
    log_prior: Array
    log_likelihood: Array
    held_out: Array


@dataclass(frozen=True)
class MAP(Ascent):
    """The mode of the posterior, argmax log p(theta) + log p(D | theta), by stochastic gradient ascent.

    The mode is that of the density of the *unconstrained* theta: it depends on the parametrisation, as modes do. The
    objective is the log joint per data point, log p(theta, D)/N.

    Arguments:
        patience: with held-out data, stop after this many checks without improvement and return the best theta.
        check_every: steps between two looks at the held-out data.

    >>> MAP(num_steps=500, optimizer="sgd", learning_rate=0.1).num_steps
    500
    """

    guide: ClassVar[Guide] = Guide(
        exact="point",
        benefits="the cheapest fit that has a prior",
        limits="no epistemic uncertainty: too sure away from the data",
        use_cases="a baseline; the start of samplers; the members of an ensemble",
        stores="one value of theta",
        costs="one gradient per step",
        reaches=Reach(0.1, (0.0, 0.0)),
        if_non_finite="lower the learning rate, standardise the data, or clip the gradients (optax.clip)",
    )

    num_steps: int = 2000
    learning_rate: LearningRate = RATE
    patience: int = 10
    check_every: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(1, patience=self.patience, check_every=self.check_every)

    def plan(self) -> Plan:
        return replace(super().plan(), uses_held_out=True, leaves_draws=True)

    def objective(self, model: Model, theta: Theta, batch: Batch) -> tuple[Array, tuple[Array, Array]]:
        """log p(theta, D)/N, and its two parts."""
        log_prior, log_likelihood = model.log_parts(theta, batch)
        return (log_prior + log_likelihood) / batch.total, (log_prior, log_likelihood)

    def init(self, key: Key, model: Model, theta: Theta, data: Batch, held_out: Batch | None) -> PointState:
        best = None if held_out is None else Best.first(theta)
        return PointState(jnp.array(0), theta, self.transformation().init(theta), best, held_out)

    def step(self, key: Key, model: Model, state: PointState, batch: Batch) -> tuple[PointState, PointInfo]:
        gradient_of = jax.value_and_grad(lambda theta: self.objective(model, theta, batch), has_aux=True)
        (objective, (log_prior, log_likelihood)), gradient = gradient_of(state.theta)
        # Optimisers with a line search (L-BFGS) also look at the loss.
        theta, optimizer = self.climb(
            gradient,
            state.optimizer,
            state.theta,
            value=-objective,
            value_fn=lambda theta: -self.objective(model, theta, batch)[0],
        )
        moved = state._replace(step=state.step + 1, theta=theta, optimizer=optimizer)
        if state.held_out is not None:
            # Past the last check nothing moves: the result must not depend on where the engine's chunk ended.
            held_out = state.held_out
            moved = jax.lax.cond(self.finished(state), lambda: state, lambda: self._checked(model, moved, held_out))
        score = jnp.array(jnp.nan) if moved.best is None else moved.best.score
        return moved, PointInfo(log_prior + log_likelihood, log_prior, log_likelihood, score)

    def _checked(self, model: Model, state: PointState, held_out: Batch) -> PointState:
        """Every `check_every` steps, compare theta with the best one on the held-out data."""

        def check(best: Best) -> Best:
            return best.after(state.theta, model.log_likelihood(state.theta, held_out) / held_out.num_rows)

        best = jax.lax.cond(state.step % self.check_every == 0, check, lambda best: best, state.best)
        return state._replace(best=best)

    def finished(self, state: PointState) -> Array | bool:
        return False if state.best is None else state.best.checks_since >= self.patience

    def healthy(self, state: PointState) -> Array | bool:
        # The log joint of a step is that of the theta before its update.
        return all_finite(state.theta)

    def posterior(self, model: Model, outcome: Outcome) -> Draws:
        states: PointState = outcome.states
        theta = states.theta
        if states.best is not None and np.all(np.isfinite(states.best.score)):
            theta = states.best.theta
        leaves = {name: np.asarray(leaf)[:, None] for name, leaf in theta.items()}
        # After an early stop the engine's chunk runs on without moving; those steps are no part of the trace.
        trace = outcome.trace(int(np.min(states.step)))
        return Draws(model, leaves, outcome.provenance(self.to_config()), infos={}, trace=trace)


@dataclass(frozen=True)
class MLE(MAP):
    """The maximum of the likelihood, argmax log p(D | theta): MAP without the prior. Arguments as for `MAP`.

    >>> MLE(num_steps=100).num_steps
    100
    """

    guide: ClassVar[Guide] = replace(
        MAP.guide,
        benefits="ordinary training, to compare with",
        limits="no epistemic uncertainty, no prior: overfits few data",
        use_cases="a baseline",
        reaches=Reach(0.3, (0.0, 0.0)),
    )

    def objective(self, model: Model, theta: Theta, batch: Batch) -> tuple[Array, tuple[Array, Array]]:
        """log p(D | theta)/N; the prior is shown, not climbed."""
        log_prior, log_likelihood = model.log_parts(theta, batch)
        return log_likelihood / batch.total, (log_prior, log_likelihood)
