"""Posteriors: what a method leaves behind: weighted draws of theta in chains, a Gaussian over theta, or a flow."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

import jax
import numpy as np

from credo import random
from credo.data import Scaling, as_inputs
from credo.inference.flow import Warp
from credo.inference.roots import root_arrays, root_config, root_from_arrays
from credo.inference.structure import Root, draw_noise
from credo.models.program import Model
from credo.models.sites import LOCAL_NOISE
from credo.predictive import Predictive, predictive
from credo.typing import Key, Theta

if TYPE_CHECKING:
    import arviz

    from credo.dropout import DropoutDiagnostics
    from credo.evaluation.diagnostics import Diagnostics
    from credo.evaluation.laplace import LaplaceDiagnostics
    from credo.evaluation.variational import VariationalDiagnostics
    from credo.inference.engine import Run
    from credo.inference.method import Method
    from credo.linearised import Linearisation
    from credo.mixture import EnsembleDiagnostics


# Draws that a fitted q is predicted with: the Monte Carlo error of a mean is a tenth of its epistemic sd.
NUM_PREDICTIVE_DRAWS = 100
# Draws that the moments of a flow are taken from: an error of 2.5% of the sd in the mean, 1.8% in the sd.
NUM_MOMENT_DRAWS = 1600


class Posterior(Protocol):
    """p(theta | D), or what stands for it."""

    @property
    def model(self) -> Model:
        """The model, bound to the shape of the data."""

    @property
    def provenance(self) -> "Provenance":
        """How it came about."""

    @property
    def num_bytes(self) -> int:
        """What it takes to keep, in memory."""

    def sample(self, key: Key, num: int) -> Theta:
        """`num` draws of theta: every leaf gains a leading axis."""

    def predict(self, x: Any, *, num_draws: int | None = None) -> Predictive:
        """The marginal p(y | x, D)."""

    def save(self, folder: str | Path) -> None:
        """Write the posterior into a folder that `credo.load` reads."""

    @property
    def diagnostics(
        self,
    ) -> "Diagnostics | VariationalDiagnostics | DropoutDiagnostics | EnsembleDiagnostics | LaplaceDiagnostics":
        """Evidence for and against the fit, with a verdict in words."""


@dataclass(frozen=True)
class Provenance:
    """How a posterior came about: the method and its settings, the seed, the time, and the size of the data.

    `why` says why this method, where the user left that open (`"auto"`).
    """

    method: dict[str, Any]
    seed: int
    seconds: float
    num_data: int
    interrupted: bool = False
    why: str = ""


@dataclass(frozen=True, eq=False)
class Draws:
    """Weighted draws of theta in chains: Σᵢ wᵢ δ(theta − thetaᵢ).

    Arguments:
        model: bound to the shape of the data.
        theta: unconstrained, every leaf (chains, draws, …).
        weights: (chains, draws), adding up to one; None weighs all draws alike.
        infos: figures of the sampler per draw, each (chains, draws).
        trace: figures of the optimiser or the warm-up per step, each (chains, steps).
        scaling: between the user's units and those the model was fitted in.
        probes: a few training inputs, in the user's units: where function-space diagnostics look.
    """

    model: Model
    theta: dict[str, np.ndarray]
    provenance: Provenance
    weights: np.ndarray | None = None
    infos: dict[str, np.ndarray] | None = None
    trace: dict[str, np.ndarray] | None = None
    scaling: Scaling = field(default_factory=Scaling)
    probes: np.ndarray | None = None

    @classmethod
    def from_run(cls, method: "Method", model: Model, theta: Theta, run: "Run") -> "Draws":
        """The posterior of a run. What belongs to single draws goes to `infos`, the rest to `trace`."""
        leaves = {name: np.asarray(leaf) for name, leaf in theta.items()}
        num_draws = next(iter(leaves.values())).shape[1]
        kept = _as_dict(run.infos)
        per_draw = bool(kept) and next(iter(kept.values())).shape[1] == num_draws
        provenance = Provenance(method.to_config(), run.seed, run.seconds, 0, run.interrupted)
        trace = _as_dict(run.warmup_infos) if per_draw else kept
        return cls(model, leaves, provenance, infos=kept if per_draw else {}, trace=trace)

    def placed(self, *, scaling: Scaling, probes: np.ndarray, num_data: int) -> "Draws":
        """This posterior with what it must know of the data it came from."""
        provenance = replace(self.provenance, num_data=num_data)
        return replace(self, scaling=scaling, probes=probes, provenance=provenance)

    @property
    def num_chains(self) -> int:
        return next(iter(self.theta.values())).shape[0]

    @property
    def num_draws(self) -> int:
        """Draws per chain."""
        return next(iter(self.theta.values())).shape[1]

    @property
    def num_bytes(self) -> int:
        """What the draws take to keep, in memory."""
        return sum(leaf.nbytes for leaf in self.theta.values())

    def __repr__(self) -> str:
        how = self.provenance.method.get("name", "?")
        return (
            f"Draws({self.num_chains} chain(s) × {self.num_draws:,} draws of {self.model.num_parameters:,} numbers, "
            f"by {how} in {self.provenance.seconds:.1f} s)"
        )

    # -- draws ---------------------------------------------------------------------------------------------

    @cached_property
    def _flat(self) -> tuple[Theta, np.ndarray]:
        """All chains one after another, and the weights of the draws."""
        theta = {name: leaf.reshape(-1, *leaf.shape[2:]) for name, leaf in self.theta.items()}
        num = self.num_chains * self.num_draws
        weights = np.full(num, 1 / num) if self.weights is None else self.weights.reshape(-1)
        return theta, weights

    def sample(self, key: Key, num: int) -> Theta:
        """`num` draws of theta with replacement, by weight: every leaf gains a leading axis."""
        if num < 1:
            raise ValueError(f"num must be at least 1, got {num}")
        theta, weights = self._flat
        chosen = np.asarray(jax.random.choice(key, len(weights), (num,), p=weights))
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

    def predict(self, x: Any, *, num_draws: int | None = None) -> Predictive:
        """The marginal p(y | x, D) = Σᵢ wᵢ p(y | x, thetaᵢ).

        Arguments:
            x: inputs in the user's units, (rows, …) as in training.
            num_draws: how many draws to average, evenly spaced over all chains; all of them by default.
        """
        inputs = as_inputs(x, like=self.model.rows.x_shape[1:] if self.model.rows else None)
        theta, weights = self._flat
        if num_draws is not None:
            if num_draws < 1:
                raise ValueError(f"num_draws must be at least 1, got {num_draws}")
            chosen = np.linspace(0, len(weights) - 1, min(num_draws, len(weights))).round().astype(int)
            theta = {name: leaf[chosen] for name, leaf in theta.items()}
            weights = weights[chosen] / weights[chosen].sum()
        return predictive(self.model, theta, inputs, weights=weights, scaling=self.scaling)

    @cached_property
    def diagnostics(self) -> "Diagnostics":
        """R-hat, effective sample sizes, divergences, in weight space and function space, with a verdict."""
        from credo.evaluation.diagnostics import diagnose

        return diagnose(self)

    def to_arviz(self) -> "arviz.InferenceData":
        """The draws in the units of the program, and the sampler's figures, as ArviZ InferenceData."""
        from credo.evaluation._arviz import arviz

        return arviz.from_dict(posterior=self.constrained(), sample_stats=_arviz_names(self.infos or {}))

    def save(self, folder: str | Path) -> None:
        """Write the posterior into a folder: arrays as safetensors, the rest as JSON. See `credo.load`."""
        from credo.storage import save

        save(self, folder)


