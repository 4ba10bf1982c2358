"""The posterior of MC-dropout: weights, and masks that drop units of the network. One draw is one mask."""

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import jax
import numpy as np

from credo import random
from credo._files import LoadError, named
from credo.data import Scaling
from credo.diagnostics import Diagnostics
from credo.diagnostics.masks import diagnose_masks
from credo.models.places import Place, places_of, variances, with_masks
from credo.models.program import Model
from credo.networks.masks import MaskKind, draw_masks
from credo.posterior.base import NUM_PREDICTIVE_DRAWS, BasePosterior, Provenance, at_least_one
from credo.posterior.saving import Parts, Stored
from credo.predictive import Predictive, predictive
from credo.predictive.conditional import Conditional
from credo.typing import Array, Key, Theta

# Names of masks among the draws of a prediction begin so.
_MASK_OF = "mask of "


@dataclass(frozen=True, eq=False)
class Dropout(BasePosterior):
    """Weights times random masks: W = diag(z) M for the layers that masks act on, points elsewhere.

    Arguments:
        model: bound to the shape of the data.
        mean: theta where all masks are one.
        rates: p for each place where masks act: by the kernel's name, or "dropout_mask.0", … for dropout layers.
        kind: of the masks.
        trace: figures of the optimiser per step, each (1, steps).
        scaling, probes: as in `Draws`.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([5], out=1), noise=0.3)
    >>> posterior = credo.fit(model, credo.datasets.gap(20), credo.MCDropout(num_steps=20, rate=0.1))
    >>> type(posterior).__name__, list(posterior.rates)
    ('Dropout', ['head.kernel'])
    """

    stored_as: ClassVar[str] = "dropout"

    model: Model
    mean: dict[str, np.ndarray]
    rates: dict[str, np.ndarray]
    provenance: Provenance
    kind: MaskKind = "bernoulli"
    trace: dict[str, np.ndarray] | None = None
    scaling: Scaling = field(default_factory=Scaling)
    probes: np.ndarray | None = None

    @property
    def num_bytes(self) -> int:
        """What weights and rates take to keep, in memory."""
        return sum(leaf.nbytes for leaf in jax.tree.leaves((self.mean, self.rates)))

    def __repr__(self) -> str:
        return (
            f"Dropout({self.model.num_parameters:,} numbers, {self.kind} masks at {len(self.rates)} place(s), "
            f"{self._made})"
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
        sizes = tuple((place.name, place.num_units) for place in self.places)
        keys = jax.random.split(key, at_least_one(num=num))
        return jax.tree.map(np.asarray, _draws(sizes, self.kind, self.rates, keys))

    def predict(self, x: Any, *, num_draws: int | None = None, of: str | None = None) -> Predictive:
        """The marginal p(y | x, D), averaged over masks: the same ones at every call.

        Arguments:
            x: inputs in the user's units, (rows, …) as in training.
            num_draws: how many masks to average; 100 by default.
            of: the site to predict, where the model has another than what was observed ("y").
        """
        if of is not None:
            return self.about(of).predict(x, num_draws=num_draws)
        inputs, num = self.inputs(x), at_least_one(num_draws=num_draws, default=NUM_PREDICTIVE_DRAWS)
        masks = self.sample_masks(random.key(self.provenance.seed), num)
        # The weights once for all draws: with the masks apart, no more than these is drawn.
        draws = {name: leaf[None] for name, leaf in self.mean.items()}
        draws |= {f"{_MASK_OF}{name}": mask for name, mask in masks.items()}
        draws |= self.model.local_noise(num)
        return predictive(self._masked, draws, inputs, weights=np.full(num, 1 / num), scaling=self.scaling)

    def moments(self) -> tuple[Theta, Theta]:
        """Mean and variance of each entry of theta."""
        still = {name: np.zeros_like(leaf) for name, leaf in self.mean.items()}
        return self.mean, still | variances(self.mean, self.places, self.rates)

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """Whether training has settled, whether the masks matter, and where the rates went."""
        trace = {name: values[0] for name, values in (self.trace or {}).items()}
        rates = {name: float(rate) for name, rate in self.rates.items()}
        return diagnose_masks(rates, trace, None if self.probes is None else self.predict(self.probes))

    # -- storage -------------------------------------------------------------------------------------------

    def to_parts(self) -> Parts:
        xi = self.model.frozen_xi
        return {"masks": self.kind}, named(mean=self.mean, rates=self.rates, trace=self.trace, xi=xi)

    @classmethod
    def from_parts(cls, stored: Stored, **common: Any) -> Self:
        mean, kind = stored.theta("mean", common["model"]), stored.field("masks", MaskKind)
        rates = {name: stored.numbers(f"rates/{name}", shape=(), least=0.0) for name in stored.group("rates")}
        if any(rate >= 1 for rate in rates.values()):
            raise LoadError(f"{stored.source} is damaged: a rate is a probability below one")
        posterior = cls(mean=mean, rates=rates, kind=kind, **common)
        if {place.name for place in posterior.places} != rates.keys():
            raise LoadError(f"{stored.source} does not fit the model: it has masks for {', '.join(rates)}")
        return posterior


@dataclass(frozen=True)
class _Masked:
    """p(y | x, theta) of a model, for weights and masks that come apart."""

    model: Model
    names: frozenset[str]

    def predictive(self, draw: Theta, x: Array) -> Conditional:
        places = [place for place in places_of(self.model, inputs=True) if place.name in self.names]
        masks = {place.name: draw[f"{_MASK_OF}{place.name}"] for place in places}
        theta = {name: leaf for name, leaf in draw.items() if not name.startswith(_MASK_OF)}
        return self.model.predictive(with_masks(theta, places, masks), x)


@partial(jax.jit, static_argnums=(0, 1))
def _draws(sizes: tuple[tuple[str, int], ...], kind: MaskKind, rates: Theta, keys: Key) -> Theta:
    """A mask for each place and key, each (keys, units)."""
    return jax.vmap(lambda key: draw_masks(key, dict(sizes), rates, kind=kind))(keys)
