"""Mixtures: several posteriors side by side, Σᵢ wᵢ qᵢ(theta), as an ensemble leaves them behind.

Paper, "Deep ensembles": each member finds one mode of the posterior, and their mixture covers as many as there are.
Members that are points make an ordinary set of `Draws`, a mixture of Dirac deltas; members that are distributions of
their own, that have learned prior parameters xi of their own, or that are of different architectures, make a `Mixture`.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from credo import random
from credo.architectures import Architectures
from credo.data import Scaling, as_inputs
from credo.dropout import Dropout
from credo.linear_predictive import linear_mixture
from credo.models.program import Model
from credo.models.sites import LOCAL_NOISE
from credo.posterior import NUM_PREDICTIVE_DRAWS, Draws, Flow, Gaussian, Provenance
from credo.predictive import ClassPredictive, Predictive, predictive
from credo.typing import Key, Theta

Member = Draws | Gaussian | Flow | Dropout

# Below this share of the epistemic variance, what lies between the members moves its standard deviation by under 3%.
SMALL_SHARE = 0.05
# Below this share of the standard deviation of y, it moves that of y by under one part in 10⁴.
SMALL_SPREAD = 0.01


@dataclass(frozen=True)
class EnsembleDiagnostics:
    """What the members of an ensemble tell about each other. Print it for the verdict.

    Arguments:
        verdicts: of the members on themselves.
        disagreement: share of the epistemic variance that lies between the members' mean functions, averaged over
            probed outputs; 1 for members that are points, None without probes.
        spread: largest ratio, over probed outputs, of the sd between those functions to the sd of y.
    """

    num_members: int
    verdicts: tuple[str, ...]
    disagreement: float | None
    spread: float | None
    advice: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """One sentence."""
        if self.advice:
            return "Handle with care: " + "; ".join(self.advice) + "."
        return "The members differ where the data leave room, and none of them is in trouble."

    def __str__(self) -> str:
        lines = [f"Ensemble of {self.num_members} member(s)"]
        if self.disagreement is not None and self.spread is not None:
            lines.append(
                f"between members: {self.disagreement:.0%} of the epistemic variance (average over probed outputs), "
                f"up to {self.spread:.2g} sds of y"
            )
        return "\n".join([*lines, self.verdict])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for tables and JSON."""
        return asdict(self) | {"verdict": self.verdict}


