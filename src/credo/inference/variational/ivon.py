"""IVON: variational inference by natural gradients, at little more than the cost of Adam.

Shen et al., "Variational learning is effective for large deep networks" (2024). q = N(m, 1/(N(h + δ))): h estimates the
curvature of the loss per data point from gradients alone, and δ is that of the prior. With theta = m + σ ε,

    ĥ = ĝ ε/σ,    h ← β₂h + (1 − β₂)ĥ + ½(1 − β₂)²(h − ĥ)²/(h + δ),    m ← m − α (ḡ + ∇prior)/(h + δ)

The prior enters in closed form where it is normal: its gradient at the mean, and its precision. Four things are ours,
each with its figure in docs/decisions.md: two steps share ε and −ε, whose errors in ḡ cancel; ĥ has h(ε² − 1) taken
off, zero on average, which is most of its noise; β₂ is smaller at first, so that h forgets where it started; and the
posterior is the average of m and h over the tail of the run.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo._precision import working_precision
from credo.covariance import Diagonal
from credo.inference.guide import Guide, Reach
from credo.inference.method import all_finite
from credo.inference.needs import Needs
from credo.inference.optimised import SMOOTHING_STEPS, LearningRate, Optimised
from credo.inference.outcome import Outcome
from credo.inference.settling import Settling
from credo.inference.tail import Tail
from credo.inference.variational.vi import VIInfo, as_posterior
from credo.models.program import Model
from credo.posterior import Gaussian
from credo.typing import Array, Batch, Key, Theta

RATE = Settling(0.1)
# The share of ĥ in step t is 3/(t + 600) before it is 1 − β₂: after t steps (600/t)³ of the start is left in h, 0.2% at
# 5,000, where 8% were with β₂ alone. From larger shares h overshoots where the first gradients are huge: 3/(t + 10)
# never came back with 1,000 rows and a noise of 0.05.
FORGETTING, FORGETTING_STEPS = 3.0, 600
# And for the same reason, the largest change of h + δ in one step: to 2.5 times its size.
LARGEST_CHANGE = 1.0
# A Newton step from a curvature that is not known yet may be far too long: no weight moves by more than this times the
# learning rate.
LONGEST_MOVE = 1.0


class IVONState(NamedTuple):
    """The mean of q, the momentum of its gradient, the curvature h per data point, N, and the noise of a pair."""

    step: Array
    mean: Theta
    momentum: Theta
    curvature: Theta
    num_data: Array
    noise: Array
    tail: Tail


@dataclass(frozen=True)
class IVON(Optimised):
    """A diagonal Gaussian q by natural-gradient variational inference; the posterior is that of `BayesByBackprop`.

    Arguments:
        learning_rate: α, as in `MAP`. A Newton-like step: larger than Adam's.
        initial_curvature: h at the start, per data point: q starts with scale 1/√(N(h + δ)).
        momentum: β₁ of the gradient.
        memory: β₂ of the curvature, which grows to this from 0.995.

    >>> IVON(num_steps=100).num_steps
    100
    """

    guide: ClassVar[Guide] = Guide(
        exact="approximate",
        benefits="a diagonal Gaussian at the price of Adam, by natural gradients",
        limits="only diagonal: underestimates the spread; sensitive to its starting curvature",
        use_cases="large networks on minibatches",
        stores="mean and scale of each weight: twice theta",
        costs="one gradient per step",
        reaches=Reach(0.1, (0.95, 1.05), beside="diagonal"),
        if_non_finite="lower the learning rate, raise the initial_curvature, or standardise the data",
    )

    learning_rate: LearningRate = RATE
    initial_curvature: float = 1.0
    momentum: float = 0.9
    memory: float = 0.9995

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.initial_curvature > 0:
            raise ValueError(f"initial_curvature must be positive, got {self.initial_curvature}")
        for name in ("momentum", "memory"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must lie between 0 and 1, got {getattr(self, name)}")

    def stores(self, model: Model) -> Needs:
        num = model.num_parameters
        stored = f"a Gaussian of {2 * num:,} variational parameters ({num:,} means, {num:,} scales)"
        # Mean, momentum, curvature, gradient and theta; means and curvatures of both halves of the tail.
        return Needs(num, stored, working_precision().itemsize * 9 * num)

    def status_line(self, infos: VIInfo) -> str:
        return f"ELBO {float(np.mean(infos.elbo[-SMOOTHING_STEPS:])):.5g}"

    def init(self, key: Key, model: Model, theta: Theta, data: Batch, held_out: Batch | None) -> IVONState:
        mean = {name: theta[name] for name in model.template}
        zeros = {name: jnp.zeros(leaf.shape) for name, leaf in mean.items()}
        curvature = {name: jnp.full(leaf.shape, self.initial_curvature) for name, leaf in mean.items()}
        num_data, noise = jnp.array(data.total, working_precision()), jax.random.key_data(key)
        return IVONState(jnp.array(0), mean, zeros, curvature, num_data, noise, Tail.none((mean, curvature)))

    def step(self, key: Key, model: Model, state: IVONState, batch: Batch) -> tuple[IVONState, VIInfo]:
        precision = self.prior_precision(model, state.num_data)
        root = self.root(state.curvature, precision, state.num_data)
        is_second = state.step % 2
        noise = jnp.where(is_second, state.noise, jax.random.key_data(key))
        drawn = root.draw(jax.random.wrap_key_data(noise, impl=jax.random.key_impl(key)))
        offset = {name: (1 - 2 * is_second) * leaf for name, leaf in drawn.items()}
        theta = {name: state.mean[name] + offset[name] for name in state.mean}
        gradient, of_prior, (log_likelihood, log_prior) = self._gradients(model, state.mean, root, theta, batch)
        count = state.step + 1
        rate = self.schedule(state.step) if callable(self.schedule) else self.schedule
        debias = 1 - self.momentum**count
        forget = jnp.maximum(1 - self.memory, FORGETTING / (count + FORGETTING_STEPS))

        def update(name: str) -> tuple[Array, Array, Array]:
            g, h, delta = gradient[name], state.curvature[name], precision[name]
            # ĥ = ĝ ε/σ, with ε from theta, which is at hand anyway: the noise need not be kept, or made twice.
            offset_precision = (theta[name] - state.mean[name]) * (state.num_data * (h + delta))
            square = offset_precision * (theta[name] - state.mean[name])
            seen = g * offset_precision - h * (square - 1)
            # The square keeps h + δ positive whatever was seen: a step along a geodesic (Lin et al., 2020).
            change = jnp.clip(forget * (seen - h) / (h + delta), -LARGEST_CHANGE, LARGEST_CHANGE)
            curvature = h + (h + delta) * (change + 0.5 * change**2)
            momentum = self.momentum * state.momentum[name] + (1 - self.momentum) * g
            towards = (momentum / debias + of_prior[name]) / (curvature + delta)
            return state.mean[name] - rate * jnp.clip(towards, -LONGEST_MOVE, LONGEST_MOVE), momentum, curvature

        updated = {name: update(name) for name in state.mean}
        mean, momentum, curvature = ({name: parts[place] for name, parts in updated.items()} for place in range(3))
        kl = -root.entropy() - log_prior
        info = VIInfo(log_likelihood - kl, log_likelihood - kl, log_likelihood, kl)
        tail = state.tail.after(count, self.num_steps, (mean, curvature))
        return IVONState(count, mean, momentum, curvature, state.num_data, noise, tail), info

    def _gradients(
        self, model: Model, mean: Theta, root: Diagonal, theta: Theta, batch: Batch
    ) -> tuple[Theta, Theta, tuple[Array, Array]]:
        """Per data point: the gradient of the loss at theta, and that of the prior at the mean.

        E_q[log p(theta)] depends on theta only through priors that are not normal, or that depend on other latents;
        these count as part of the loss.
        """
        variance = root.variance()

        def log_joint(theta: Theta, mean: Theta) -> tuple[Array, tuple[Array, Array]]:
            log_prior, log_likelihood = model.log_parts(theta, batch, moments=_closed(model, mean, variance))
            return log_prior + log_likelihood, (log_likelihood, log_prior)

        gradients, parts = jax.grad(log_joint, argnums=(0, 1), has_aux=True)(theta, mean)
        of_theta, of_mean = jax.tree.map(lambda leaf: -leaf / batch.total, gradients)
        return of_theta, of_mean, parts

    def prior_precision(self, model: Model, num_data: Array) -> Theta:
        """δ, the precision of normal priors per data point: −2 times the derivative of E_q[log p] by the variance."""
        start = {name: jnp.zeros(leaf.shape) for name, leaf in model.template.items()}

        def log_prior(variance: Theta) -> Array:
            return model.log_parts(start, model.example(), moments=_closed(model, start, variance))[0]

        return jax.tree.map(lambda leaf: -2 * leaf / num_data, jax.grad(log_prior)(start))

    def root(self, curvature: Theta, precision: Theta, num_data: Array) -> Diagonal:
        """σ = 1/√(N(h + δ))."""
        return Diagonal({name: jax.lax.rsqrt(num_data * (own + precision[name])) for name, own in curvature.items()})

    def healthy(self, state: IVONState) -> Array | bool:
        return all_finite((state.mean, state.curvature))

    def posterior(self, model: Model, outcome: Outcome) -> Gaussian:
        state: IVONState = outcome.state
        precision = self.prior_precision(model, state.num_data)

        def q(phi: tuple[Theta, Theta]) -> tuple[Theta, Diagonal]:
            mean, curvature = phi
            return mean, self.root(curvature, precision, state.num_data)

        found = state.tail.mean((state.mean, state.curvature))
        return as_posterior(Gaussian, self, model, outcome, q(found), state.tail.each(q))


def _closed(model: Model, mean: Theta, variance: Theta) -> tuple[Theta, Theta]:
    """The moments of the latents whose expected log prior is a function of these alone."""
    names = [name for name in mean if name not in model.hierarchical_sites]
    return {name: mean[name] for name in names}, {name: variance[name] for name in names}