class _Fitted:
    """What is the same for every q that draws of theta can be had from at will."""

    model: Model
    provenance: Provenance
    scaling: Scaling

    def placed(self, *, scaling: Scaling, probes: np.ndarray, num_data: int) -> Self:
        """This posterior with what it must know of the data it came from."""
        provenance = replace(self.provenance, num_data=num_data)
        return replace(self, scaling=scaling, probes=probes, provenance=provenance)  # type: ignore[type-var]

    def sample(self, key: Key, num: int) -> Theta:
        """`num` draws of theta: every leaf gains a leading axis."""
        raise TypeError(f"{type(self).__name__} has no sample")

    def predict(self, x: Any, *, num_draws: int | None = None) -> Predictive:
        """The marginal p(y | x, D), averaged over draws of theta: the same ones at every call.

        Arguments:
            x: inputs in the user's units, (rows, …) as in training.
            num_draws: how many draws to average; 100 by default.
        """
        inputs = as_inputs(x, like=self.model.rows.x_shape[1:] if self.model.rows else None)
        num = NUM_PREDICTIVE_DRAWS if num_draws is None else num_draws
        if num < 1:
            raise ValueError(f"num_draws must be at least 1, got {num}")
        theta = self.sample(random.key(self.provenance.seed), num)
        if self.model.has_local_latents:
            theta |= {LOCAL_NOISE: np.arange(num, dtype=np.int32)}
        return predictive(self.model, theta, inputs, scaling=self.scaling)

    @cached_property
    def diagnostics(self) -> "VariationalDiagnostics":
        """The ELBO and its parts, how far q is from the posterior, and a verdict."""
        from credo.evaluation.variational import diagnose_variational

        return diagnose_variational(cast(Any, self))

    def save(self, folder: str | Path) -> None:
        """Write the posterior into a folder: arrays as safetensors, the rest as JSON. See `credo.load`."""
        from credo.storage import save

        save(cast(Any, self), folder)


