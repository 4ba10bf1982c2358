"""Draws: what samplers and point estimates leave behind, weighted draws of theta in chains."""

from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import jax
import numpy as np

from credo._files import LoadError, named
from credo._precision import working_precision
from credo._schema import require_weights
from credo.data import Scaling
from credo.diagnostics import Diagnostics, diagnose_chains
from credo.diagnostics._arviz import inference_data
from credo.diagnostics.exact import ExactEvidence, diagnose_exact
from credo.models.program import Model
from credo.posterior.base import BasePosterior, Provenance, at_least_one
from credo.posterior.canonical import canonical_theta
from credo.posterior.saving import Parts, Stored
from credo.predictive import Predictive, predictive
from credo.typing import Key, Theta


@dataclass(frozen=True, eq=False)
class Draws(BasePosterior):
    """Weighted draws of theta in chains: Σᵢ wᵢ δ(theta − thetaᵢ).

    Arguments:
        model: bound to the shape of the data.
        theta: unconstrained, every leaf (chains, draws, …).
        weights: (chains, draws), adding up to one; None weighs all draws alike.
        infos: figures of the sampler per draw, each (chains, draws).
        trace: figures of the optimiser or the warm-up per step, each (chains, steps).
        scaling: between the user's units and those the model was fitted in.
        probes: a few training inputs, in the user's units: where function-space diagnostics look.
        evidence: of draws that are independent and exact, what is known in closed form; None for those of chains.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.3)
    >>> posterior = credo.fit(model, credo.datasets.gap(20), credo.NUTS(num_samples=50, num_warmup=50))
    >>> posterior.num_chains, posterior.num_draws, posterior.theta["head.kernel"].shape
    (4, 50, (4, 50, 1, 1))
    """

    stored_as: ClassVar[str] = "draws"

    model: Model
    theta: dict[str, np.ndarray]
    provenance: Provenance
    weights: np.ndarray | None = None
    infos: dict[str, np.ndarray] | None = None
    trace: dict[str, np.ndarray] | None = None
    scaling: Scaling = field(default_factory=Scaling)
    probes: np.ndarray | None = None
    evidence: ExactEvidence | None = None

    @property
    def num_chains(self) -> int:
        return next(iter(self.theta.values())).shape[0]

    @property
    def num_draws(self) -> int:
        """Draws per chain."""
        return next(iter(self.theta.values())).shape[1]

    @property
    def num_bytes(self) -> int:
        """What the draws and their weights take to keep, in memory."""
        return sum(leaf.nbytes for leaf in jax.tree.leaves((self.theta, self.weights)))

    def __repr__(self) -> str:
        return (
            f"Draws({self.num_chains} chain(s) × {self.num_draws:,} draws of {self.model.num_parameters:,} numbers, "
            f"{self._made})"
        )

    # -- draws ---------------------------------------------------------------------------------------------

    @cached_property
    def _flat(self) -> tuple[Theta, np.ndarray]:
        """All chains one after another, and the weights of the draws."""
        theta = {name: leaf.reshape(-1, *leaf.shape[2:]) for name, leaf in self.theta.items()}
        num = self.num_chains * self.num_draws
        weights = np.full(num, 1 / num) if self.weights is None else self.weights.reshape(-1)
        return theta, weights

    def weighted_draws(self, num: int) -> tuple[Theta, np.ndarray]:
        """All draws of theta, chain after chain, with weights that add up to one."""
        return self._flat

    def chosen(self, rows: np.ndarray, weights: np.ndarray) -> "Draws":
        """Some of the draws, numbered chain after chain, as one chain with weights of its own."""
        theta = {name: leaf[rows][None] for name, leaf in self._flat[0].items()}
        own = np.asarray(weights, working_precision())[None]
        return Draws(self.model, theta, self.provenance, weights=own, scaling=self.scaling, probes=self.probes)

    def sample(self, key: Key, num: int) -> Theta:
        """`num` draws of theta with replacement, by weight: every leaf gains a leading axis."""
        theta, weights = self._flat
        chosen = np.asarray(jax.random.choice(key, len(weights), (at_least_one(num=num),), p=weights))
        return {name: leaf[chosen] for name, leaf in theta.items()}

    def draw(self, index: int, chain: int = 0) -> Theta:
        """One draw as a named tree in the units of the program (a noise scale is positive, …)."""
        if not (-self.num_draws <= index < self.num_draws and -self.num_chains <= chain < self.num_chains):
            raise ValueError(
                f"there is no draw {index} of chain {chain}, but {self.num_chains} chain(s) of {self.num_draws} draws"
            )
        theta = {name: leaf[chain, index] for name, leaf in self.theta.items()}
        return {name: np.asarray(value) for name, value in self.model.constrain(theta).items()}

    def constrained(self) -> dict[str, np.ndarray]:
        """All draws in the units of the program, each (chains, draws, …)."""
        return jax.tree.map(np.asarray, jax.jit(jax.vmap(jax.vmap(self.model.constrain)))(self.theta))

    # -- use -----------------------------------------------------------------------------------------------

    def predict(self, x: Any, *, num_draws: int | None = None, of: str | None = None) -> Predictive:
        """The marginal p(y | x, D) = Σᵢ wᵢ p(y | x, thetaᵢ).

        Arguments:
            x: inputs in the user's units, (rows, …) as in training.
            num_draws: how many draws to average, evenly spaced over all chains; all of them by default.
            of: the site to predict, where the model has another than what was observed ("y").
        """
        if of is not None:
            return self.about(of).predict(x, num_draws=num_draws)
        inputs, (theta, weights) = self.inputs(x), self._flat
        if num_draws is not None:
            num = min(at_least_one(num_draws=num_draws), len(weights))
            chosen = np.linspace(0, len(weights) - 1, num).round().astype(int)
            theta = {name: leaf[chosen] for name, leaf in theta.items()}
            weights = weights[chosen] / weights[chosen].sum()
        return predictive(self.model, theta, inputs, weights=weights, scaling=self.scaling)

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """R-hat, effective sample sizes, divergences, in weight space and function space, with a verdict.

        Of draws that `credo.compress` has left: what that saved and lost; of exact ones, their evidence.
        """
        if self.provenance.compression is not None:
            return self.provenance.compression
        return diagnose_chains(self) if self.evidence is None else diagnose_exact(self.evidence, self.trace)

    def to_arviz(self) -> Any:
        """The draws in the units of the program, and the sampler's figures, as ArviZ takes them.

        An `arviz.InferenceData` where ArviZ is 0.23, an `xarray.DataTree` where it is 1.x.
        """
        return inference_data(posterior=self.constrained(), sample_stats=_arviz_names(self.infos or {}))

    def canonical(self) -> "Draws":
        """The same functions, by weights that can be compared: units in one order, signs chosen, scales balanced.

        The weights of a network are identified up to its symmetries alone (`credo.networks.symmetries`), so chains that
        agree about every prediction may disagree about every weight. Here each draw moves to that of its mirror images
        which fits the other draws best: R-hat, pair plots and means of weights then tell of the posterior, not of
        labels. (Three tanh units on `datasets.gap`, eight chains: the worst R-hat falls from 3.0 to 1.01.)

        What is left is no matter of labels. Units that the data do not need follow the prior or share one unit's work,
        and stay unidentified. A ReLU unit that is on for all the data is a straight line there, with which other units
        can be turned round, a·relu(z) = a·z + a·relu(−z): these are different functions that agree at the data, and
        chains of ReLU networks often sit in several of them.

        Only layers change whose units neither the network nor the prior tells apart. Balancing the scales changes the
        density under the prior: `infos["log_joint"]` stays that of the draws as they were sampled.

        >>> import credo
        >>> model = credo.models.regression(credo.networks.MLP([3], out=1))
        >>> method = credo.NUTS(num_samples=20, num_warmup=20, num_chains=2)
        >>> posterior = credo.fit(model, credo.datasets.gap(), method, progress=False)
        >>> canonical = posterior.canonical()
        >>> bool(np.allclose(canonical.predict([0.0]).mean, posterior.predict([0.0]).mean, atol=1e-5))
        True

        Reference: Stephens, Dealing with label switching in mixture models, 2000; see `credo.posterior.canonical`.
        """
        log_joint = (self.infos or {}).get("log_joint")
        return replace(self, theta=canonical_theta(self.model, self.theta, log_joint))

    # -- storage -------------------------------------------------------------------------------------------

    def to_parts(self) -> Parts:
        xi = self.model.frozen_xi
        arrays = named(theta=self.theta, infos=self.infos, trace=self.trace, xi=xi)
        config = {} if self.evidence is None else {"evidence": asdict(self.evidence)}
        return config, arrays if self.weights is None else arrays | {"weights": self.weights}

    @classmethod
    def from_parts(cls, stored: Stored, **common: Any) -> Self:
        theta = stored.group("theta")
        stored.require_shapes(common["model"], {name: leaf.shape[2:] for name, leaf in theta.items()})
        leading = next((leaf.shape[:2] for leaf in theta.values()), (0, 0))
        for name, leaf in theta.items():
            stored.numbers(f"theta/{name}", shape=(*leading, *leaf.shape[2:]))
        if 0 in leading:
            raise LoadError(f"{stored.source} is damaged: it holds no draws")
        evidence = stored.field("evidence", ExactEvidence | None)
        weights = require_weights(stored.source, stored.arrays.get("weights"), leading)
        return cls(theta=theta, weights=weights, infos=stored.figures("infos", leading), evidence=evidence, **common)


def _arviz_names(infos: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """ArviZ knows some figures by other names."""
    known = {
        "acceptance": "acceptance_rate",
        "log_joint": "lp",
        "num_leapfrogs": "n_steps",
        "diverged": "diverging",
    }
    return {known.get(name, name): value for name, value in infos.items()}
