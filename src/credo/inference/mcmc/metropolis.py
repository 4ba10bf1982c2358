"""The Metropolis–Hastings algorithm, and the Metropolis method: its symmetric case.

Paper, Algorithm "Metropolis-Hasting", in its correct form: the factor is Q(thetaₙ | theta′)/Q(theta′ | thetaₙ) (it is
printed upside down), and a rejected proposal stores the current state again (it is printed as if only accepted states
counted, which would not sample from f).
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from credo._text import nearest
from credo.inference.guide import Guide, Reach
from credo.inference.sampler import START_WHERE_FINITE, Sampler
from credo.models.program import Model
from credo.typing import Array, Batch, Key, Theta

# The acceptance rate that makes random walks most efficient in many dimensions (Roberts, Gelman & Gilks, 1997).
BEST_ACCEPTANCE = 0.234


class MetropolisState(NamedTuple):
    step: Array
    theta: Theta
    log_joint: Array
    log_scale: Array


class MetropolisInfo(NamedTuple):
    log_joint: Array
    acceptance: Array
    accepted: Array
    scale: Array


@dataclass(frozen=True)
class Proposal:
    """A proposal distribution Q(theta′ | theta) of the user's own.

    Arguments:
        sample: (key, theta) -> theta′, on the named tree of unconstrained arrays.
        log_prob: (theta′, theta) -> log Q(theta′ | theta), up to a constant. None says that Q is symmetric.

    >>> import jax
    >>> import credo
    >>> def walk(key, theta):
    ...     return {name: leaf + 0.1 * jax.random.normal(key, leaf.shape) for name, leaf in theta.items()}
    >>> credo.Proposal(walk).log_prob is None  # symmetric
    True
    """

    sample: Callable[[Key, Theta], Theta]
    log_prob: Callable[[Theta, Theta], Array] | None = None


@dataclass(frozen=True)
class MetropolisHastings(Sampler):
    """Markov chain Monte Carlo with any proposal, the correction for asymmetric ones included.

        p(accept) = min(1, f(theta′)/f(theta) · Q(theta | theta′)/Q(theta′ | theta))

    Arguments:
        proposal: a `Proposal`.
        thin: steps per kept draw. Random walks are strongly correlated, so that keeping every step only costs memory.

    >>> import jax
    >>> import credo
    >>> def walk(key, theta):
    ...     return {name: leaf + 0.1 * jax.random.normal(key, leaf.shape) for name, leaf in theta.items()}
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.3)
    >>> method = credo.MetropolisHastings(credo.Proposal(walk), num_samples=10, num_warmup=20, num_chains=1, thin=5)
    >>> credo.fit(model, credo.datasets.gap(20), method).num_draws
    10
    """

    guide: ClassVar[Guide] = Guide(
        exact="exact",
        benefits="needs no gradients, and takes any proposal; the textbook",
        limits="only as good as its proposal: random walks are hopeless beyond some tens of parameters",
        use_cases="very small models, teaching, checks of other methods",
        stores="every kept draw of theta",
        costs="one density of all data per step, and some hundred steps per independent draw",
        reaches=Reach(0.1, (0.9, 1.1)),
        if_non_finite=START_WHERE_FINITE,
    )

    proposal: Proposal
    _: KW_ONLY
    num_warmup: int = 5000
    thin: int = 50

    def init(self, key: Key, model: Model, theta: Theta, data: Batch, held_out: Batch | None) -> MetropolisState:
        return MetropolisState(jnp.array(0), theta, model.log_joint(theta, data), jnp.zeros(()))

    def step(
        self, key: Key, model: Model, state: MetropolisState, batch: Batch
    ) -> tuple[MetropolisState, MetropolisInfo]:
        propose_key, accept_key = jax.random.split(key)
        proposed, log_correction = self.propose(propose_key, state)
        log_joint = model.log_joint(proposed, batch)
        log_ratio = log_joint - state.log_joint + log_correction
        # Not a number is never accepted: comparisons with it are false.
        accepted = jnp.log(jax.random.uniform(accept_key)) < log_ratio
        probability = jnp.where(jnp.isnan(log_ratio), 0.0, jnp.exp(jnp.minimum(log_ratio, 0.0)))
        theta, log_joint = jax.tree.map(
            lambda new, old: jnp.where(accepted, new, old),
            (proposed, log_joint),
            (state.theta, state.log_joint),
        )
        moved = MetropolisState(state.step + 1, theta, log_joint, self.tuned(state, probability))
        return moved, MetropolisInfo(log_joint, probability, accepted, jnp.exp(state.log_scale))

    def propose(self, key: Key, state: MetropolisState) -> tuple[Theta, Array]:
        """theta′ ~ Q(· | theta), and log Q(theta | theta′) − log Q(theta′ | theta)."""
        proposed = self.proposal.sample(key, state.theta)
        if self.proposal.log_prob is None:
            return proposed, jnp.zeros(())
        log_prob = self.proposal.log_prob
        return proposed, log_prob(state.theta, proposed) - log_prob(proposed, state.theta)

    def tuned(self, state: MetropolisState, acceptance: Array) -> Array:
        """A proposal of the user's own has no scale to tune."""
        return state.log_scale

    def draw(self, model: Model, state: MetropolisState) -> Theta:
        return state.theta

    def status_line(self, infos: MetropolisInfo) -> str:
        return f"acceptance {infos.acceptance.mean():.2f}"


