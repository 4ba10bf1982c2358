"""The posterior of MC-dropout: weights, and masks that drop units of the network. One draw is one mask."""

from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from typing import Any

import jax
import numpy as np
import numpyro.distributions as dist

from credo import random
from credo.data import Scaling, as_inputs
from credo.inference.dropout import draw_masks
from credo.inference.places import Place, places_of, variances, with_masks
from credo.models.program import Model
from credo.models.sites import LOCAL_NOISE
from credo.networks.dropout import Kind
from credo.posterior import NUM_PREDICTIVE_DRAWS, Provenance, _Fitted
from credo.predictive import ClassPredictive, Predictive, predictive
from credo.typing import Array, Key, Theta

# Below this share of the sd of y, the spread of the functions moves that of y by under one part in 10⁴.
SMALL_SPREAD = 0.01
# Learned rates outside are at an edge: with the first a mask is off by 3%, with the second it drops nearly all.
LOW_RATE, HIGH_RATE = 1e-3, 0.9
# Names of masks among the draws of a prediction begin so.
_MASK_OF = "mask of "


@dataclass(frozen=True)
class DropoutDiagnostics:
    """What a fit by dropout tells about itself. Print it for the verdict.

    Arguments:
        num_steps: of training; 0 for a network that was trained elsewhere.
        elbo, log_likelihood: averages over the last tenth of the steps, the first up to a constant; None without steps.
        rates: of each place for masks.
        spread: largest ratio, over probed outputs, of the sd of the functions to the sd of y; None without probes.
    """

    num_steps: int
    elbo: float | None
    log_likelihood: float | None
    rates: dict[str, float]
    spread: float | None
    advice: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """One sentence."""
        if self.advice:
            return "Handle with care: " + "; ".join(self.advice) + "."
        settled = "The ELBO has settled" if self.num_steps else "The network was trained elsewhere"
        return f"{settled}, and the masks change what it says: judge by held-out data whether as much as they should."

    def __str__(self) -> str:
        lines = [f"Dropout at {len(self.rates)} place(s), {self.num_steps:,} steps"]
        if self.elbo is not None:
            lines.append(
                f"ELBO {self.elbo:.5g} up to a constant, expected log likelihood {self.log_likelihood:.5g} (nats)"
            )
        lines.append("rates " + ", ".join(f"{rate:.3g} ({name})" for name, rate in self.rates.items()))
        if self.spread is not None:
            lines.append(f"spread of the functions up to {self.spread:.2g} sds of y")
        return "\n".join([*lines, self.verdict])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for tables and JSON."""
        return asdict(self) | {"verdict": self.verdict}


@dataclass(frozen=True, eq=False)
class Dropout(_Fitted):
    """Weights times random masks: W = diag(z) M for the layers that masks act on, points elsewhere.

    Arguments:
        model: bound to the shape of the data.
        mean: theta where all masks are one.
        rates: p for each place where masks act: by the kernel's name, or "dropout_mask.0", … for dropout layers.
        kind: of the masks.
        trace: figures of the optimiser per step, each (1, steps).
        scaling, probes: as in `Draws`.
    """

    model: Model
    mean: dict[str, np.ndarray]
    rates: dict[str, np.ndarray]
    provenance: Provenance
    kind: Kind = "bernoulli"
    trace: dict[str, np.ndarray] | None = None
    scaling: Scaling = field(default_factory=Scaling)
    probes: np.ndarray | None = None

    @property
    def num_bytes(self) -> int:
        """What weights and rates take to keep, in memory."""
        return sum(leaf.nbytes for leaf in jax.tree.leaves((self.mean, self.rates)))

    def __repr__(self) -> str:
        how = self.provenance.method.get("name", "?")
        return (
            f"Dropout({self.model.num_parameters:,} numbers, {self.kind} masks at {len(self.rates)} place(s), "
            f"by {how} in {self.provenance.seconds:.1f} s)"
        )

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """Where masks act."""
        return tuple(place for place in places_of(self.model, inputs=True) if place.name in self.rates)

    @cached_property
    def _masked(self) -> Any:
        # The same object at every call: compiled predictions are kept by it.
        return _Masked(self.model, frozenset(self.rates))

    def sample(self, key: Key, num: int) -> Theta:
        """`num` draws of theta, one mask each: every leaf gains a leading axis.

        Where the network has dropout layers, the masks are leaves of their own, "dropout_mask.0" and so on.
        """
        repeated = {name: np.broadcast_to(leaf, (num, *leaf.shape)) for name, leaf in self.mean.items()}
        theta = with_masks(repeated, self.places, self.sample_masks(key, num))
        # In memory as they are used: views of one array would be copied again for every block of a prediction.
        return {name: np.ascontiguousarray(leaf) for name, leaf in theta.items()}

    def sample_masks(self, key: Key, num: int) -> Theta:
        """The masks of `num` draws by the names of the places, each (num, units)."""
        if num < 1:
            raise ValueError(f"num must be at least 1, got {num}")
        sizes = tuple((place.name, place.num_units) for place in self.places)
        return jax.tree.map(np.asarray, _draws(sizes, self.kind, self.rates, jax.random.split(key, num)))

    def predict(self, x: Any, *, num_draws: int | None = None) -> Predictive:
        """The marginal p(y | x, D), averaged over masks: the same ones at every call.

        Arguments:
            x: inputs in the user's units, (rows, …) as in training.
            num_draws: how many masks to average; 100 by default.
        """
        inputs = as_inputs(x, like=self.model.rows.x_shape[1:] if self.model.rows else None)
        num = NUM_PREDICTIVE_DRAWS if num_draws is None else num_draws
        if num < 1:
            raise ValueError(f"num_draws must be at least 1, got {num}")
        masks = self.sample_masks(random.key(self.provenance.seed), num)
        # The weights once for all draws: with the masks apart, no more than these is drawn.
        draws = {name: leaf[None] for name, leaf in self.mean.items()}
        draws |= {f"{_MASK_OF}{name}": mask for name, mask in masks.items()}
        if self.model.has_local_latents:
            draws[LOCAL_NOISE] = np.arange(num, dtype=np.int32)
        return predictive(self._masked, draws, inputs, weights=np.full(num, 1 / num), scaling=self.scaling)

    def moments(self) -> tuple[Theta, Theta]:
        """Mean and variance of each entry of theta."""
        still = {name: np.zeros_like(leaf) for name, leaf in self.mean.items()}
        return self.mean, still | variances(self.mean, self.places, self.rates)

    @cached_property
    def diagnostics(self) -> DropoutDiagnostics:  # type: ignore[override]
        """Whether training has settled, whether the masks matter, and where the rates went."""
        from credo.evaluation.variational import still_climbing, tenth

        trace = {name: values[0] for name, values in (self.trace or {}).items()}
        rates = {name: float(rate) for name, rate in self.rates.items()}
        spread = self._spread()
        return DropoutDiagnostics(
            num_steps=len(trace.get("elbo", ())),
            elbo=float(np.mean(tenth(trace["elbo"], -1))) if trace else None,
            log_likelihood=float(np.mean(tenth(trace["log_likelihood"], -1))) if trace else None,
            rates=rates,
            spread=spread,
            advice=tuple(_advice(bool(trace) and still_climbing(trace["elbo"]), rates, spread)),
        )

    def _spread(self) -> float | None:
        """The largest ratio of the sd of the functions to that of y."""
        if self.probes is None:
            return None
        prediction = self.predict(self.probes)
        functions = prediction.functions.astype(np.float64)
        epistemic = functions.var(axis=0)
        if isinstance(prediction, ClassPredictive):
            total = functions.mean(axis=0) * (1 - functions.mean(axis=0))
        else:
            # A noise of infinite variance hides nothing.
            total = epistemic + np.nan_to_num(prediction.aleatoric, posinf=0.0)
        return float(np.sqrt(np.max(np.divide(epistemic, total, out=np.zeros_like(total), where=total > 0))))


def _advice(is_climbing: bool, rates: dict[str, float], spread: float | None) -> list[str]:
    found = []
    if is_climbing:
        found.append("the ELBO is still climbing, so train longer or with a larger learning rate")
    if spread is not None and spread < SMALL_SPREAD:
        found.append("the spread has collapsed: masks hardly change what the network says; take a larger rate")
    low = [name for name, rate in rates.items() if rate < LOW_RATE]
    high = [name for name, rate in rates.items() if rate > HIGH_RATE]
    if low:
        found.append(f"the rate of {', '.join(low)} went to zero, and no uncertainty comes from there")
    if high:
        found.append(f"the rate of {', '.join(high)} went to one: what enters there is of no use to the network")
    return found


@dataclass(frozen=True)
class _Masked:
    """p(y | x, theta) of a model, for weights and masks that come apart."""

    model: Model
    names: frozenset[str]

    def predictive(self, draw: Theta, x: Array) -> dist.Distribution:
        places = [place for place in places_of(self.model, inputs=True) if place.name in self.names]
        masks = {place.name: draw[f"{_MASK_OF}{place.name}"] for place in places}
        theta = {name: leaf for name, leaf in draw.items() if not name.startswith(_MASK_OF)}
        return self.model.predictive(with_masks(theta, places, masks), x)


@partial(jax.jit, static_argnums=(0, 1))
def _draws(sizes: tuple[tuple[str, int], ...], kind: Kind, rates: Theta, keys: Key) -> Theta:
    """A mask for each place and key, each (keys, units)."""
    return jax.vmap(lambda key: draw_masks(key, dict(sizes), rates, kind=kind))(keys)
