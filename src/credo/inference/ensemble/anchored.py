"""Anchored point estimates: modes of randomly disturbed problems, spread as the posterior is.

The paper asks in which sense deep ensembles are Bayesian, and cites this answer. Member i draws an anchor thetaᵢ from
the prior, disturbs the targets by the model's own noise, and climbs

    log p(D'ᵢ | theta) + log N(theta; thetaᵢ, S),    y'ₙ = yₙ + σₙ εₙᵢ,    for a prior N(m, S)

where the prior is moved from its mean to the anchor. Where the data are silent the member stays at its anchor, a draw
from the prior. For a function that is linear in theta with normal noise the members are exact draws from the posterior.

Pearce et al., "Uncertainty in neural networks: approximately Bayesian ensembling" (2020); Matthews et al.,
"Sample-then-optimize posterior sampling for Bayesian linear models" (2017).
"""

from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.scipy.linalg import solve_triangular
from numpyro.distributions import constraints

from credo import random
from credo.data import is_observed
from credo.inference.method import Method, Wrapper
from credo.inference.outcome import Outcome
from credo.inference.plan import Plan
from credo.models.program import Model
from credo.models.sites import stripped
from credo.posterior import Posterior
from credo.predictive.censored import Censored
from credo.typing import Array, Batch, Key, Theta, Tree


class AnchoredState(NamedTuple):
    """The state of the inner method, how far the anchor is from the mean of the prior, and the seed of the noise."""

    inner: Tree
    offset: Theta
    seed: Array


@dataclass(frozen=True)
class Anchored(Wrapper):
    """A point estimate of a randomly disturbed problem: the inner method, which sees an `AnchoredModel`.

    Every real-valued latent must have a normal prior that depends on no other latent. Others (the scale of the noise,
    which is positive) have no anchor: each member takes its most probable value. Factors of the prior (consistency
    conditions) are not disturbed either: the members are where they should be on average, and too close to each other
    in what the factors say.

    >>> from credo.inference.point.map import MAP
    >>> Anchored(MAP(num_steps=10)).plan().num_records
    10
    """

    method: Method

    @property
    def inner(self) -> Method:
        return self.method

    def plan(self) -> Plan:
        # Two rows that are alike must not share their noise.
        return replace(self.inner.plan(), rows="numbered")

    def init(self, key: Key, model: Model, theta: Theta, data: Batch, held_out: Batch | None) -> AnchoredState:
        anchor_key, seed_key, init_key = jax.random.split(key, 3)
        offset = anchor_offset(anchor_key, model)
        seed = jax.random.bits(seed_key, (), jnp.uint32)
        return AnchoredState(self.inner.init(init_key, model, theta, data, held_out), offset, seed)

    def step(self, key: Key, model: Model, state: AnchoredState, batch: Batch) -> tuple[AnchoredState, Any]:
        anchored = AnchoredModel.of(model, state.offset, state.seed)
        inner, info = self.inner.step(key, anchored, state.inner, batch)
        return state._replace(inner=inner), info

    def draw(self, model: Model, state: AnchoredState) -> Tree:
        return self.inner.draw(model, state.inner)

    def finished(self, state: AnchoredState) -> Array | bool:
        return self.inner.finished(state.inner)

    def healthy(self, state: AnchoredState) -> Array | bool:
        return self.inner.healthy(state.inner)

    def posterior(self, model: Model, outcome: Outcome) -> Posterior:
        return self.inner.posterior(model, replace(outcome, states=outcome.states.inner))


