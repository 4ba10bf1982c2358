"""Bayes-by-backprop: stochastic variational inference with a Gaussian q over theta, or a normalising flow.

Paper, "Variational inference", "Bayes by backpropagation" and "Learning the prior". With theta = mean + √Σ ε,

    ELBO(phi, xi) = E_q[log p(D | theta)] − KL(q ‖ p) ≤ log p(D | xi)

is climbed by gradient ascent on minibatches. The two terms are shown apart. The entropy of a Gaussian q is in closed
form, the expected log prior wherever the prior is normal; only the likelihood is left to Monte Carlo. For a flow all
three are.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
import optax

from credo._checks import require_at_least
from credo._text import nearest
from credo.covariance import Root
from credo.inference.guide import Guide
from credo.inference.method import Method
from credo.inference.needs import Needs
from credo.inference.plan import Plan
from credo.inference.point.map import Schedule, named_optimizer
from credo.inference.run import Run
from credo.inference.variational import local_noise
from credo.inference.variational.families import INSTEAD_OF_FLOW, Family, as_family
from credo.inference.variational.importance import evidence
from credo.models.program import Model
from credo.posterior import Flow, Gaussian, Provenance
from credo.typing import Array, Batch, Key, Theta, Tree

Estimator = Literal["weights", "landing", "local", "flipout"]
# The smoothed ELBO forgets with this many steps, and early stopping looks at it as often.
SMOOTHING_STEPS = 100


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


class VIInfo(NamedTuple):
    """Parts of the ELBO for the whole data set, estimated on the batch: elbo = log_likelihood − kl."""

    log_joint: Array
    elbo: Array
    log_likelihood: Array
    kl: Array


@dataclass(frozen=True)
class BayesByBackprop(Method):
    """A Gaussian q(theta), or a flow, fitted by gradient ascent on the ELBO, on minibatches, with any optax optimiser.

    Arguments:
        num_steps: gradient steps.
        family: "diagonal" (mean field), "block" (a block per layer), "low_rank", "full", all Gaussian; "flow" (a
            normalising flow, any shape, small models); or a family with settings from `credo.inference`.
        estimator: where the noise enters. "weights" draws the weights once per step; "landing" does too, and drops
            the part of the gradient that is zero on average ("sticking the landing": no variance left at the exact
            posterior); "local" draws the sums that enter each unit, "flipout" flips the signs of one draw, both anew
            for every example (diagonal family). None takes "local" where it can be had, else "weights".
        optimizer, learning_rate, batch_size: as for `MAP`; the objective is the ELBO per data point.
        xi_learning_rate: of the prior's parameters (`param` sites); `learning_rate` where None.
        num_draws: draws of theta per step.
        initial_scale: of q around its starting point, small: q first finds the mode, then opens.
        kl_weight: of the KL term. 1 is Bayes; less is a *cold* posterior, surer than the data allow.
        anneal_steps: steps over which the KL weight grows from zero; 0 for none.
        patience: stop once the smoothed ELBO has not improved for this many looks, 100 steps apart; None never does.
        start: "network" for the network's own values, "prior" for a draw, or a method to run first.

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
    )

    num_steps: int = 5000
    family: str | Family = "diagonal"
    estimator: Estimator | None = None
    optimizer: str | optax.GradientTransformation = "adam"
    learning_rate: Schedule = 1e-2
    xi_learning_rate: Schedule | None = None
    batch_size: int | None = None
    num_draws: int = 1
    initial_scale: float = 0.01
    kl_weight: float = 1.0
    anneal_steps: int = 0
    patience: int | None = None
    start: str | Method = "network"

    def __post_init__(self) -> None:
        require_at_least(1, num_steps=self.num_steps, num_draws=self.num_draws)
        require_at_least(0, anneal_steps=self.anneal_steps)
        for name in ("batch_size", "patience"):
            if getattr(self, name) is not None:
                require_at_least(1, **{name: getattr(self, name)})
        if not self.initial_scale > 0:
            raise ValueError(f"initial_scale must be positive, got {self.initial_scale}")
        if not self.kl_weight >= 0:
            raise ValueError(f"kl_weight must be zero or more, got {self.kl_weight}")
        known = get_args(Estimator)
        if self.estimator is not None and self.estimator not in known:
            suggestion = nearest(str(self.estimator), known)
            raise ValueError(f"estimator must be one of {', '.join(known)}, got {self.estimator!r}{suggestion}")
        if self.estimator not in (None, "weights") and not self.chosen_family.is_gaussian:
            raise ValueError(
                f"the estimator {self.estimator!r} needs a Gaussian q; with family={self.family!r} take 'weights'"
            )
        if self.estimator in ("local", "flipout") and not self.chosen_family.is_independent:
            raise ValueError(
                f"the estimator {self.estimator!r} needs independent weights, family='diagonal'; with "
                f"family={self.family!r} take 'weights' or 'landing'"
            )
        self.transformation()

    @property
    def chosen_family(self) -> Family:
        """The family that the name stands for."""
        return as_family(self.family)

    def transformation(self) -> optax.GradientTransformation:
        """The optimiser of phi, with a learning rate of its own for xi where one is set."""
        of_phi = named_optimizer(self.optimizer, self.learning_rate)
        if self.xi_learning_rate is None:
            return of_phi
        of_xi = named_optimizer(self.optimizer, self.xi_learning_rate)
        return optax.multi_transform({"q": of_phi, "xi": of_xi}, Phi("q", "q", "xi"))  # type: ignore[arg-type]

    def plan(self) -> Plan:
        return Plan(num_kept=self.num_steps, batch_size=self.batch_size)

    @property
    def lockstep(self) -> bool:
        return True

    @property
    def advice(self) -> str:
        return "lower the learning rate or the initial_scale, or standardise the data"

    @property
    def learns_xi(self) -> bool:
        return True

    @property
    def smaller(self) -> str:
        return "take family='low_rank' or family='diagonal'" if self.chosen_family.is_gaussian else INSTEAD_OF_FLOW

    def chosen_estimator(self, model: Model) -> Estimator:
        """The estimator that is set, or the one with the least noise that fits the family and the model."""
        if self.estimator is not None:
            return self.estimator
        fits = self.chosen_family.is_independent and _has_kernels(model)
        return "local" if fits else "weights"

    def describe(self, model: Model, data: Any) -> Needs:
        bound = model if model.rows is not None else model.bind(data)
        of_root = self.chosen_family.num_parameters(bound.template)
        num = bound.num_parameters + of_root
        # phi, its gradient, and two moments of the optimiser.
        kind = "Gaussian" if self.chosen_family.is_gaussian else "flow"
        parts = f"{bound.num_parameters:,} in its mean, {of_root:,} in its root"
        return Needs(bound.num_parameters, f"a {kind} of {num:,} variational parameters ({parts})", 4 * 4 * num)

    def figure(self, infos: VIInfo) -> str:
        return f"ELBO {float(np.mean(infos.elbo[-SMOOTHING_STEPS:])):.5g}"

    # -- the engine's functions ----------------------------------------------------------------------------

    def init(self, key: Key, model: Model, theta: Theta, data: Batch, held_out: Batch | None) -> VIState:
        mean = {name: theta[name] for name in model.template}
        phi = Phi(mean, self.chosen_family.init(model.template, self.initial_scale), model.initial_xi())
        unseen = jnp.array(-jnp.inf)
        return VIState(jnp.array(0), phi, self.transformation().init(phi), jnp.array(0.0), unseen, jnp.array(0))

    def step(self, key: Key, model: Model, state: VIState, batch: Batch) -> tuple[VIState, VIInfo]:
        def climb() -> tuple[VIState, VIInfo]:
            gradient_of = jax.value_and_grad(
                lambda phi: self.objective(key, model, phi, batch, state.step), has_aux=True
            )
            (_, (log_likelihood, kl)), gradient = gradient_of(state.phi)
            downhill = jax.tree.map(jnp.negative, gradient)
            updates, optimizer = self.transformation().update(downhill, state.optimizer, state.phi)
            elbo = log_likelihood - kl
            moved = state._replace(
                step=state.step + 1, phi=optax.apply_updates(state.phi, updates), optimizer=optimizer
            )
            return self._watched(moved, elbo), VIInfo(elbo, elbo, log_likelihood, kl)

        if self.patience is None:
            return climb()
        # Past the last look nothing moves: the result must not depend on where the engine's chunk ended.
        idle = VIInfo(*(state.smoothed,) * 4)
        return jax.lax.cond(self.finished(state), lambda: (state, idle), climb)

    def objective(
        self, key: Key, model: Model, phi: Phi, batch: Batch, step: Array | int = 0
    ) -> tuple[Array, tuple[Array, Array]]:
        """ELBO/N, with the KL term weighted as asked; and both terms of the ELBO itself."""
        if self.num_draws == 1:
            log_likelihood, kl = self.elbo_parts(key, model, phi, batch)
        else:
            keys = jax.random.split(key, self.num_draws)
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
            log_likelihood = local_noise.apply(
                lambda own: model.log_parts(own | phi.xi, batch, key=latents_key)[1],
                theta,
                phi.mean,
                root.scale,
                units_key,
                kind=estimator,
            )
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
        return False if self.patience is None else state.checks_since >= self.patience

    def healthy(self, state: VIState) -> Array | bool:
        return all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state.phi))

    def posterior(self, model: Model, run: "Run") -> "Gaussian | Flow":
        state: VIState = jax.tree.map(lambda leaf: leaf[0], run.states)
        frozen = model.freeze(state.phi.xi) if state.phi.xi else model
        root = jax.jit(lambda raw: self.chosen_family.root(raw, model.template))(state.phi.root)
        # After an early stop the engine's chunk runs on without moving; those steps are no part of the trace.
        num_steps = int(state.step)
        kind = Gaussian if self.chosen_family.is_gaussian else Flow
        return kind(frozen, *_as_numpy(state.phi.mean, root), **_origin(self, run, num_steps))

    def judged(self, posterior: "Gaussian | Flow", data: Batch) -> "Gaussian | Flow":  # type: ignore[override]
        return replace(posterior, evidence=evidence(posterior, data))


VI = BayesByBackprop


def as_gaussian(method: Method, model: Model, run: "Run", *, mean: Theta, root: Root) -> "Gaussian":
    """The posterior of a run that has found a mean and a root, with the parts of its ELBO by step."""
    return Gaussian(model, *_as_numpy(mean, root), **_origin(method, run))


def _as_numpy(location: Theta, root: Any) -> tuple[Theta, Any]:
    return {name: np.asarray(leaf) for name, leaf in location.items()}, jax.tree.map(np.asarray, root)


def _origin(method: Method, run: "Run", num_steps: int | None = None) -> dict[str, Any]:
    """How a posterior came about, and the parts of its ELBO by step."""
    figures = {name: values for name, values in run.infos._asdict().items() if name != "log_joint"}
    return {
        "provenance": Provenance(method.to_config(), run.seed, run.seconds, 0, run.interrupted),
        "trace": {name: np.asarray(values)[:, :num_steps] for name, values in figures.items()},
    }


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