@dataclass(frozen=True, eq=False)
class Gaussian(_Fitted):
    """N(mean, √Σ √Σᵀ) over the unconstrained theta.

    Arguments:
        model: bound to the shape of the data; learned prior parameters are its constants.
        mean: theta at the centre.
        root: √Σ, of `credo.inference.structure`.
        trace: figures of the optimiser per step, each (1, steps).
        evidence: what the method found out about its own fit: the ELBO with its standard error, Pareto k̂.
        scaling, probes: as in `Draws`.
        prediction: "draws" of theta, or the "linear" or "probit" prediction of `credo.linearised`.
    """

    model: Model
    mean: dict[str, np.ndarray]
    root: Root
    provenance: Provenance
    trace: dict[str, np.ndarray] | None = None
    evidence: dict[str, float] = field(default_factory=dict)
    scaling: Scaling = field(default_factory=Scaling)
    probes: np.ndarray | None = None
    prediction: str = "draws"

    @property
    def num_bytes(self) -> int:
        """What mean and root take to keep, in memory."""
        return sum(leaf.nbytes for leaf in jax.tree.leaves((self.mean, self.root)))

    def __repr__(self) -> str:
        how = self.provenance.method.get("name", "?")
        return (
            f"Gaussian({self.model.num_parameters:,} numbers, {type(self.root).__name__} root, "
            f"by {how} in {self.provenance.seconds:.1f} s)"
        )

    def sample(self, key: Key, num: int) -> Theta:
        """`num` draws of theta = mean + √Σ ε: every leaf gains a leading axis."""
        if num < 1:
            raise ValueError(f"num must be at least 1, got {num}")
        return jax.tree.map(np.asarray, _gaussian_draws(self.mean, self.root, jax.random.split(key, num)))

    def moments(self) -> tuple[Theta, Theta]:
        """Mean and variance of each entry of theta."""
        return self.mean, {name: np.zeros(leaf.shape) for name, leaf in self.mean.items()} | self.root.variance()

    def predict(self, x: Any, *, num_draws: int | None = None) -> Predictive:
        """The marginal p(y | x, D): of draws of theta, or of the network linearised around the mean.

        Arguments:
            x: inputs in the user's units, (rows, …) as in training.
            num_draws: of theta, 100 by default; of a linearised network's outputs, 1,000.
        """
        if self.prediction == "draws":
            return super().predict(x, num_draws=num_draws)
        from credo.linear_predictive import linear_predictive

        inputs = as_inputs(x, like=self.model.rows.x_shape[1:] if self.model.rows else None)
        if num_draws is not None and num_draws < 1:
            raise ValueError(f"num_draws must be at least 1, got {num_draws}")
        return linear_predictive(self, inputs, num_draws=num_draws)

    @cached_property
    def linearisation(self) -> "Linearisation":
        """The network around the mean, as a linear one."""
        from credo.linearised import Linearisation

        return Linearisation.of(self.model, self.mean, self.root)

    @cached_property
    def diagnostics(self) -> "VariationalDiagnostics | LaplaceDiagnostics":  # type: ignore[override]
        """What the fit tells about itself, with a verdict."""
        if "log_evidence" not in self.evidence:
            return super().diagnostics
        from credo.evaluation.laplace import diagnose_laplace

        return diagnose_laplace(self)


