"""Closed form: the exact posterior of a regression whose mean is linear in the weights, and its exact evidence.

Paper, "Bayesian inference on the (n-)last layer(s) only": a last layer on features that are points is a linear
regression. With weights w ~ N(m, S), features Φ and noise of scale σ,

    p(w | D) = N(μ, Σ),    Σ⁻¹ = S⁻¹ + ΦᵀΦ/σ²,    μ = Σ (S⁻¹ m + Φᵀ y/σ²)
    log p(D) = log N(y; Φ m, Φ S Φᵀ + σ² I)

Everything else that the model leaves open (point layers, prior scales, a tuned noise) is found by climbing log p(D).
"""

import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from credo import random
from credo._checks import require_at_least
from credo._precision import working_precision
from credo.inference.closed_form.affine import Affine, affine
from credo.inference.closed_form.evidence import held_out_score, log_evidence
from credo.inference.closed_form.exact import Exact
from credo.inference.guide import Guide, Reach
from credo.inference.method import Method, all_finite
from credo.inference.needs import Needs
from credo.inference.optimised import LearningRate, climbed, named_optimizer, rate_over
from credo.inference.outcome import Outcome
from credo.inference.plan import Plan
from credo.inference.point.map import Best, PointInfo
from credo.models.priors import Parameter, Prior, fan_in, point
from credo.models.program import Model
from credo.networks.fan_in import fan_ins
from credo.posterior import Draws, Gaussian, Posterior
from credo.typing import Array, Batch, Key, Theta, Tree


class ClosedFormState(NamedTuple):
    """All that is not integrated out, xi and the noise, on its way up the evidence; and as in `PointState`."""

    step: Array
    theta: Theta
    optimizer: Tree
    best: Best | None
    held_out: Batch | None