@dataclass(frozen=True)
class Metropolis(MetropolisHastings):
    """The Metropolis method: a symmetric random walk, its scale tuned during warm-up and fixed afterwards.

        theta′ ~ N(theta, scale²)   or   U(theta − scale, theta + scale),    p(accept) = min(1, f(theta′)/f(theta))

    Arguments:
        proposal: "normal", "uniform", or a `Proposal` of your own (then nothing is tuned).
        scale: of the first proposals; None takes 2.4/√D, which suits a posterior of unit variance.
        target_acceptance: what the tuning aims at.

    >>> Metropolis(proposal="uniform", num_samples=100).plan().num_steps
    10000
    """

    guide: ClassVar[Guide] = replace(
        MetropolisHastings.guide,
        benefits="needs no gradients; the textbook",
        limits="a random walk: hopeless beyond some tens of parameters",
    )

    proposal: str | Proposal = "normal"  # type: ignore[assignment]
    _: KW_ONLY
    scale: float | None = None
    target_acceptance: float = BEST_ACCEPTANCE

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.proposal, str) and self.proposal not in ("normal", "uniform"):
            hint = nearest(self.proposal, ["normal", "uniform"])
            raise ValueError(f"proposal must be 'normal', 'uniform' or a Proposal, got {self.proposal!r}{hint}")
        if self.scale is not None and self.scale <= 0:
            raise ValueError(f"scale must be positive, got {self.scale}")
        if not 0 < self.target_acceptance < 1:
            raise ValueError(f"target_acceptance must lie between 0 and 1, got {self.target_acceptance}")

    def init(self, key: Key, model: Model, theta: Theta, data: Batch, held_out: Batch | None) -> MetropolisState:
        state = super().init(key, model, theta, data, held_out)
        # 2.4/√D: Gelman, Roberts & Gilks (1996).
        scale = self.scale or 2.4 / model.num_parameters**0.5
        return state._replace(log_scale=jnp.log(scale))

    def propose(self, key: Key, state: MetropolisState) -> tuple[Theta, Array]:
        if not isinstance(self.proposal, str):
            return super().propose(key, state)
        flat, unravel = ravel_pytree(state.theta)
        if self.proposal == "normal":
            step = jax.random.normal(key, flat.shape)
        else:
            step = jax.random.uniform(key, flat.shape, minval=-1.0, maxval=1.0)
        return unravel(flat + jnp.exp(state.log_scale) * step), jnp.zeros(())

    def tuned(self, state: MetropolisState, acceptance: Array) -> Array:
        """Robbins & Monro: log scale += (acceptance − target)/n^0.6, during warm-up only."""
        if not isinstance(self.proposal, str):
            return state.log_scale
        gain = (state.step + 1.0) ** -0.6
        tuned = state.log_scale + gain * (acceptance - self.target_acceptance)
        return jnp.where(state.step < self.num_warmup, tuned, state.log_scale)
