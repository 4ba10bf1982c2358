"""Bayes-by-backprop: stochastic variational inference with a Gaussian q over theta, or a normalising flow.

Paper, "Variational inference", "Bayes by backpropagation" and "Learning the prior". With theta = mean + √Σ ε,

    ELBO(phi, xi) = E_q[log p(D | theta)] − KL(q ‖ p) ≤ log p(D | xi)

is climbed by gradient ascent on minibatches. The two terms are shown apart. The entropy of a Gaussian q is in closed
form, the expected log prior wherever the prior is normal; only the likelihood is left to Monte Carlo. For a flow all
three are.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
import optax

from credo._checks import require_at_least, require_one_of
from credo._precision import working_precision
from credo.covariance import Root
from credo.inference.guide import Guide, Reach
from credo.inference.method import Method, all_finite
from credo.inference.needs import Needs
from credo.inference.optimised import SMOOTHING_STEPS, Ascent, LearningRate, named_optimizer, rate_over
from credo.inference.outcome import Outcome
from credo.inference.plan import Plan
from credo.inference.tail import Tail
from credo.inference.variational import local_noise
from credo.inference.variational.families import Family, as_family
from credo.inference.variational.importance import evidence, standard_errors
from credo.models.program import Model
from credo.models.row_blocks import sum_by_block
from credo.posterior import Flow, Gaussian
from credo.typing import Array, Batch, Key, Theta, Tree

# Gradients of the ELBO fall by orders of magnitude while q closes in (ten thousandfold with 1,000 rows and a noise of
# 0.05). With optax's own 0.999 the large ones of the beginning stand in the way for some ten thousand steps: after
# 8,000 an sd was 2.4 times what it should be; with 0.99 it is within 2%, and with 0.9 within 7%.
ADAM_MEMORY = 0.99
Estimator = Literal["weights", "landing", "local", "flipout"]


class Phi(NamedTuple):
    """What is learned: the mean of q, the numbers behind its root, and the parameters xi of the prior."""

    mean: Theta
    root: Theta
    xi: Theta


class VIState(NamedTuple):
    step: Array
    phi: Phi
    optimizer: Tree
    smoothed: Array
    best: Array
    checks_since: Array
    tail: Tail


class VIInfo(NamedTuple):
    """Parts of the ELBO for the whole data set, estimated on the batch: elbo = log_likelihood − kl."""

    log_joint: Array
    elbo: Array
    log_likelihood: Array
    kl: Array


@dataclass(frozen=True)
class BayesByBackprop(Ascent):
    """A Gaussian q(theta), or a flow, fitted by gradient ascent on the ELBO, on minibatches, with any optax optimiser.

    Arguments:
        family: "diagonal" (mean field), "block" (a block per layer), "low_rank", "full", all Gaussian; "flow" (a
            normalising flow, any shape, small models); or a family with settings from `credo.inference`.
        estimator: where the noise enters. "weights" draws the weights once per step; "landing" does too, and drops
            the part of the gradient that is zero on average ("sticking the landing": no variance left at the exact
            posterior); "local" draws the sums that enter each unit, "flipout" flips the signs of one draw, both anew
            for every example (diagonal family). None takes "landing" for the full family, "local" for the diagonal
            one where it can be had, else "weights".
        xi_learning_rate: of the prior's parameters (`param` sites); `learning_rate` where None.
        draws_per_step: draws of theta for each gradient.
        initial_scale: of q around its starting point, small: q first finds the mode, then opens.
        kl_weight: of the KL term. 1 is Bayes; less is a *cold* posterior, surer than the data allow.
        anneal_steps: steps over which the KL weight grows from zero; 0 for none.
        elbo_patience: stop once the smoothed ELBO has not improved for this many looks, 100 steps apart; None never
            does.

    >>> BayesByBackprop(family="low_rank", num_steps=500).family
    'low_rank'
    """

    guide: ClassVar[Guide] = Guide(
        exact="approximate",
        benefits="any parametric q, from diagonal to a flow; learns the prior, takes local latents",
        limits="noisy gradients; a diagonal q underestimates the spread and may collapse to the prior",
        use_cases="large models and data; programs with learned priors or latents per row",
        stores="mean and covariance root of q: twice theta, if diagonal",
        costs="one or two gradients per step, and some thousand steps more than training",
        reaches=Reach(0.1, (0.95, 1.05), beside="diagonal"),
        if_non_finite="lower the learning rate or the initial_scale, or standardise the data",
        if_too_large="take family='low_rank' or family='diagonal'",
    )

    renamed: ClassVar[Mapping[str, str]] = {"num_draws": "draws_per_step", "patience": "elbo_patience"}

    family: str | Family = "diagonal"
    estimator: Estimator | None = None
    xi_learning_rate: LearningRate | None = None
    draws_per_step: int = 1
    initial_scale: float = 0.01
    kl_weight: float = 1.0
    anneal_steps: int = 0
    elbo_patience: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(1, draws_per_step=self.draws_per_step)
        require_at_least(0, anneal_steps=self.anneal_steps)
        if self.elbo_patience is not None:
            require_at_least(1, elbo_patience=self.elbo_patience)
        if not self.initial_scale > 0:
            raise ValueError(f"initial_scale must be positive, got {self.initial_scale}")
        if not self.kl_weight >= 0:
            raise ValueError(f"kl_weight must be zero or more, got {self.kl_weight}")
        if self.estimator is not None:
            require_one_of(get_args(Estimator), estimator=self.estimator)
        if self.estimator not in (None, "weights") and not self.chosen_family.is_gaussian:
            raise ValueError(
                f"the estimator {self.estimator!r} needs a Gaussian q; with family={self.family!r} take 'weights'"
            )
        if self.estimator in ("local", "flipout") and not self.chosen_family.is_independent:
            raise ValueError(
                f"the estimator {self.estimator!r} needs independent weights, family='diagonal'; with "
                f"family={self.family!r} take 'weights' or 'landing'"
            )

    @property
    def chosen_family(self) -> Family:
        """The family that the name stands for."""
        return as_family(self.family)

    def transformation(self) -> optax.GradientTransformation:
        """The optimiser of phi, with a learning rate of its own for xi where one is set."""
        of_phi = self._optimizer(self.learning_rate)
        if self.xi_learning_rate is None:
            return of_phi
        of_xi = self._optimizer(self.xi_learning_rate)
        return optax.multi_transform({"q": of_phi, "xi": of_xi}, Phi("q", "q", "xi"))  # type: ignore[arg-type]

    def _optimizer(self, learning_rate: LearningRate) -> optax.GradientTransformation:
        rate = rate_over(learning_rate, self.num_steps)
        if self.optimizer == "adam" and self.chosen_family.is_gaussian:
            return optax.adam(rate, b2=ADAM_MEMORY)
        return named_optimizer(self.optimizer, rate)

    def plan(self) -> Plan:
        return replace(super().plan(), learns_xi=True, learns_points=True)

    def chosen_estimator(self, model: Model) -> Estimator:
        """The estimator that is set, or the one with the least noise that fits the family and the model."""
        if self.estimator is not None:
            return self.estimator
        if self.chosen_family.holds_any_covariance:
            return "landing"
        fits = self.chosen_family.is_independent and _has_kernels(model)
        return "local" if fits else "weights"

    @property
    def networks_per_step(self) -> int:
        return self.draws_per_step

    def stores(self, model: Model) -> Needs:
        of_root = self.chosen_family.num_parameters(model.template)
        num = model.num_parameters + of_root
        # phi, its gradient, two moments of the optimiser, and the means of both halves of the tail.
        kind = "Gaussian" if self.chosen_family.is_gaussian else "flow"
        parts = f"{model.num_parameters:,} in its mean, {of_root:,} in its root"
        num_bytes = 6 * num * working_precision().itemsize
        return Needs(model.num_parameters, f"a {kind} of {num:,} variational parameters ({parts})", num_bytes)

    def status_line(self, infos: VIInfo) -> str:
        return f"ELBO {float(np.mean(infos.elbo[-SMOOTHING_STEPS:])):.5g}"

    # -- the engine's functions ----------------------------------------------------------------------------

    def init(self, key: Key, model: Model, theta: Theta, data: Batch, held_out: Batch | None) -> VIState:
        mean = {name: theta[name] for name in model.template}
        phi = Phi(mean, self.chosen_family.init(model.template, self.initial_scale), model.initial_xi())
        unseen = jnp.array(-jnp.inf)
        optimizer, smoothed = self.transformation().init(phi), jnp.array(0.0)
        return VIState(jnp.array(0), phi, optimizer, smoothed, unseen, jnp.array(0), Tail.none(phi))

    def step(self, key: Key, model: Model, state: VIState, batch: Batch) -> tuple[VIState, VIInfo]:
        def climb() -> tuple[VIState, VIInfo]:
            gradient_of = jax.value_and_grad(
                lambda phi: self.objective(key, model, phi, batch, state.step), has_aux=True
            )
            (_, (log_likelihood, kl)), gradient = gradient_of(state.phi)
            phi, optimizer = self.climb(gradient, state.optimizer, state.phi)
            elbo = log_likelihood - kl
            # The shape of a flow is not linear in phi: it is that of the last iterate.
            is_gaussian = self.chosen_family.is_gaussian
            tail = state.tail.after(state.step + 1, self.num_steps, phi) if is_gaussian else state.tail
            moved = state._replace(step=state.step + 1, phi=phi, optimizer=optimizer, tail=tail)
            return self._watched(moved, elbo), VIInfo(elbo, elbo, log_likelihood, kl)

        if self.elbo_patience is None:
            return climb()
        # Past the last look nothing moves: the result must not depend on where the engine's chunk ended.
        idle = VIInfo(*(state.smoothed,) * 4)
        return jax.lax.cond(self.finished(state), lambda: (state, idle), climb)

    def objective(
        self, key: Key, model: Model, phi: Phi, batch: Batch, step: Array | int = 0
    ) -> tuple[Array, tuple[Array, Array]]:
        """ELBO/N, with the KL term weighted as asked; and both terms of the ELBO itself."""
        if self.draws_per_step == 1:
            log_likelihood, kl = self.elbo_parts(key, model, phi, batch)
        else:
            keys = jax.random.split(key, self.draws_per_step)
            parts = jax.vmap(lambda own: self.elbo_parts(own, model, phi, batch))(keys)
            log_likelihood, kl = jax.tree.map(jnp.mean, parts)
        weight = self.kl_weight * jnp.minimum(1.0, (step + 1) / max(self.anneal_steps, 1))
        return (log_likelihood - weight * kl) / batch.total, (log_likelihood, kl)

    def elbo_parts(self, key: Key, model: Model, phi: Phi, batch: Batch) -> tuple[Array, Array]:
        """E_q[log p(D | theta)] and KL(q ‖ p), from one draw."""
        weights_key, units_key, latents_key = jax.random.split(key, 3)
        estimator = self.chosen_estimator(model)
        root: Any = self.chosen_family.root(phi.root, model.template)
        if not self.chosen_family.is_gaussian:
            offset, log_q = root.draw_and_log_q(weights_key)
            theta = {name: phi.mean[name] + offset[name] for name in phi.mean}
            log_prior, log_likelihood = model.log_parts(theta | phi.xi, batch, key=latents_key)
            return log_likelihood, log_q - log_prior
        offset = root.draw(weights_key)
        theta = {name: phi.mean[name] + offset[name] for name in phi.mean}
        if estimator == "landing":
            log_prior, log_likelihood = model.log_parts(theta | phi.xi, batch, key=latents_key)
            return log_likelihood, _log_q_of_theta_alone(phi.mean, root, theta) - log_prior
        moments = self._moments(model, phi.mean, root)
        log_prior, log_likelihood = model.log_parts(theta | phi.xi, batch, moments=moments, key=latents_key)
        if estimator in ("local", "flipout"):

            def noisy(parameters: tuple[Theta, ...], rows: Batch, own_key: Callable[[Key], Key]) -> Array:
                theta, xi, mean, scale = parameters
                return local_noise.apply(
                    lambda own: model.log_likelihood(own | xi, rows, key=own_key(latents_key)),
                    theta,
                    mean,
                    scale,
                    own_key(units_key),
                    kind=estimator,
                )

            learned = (theta, phi.xi, phi.mean, root.scale)
            summed = sum_by_block(noisy, learned, batch, model.num_blocks(batch))
            log_likelihood = batch.scale * summed
        return log_likelihood, -root.entropy() - log_prior

    def _moments(self, model: Model, mean: Theta, root: Root) -> tuple[Theta, Theta]:
        """Of the latents whose expected log prior may be taken in closed form.

        A weight and the latent scale of its prior are independent under a diagonal q only; else both are drawn.
        """
        drawn = () if self.chosen_family.is_independent else model.hierarchical_sites
        variance = root.variance()
        names = [name for name in mean if name not in drawn]
        return {name: mean[name] for name in names}, {name: variance[name] for name in names}

    def _watched(self, state: VIState, elbo: Array) -> VIState:
        """The smoothed ELBO, and every so often whether it has improved."""
        forget = jnp.maximum(1 / state.step, 1 / SMOOTHING_STEPS)
        smoothed = state.smoothed + forget * (elbo - state.smoothed)
        looks = state.step % SMOOTHING_STEPS == 0
        better = smoothed > state.best
        return state._replace(
            smoothed=smoothed,
            best=jnp.where(looks & better, smoothed, state.best),
            checks_since=jnp.where(looks, jnp.where(better, 0, state.checks_since + 1), state.checks_since),
        )

    def finished(self, state: VIState) -> Array | bool:
        return False if self.elbo_patience is None else state.checks_since >= self.elbo_patience

    def healthy(self, state: VIState) -> Array | bool:
        return all_finite(state.phi)

    def posterior(self, model: Model, outcome: Outcome) -> Gaussian | Flow:
        state: VIState = outcome.state
        kind = Gaussian if self.chosen_family.is_gaussian else Flow

        def q(phi: Phi) -> tuple[Theta, Any]:
            return phi.mean, _root(self.chosen_family, tuple(model.template.items()), phi.root)

        phi = state.tail.mean(state.phi)
        frozen = model.freeze(phi.xi) if phi.xi else model
        # After an early stop the engine's chunk runs on without moving; those steps are no part of the trace.
        num_steps = int(state.step)
        return as_posterior(kind, self, frozen, outcome, q(phi), state.tail.each(q), num_steps=num_steps)


VI = BayesByBackprop


@partial(jax.jit, static_argnums=(0, 1))
def _root(family: Family, template: tuple[tuple[str, Any], ...], raw: Theta) -> Any:
    return family.root(raw, dict(template))


def as_posterior(
    kind: type,
    method: Method,
    model: Model,
    outcome: Outcome,
    q: tuple[Theta, Any],
    halves: list[tuple[Theta, Any]],
    *,
    num_steps: int | None = None,
) -> Any:
    """The q that a run has found, with the parts of its ELBO by step, and what its draws and its two halves say.

    Arguments:
        kind: of posterior.
        q: its mean and its root.
        halves: the same of the two halves of the tail, where there are two.
    """
    trace = {name: values for name, values in outcome.trace(num_steps).items() if name != "log_joint"}
    provenance = outcome.provenance(method.to_config())
    found, *others = (kind(model, *jax.tree.map(np.asarray, one), provenance, trace=trace) for one in (q, *halves))

    def judged() -> Any:
        return replace(found, evidence=replace(evidence(found, outcome.data), **standard_errors(found, others)))

    return outcome.concluded("evidence", found, lambda _: judged())


def _log_q_of_theta_alone(mean: Theta, root: Root, theta: Theta) -> Array:
    """log q(theta), whose gradient is taken through theta only: the rest of it is zero on average."""
    fixed_mean, fixed_root = jax.lax.stop_gradient((mean, root))
    offset = {name: theta[name] - fixed_mean[name] for name in theta}
    return fixed_root.log_density(offset)


def _has_kernels(model: Model) -> bool:
    """Whether all matrices of theta are weights of layers that local noise knows."""
    try:
        return bool(local_noise.kernels(likelihood_of(model), model.template))
    except ValueError:
        return False


def likelihood_of(model: Model) -> Callable[[Theta], Array]:
    """log p(y | x, theta) of a few example rows, as a function of theta."""
    example = model.example()
    return lambda theta: model.log_parts(theta, example)[1]
