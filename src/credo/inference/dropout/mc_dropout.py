"""MC-dropout: variational inference whose q drops units of the network, and the ℓ² term that makes it so.

Paper, "Bayes via Dropout". The weights of a layer are W = diag(z) M, with a mask z of mean 1 on the layer's inputs:
one number for each unit or channel, shared by all rows. That is a q(theta), and

    ELBO = E_z[log p(D | theta)] + E_q[log p(theta)] + H[q]

is climbed, where dropout as a regulariser would leave the ℓ² penalty to the user. Here it follows from the prior: for a
normal one, with E[w] = m and Var[w] = m² p/(1 − p),

    E_q[log N(w; 0, s²)] = −m²/(1 − p)/2s² + constant.

Weights that no mask acts on are points. The entropy of q is that of the masks, up to a constant: the infinitely narrow
Gaussians around each value, which make a density of q, add the same number whatever M is. For Bernoulli masks it
is Σ_units H(p), which lets concrete dropout learn p; for Gaussian ones Σ_units log(‖m‖ √(p/(1 − p))), ‖m‖ the length of
the weights of a unit.

Gal and Ghahramani, "Dropout as a Bayesian approximation" (2016); Gal, Hron and Kendall, "Concrete dropout" (2017).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from credo._checks import require_at_least, require_one_of
from credo._precision import working_precision
from credo.data import as_data
from credo.inference.engine import driver as engine
from credo.inference.guide import Guide, Reach
from credo.inference.method import all_finite
from credo.inference.needs import Needs
from credo.inference.optimised import SMOOTHING_STEPS, Ascent, LearningRate
from credo.inference.outcome import Outcome
from credo.inference.plan import Plan
from credo.inference.trained import trained_theta
from credo.models.places import Place, as_weights, places_of, variances, with_masks
from credo.models.program import Model
from credo.networks.masks import MASK_KINDS, MaskKind, draw_masks
from credo.posterior import Provenance
from credo.posterior.dropout import Dropout
from credo.typing import Array, Batch, Key, Theta, Tree

# A noise scale is found by a few steps of a rate that falls to zero, each on some of the rows: adam moves it by up to
# half the sum of the rates, 25 in the logarithm, and ends within the last, smallest ones.
SETTLING_STEPS, SETTLING_RATE, SETTLING_ROWS = 500, 0.1, 256


class Phi(NamedTuple):
    """What is learned: the weights without masks, the logits of the rates of concrete dropout, and point layers xi."""

    mean: Theta
    logits: Theta
    xi: Theta


class DropoutState(NamedTuple):
    step: Array
    phi: Phi
    optimizer: Tree


class DropoutInfo(NamedTuple):
    """elbo = log_likelihood + log_prior + entropy, up to a constant; for the whole data, estimated on the batch."""

    log_joint: Array
    elbo: Array
    log_likelihood: Array
    log_prior: Array
    entropy: Array


@dataclass(frozen=True)
class MCDropout(Ascent):
    """A network that drops units, in training and in prediction: each mask is one draw from the posterior.

    Masks act in the network's dropout layers, with their rates (flax, equinox, PyTorch); in a network without any, on
    what enters each dense layer and each convolution but the first. Layers that are points (`credo.priors.point`) have
    none of these, and are learned along with the others: where all but the last two layers are points, masks act on
    what enters those two. See `from_trained` for a network that was trained with dropout already.

    Priors that are not normal are averaged over the masks that are drawn.

    Arguments:
        rate: p, the share of units that are dropped, in networks without dropout layers.
        kind: "bernoulli" drops units or keeps them; "gaussian" multiplies them by N(1, p/(1 − p)); "concrete" is
            Bernoulli with the rate of each layer learned, from its value at the start.
        drop_inputs: whether inputs of the network are dropped as well, where it has no dropout layers.
        draws_per_step: masks for each gradient. One is shared by the whole batch, so more lessen its noise.

    >>> MCDropout(rate=0.05, num_steps=500).kind
    'bernoulli'
    """

    guide: ClassVar[Guide] = Guide(
        exact="approximate",
        benefits="makes a network with dropout Bayesian without training it again",
        limits="little power of expression: its spread is set by the rate, not by the data",
        use_cases="networks that have dropout already",
        stores="one value of theta, and the rates",
        costs="one gradient per step",
        reaches=Reach(12.0, (0.3, 20.0)),
        if_non_finite="lower the learning rate or the dropout rate, or standardise the data",
        if_too_large="take a smaller network: there is no method that stores less",
    )

    renamed: ClassVar[Mapping[str, str]] = {"num_draws": "draws_per_step"}

    # Constant: what a rate that falls does for masks has not been measured.
    learning_rate: LearningRate = 1e-2
    rate: float = 0.1
    kind: MaskKind = "bernoulli"
    drop_inputs: bool = False
    draws_per_step: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(1, draws_per_step=self.draws_per_step)
        if not 0 < self.rate < 1:
            raise ValueError(
                f"rate must lie between 0 and 1, got {self.rate}; it is the share of units that are dropped"
            )
        require_one_of(MASK_KINDS, kind=self.kind)

    def plan(self) -> Plan:
        return replace(super().plan(), learns_points=True, acts_inside=True)

    @property
    def networks_per_step(self) -> int:
        return self.draws_per_step

    def stores(self, model: Model) -> Needs:
        num_masks = sum(place.num_units for place in self.places(model))
        # phi, its gradient, and two moments of the optimiser.
        num_bytes = 4 * working_precision().itemsize * (model.num_parameters + num_masks)
        return Needs(model.num_parameters, f"the weights, and masks for {num_masks:,} units", num_bytes)

    def status_line(self, infos: DropoutInfo) -> str:
        return f"ELBO {float(np.mean(infos.elbo[-SMOOTHING_STEPS:])):.5g}"

    def places(self, model: Model) -> tuple[Place, ...]:
        """Where masks act; a ValueError where there is nothing to drop."""
        found = places_of(model, inputs=self.drop_inputs)
        if not found:
            raise ValueError(
                "the model has no dropout layers, and no dense layer or convolution after its first, so there are no "
                "units to drop; take drop_inputs=True to drop its inputs, or another method such as credo.Laplace()"
            )
        return found

    @classmethod
    def from_trained(
        cls, model: Model, data: Any, params: Any = None, *, kind: MaskKind = "bernoulli", seed: int = 0
    ) -> "Dropout":
        """A network that was trained with dropout layers as a posterior, without training: dropout stays on.

        What the network does not tell (a noise scale with a prior) is fitted to the data; its weights stay as they are.
        It is the posterior of a prior for which the network was trained: with the ℓ² penalty of that prior.

        Arguments:
            model: around a network with dropout layers; their rates are those of the masks.
            data: `credo.Data` or a pair (x, y), in the units in which the network was trained.
            params: trained weights, anything that `credo.networks.load_params` takes, and other latents of the model by
                name; the network's own values where None.
            kind: "bernoulli", or "gaussian" for masks N(1, p/(1 − p)).
            seed: of the draws that predictions are made with.

        >>> from flax import nnx
        >>> from credo import models
        >>> first, second = nnx.Linear(2, 8, rngs=nnx.Rngs(0)), nnx.Linear(8, 3, rngs=nnx.Rngs(1))
        >>> net = nnx.Sequential(first, nnx.relu, nnx.Dropout(0.1), second)
        >>> data = np.zeros((5, 2)), np.array([0, 1, 2, 0, 1])
        >>> MCDropout.from_trained(models.classification(net), data).predict(data[0]).probs.shape
        (5, 3)
        """
        if kind not in ("bernoulli", "gaussian"):
            raise ValueError(
                f"kind must be 'bernoulli' or 'gaussian', got {kind!r}: other rates are learned in training"
            )
        train = as_data(data)
        bound = model.bind(train)
        if bound.xi_template:
            raise ValueError(
                f"the model has parameters to learn ({', '.join(bound.xi_template)}); give them values first: "
                "model.freeze(xi)"
            )
        places = places_of(bound)
        if not places or not all(place.is_layer for place in places):
            raise ValueError(
                "the network has no dropout layers (of flax.nnx, flax.linen, equinox.nn or torch.nn), so it "
                "was not trained to lose units; train it with masks: credo.fit(model, data, credo.MCDropout())"
            )
        theta, unknown = trained_theta(bound, params)
        if unknown:
            theta = _settled(bound, theta, unknown, train.batch(), kind, seed)
        provenance = Provenance({"name": f"{cls.__name__}.from_trained", "kind": kind}, seed, 0.0, 0)
        rates = {place.name: np.asarray(place.rate, working_precision()) for place in places}
        posterior = Dropout(bound, theta, jax.tree.map(np.asarray, rates), provenance, kind=kind)
        return posterior.placed(train)

    # -- the engine's functions ----------------------------------------------------------------------------

    def init(self, key: Key, model: Model, theta: Theta, data: Batch, held_out: Batch | None) -> DropoutState:
        places = self.places(model)
        logits = {}
        if self.kind == "concrete":
            start = {place.name: self.rate if place.rate is None else place.rate for place in places}
            logits = {name: jnp.log(rate / (1 - rate)) for name, rate in start.items()}
        phi = Phi({name: theta[name] for name in model.template}, logits, model.initial_xi())
        return DropoutState(jnp.array(0), phi, self.transformation().init(phi))

    def step(self, key: Key, model: Model, state: DropoutState, batch: Batch) -> tuple[DropoutState, DropoutInfo]:
        gradient_of = jax.value_and_grad(lambda phi: self.objective(key, model, phi, batch), has_aux=True)
        (_, parts), gradient = gradient_of(state.phi)
        phi, optimizer = self.climb(gradient, state.optimizer, state.phi)
        elbo = parts[0] + parts[1] + parts[2]
        return DropoutState(state.step + 1, phi, optimizer), DropoutInfo(elbo, elbo, *parts)

    def objective(self, key: Key, model: Model, phi: Phi, batch: Batch) -> tuple[Array, tuple[Array, Array, Array]]:
        """ELBO/N up to a constant, from a few masks; and its parts: log likelihood, log prior, entropy."""
        places = self.places(model)
        rates = self.rates(phi, places)
        sizes = {place.name: place.num_units for place in places}
        variance = variances(phi.mean, places, rates)
        moments = {name: phi.mean[name] for name in variance}, variance

        def from_one(key: Key) -> tuple[Array, Array]:
            """log p(D | theta) and E_q[log p(theta)], from one draw of the masks."""
            mask_key, latents_key = jax.random.split(key)
            masks = draw_masks(mask_key, sizes, rates, kind=self.kind, relaxed=self.kind == "concrete")
            theta = phi.mean | phi.xi
            _, log_likelihood = model.log_parts(with_masks(theta, places, masks), batch, key=latents_key)
            weights = as_weights(theta, places, masks)
            return log_likelihood, model.log_parts(weights, batch, moments=moments, key=latents_key)[0]

        if self.draws_per_step == 1:
            log_likelihood, log_prior = from_one(key)
        else:
            log_likelihood, log_prior = jax.tree.map(
                jnp.mean, jax.vmap(from_one)(jax.random.split(key, self.draws_per_step))
            )
        masks_entropy = entropy(self.kind, phi.mean, places, rates)
        elbo = log_likelihood + log_prior + masks_entropy
        return elbo / batch.total, (log_likelihood, log_prior, masks_entropy)

    def rates(self, phi: Phi, places: Sequence[Place]) -> Theta:
        """p of each place by its name: learned, of the layer, or as set."""
        if self.kind == "concrete":
            return {place.name: jax.nn.sigmoid(phi.logits[place.name]) for place in places}
        return {
            place.name: jnp.asarray(self.rate if place.rate is None else place.rate, working_precision())
            for place in places
        }

    def healthy(self, state: DropoutState) -> Array | bool:
        return all_finite(state.phi)

    def posterior(self, model: Model, outcome: Outcome) -> Dropout:
        phi: Phi = outcome.state.phi
        rates = {name: np.asarray(rate) for name, rate in self.rates(phi, self.places(model)).items()}
        trace = {name: values for name, values in outcome.trace().items() if name != "log_joint"}
        frozen = model.freeze(phi.xi) if phi.xi else model
        return Dropout(frozen, phi.mean, rates, outcome.provenance(self.to_config()), kind=self.kind, trace=trace)


@dataclass(frozen=True)
class _Settling(MCDropout):
    """Learns some of the latents, and leaves the others as they are."""

    learned: frozenset[str] = frozenset()

    def transformation(self) -> optax.GradientTransformation:
        def labels(phi: Phi) -> Phi:
            return Phi({name: "learned" if name in self.learned else "kept" for name in phi.mean}, phi.logits, phi.xi)

        kinds = {"learned": super().transformation(), "kept": optax.set_to_zero()}
        return optax.multi_transform(kinds, labels)


def _settled(model: Model, theta: Theta, unknown: frozenset[str], data: Batch, kind: MaskKind, seed: int) -> Theta:
    """theta with the latents that a trained network does not tell where the ELBO is highest."""
    method = _Settling(
        kind=kind,
        num_steps=SETTLING_STEPS,
        learning_rate=optax.cosine_decay_schedule(SETTLING_RATE, SETTLING_STEPS),
        batch_size=min(SETTLING_ROWS, data.x.shape[0]),
        learned=unknown,
    )
    starts = {name: np.asarray(leaf)[None] for name, leaf in theta.items()}
    outcome = engine.run(method, model, data, seed=seed, starts=starts, progress=False)
    return outcome.state.phi.mean


def entropy(kind: MaskKind, mean: Theta, places: Sequence[Place], rates: Theta) -> Array:
    """Of the masks, as a distribution over weights, up to a constant.

        bernoulli   Σ_units H(p)            gaussian   Σ_units ½ log(2πe ‖m‖² p/(1 − p))

    where ‖m‖² is the sum over the weights of a unit; a unit whose weights are not known has length 1.
    """
    total = jnp.zeros(())
    for place in places:
        rate = rates[place.name]
        if kind == "gaussian":
            squares = place.weigh(mean) if place.units else jnp.ones(place.num_units)
            variance = jnp.maximum(squares, jnp.finfo(jnp.float32).tiny) * rate / (1 - rate)
            total += 0.5 * jnp.sum(jnp.log(2 * math.pi * math.e * variance))
        else:
            total -= place.num_units * (rate * jnp.log(rate) + (1 - rate) * jnp.log1p(-rate))
    return total
