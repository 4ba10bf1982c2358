"""A Gaussian over theta: what variational inference, SWAG, Laplace and a closed form leave behind."""

from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import jax
import numpy as np

from credo._files import named
from credo._precision import in_working_precision
from credo.covariance import Root
from credo.data import Scaling
from credo.diagnostics import Diagnostics
from credo.diagnostics.exact import ExactEvidence, diagnose_exact
from credo.diagnostics.laplace import LaplaceEvidence, diagnose_laplace
from credo.diagnostics.variational import ElboEvidence, diagnose_variational
from credo.models.program import Model
from credo.posterior.base import Provenance, at_least_one
from credo.posterior.linear_predictive import NUM_OUTPUT_DRAWS, Linearised, linear_predictive
from credo.posterior.saving import Parts, Stored, stored_root
from credo.predictive import Predictive
from credo.typing import Key, Theta


@dataclass(frozen=True, eq=False)
class Gaussian(Linearised):
    """N(mean, √Σ √Σᵀ) over the unconstrained theta.

    Arguments:
        model: bound to the shape of the data; learned prior parameters are its constants.
        mean: theta at the centre.
        root: √Σ, of `credo.covariance`.
        trace: figures of the optimiser per step, each (1, steps).
        evidence: what the method found out about its own fit.
        scaling, probes: as in `Draws`.
        prediction: "draws" of theta, or the "linear" or "probit" prediction of `credo.posterior.linearised`.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.3)
    >>> posterior = credo.fit(model, credo.datasets.gap(20), credo.ClosedForm())
    >>> type(posterior).__name__, sorted(posterior.mean)
    ('Gaussian', ['head.bias', 'head.kernel'])
    """

    stored_as: ClassVar[str] = "gaussian"

    model: Model
    mean: dict[str, np.ndarray]
    root: Root
    provenance: Provenance
    trace: dict[str, np.ndarray] | None = None
    evidence: ElboEvidence | LaplaceEvidence | ExactEvidence = field(default_factory=ElboEvidence)
    scaling: Scaling = field(default_factory=Scaling)
    probes: np.ndarray | None = None
    prediction: str = "draws"

    @property
    def num_bytes(self) -> int:
        """What mean and root take to keep, in memory."""
        return sum(leaf.nbytes for leaf in jax.tree.leaves((self.mean, self.root)))

    def __repr__(self) -> str:
        return f"Gaussian({self.model.num_parameters:,} numbers, {type(self.root).__name__} root, {self._made})"

    def sample(self, key: Key, num: int) -> Theta:
        """`num` draws of theta = mean + √Σ ε: every leaf gains a leading axis."""
        keys = jax.random.split(key, at_least_one(num=num))
        return jax.tree.map(np.asarray, _draws(self.mean, self.root, keys))

    @property
    def centre_and_root(self) -> tuple[Theta, Root]:
        """The mean, and √Σ: what makes noise into an offset from it."""
        return self.mean, self.root

    def moments(self) -> tuple[Theta, Theta]:
        """Mean and variance of each entry of theta."""
        return self.mean, {name: np.zeros(leaf.shape) for name, leaf in self.mean.items()} | self.root.variance()

    def predict(self, x: Any, *, num_draws: int | None = None, of: str | None = None) -> Predictive:
        """The marginal p(y | x, D): of draws of theta, or of the network linearised around the mean.

        Arguments:
            x: inputs in the user's units, (rows, …) as in training.
            num_draws: of theta, 100 by default; of a linearised network's outputs, 1,000.
            of: the site to predict, where the model has another than what was observed ("y").
        """
        if of is not None:
            return self.about(of).predict(x, num_draws=num_draws)
        if self.prediction == "draws":
            return super().predict(x, num_draws=num_draws)
        inputs, num = self.inputs(x), at_least_one(num_draws=num_draws, default=NUM_OUTPUT_DRAWS)
        return linear_predictive(self, inputs, num_draws=num)

    def judged(self) -> Self:
        """As for other posteriors; what is asked there is no law of outputs, so it takes draws of theta."""
        return replace(super().judged(), prediction="draws")

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """What the fit tells about itself, with a verdict."""
        if isinstance(self.evidence, LaplaceEvidence):
            return diagnose_laplace(self, self.root, self.evidence)
        if isinstance(self.evidence, ExactEvidence):
            return diagnose_exact(self.evidence, self.trace)
        return diagnose_variational(self, self.evidence)

    # -- storage -------------------------------------------------------------------------------------------

    def to_parts(self) -> Parts:
        root, xi = self.root.to_arrays(), self.model.frozen_xi
        config = {"root": self.root.config(), "evidence": asdict(self.evidence), "prediction": self.prediction}
        return config, named(mean=self.mean, root=root, trace=self.trace, xi=xi)

    @classmethod
    def from_parts(cls, stored: Stored, **common: Any) -> Self:
        mean = stored.theta("mean", common["model"])
        root = stored_root(stored, mean)
        found = stored.field("evidence", dict[str, Any])
        kinds: tuple[Any, ...] = (ElboEvidence, LaplaceEvidence, ExactEvidence)
        # What an earlier version saved lacks the fields that have come since, which have defaults.
        kind = next((kind for kind in kinds if found.keys() <= kind.__annotations__.keys()), ElboEvidence)
        evidence = stored.field("evidence", kind)
        prediction = stored.field("prediction", Literal["draws", "linear", "probit"], "draws")
        return cls(mean=mean, root=root, evidence=evidence, prediction=prediction, **common)


@jax.jit
def _draws(mean: Theta, root: Root, keys: Key) -> Theta:
    mean, root = in_working_precision((mean, root))

    def draw(key: Key) -> Theta:
        offset = root.draw(key)
        # Arrays that the root does not cover are certain.
        return {name: leaf + offset[name] if name in offset else leaf for name, leaf in mean.items()}

    return jax.lax.map(draw, keys)