@dataclass(frozen=True)
class ClosedForm(Method):
    """The exact posterior of weights in which the mean of y is linear, such as a last layer, with the exact evidence.

    For normal priors and normal noise that the weights do not enter. Point layers, prior scales and a tuned noise are
    found first, by climbing log p(D | xi), with the weights integrated out, over all rows in each step; where there
    are none, no step is made. A known noise, or a tuned one, leaves a `Gaussian`. A noise with a prior is integrated
    out too, by quadrature, and leaves independent `Draws`; while the rest is learned it is at its most probable value.

    The evidence pays for what is integrated out, and for nothing else: it would let point layers learn the data by
    heart. So they are regularised while they are learned, by the model (`credo.priors.point(regularised_by=…)`) or,
    where it does not, by the method; held-out rows may end the climb too (`credo.fit(…, validation=0.1)`).

    Arguments:
        num_steps: of the climb; 0 leaves what would be learned as it is, point layers at the network's own values.
        learning_rate: a number or an optax schedule. The objective is per data point.
        optimizer: the name of an optax optimiser, or any optax transformation.
        regularised_by: the density that pulls at point layers for which the model has none; None for nothing.
        num_samples: draws, where the noise has a prior.
        patience: with held-out data, stop after this many checks without improvement and return the best.
        check_every: steps between two looks at the held-out data.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.1)
    >>> posterior = credo.fit(model, credo.datasets.gap(), credo.ClosedForm())
    >>> posterior.diagnostics.praise
    'The posterior is exact, and so is its evidence.'

    Reference: MacKay, "Bayesian interpolation" (1992); Snoek et al., "Scalable Bayesian optimization using deep neural
    networks" (2015).
    """

    guide: ClassVar[Guide] = Guide(
        exact="exact",
        benefits="no approximation and no sampling: posterior, evidence and predictions of a last layer in closed form",
        limits="regression with normal noise, linear in the uncertain weights; learned layers are points",
        use_cases="last layers of regression networks; linear models; choosing features and priors by the evidence",
        stores="a mean and a full covariance of the weights, or independent draws",
        costs="one pass over the data; to learn features, one decomposition of all rows per step",
        reaches=Reach(0.01, (0.99, 1.01)),
        if_non_finite="lower the learning rate, standardise the data, or regularise the point layers",
        if_too_large="make fewer weights uncertain, or take credo.Laplace(subset='last_layer', structure='kronecker')",
    )

    num_steps: int = 2000
    learning_rate: LearningRate = 1e-2
    optimizer: str | optax.GradientTransformation = "adam"
    regularised_by: Prior | None = field(default_factory=fan_in)
    num_samples: int = 1000
    patience: int = 10
    check_every: int = 50

    def __post_init__(self) -> None:
        require_at_least(0, num_steps=self.num_steps)
        require_at_least(1, num_samples=self.num_samples, patience=self.patience, check_every=self.check_every)
        self.transformation()
        if self.regularised_by is not None:
            object.__setattr__(self, "regularised_by", point(self.regularised_by).regularised_by)

    def plan(self) -> Plan:
        return Plan(
            num_records=self.num_steps,
            start="network",
            lockstep=True,
            uses_held_out=True,
            learns_xi=True,
            learns_points=True,
            fixed_density=True,
        )

    def transformation(self) -> optax.GradientTransformation:
        """The optax optimiser that the name and the learning rate stand for."""
        return named_optimizer(self.optimizer, rate_over(self.learning_rate, self.num_steps))

    def stores(self, model: Model) -> Needs:
        num = model.num_parameters
        # Spectrum, covariance and root in double precision; or the draws.
        stored = f"a full covariance of {num:,} of them, or {self.num_samples:,} draws"
        return Needs(num, stored, max(8 * 4 * num**2, working_precision().itemsize * self.num_samples * num))

    # -- the climb --------------------------------------------------------------------------------------------

    def init(self, key: Key, model: Model, theta: Theta, data: Batch, held_out: Batch | None) -> ClosedFormState:
        problem, xi = affine(model), model.initial_xi()
        # A noise with a prior moves along with what is learned; alone it is integrated out at once.
        free = {**xi, **{name: theta[name] for name in problem.others}} if xi else {}
        best = None if held_out is None else Best.first(free)
        return ClosedFormState(jnp.array(0), free, self.transformation().init(free), best, held_out)

    def objective(self, model: Model, theta: Theta, batch: Batch) -> tuple[Array, tuple[Array, Array]]:
        """(log p(D | theta) + log p(theta))/N of all but the weights, and the two parts."""
        problem = affine(model)
        whole = _with_weights(problem, theta)
        likelihood = log_evidence(problem, whole, batch)
        log_prior = problem.log_prior_of_others(whole) + model.log_factors(whole)
        log_prior += self._log_prior_of_points(problem, whole)
        return (likelihood + log_prior) / batch.total, (log_prior, likelihood)

    def _log_prior_of_points(self, problem: Affine, theta: Theta) -> Array:
        """What pulls at the point layers that the model does not regularise.

        A network of ReLU units stays the same function if a layer is divided by c and the next one is multiplied by it.
        So the points are looked at in the units in which the weights of an output have the length one, E|w|² = 1.
        """
        model = problem.model
        points = {name: theta[name] for name in model.xi_template if name in model.points}
        free = [name for name in points if f"{name}.prior" not in model.factors]
        if self.regularised_by is None or not free:
            return jnp.zeros(())
        length = jnp.sqrt(jnp.sum(problem.prior(theta)[1] ** 2) / problem.num_outputs)
        depth = sum(jnp.ndim(value) > 1 for value in points.values())
        widths, unit, total = fan_ins(points), length ** (1 / max(depth, 1)), jnp.zeros(())
        for name in free:
            law = self.regularised_by(Parameter(name, points[name].shape, widths[name]))
            total += jnp.sum(law.log_prob(unit * points[name]))
        return total

    def step(self, key: Key, model: Model, state: ClosedFormState, batch: Batch) -> tuple[ClosedFormState, PointInfo]:
        def objective(theta: Theta) -> tuple[Array, tuple[Array, Array]]:
            return self.objective(model, theta, batch)

        (value, (log_prior, likelihood)), gradient = jax.value_and_grad(objective, has_aux=True)(state.theta)
        more = {"value": -value, "value_fn": lambda theta: -objective(theta)[0]}
        theta, optimizer = climbed(self.transformation(), gradient, state.optimizer, state.theta, **more)
        moved = state._replace(step=state.step + 1, theta=theta, optimizer=optimizer)
        if state.held_out is not None:
            held_out = state.held_out
            moved = jax.lax.cond(
                self.finished(state), lambda: state, lambda: self._checked(model, moved, batch, held_out)
            )
        score = jnp.array(jnp.nan) if moved.best is None else moved.best.score
        return moved, PointInfo(log_prior + likelihood, log_prior, likelihood, score)

    def _checked(self, model: Model, state: ClosedFormState, data: Batch, held_out: Batch) -> ClosedFormState:
        problem = affine(model)

        def check(best: Best) -> Best:
            return best.after(state.theta, held_out_score(problem, _with_weights(problem, state.theta), data, held_out))

        best = jax.lax.cond(state.step % self.check_every == 0, check, lambda best: best, state.best)
        return state._replace(best=best)

    def finished(self, state: ClosedFormState) -> Array | bool:
        if not state.theta or not self.num_steps:
            return True
        return False if state.best is None else state.best.checks_since >= self.patience

    def healthy(self, state: ClosedFormState) -> Array | bool:
        return all_finite(state.theta)

    def status_line(self, infos: Any) -> str:
        return f"log evidence {float(infos.log_likelihood[-1]):.5g}"

    # -- the posterior ----------------------------------------------------------------------------------------

    def posterior(self, model: Model, outcome: Outcome) -> Posterior:
        began, state, problem = time.perf_counter(), outcome.state, affine(model)
        learned = state.theta
        if state.best is not None and np.isfinite(state.best.score):
            learned = state.best.theta
        theta = {**model.initial_xi(), **_with_weights(problem, learned)}
        exact = Exact.of(problem, theta, outcome.data)
        xi = {name: theta[name] for name in model.xi_template}
        frozen = model.freeze(xi) if xi else model
        trace, evidence = outcome.trace(int(state.step)), exact.evidence()
        found: Any
        if problem.others:
            draws = exact.draws(random.key(outcome.seed), self.num_samples)
            found = partial(Draws, frozen, draws, infos={}, trace=trace, evidence=evidence)
        else:
            found = partial(Gaussian, frozen, *exact.normal(), trace=trace, evidence=evidence, prediction="linear")
        made = outcome.provenance(self.to_config())
        return found(provenance=replace(made, seconds=made.seconds + time.perf_counter() - began))


def _with_weights(problem: Affine, theta: Theta) -> Theta:
    """theta with what it lacks at zero: the weights, whose values nothing depends on."""
    return {**{name: jnp.zeros(leaf.shape) for name, leaf in problem.model.template.items()}, **theta}