@dataclass(frozen=True, eq=False)
class AnchoredModel(Model):
    """A model as one member sees it, inside compiled code.

    Arguments:
        offset: of the anchor from the mean of the prior, for the latents that have an anchor.
        seed: of the noise on the targets.
    """

    offset: Theta = field(default_factory=dict)
    seed: Any = 0

    @classmethod
    def of(cls, model: Model, offset: Theta, seed: Array) -> "AnchoredModel":
        """The model as it is, and what disturbs it."""
        return cls(**{item.name: getattr(model, item.name) for item in fields(Model)}, offset=offset, seed=seed)

    def _prior_terms(self, trace: dict[str, Any], moments: tuple[Theta, Theta] | None = None) -> dict[str, Array]:
        values = self._moved({name: site["value"] for name, site in trace.items()})
        moved = {name: {**site, "value": values[name]} for name, site in trace.items()}
        return super()._prior_terms(moved, None if moments is None else (self._moved(moments[0]), moments[1]))

    def _likelihood_of(self, trace: dict[str, Any], batch: Batch) -> Array:
        log_likelihood = super()._likelihood_of(trace, batch)
        # Held-out rows have no number, and are not disturbed.
        if batch.rows is None:
            return log_likelihood
        return log_likelihood - jnp.sum(self._disturbance(trace["y"]["fn"], batch, batch.rows))

    def _rows_of(self, trace: dict[str, Any], batch: Batch) -> Array:
        log_likelihood = super()._rows_of(trace, batch)
        # Each part of a sum over discrete latents has noise of its own: there the targets stay.
        if batch.rows is None or self.summed_sites:
            return log_likelihood
        disturbance = self._disturbance(trace["y"]["fn"], batch, batch.rows)
        if batch.counts is not None:
            # The noise of so many rows together is a root as large as theirs.
            disturbance = disturbance / jnp.sqrt(batch.counts).reshape(-1, *[1] * (disturbance.ndim - 1))
        return log_likelihood - jnp.sum(disturbance.reshape(*disturbance.shape[:1], -1), axis=1)

    def _moved(self, values: Theta) -> Theta:
        """Values of sites by name, those with an anchor as far from the mean of the prior as they are from it."""
        return {name: value - self.offset[name] if name in self.offset else value for name, value in values.items()}

    def _disturbance(self, predictive: dist.Distribution, batch: Batch, rows: Array) -> Array:
        """What y' = y + σε takes from log N(y; f, σ²), for each target: ε(y − f)/σ, and a constant.

        σ is held fixed: one that is learned would chase the noise that is made from it, and grow without end.
        """
        bare = stripped(predictive)
        if isinstance(bare, Censored):
            raise ValueError("anchored=True: some targets are censored, and noise cannot be added to a lower bound")
        if isinstance(bare, dist.MaskedDistribution):  # some targets of a row are missing
            bare = bare.base_dist
        if self.rows is not None and self.rows.gaps and not isinstance(bare, dist.Normal):
            raise ValueError("anchored=True: some targets of a row are missing, and their noise is not independent")
        key, y = jax.random.fold_in(random.key(0), self.seed), self._bound.parted(batch.y).y
        if isinstance(bare, dist.Normal):
            noise = _noise(key, rows, jnp.shape(y)[1:])
            scale = jax.lax.stop_gradient(jnp.sqrt(predictive.variance))
            residual = jnp.where(is_observed(y), y - predictive.mean, 0.0)
            return noise * residual / scale
        if isinstance(bare, dist.MultivariateNormal):
            noise = _noise(key, rows, jnp.shape(y)[1:])
            residual = (y - predictive.mean)[..., None]
            root = jnp.broadcast_to(bare.scale_tril, (*residual.shape[:-1], residual.shape[-2]))
            return noise * solve_triangular(jax.lax.stop_gradient(root), residual, lower=True)[..., 0]
        return jnp.zeros((1,))


def _noise(key: Key, rows: Array, shape: tuple[int, ...]) -> Array:
    """ε of each row, the same whenever the row is seen."""
    return jax.vmap(lambda row: random.normal(jax.random.fold_in(key, row), shape))(rows)


def anchor_offset(key: Key, model: Model) -> Theta:
    """An anchor from the prior, less the mean of the prior: for each normal latent."""
    drawn = {name: leaf[0] for name, leaf in model.sample_prior(key, 1).items()}
    example = model.example()
    trace = model._trace(drawn, example.x, example.y)[0]
    real = [name for name in drawn if _is_real(trace[name]["fn"])]
    others = [name for name in real if not _is_normal(trace[name]["fn"]) or name in model.hierarchical_sites]
    if others or not real:
        raise ValueError(
            "anchored=True moves normal priors, and "
            + (f"that of {others[0]!r} is not normal by itself" if others else "the model has none")
            + "; take normal priors (credo.priors.normal), or anchored=False"
        )
    return {name: drawn[name] - trace[name]["fn"].mean for name in real}


def _is_real(distribution: dist.Distribution) -> bool:
    support = distribution.support
    while isinstance(support, constraints.independent):
        support = support.base_constraint
    return support in (constraints.real, constraints.real_vector)


def _is_normal(distribution: dist.Distribution) -> bool:
    return type(stripped(distribution)) in (dist.Normal, dist.MultivariateNormal)
