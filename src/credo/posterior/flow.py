"""A normalising flow over theta: whatever shape the posterior has, for small models."""

from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import jax
import numpy as np

from credo import random
from credo._files import LoadError, named
from credo._precision import in_working_precision
from credo.covariance.blocks import Blocks
from credo.covariance.root import require_made
from credo.covariance.warp import Warp
from credo.data import Scaling
from credo.diagnostics import Diagnostics
from credo.diagnostics.variational import ElboEvidence, diagnose_variational
from credo.models.program import Model
from credo.posterior.base import BasePosterior, Provenance, at_least_one
from credo.posterior.saving import Parts, Stored, stored_root
from credo.typing import Key, Theta

# Draws that the moments of a flow are taken from: an error of 2.5% of the sd in the mean, 1.8% in the sd.
NUM_MOMENT_DRAWS = 1600


@dataclass(frozen=True, eq=False)
class Flow(BasePosterior):
    """A normalising flow over the unconstrained theta: theta = location + √Σ f(ε), ε ~ N(0, I).

    Arguments:
        location: theta where √Σ f(ε) is zero. Not the mean, which has no closed form: see `moments`.
        warp: √Σ f, of `credo.covariance`.
        model, provenance, trace, evidence, scaling, probes: as in `Gaussian`.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.3)
    >>> posterior = credo.fit(model, credo.datasets.gap(20), credo.VI(family="flow", num_steps=20))
    >>> type(posterior).__name__, posterior.sample(credo.random.key(0), 7)["head.kernel"].shape
    ('Flow', (7, 1, 1))
    """

    stored_as: ClassVar[str] = "flow"

    model: Model
    location: dict[str, np.ndarray]
    warp: Warp
    provenance: Provenance
    trace: dict[str, np.ndarray] | None = None
    evidence: ElboEvidence = field(default_factory=ElboEvidence)
    scaling: Scaling = field(default_factory=Scaling)
    probes: np.ndarray | None = None

    @property
    def num_bytes(self) -> int:
        """What location and warp take to keep, in memory."""
        return sum(leaf.nbytes for leaf in jax.tree.leaves((self.location, self.warp)))

    def __repr__(self) -> str:
        return f"Flow({self.model.num_parameters:,} numbers, {self.warp.num_layers} layers, {self._made})"

    def sample(self, key: Key, num: int) -> Theta:
        """`num` draws of theta = location + √Σ f(ε): every leaf gains a leading axis."""
        return self.sample_and_log_q(key, num)[0]

    def sample_and_log_q(self, key: Key, num: int) -> tuple[Theta, np.ndarray]:
        """`num` draws of theta, and log q of each, (num,)."""
        keys = jax.random.split(key, at_least_one(num=num))
        return jax.tree.map(np.asarray, _draws(self.location, self.warp, keys))

    @property
    def centre_and_root(self) -> tuple[Theta, Warp]:
        """The location, and √Σ f: what makes noise into an offset from it."""
        return self.location, self.warp

    def moments(self) -> tuple[Theta, Theta]:
        """Mean and variance of each entry of theta, from draws: the same ones at every call."""
        draws = self.sample(random.key(self.provenance.seed), NUM_MOMENT_DRAWS)
        return {name: leaf.mean(0) for name, leaf in draws.items()}, {name: leaf.var(0) for name, leaf in draws.items()}

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """The ELBO and its parts, how far q is from the posterior, and a verdict."""
        return diagnose_variational(self, self.evidence)

    # -- storage -------------------------------------------------------------------------------------------

    def to_parts(self) -> Parts:
        parts = {"location": self.location, "root": self.warp.root.to_arrays(), "layers": self.warp.layers}
        config = {"root": self.warp.root.config(), "evidence": asdict(self.evidence)}
        return config, named(**parts, trace=self.trace, xi=self.model.frozen_xi)

    @classmethod
    def from_parts(cls, stored: Stored, **common: Any) -> Self:
        location = stored.theta("location", common["model"])
        root = stored_root(stored, location)
        if not isinstance(root, Blocks):
            raise LoadError(f"{stored.source} is damaged: the root of a flow is one block, not {type(root).__name__}")
        warp = Warp(root, {name: stored.numbers(f"layers/{name}") for name in stored.group("layers")})
        shapes = {name: leaf.shape for name, leaf in location.items()}
        require_made(stored.source, "layers", lambda: warp.draw_and_log_q(random.key(0))[0], shapes)
        return cls(location=location, warp=warp, evidence=stored.field("evidence", ElboEvidence), **common)


@jax.jit
def _draws(location: Theta, warp: Warp, keys: Key) -> tuple[Theta, jax.Array]:
    location, warp = in_working_precision((location, warp))

    def draw(key: Key) -> tuple[Theta, jax.Array]:
        offset, log_q = warp.draw_and_log_q(key)
        return {name: location[name] + offset[name] for name in location}, log_q

    return jax.lax.map(draw, keys)