@dataclass(frozen=True, eq=False)
class Flow(_Fitted):
    """A normalising flow over the unconstrained theta: theta = location + √Σ f(ε), ε ~ N(0, I).

    Arguments:
        location: theta where √Σ f(ε) is zero. Not the mean, which has no closed form: see `moments`.
        warp: √Σ f, of `credo.inference.flow`.
        model, provenance, trace, evidence, scaling, probes: as in `Gaussian`.
    """

    model: Model
    location: dict[str, np.ndarray]
    warp: Warp
    provenance: Provenance
    trace: dict[str, np.ndarray] | None = None
    evidence: dict[str, float] = field(default_factory=dict)
    scaling: Scaling = field(default_factory=Scaling)
    probes: np.ndarray | None = None

    @property
    def num_bytes(self) -> int:
        """What location and warp take to keep, in memory."""
        return sum(leaf.nbytes for leaf in jax.tree.leaves((self.location, self.warp)))

    def __repr__(self) -> str:
        how = self.provenance.method.get("name", "?")
        return (
            f"Flow({self.model.num_parameters:,} numbers, {self.warp.num_layers} layers, "
            f"by {how} in {self.provenance.seconds:.1f} s)"
        )

    def sample(self, key: Key, num: int) -> Theta:
        """`num` draws of theta = location + √Σ f(ε): every leaf gains a leading axis."""
        return self.sample_and_log_q(key, num)[0]

    def sample_and_log_q(self, key: Key, num: int) -> tuple[Theta, np.ndarray]:
        """`num` draws of theta, and log q of each, (num,)."""
        if num < 1:
            raise ValueError(f"num must be at least 1, got {num}")
        return jax.tree.map(np.asarray, _flow_draws(self.location, self.warp, jax.random.split(key, num)))

    def moments(self) -> tuple[Theta, Theta]:
        """Mean and variance of each entry of theta, from draws: the same ones at every call."""
        draws = self.sample(random.key(self.provenance.seed), NUM_MOMENT_DRAWS)
        return {name: leaf.mean(0) for name, leaf in draws.items()}, {name: leaf.var(0) for name, leaf in draws.items()}

    def to_parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What JSON must know, and the arrays by part and name; the fields all posteriors have are not among them."""
        parts = {"location": self.location, "root": root_arrays(self.warp.root), "layers": self.warp.layers}
        arrays = {f"{part}/{name}": np.asarray(leaf) for part, tree in parts.items() for name, leaf in tree.items()}
        return {"root": root_config(self.warp.root), "evidence": self.evidence}, arrays

    @classmethod
    def from_parts(
        cls, model: Model, config: Mapping[str, Any], arrays: Mapping[str, np.ndarray], **common: Any
    ) -> "Flow":
        """The inverse of `to_parts`; `common` are provenance, trace, scaling and probes."""
        parts: dict[str, dict[str, np.ndarray]] = {"location": {}, "root": {}, "layers": {}}
        for path, leaf in arrays.items():
            part, _, name = path.partition("/")
            if part in parts:
                parts[part][name] = leaf
        root = root_from_arrays(config["root"], parts["root"])
        warp = Warp(root, parts["layers"])  # type: ignore[arg-type]
        return cls(model, parts["location"], warp, evidence=dict(config["evidence"]), **common)


@jax.jit
def _flow_draws(location: Theta, warp: Warp, keys: Key) -> tuple[Theta, jax.Array]:
    def draw(key: Key) -> tuple[Theta, jax.Array]:
        offset, log_q = warp.draw(key)
        return {name: location[name] + offset[name] for name in location}, log_q

    return jax.lax.map(draw, keys)


@jax.jit
def _gaussian_draws(mean: Theta, root: Root, keys: Key) -> Theta:
    def draw(key: Key) -> Theta:
        offset = root.offset(draw_noise(key, root))
        # Arrays that the root does not cover are certain.
        return {name: leaf + offset[name] if name in offset else leaf for name, leaf in mean.items()}

    return jax.lax.map(draw, keys)


def _as_dict(infos: Any) -> dict[str, np.ndarray]:
    return {} if infos is None else {name: np.asarray(value) for name, value in infos._asdict().items()}


def _arviz_names(infos: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """ArviZ knows some figures by other names."""
    known = {
        "acceptance": "acceptance_rate",
        "log_joint": "lp",
        "num_leapfrogs": "n_steps",
        "diverged": "diverging",
    }
    return {known.get(name, name): value for name, value in infos.items()}