@dataclass(frozen=True, eq=False)
class Mixture:
    """Σᵢ wᵢ qᵢ(theta) of posteriors of one model, or of several that agree about what y is.

    Arguments:
        members: the qᵢ; each may have prior parameters xi of its own as constants of its model, or a model of its own.
        provenance: of the whole.
        weights: wᵢ, adding up to one; equal by default.
    """

    members: tuple[Member, ...]
    provenance: Provenance
    weights: np.ndarray = field(default=None)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        num = len(self.members)
        if num == 0:
            raise ValueError("members: a mixture needs at least one")
        _ = self.architectures  # which refuses models that do not go together
        weights = np.full(num, 1 / num) if self.weights is None else np.asarray(self.weights, np.float64)
        if weights.shape != (num,) or not np.all(weights >= 0) or not np.isclose(weights.sum(), 1):
            raise ValueError(f"weights must be {num} numbers of at least zero that add up to one, got {self.weights}")
        object.__setattr__(self, "weights", weights)

    def placed(self, *, scaling: Scaling, probes: np.ndarray, num_data: int) -> "Mixture":
        """This posterior with what it must know of the data it came from."""
        members = tuple(member.placed(scaling=scaling, probes=probes, num_data=num_data) for member in self.members)
        return replace(self, members=members, provenance=replace(self.provenance, num_data=num_data))

    @property
    def model(self) -> Model:
        """The model of the first member, bound to the shape of the data."""
        return self.members[0].model

    @cached_property
    def architectures(self) -> Architectures:
        """The models of the members, each once."""
        return Architectures(tuple(dict.fromkeys(self._free(member.model) for member in self.members)))

    @property
    def scaling(self) -> Scaling:
        """Between the user's units and those the model was fitted in."""
        return self.members[0].scaling

    @property
    def probes(self) -> np.ndarray | None:
        """A few training inputs, in the user's units."""
        return self.members[0].probes

    @cached_property
    def trace(self) -> dict[str, np.ndarray]:
        """Figures of the optimiser per step, each (members, steps), cut to the shortest run."""
        return side_by_side([member.trace or {} for member in self.members])

    @property
    def num_bytes(self) -> int:
        """What the members take to keep, in memory."""
        return sum(member.num_bytes for member in self.members)

    def __repr__(self) -> str:
        how = self.provenance.method.get("name", "?")
        kinds = "/".join(sorted({type(member).__name__ for member in self.members}))
        numbers = " or ".join(f"{model.num_parameters:,}" for model in self.architectures.models)
        return (
            f"Mixture({len(self.members)} × {kinds} over {numbers} numbers, "
            f"by {how} in {self.provenance.seconds:.1f} s)"
        )

    # -- draws ---------------------------------------------------------------------------------------------

    @cached_property
    def _has_own_xi(self) -> bool:
        """Whether the members have prior parameters of their own: each draw then carries those of its member.

        Constants of the model would be those of one member.
        """
        return len({member.model.xi for member in self.members}) > 1

    def _free(self, model: Model) -> Model:
        """A model without the constants that the draws bring with them."""
        return replace(model, xi=None) if self._has_own_xi else model

    def _with_xi(self, member: Member, theta: Theta, num: int) -> Theta:
        if not self._has_own_xi:
            return theta
        return theta | {name: np.broadcast_to(xi, (num, *xi.shape)) for name, xi in member.model.frozen_xi.items()}

    def _joined(self, thetas: Sequence[Theta], owners: Sequence[int], counts: Sequence[int]) -> dict[str, np.ndarray]:
        """Draws of members one after another, `counts` of each; which members they are of is in `owners`."""
        models = self.architectures.models
        if len(models) == 1:
            return _concatenated(thetas)
        of_models = [models.index(self._free(self.members[owner].model)) for owner in owners]
        return self.architectures.joined(thetas, of_models, counts)

    def sample(self, key: Key, num: int) -> Theta:
        """`num` draws, each of a member chosen by weight: every leaf gains a leading axis.

        Where the members have learned xi of their own, each draw holds those of its member, by name. Where their
        architectures differ, each draw holds the leaves of all of them: see `credo.architectures`.
        """
        if num < 1:
            raise ValueError(f"num must be at least 1, got {num}")
        member_key, draw_key = jax.random.split(key)
        chosen = np.asarray(jax.random.choice(member_key, len(self.members), (num,), p=jnp.asarray(self.weights)))
        rows = [np.flatnonzero(chosen == index) for index in range(len(self.members))]
        parts, owners = [], []
        for index, (member, own) in enumerate(zip(self.members, rows, strict=True)):
            if len(own):
                # Drawing is compiled for each number of draws: up to a power of two, there are few of them.
                drawn = member.sample(jax.random.fold_in(draw_key, index), 1 << (len(own) - 1).bit_length())
                parts.append(self._with_xi(member, {name: leaf[: len(own)] for name, leaf in drawn.items()}, len(own)))
                owners.append(index)
        order = np.argsort(np.concatenate(rows))
        whole = self._joined(parts, owners, [len(rows[index]) for index in owners])
        return {name: leaf[order] for name, leaf in whole.items()}

    def _spread_out(self, x: np.ndarray, num: int) -> tuple[Theta, np.ndarray, np.ndarray]:
        """About `num` draws evenly over the members, the same ones at every call; their weights, and their members."""
        thetas, weights = [], []
        for index, member in enumerate(self.members):
            own = max(1, (num + len(self.members) - 1 - index) // len(self.members))
            if isinstance(member, Draws):  # which are there already, and need not be drawn with replacement
                prediction = member.predict(x, num_draws=own)
                theta, shares = prediction.draws, prediction.weights
            else:
                # A key for each member: with a common one their errors would not average out.
                theta = member.sample(jax.random.fold_in(random.key(self.provenance.seed), index), own)
                shares = np.full(own, 1 / own)
            thetas.append(self._with_xi(member, theta, len(shares)))
            weights.append(self.weights[index] * shares)
        members, counts = range(len(self.members)), [len(shares) for shares in weights]
        return self._joined(thetas, members, counts), np.concatenate(weights), np.repeat(members, counts)

    # -- use -----------------------------------------------------------------------------------------------

    def predict(self, x: Any, *, num_draws: int | None = None) -> Predictive:
        """The marginal p(y | x, D), averaged over draws of all members: the same ones at every call.

        Arguments:
            x: inputs in the user's units, (rows, …) as in training.
            num_draws: how many draws to average in all, spread evenly over the members and at least one of each;
                100 by default.
        """
        num = NUM_PREDICTIVE_DRAWS if num_draws is None else num_draws
        if num < 1:
            raise ValueError(f"num_draws must be at least 1, got {num}")
        return self._predict(x, num)[0]

    def _predict(self, x: Any, num: int) -> tuple[Predictive, np.ndarray]:
        """The marginal, and the member that each draw is of."""
        inputs = as_inputs(x, like=self.model.rows.x_shape[1:] if self.model.rows else None)
        if all(isinstance(member, Gaussian) and member.prediction != "draws" for member in self.members):
            return linear_mixture(cast(Any, self.members), self.weights, inputs, num)
        theta, weights, owners = self._spread_out(inputs, num)
        models = self.architectures.models
        if any(model.has_local_latents for model in models):
            theta |= {LOCAL_NOISE: np.arange(len(weights), dtype=np.int32)}
        conditional: Any = models[0] if len(models) == 1 else self.architectures
        return predictive(conditional, theta, inputs, weights=weights, scaling=self.scaling), owners

    @cached_property
    def diagnostics(self) -> EnsembleDiagnostics:
        """Whether the members differ, how much, and whether some are in trouble themselves."""
        if self.probes is None:
            return diagnose_ensemble(self.members)
        return diagnose_ensemble(self.members, *self._predict(self.probes, NUM_PREDICTIVE_DRAWS * len(self.members)))

    def save(self, folder: str | Path) -> None:
        """Write the posterior into a folder: arrays as safetensors, the rest as JSON. See `credo.load`."""
        from credo.storage import save

        save(self, folder)


@dataclass(frozen=True, eq=False, repr=False)
class PointEnsemble(Draws):
    """Draws that are point estimates, one per chain: Σᵢ αᵢ δ(theta − thetaᵢ), the paper's deep ensembles.

    They differ from the draws of a sampler in what there is to diagnose: no chain has anything to converge to.
    """

    @property
    def members(self) -> tuple[Draws, ...]:
        """Each point estimate as a posterior of its own."""
        return tuple(
            Draws(self.model, {name: leaf[index : index + 1] for name, leaf in self.theta.items()}, self.provenance)
            for index in range(self.num_chains)
        )

    @cached_property
    def diagnostics(self) -> EnsembleDiagnostics:  # type: ignore[override]
        """Whether the members differ, and how much."""
        if self.probes is None:
            return diagnose_ensemble(self.members)
        return diagnose_ensemble(self.members, self.predict(self.probes), np.arange(self.num_chains))


def joined(parts: Sequence[Draws], provenance: Provenance, weights: Sequence[float] | None = None) -> Draws:
    """Sets of draws of one model as the chains of one.

    Arguments:
        weights: of the sets, adding up to one; equal by default.
    """
    first = parts[0]
    shares = None
    if weights is not None or any(part.weights is not None for part in parts):
        of_sets = np.full(len(parts), 1 / len(parts)) if weights is None else np.asarray(weights)
        equal = np.full((first.num_chains, first.num_draws), 1 / (first.num_chains * first.num_draws))
        own = [equal if part.weights is None else part.weights for part in parts]
        shares = np.concatenate([share * one for share, one in zip(of_sets, own, strict=True)])
    kind = PointEnsemble if first.num_draws == 1 else Draws
    return kind(
        first.model,
        _concatenated([part.theta for part in parts]),
        provenance,
        weights=shares,
        infos=_concatenated([part.infos or {} for part in parts]),
        trace=side_by_side([part.trace or {} for part in parts]),
    )


def side_by_side(traces: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Figures by step of several runs, each (runs, steps)."""
    return _concatenated(cut_to_shortest(traces))


def cut_to_shortest(traces: Sequence[dict[str, np.ndarray]]) -> list[dict[str, np.ndarray]]:
    """Figures by step, each (1, steps), for as many steps as all runs have: some may have stopped early."""
    shortest = min((values.shape[1] for trace in traces for values in trace.values()), default=0)
    return [{name: values[:, :shortest] for name, values in trace.items()} for trace in traces]


def diagnose_ensemble(
    members: Sequence[Member], prediction: Predictive | None = None, owners: np.ndarray | None = None
) -> EnsembleDiagnostics:
    """The diagnostics of an ensemble.

    Arguments:
        prediction: of all members, at inputs to probe their functions at; None where there are none.
        owners: which member each draw of the prediction is of.
    """
    share, spread = None, None
    if prediction is not None and owners is not None:
        share, spread = _between(prediction, owners)
    verdicts = tuple(member.diagnostics.verdict for member in members)
    troubled = [index for index, member in enumerate(members) if member.diagnostics.advice]
    advice = []
    if len(members) == 1:
        advice.append("one member is no ensemble: it has none to disagree with")
    elif share is None or spread is None:
        advice.append("there are no inputs to probe the members' functions at")
    elif share < SMALL_SHARE or spread < SMALL_SPREAD:
        advice.append("the ensemble adds nothing: members agree everywhere")
    if troubled:
        first = verdicts[troubled[0]].rstrip(".")
        advice.append(f"{len(troubled)} of {len(members)} members are in trouble themselves, the first one: “{first}”")
    return EnsembleDiagnostics(len(members), verdicts, share, spread, tuple(advice))


def _between(prediction: Predictive, owners: np.ndarray) -> tuple[float, float]:
    """How far apart the members' mean functions are, as a share of the epistemic variance, and in sds of y.

    With mᵢ and vᵢ the mean and the variance of the functions of member i:  Var = Σ wᵢ (mᵢ − m)² + Σ wᵢ vᵢ.
    """
    functions = prediction.functions.reshape(len(owners), -1).astype(np.float64)
    by_member = (owners == np.arange(owners.max() + 1)[:, None]) * prediction.weights
    weights = by_member.sum(axis=1)
    by_member /= np.where(weights > 0, weights, 1.0)[:, None]
    means = by_member @ functions
    # Variances from a few draws, unbiased: 1/n of them is lost, and is the error of the mean.
    lost = np.sum(by_member**2, axis=1)
    kept = np.where(lost < 1 - 1e-9, 1 - lost, 1.0)
    variances = by_member @ (functions - means[owners]) ** 2 / kept[:, None]
    mean = weights @ means
    chance = (weights * (1 - weights) * lost) @ variances
    between = np.maximum(weights @ (means - mean) ** 2 - chance, 0.0)
    epistemic = between + weights @ variances
    if isinstance(prediction, ClassPredictive):
        total = mean * (1 - mean)
    else:
        # A noise of infinite variance hides nothing.
        total = epistemic + np.nan_to_num(prediction.aleatoric.reshape(-1), posinf=0.0)
    return float(np.mean(_ratio(between, epistemic))), float(np.sqrt(np.max(_ratio(between, total))))


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def _concatenated(trees: Sequence[Theta]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([tree[name] for tree in trees]) for name in trees[0]}
