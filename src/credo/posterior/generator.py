"""A generative model of the weights: theta = G(z), z ~ N(0, I), in place of the draws that it was trained on."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from credo import random
from credo._files import LoadError, named
from credo.data import Scaling
from credo.diagnostics import Diagnostics, diagnose_chains
from credo.models.program import Model
from credo.posterior.base import NUM_PREDICTIVE_DRAWS, BasePosterior, Provenance, at_least_one
from credo.posterior.draws import Draws
from credo.posterior.saving import Parts, Stored
from credo.typing import Array, Key, Theta


@dataclass(frozen=True, eq=False)
class Generator(BasePosterior):
    """theta = centre + Wᵀ h(z) + exp(log_scale) · ε: a small network h with as many outputs as there are weights.

    Paper, "Bayesian teachers": a generative model that was trained against draws gives the weights at evaluation time.

    Arguments:
        model: bound to the shape of the data.
        layers: "inner" (latent, hidden) and "middle" (hidden, hidden) with their biases "inner_bias" and "middle_bias";
            over the entries of theta one after another "outer" (hidden, n), "centre" (n,) and "log_scale" (n,).
        provenance, trace, scaling, probes: as in `Draws`.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.3)
    >>> posterior = credo.fit(model, credo.datasets.gap(20), credo.NUTS(num_samples=50, num_warmup=50))
    >>> generated = credo.compress(posterior, to="50%", inputs=credo.datasets.gap(20).x, by="generator")
    >>> type(generated).__name__, generated.sample(credo.random.key(0), 7)["head.kernel"].shape
    ('Generator', (7, 1, 1))

    Reference: Wang et al., Adversarial distillation of Bayesian neural network posteriors, 2018.
    """

    stored_as: ClassVar[str] = "generator"

    model: Model
    layers: dict[str, np.ndarray]
    provenance: Provenance
    trace: dict[str, np.ndarray] | None = None
    scaling: Scaling = field(default_factory=Scaling)
    probes: np.ndarray | None = None

    @property
    def num_bytes(self) -> int:
        """What the layers take to keep, in memory."""
        return sum(leaf.nbytes for leaf in self.layers.values())

    def __repr__(self) -> str:
        latent, hidden = self.layers["inner"].shape
        return f"Generator({latent} → {hidden} → {self.model.num_parameters:,} numbers, {self._made})"

    def sample(self, key: Key, num: int) -> Theta:
        """`num` draws of theta = G(z): every leaf gains a leading axis."""
        flat = np.asarray(_generated(self.layers, key, at_least_one(num=num)))
        sizes = [leaf.size for leaf in self.model.template.values()]
        parts = np.split(flat, np.cumsum(sizes)[:-1], axis=1)
        shapes = self.model.template.items()
        return {name: part.reshape(num, *leaf.shape) for (name, leaf), part in zip(shapes, parts, strict=True)}

    @property
    def diagnostics(self) -> Diagnostics:
        """What compressing saved and lost; before that was judged, what draws tell."""
        if self.provenance.compression:
            return self.provenance.compression
        theta = {name: leaf[None] for name, leaf in self.weighted_draws(NUM_PREDICTIVE_DRAWS)[0].items()}
        return diagnose_chains(Draws(self.model, theta, self.provenance, scaling=self.scaling, probes=self.probes))

    # -- storage -------------------------------------------------------------------------------------------

    def to_parts(self) -> Parts:
        return {}, named(layers=self.layers, trace=self.trace, xi=self.model.frozen_xi)

    @classmethod
    def from_parts(cls, stored: Stored, **common: Any) -> Self:
        num, inner = common["model"].num_parameters, stored.numbers("layers/inner")
        centre = stored.numbers("layers/centre")
        if centre.size != num or inner.ndim != 2:
            raise LoadError(
                f"{stored.source} generates {centre.size:,} numbers, and the model has {num:,}; pass the model that "
                "was fitted"
            )
        latent, hidden = inner.shape
        shapes = {
            "inner": (latent, hidden),
            "inner_bias": (hidden,),
            "middle": (hidden, hidden),
            "middle_bias": (hidden,),
            "outer": (hidden, num),
            "centre": (num,),
            "log_scale": (num,),
        }
        return cls(
            layers={name: stored.numbers(f"layers/{name}", shape=shape) for name, shape in shapes.items()}, **common
        )


def generate(layers: Theta, key: Key) -> Array:
    """G(z) for fresh z, (n,)."""
    inner_key, noise_key = jax.random.split(key)
    z = random.normal(inner_key, layers["inner"].shape[:1])
    hidden = jnp.tanh(z @ layers["inner"] + layers["inner_bias"])
    hidden = jnp.tanh(hidden @ layers["middle"] + layers["middle_bias"])
    noise = jnp.exp(layers["log_scale"]) * random.normal(noise_key, layers["centre"].shape)
    return layers["centre"] + hidden @ layers["outer"] + noise


@partial(jax.jit, static_argnums=2)
def _generated(layers: Theta, key: Key, num: int) -> Array:
    return jax.lax.map(partial(generate, layers), jax.random.split(key, num))
