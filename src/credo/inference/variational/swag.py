"""SWAG: a Gaussian from the iterates of stochastic gradient descent with a constant learning rate.

Paper, "Variational Inference based on SGD dynamic". After training, descent goes on with a constant rate and wanders
around the mode; a Gaussian is fitted to the places it visits, θ₁ … θ_T. With their mean θ̄ and their last K,

    Σ = ½ diag(Var[θ]) + ½ D Dᵀ/(K − 1),    D = [θ_{T−K+1} − θ̄, …, θ_T − θ̄]

or, in the diagonal form, Σ = diag(Var[θ]). Maddox et al. subtract from each iterate the mean of those up to it; here it
is the mean of them all, so that with K = T the second term is half their sample covariance.

The learning rate decides how far descent wanders: SWAG tells the shape of a mode, and its size as far as the rate fits
(Mandt et al., "Stochastic gradient descent as approximate Bayesian inference", 2017).

Maddox et al., "A simple baseline for Bayesian uncertainty in deep learning" (2019).
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from credo._checks import require_at_least
from credo._precision import working_precision
from credo.covariance import Diagonal, LowRank
from credo.inference.guide import Guide, Reach
from credo.inference.needs import Needs
from credo.inference.optimised import Ascent, LearningRate, named_optimizer, rate_over
from credo.inference.outcome import Outcome
from credo.inference.plan import Plan
from credo.inference.point.map import MAP, PointInfo, PointState
from credo.inference.variational.importance import evidence
from credo.models.program import Model
from credo.posterior import Gaussian
from credo.typing import Array, Batch, Key, Theta

# A weight that never moves has no variance to take the logarithm of; this is the least, as in Maddox et al.
LEAST_VARIANCE = 1e-30


class Iterates(NamedTuple):
    """What is kept of the iterates: how many there were, their mean and variance, and the last of them.

    Leaves of `recent` are (columns, …), and the iterate number i stands in column i modulo their number; the diagonal
    form has no columns.
    """

    num: Array
    mean: Theta
    variance: Theta
    recent: Theta

    @classmethod
    def none(cls, template: Theta, num_columns: int) -> "Iterates":
        zeros = {name: jnp.zeros(leaf.shape) for name, leaf in template.items()}
        recent = {name: jnp.zeros((num_columns, *leaf.shape)) for name, leaf in template.items() if num_columns}
        return cls(jnp.array(0), zeros, zeros, recent)

    def add(self, theta: Theta) -> "Iterates":
        """One more. Welford: mean + δ/i, and (1 − 1/i)(variance + δ²/i), never negative, with δ = theta − mean."""
        num = self.num + 1
        share = 1 / num
        offset = {name: theta[name] - mean for name, mean in self.mean.items()}
        recent = {
            name: jax.lax.dynamic_update_index_in_dim(column, theta[name], self.num % len(column), 0)
            for name, column in self.recent.items()
        }
        return Iterates(
            num,
            {name: mean + share * offset[name] for name, mean in self.mean.items()},
            {name: (1 - share) * (own + share * offset[name] ** 2) for name, own in self.variance.items()},
            recent,
        )

    def root(self) -> Diagonal | LowRank:
        """√Σ."""
        scale = {name: np.sqrt(np.maximum(leaf, LEAST_VARIANCE)) for name, leaf in self.variance.items()}
        if not self.recent:
            return Diagonal(scale)
        num = min(int(self.num), len(next(iter(self.recent.values()))))
        # The columns are held relative to the diagonal, √½ sd, where their own √½ cancels.
        factor = {
            name: np.moveaxis((column[:num] - self.mean[name]) / (scale[name] * math.sqrt(max(num - 1, 1))), 0, -1)
            for name, column in self.recent.items()
        }
        return LowRank({name: leaf * math.sqrt(0.5) for name, leaf in scale.items()}, factor)


class SWAGState(NamedTuple):
    training: PointState
    iterates: Iterates


@dataclass(frozen=True)
class SWAG(Ascent):
    """A Gaussian fitted to the iterates of SGD: first `MAP` by SGD, then a constant rate, and iterates are collected.

    Only moments and the last iterates are kept, however long it runs. Batch statistics of a network are constants of
    its model, in training as in prediction, so there is nothing to estimate anew after the fit: set them before it,
    with `credo.networks.with_statistics`.

    Arguments:
        num_steps: gradient steps in all.
        num_warmup: how many of them are training; the others are the collecting phase.
        rank: K, how many of the last iterates make the low-rank part of Σ; None or 0 for the diagonal form.
        collect_every: steps between two iterates that are collected.
        optimizer: the name of an optax optimiser. A transformation has its own rate, the same in both phases.
        learning_rate: of the warm-up, a number or an optax schedule.
        collecting_rate: the constant rate of the collecting phase. It sets the spread: the larger, the further descent
            wanders. Far above the rate that the warm-up ended with, it may diverge.
        momentum: of optimizer="sgd"; other optimisers have their own. 0.9 makes the rate count ten times.
        batch_size: rows per step. The noise of small batches is what makes descent wander; with None, all of the rows
            in each step, there is none, and iterates differ only where descent has not arrived yet.

    >>> SWAG(num_steps=3000, num_warmup=2000, collect_every=10).num_collected
    100
    """

    guide: ClassVar[Guide] = Guide(
        exact="approximate",
        benefits="a Gaussian for the price of training on; scales to any network",
        limits="around one mode; its width is set by the learning rate",
        use_cases="large networks; members of an ensemble",
        stores="mean, variance and the last `rank` iterates",
        costs="one gradient of a minibatch per step",
        reaches=Reach(0.3, (0.0, 0.5)),
        if_non_finite="lower the learning_rate and the collecting_rate, or standardise the data",
        if_too_large="take a lower rank, or rank=None for the diagonal form",
    )

    num_steps: int = 4000
    num_warmup: int = 2000
    rank: int | None = 20
    collect_every: int = 20
    optimizer: str | optax.GradientTransformation = "sgd"
    learning_rate: LearningRate = 1e-3
    collecting_rate: float = 1e-3
    momentum: float = 0.9
    batch_size: int | None = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(1, collect_every=self.collect_every)
        require_at_least(0, num_warmup=self.num_warmup)
        if self.rank:
            require_at_least(2, rank=self.rank)
        if not self.collecting_rate > 0:
            raise ValueError(f"collecting_rate must be positive, got {self.collecting_rate}")
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum must lie between 0 and 1, got {self.momentum}")
        if self.num_collected < 2:
            raise ValueError(
                f"num_steps={self.num_steps}, {self.num_warmup} of them for the warm-up, with "
                f"collect_every={self.collect_every} collects {max(self.num_collected, 0)} iterate(s), and a spread "
                "needs at least 2; take more steps, or collect more often"
            )

    @property
    def num_collected(self) -> int:
        """T, the iterates that a run collects."""
        return (self.num_steps - self.num_warmup) // self.collect_every

    @property
    def num_columns(self) -> int:
        """K, the last iterates that are kept; none in the diagonal form."""
        return min(self.rank or 0, self.num_collected)

    def transformation(self) -> optax.GradientTransformation:
        """SGD with a rate for each phase."""
        rate = rate_over(self.learning_rate, self.num_warmup)
        warm = rate if callable(rate) else optax.constant_schedule(rate)
        both = optax.join_schedules([warm, optax.constant_schedule(self.collecting_rate)], [self.num_warmup])
        optimizer = named_optimizer(self.optimizer, both)
        if self.optimizer == "sgd" and self.momentum > 0:
            return optax.chain(optax.trace(self.momentum), optimizer)
        return optimizer

    @property
    def training(self) -> MAP:
        """The climb as `MAP` does it."""
        return MAP(optimizer=self.transformation())

    def plan(self) -> Plan:
        records = self.num_steps - self.num_warmup
        # Iterates are collected in place, which the axis of several chains would not allow.
        return replace(super().plan(), num_records=records, num_warmup=self.num_warmup, lockstep=False)

    def stores(self, model: Model) -> Needs:
        num, columns = model.num_parameters, self.num_columns
        kept = f" and the last {columns} iterates" if columns else ""
        # Beside these: theta, its gradient and the momentum.
        return Needs(
            num,
            f"mean and variance of {self.num_collected:,} iterates{kept}",
            working_precision().itemsize * (5 + columns) * num,
        )

    # -- the engine's functions ----------------------------------------------------------------------------

    def init(self, key: Key, model: Model, theta: Theta, data: Batch, held_out: Batch | None) -> SWAGState:
        training = self.training.init(key, model, theta, data, None)
        return SWAGState(training, Iterates.none(theta, self.num_columns))

    def step(self, key: Key, model: Model, state: SWAGState, batch: Batch) -> tuple[SWAGState, PointInfo]:
        training, info = self.training.step(key, model, state.training, batch)
        collecting = training.step - self.num_warmup
        collects = (collecting > 0) & (collecting % self.collect_every == 0)
        # A loop of one round or none works in place; the branches of a cond would copy all that they return.
        iterates = jax.lax.fori_loop(
            0, collects.astype(jnp.int32), lambda _, iterates: iterates.add(training.theta), state.iterates
        )
        return SWAGState(training, iterates), info

    def healthy(self, state: SWAGState) -> Array | bool:
        return self.training.healthy(state.training)

    def posterior(self, model: Model, outcome: Outcome) -> Gaussian:
        state: SWAGState = outcome.state
        # A run that was cut short before the first iterate has only the point where it stands.
        mean = state.iterates.mean if state.iterates.num > 0 else state.training.theta
        phases = [infos for infos in (outcome.warmup_infos, outcome.infos) if infos is not None]
        names = ("log_joint", "log_prior", "log_likelihood")
        trace = {name: np.concatenate([getattr(infos, name) for infos in phases], axis=1) for name in names}
        provenance = outcome.provenance(self.to_config())
        found = Gaussian(model, mean, state.iterates.root(), provenance, trace=trace)
        return outcome.concluded("evidence", found, lambda _: replace(found, evidence=evidence(found, outcome.data)))
