"""Closed form: the exact posterior of a regression whose mean is linear in the weights, and its exact evidence.

Paper, "Bayesian inference on the (n-)last layer(s) only": a last layer on features that are points is a linear
regression. With weights w ~ N(m, S), features Φ and noise of scale σ,

    p(w | D) = N(μ, Σ),    Σ⁻¹ = S⁻¹ + ΦᵀΦ/σ²,    μ = Σ (S⁻¹ m + Φᵀ y/σ²)
    log p(D) = log N(y; Φ m, Φ S Φᵀ + σ² I)

Everything else that the model leaves open (point layers, prior scales, a tuned noise) is found by climbing log p(D).
"""

import time
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from credo import random
from credo._checks import require_at_least
from credo.covariance import Blocks
from credo.covariance.layout import Layout
from credo.diagnostics.exact import ExactEvidence
from credo.inference.closed_form.affine import Affine, affine
from credo.inference.closed_form.evidence import held_out_score, log_evidence
from credo.inference.closed_form.exact import NoiseScale, Sums, noise_scales, sums_over_rows
from credo.inference.guide import Guide
from credo.inference.method import Method, all_finite
from credo.inference.needs import Needs
from credo.inference.optimised import LearningRate, named_optimizer
from credo.inference.outcome import Outcome
from credo.inference.plan import Plan
from credo.inference.point.map import Best, PointInfo
from credo.models.priors import Parameter, Prior, fan_in
from credo.models.program import Model
from credo.networks.fan_in import fan_ins
from credo.posterior import Draws, Gaussian, Posterior, Provenance
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
        return named_optimizer(self.optimizer, self.learning_rate)

    def describe(self, model: Model, data: Any) -> Needs:
        bound = model if model.rows is not None else model.bind(data)
        num = bound.num_parameters
        # Spectrum, covariance and root in double precision; or the draws.
        stored = f"a full covariance of {num:,} of them, or {self.num_samples:,} draws"
        return Needs(num, stored, max(8 * 4 * num**2, 4 * self.num_samples * num))

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
        downhill = jax.value_and_grad(lambda theta: _negative(self.objective(model, theta, batch)), has_aux=True)
        (_, (log_prior, likelihood)), gradient = downhill(state.theta)
        updates, optimizer = self.transformation().update(gradient, state.optimizer, state.theta)
        theta = optax.apply_updates(state.theta, updates)
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
        began, state = time.perf_counter(), outcome.state
        learned = state.theta
        if state.best is not None and np.isfinite(state.best.score):
            learned = state.best.theta
        problem = affine(model)
        theta = {**model.initial_xi(), **_with_weights(problem, learned)}
        sums = sums_over_rows(problem, theta, outcome.data)
        scales = noise_scales(problem, theta, sums) if problem.others else []
        evidence = _evidence(problem, theta, sums, scales)
        xi = {name: theta[name] for name in model.xi_template}
        frozen = model.freeze(xi) if xi else model
        trace = outcome.trace(int(state.step))
        made: Any = outcome.provenance(self.to_config())
        made = replace(made, seconds=made.seconds + time.perf_counter() - began)
        if scales:
            draws = _draws(problem, theta, sums, scales, self.num_samples, outcome.seed)
            return Draws(frozen, draws, made, infos={}, trace=trace, evidence=evidence)
        return _gaussian(problem, theta, sums, frozen, made, trace, evidence)


def _negative(found: tuple[Array, Any]) -> tuple[Array, Any]:
    return -found[0], found[1]


def _with_weights(problem: Affine, theta: Theta) -> Theta:
    """theta with what it lacks at zero: the weights, whose values nothing depends on."""
    return {**{name: jnp.zeros(leaf.shape) for name, leaf in problem.model.template.items()}, **theta}


def _evidence(problem: Affine, theta: Theta, sums: Sums, scales: list[NoiseScale]) -> ExactEvidence:
    """log p(D | xi), the noise integrated out where it has a prior."""
    if scales:
        total = float(problem.log_prior_of_others(theta)) + sum(scale.log_integral() for scale in scales)
    else:
        total = float(sum(one.log_evidence(1.0) for one in sums.spectra))
    taus = {block: scale.peak for scale in scales for block in scale.blocks}
    num_effective = sum(one.num_effective(taus.get(index, 1.0)) for index, one in enumerate(sums.spectra))
    return ExactEvidence(total - sums.log_noise, num_effective, sum(len(one.entries) for one in problem.blocks))


def _gaussian(
    problem: Affine, theta: Theta, sums: Sums, model: Model, made: Provenance, trace: Any, evidence: ExactEvidence
) -> Gaussian:
    """N(m + L ū, L Σ Lᵀ), with a root that is lower triangular."""
    weights, unravel, root = _prior(problem, theta)
    mean, spread = np.zeros_like(weights), np.zeros((len(weights), len(weights)))
    for block, one in zip(problem.blocks, sums.spectra, strict=True):
        entries = list(block.entries)
        mean[entries] = one.mean(1.0)
        spread[np.ix_(entries, entries)] = one.offset(1.0, np.eye(len(entries)))
    # The rows of `spread` are √Σ of one direction each: from its triangular factor, nothing is squared.
    _, upper = np.linalg.qr(_times(root, spread))
    lower = upper.T
    lower *= np.where(np.diagonal(lower) < 0, -1.0, 1.0)
    layout = Layout.together({name: problem.model.template[name] for name in sorted(problem.weights)})
    blocks = Blocks({"all": lower[None].astype(np.float32)}, layout)
    found = jax.tree.map(np.asarray, unravel(jnp.asarray(weights + _times(root, mean), jnp.float32)))
    ordered = {name: found[name] for name in problem.weights}
    return Gaussian(model, ordered, blocks, made, trace=trace, evidence=evidence, prediction="linear")


def _draws(
    problem: Affine, theta: Theta, sums: Sums, scales: list[NoiseScale], num: int, seed: int
) -> dict[str, np.ndarray]:
    """Independent draws, each leaf (1, draws, …): of the noise, and of the weights given it."""
    weights, unravel, root = _prior(problem, theta)
    others, unravel_others = ravel_pytree({name: theta[name] for name in problem.others})
    noise_key, weight_key = jax.random.split(random.key(seed))
    uniform = np.asarray(jax.random.uniform(noise_key, (len(scales), num)), np.float64)
    noise = np.asarray(random.normal(weight_key, (num, len(weights))), np.float64)
    drawn, values = np.zeros_like(noise), np.tile(np.asarray(others, np.float64), (num, 1))
    for scale, own in zip(scales, uniform, strict=True):
        values[:, scale.entry], taus = scale.draws(own)
        for block in scale.blocks:
            entries, one = list(problem.blocks[block].entries), sums.spectra[block]
            drawn[:, entries] = one.mean(taus) + one.offset(taus, noise[:, entries])
    found = {
        **jax.vmap(unravel)(jnp.asarray(weights + _times(root, drawn), jnp.float32)),
        **jax.vmap(unravel_others)(jnp.asarray(values, jnp.float32)),
    }
    return {name: np.asarray(found[name])[None] for name in problem.model.template}


def _prior(problem: Affine, theta: Theta) -> tuple[np.ndarray, Any, np.ndarray]:
    """m as a vector, the way back to arrays, and L, as in `Affine.prior`."""
    mean, root = jax.jit(problem.prior)(theta)
    flat, unravel = ravel_pytree(mean)
    return np.asarray(flat, np.float64), unravel, np.asarray(root, np.float64)


def _times(root: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """L u of one or several u, (…, n)."""
    return directions @ root.T if root.ndim == 2 else directions * root
