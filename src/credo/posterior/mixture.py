"""Mixtures: several posteriors side by side, Σᵢ wᵢ qᵢ(theta), as an ensemble leaves them behind.

Paper, "Deep ensembles": each member finds one mode of the posterior, and their mixture covers as many as there are.
Members that are points make an ordinary set of `Draws`, a mixture of Dirac deltas; members that are distributions of
their own, that have learned prior parameters xi of their own, or that are of different architectures, make a `Mixture`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self, cast

import jax
import jax.numpy as jnp
import numpy as np

from credo import random
from credo._schema import reading, require_weights
from credo.data import Data, FileData, Scaling
from credo.diagnostics import Diagnostics
from credo.diagnostics.ensemble import diagnose_ensemble
from credo.models.program import Model
from credo.posterior.architectures import Architectures
from credo.posterior.base import NUM_PREDICTIVE_DRAWS, BasePosterior, Provenance, at_least_one
from credo.posterior.draws import Draws
from credo.posterior.dropout import Dropout
from credo.posterior.flow import Flow
from credo.posterior.gaussian import Gaussian
from credo.posterior.linear_predictive import linear_mixture
from credo.posterior.saving import Parts, Stored, pack
from credo.predictive import Predictive, predictive
from credo.typing import Key, Theta

Member = Draws | Gaussian | Flow | Dropout


@dataclass(frozen=True, eq=False)
class Mixture(BasePosterior):
    """Σᵢ wᵢ qᵢ(theta) of posteriors of one model, or of several that agree about what y is.

    Arguments:
        members: the qᵢ; each may have prior parameters xi of its own as constants of its model, or a model of its own.
        provenance: of the whole.
        weights: wᵢ, adding up to one; equal by default.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.3)
    >>> members = credo.DeepEnsemble(credo.BayesByBackprop(num_steps=20), members=3)
    >>> posterior = credo.fit(model, credo.datasets.gap(20), members)
    >>> type(posterior).__name__, len(posterior.members), posterior.weights.round(2).tolist()
    ('Mixture', 3, [0.33, 0.33, 0.33])
    """

    stored_as: ClassVar[str] = "mixture"

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

    def placed(self, data: Data | FileData) -> Self:
        """This posterior with what it must know of the data it came from."""
        members = tuple(member.placed(data) for member in self.members)
        return replace(self, members=members, provenance=replace(self.provenance, num_data=data.num_labelled))

    @property
    def model(self) -> Model:  # type: ignore[override]
        """The model of the first member, bound to the shape of the data."""
        return self.members[0].model

    @cached_property
    def architectures(self) -> Architectures:
        """The models of the members, each once."""
        return Architectures(tuple(dict.fromkeys(self._free(member.model) for member in self.members)))

    @property
    def scaling(self) -> Scaling:  # type: ignore[override]
        """Between the user's units and those the model was fitted in."""
        return self.members[0].scaling

    @property
    def probes(self) -> np.ndarray | None:  # type: ignore[override]
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
        kinds = "/".join(sorted({type(member).__name__ for member in self.members}))
        numbers = " or ".join(f"{model.num_parameters:,}" for model in self.architectures.models)
        return f"Mixture({len(self.members)} × {kinds} over {numbers} numbers, {self._made})"

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
        architectures differ, each draw holds the leaves of all of them: see `credo.posterior.architectures`.
        """
        member_key, draw_key = jax.random.split(key)
        shape = (at_least_one(num=num),)
        chosen = np.asarray(jax.random.choice(member_key, len(self.members), shape, p=jnp.asarray(self.weights)))
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

    def with_model(self, change: Callable[[Model], Model]) -> Self:
        """This posterior of theta, in another model of the same theta."""
        return replace(self, members=tuple(member.with_model(change) for member in self.members))

    def judged(self) -> Self:
        """This posterior, of which p(y | x, theta) is asked for with what is true kept apart: see `label_errors`."""
        return replace(self, members=tuple(member.judged() for member in self.members))

    # -- use -----------------------------------------------------------------------------------------------

    def predict(self, x: Any, *, num_draws: int | None = None, of: str | None = None) -> Predictive:
        """The marginal p(y | x, D), averaged over draws of all members: the same ones at every call.

        Arguments:
            x: inputs in the user's units, (rows, …) as in training.
            num_draws: how many draws to average in all, spread evenly over the members and at least one of each;
                100 by default.
            of: the site to predict, where the model has another than what was observed ("y").
        """
        if of is not None:
            return self.about(of).predict(x, num_draws=num_draws)
        return self._predict(x, at_least_one(num_draws=num_draws, default=NUM_PREDICTIVE_DRAWS))[0]

    def _predict(self, x: Any, num: int) -> tuple[Predictive, np.ndarray]:
        """The marginal, and the member that each draw is of."""
        inputs = self.inputs(x)
        if all(isinstance(member, Gaussian) and member.prediction != "draws" for member in self.members):
            return linear_mixture(cast(Any, self.members), self.weights, inputs, num)
        theta, weights, owners = self._spread_out(inputs, num)
        models = self.architectures.models
        for model in models:
            theta |= model.local_noise(len(weights))
        conditional: Any = models[0] if len(models) == 1 else self.architectures
        return predictive(conditional, theta, inputs, weights=weights, scaling=self.scaling), owners

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """Whether the members differ, how much, and whether some are in trouble themselves.

        Of a mixture that `credo.compress` has made: what that saved and lost.
        """
        if self.provenance.compression:
            return self.provenance.compression
        members = [member.diagnostics for member in self.members]
        if self.probes is None:
            return diagnose_ensemble(members)
        return diagnose_ensemble(members, *self._predict(self.probes, NUM_PREDICTIVE_DRAWS * len(self.members)))

    # -- storage -------------------------------------------------------------------------------------------

    @property
    def models(self) -> list[Model]:
        """The models of the members, each once: more than one where they differ in architecture."""
        return list(dict.fromkeys(replace(member.model, xi=None) for member in self.members))

    def to_parts(self) -> Parts:
        configs, arrays, models = [], {"weights": self.weights}, self.models
        for index, member in enumerate(self.members):
            config, own = pack(member)
            configs.append(config | {"architecture": models.index(replace(member.model, xi=None))})
            arrays |= {f"members/{index}/{name}": value for name, value in own.items()}
        return {"members": configs}, arrays

    @classmethod
    def from_parts(cls, stored: Stored, *, provenance: Provenance, members: Sequence[Any], **_: Any) -> Self:
        weights = require_weights(stored.source, stored.arrays.get("weights"), (len(members),))
        with reading(stored.source, "members"):
            return cls(tuple(members), provenance, weights)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False, repr=False)
class PointEnsemble(Draws):
    """Draws that are point estimates, one per chain: Σᵢ αᵢ δ(theta − thetaᵢ), the paper's deep ensembles.

    They differ from the draws of a sampler in what there is to diagnose: no chain has anything to converge to.
    """

    stored_as: ClassVar[str] = "point_ensemble"

    @property
    def members(self) -> tuple[Draws, ...]:
        """Each point estimate as a posterior of its own."""
        return tuple(
            Draws(self.model, {name: leaf[index : index + 1] for name, leaf in self.theta.items()}, self.provenance)
            for index in range(self.num_chains)
        )

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """Whether the members differ, and how much."""
        members = [member.diagnostics for member in self.members]
        if self.probes is None:
            return diagnose_ensemble(members)
        return diagnose_ensemble(members, self.predict(self.probes), np.arange(self.num_chains))


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


def _concatenated(trees: Sequence[Theta]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([tree[name] for tree in trees]) for name in trees[0]}
