"""Deep ensembles: the same method run from several starting points, and the mixture of what they find.

Paper, "Deep ensembles": a posterior has many modes, an optimiser finds one of them, and an ensemble as many as it has
members. The members are the chains of one run of the engine.

Lakshminarayanan et al., "Simple and scalable predictive uncertainty estimation using deep ensembles" (2017).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import jax
import numpy as np

from credo._checks import require_at_least
from credo.inference.ensemble.anchored import Anchored
from credo.inference.guide import Guide, Reach
from credo.inference.method import Method, Wrapper
from credo.inference.needs import Needs
from credo.inference.outcome import Outcome
from credo.inference.plan import Plan
from credo.inference.point.map import MAP
from credo.models.program import Model
from credo.posterior import Draws, Provenance
from credo.posterior.mixture import Mixture, cut_to_shortest, joined
from credo.typing import Batch, Key, Theta, Tree


@dataclass(frozen=True)
class DeepEnsemble(Wrapper):
    """Independent runs of one method, side by side: Σᵢ αᵢ qᵢ(theta).

    Point estimates become `Draws` with a chain per member, a mixture of Dirac deltas; so do the draws of samplers;
    anything else becomes a `Mixture`.

    Members must start apart. The network's own values (start="network") are the same for all of them, so each member
    starts from those values *shuffled within each array*: a fresh draw from the same initialisation, whatever framework
    made it. Arrays of one value (biases at zero) stay as they are, and an initialisation whose order has a meaning
    (orthogonal) loses it; start="prior" draws each member's values from the prior instead.

    Members may differ in architecture too: `credo.fit([model_a, model_b], data, DeepEnsemble(…))` deals them to the
    models in turn, and the result is a `Mixture`.

    Where a start is all that tells them apart, members agree wherever there is one mode, however wide. Two options make
    them differ by what the data leave open:

    Arguments:
        method: what each member does: `MAP`, `BayesByBackprop`, `IVON`, `SWAG`, or any other method of one chain.
        members: how many.
        weights: the αᵢ, at least zero; they are divided by their sum. Equal by default.
        anchored: each member, a `MAP`, has a prior around an anchor of its own, drawn from the prior, and targets with
            noise added that is drawn from the model. The spread is then that of the posterior for linear regression
            with known noise, and of the prior where the data are silent. It takes normal priors. Targets that are not
            normal given theta (class labels, counts) get no noise: there only the anchor is random, and the spread is
            too small where there are many data. See `credo.inference.ensemble.anchored`.
        bagging: each member sees as many rows as there are, drawn with replacement (Breiman, "Bagging predictors",
            1996).

    >>> DeepEnsemble(MAP(num_steps=500), members=3, weights=[2, 1, 1]).weights
    (0.5, 0.25, 0.25)
    """

    guide: ClassVar[Guide] = Guide(
        exact="approximate",
        benefits="finds several modes; robust, simple and parallel",
        limits="members of MAP alone miss the uncertainty around each mode",
        use_cases="models with several modes; large models; around any other method of one chain",
        stores="what its method stores, once for each member",
        costs="what its method costs, once for each member",
        reaches=Reach(0.1, (0.0, 0.1)),
    )

    method: Method = field(default_factory=MAP)
    members: int = 5
    weights: Sequence[float] | None = None
    anchored: bool = False
    bagging: bool = False

    def __post_init__(self) -> None:
        require_at_least(1, members=self.members)
        if not isinstance(self.method, Method):
            raise ValueError(f"method must be a method such as credo.MAP(), got {self.method!r}")
        name = type(self.method).__name__
        if isinstance(self.method, DeepEnsemble):
            raise ValueError("method is a DeepEnsemble itself; ask the inner one for more members instead")
        num_chains = self.method.plan().num_chains
        if num_chains > 1:
            raise ValueError(
                f"method: {name} runs {num_chains} chains, which are an ensemble already; use credo.{name} by itself, "
                "or a method of one chain such as credo.MAP()"
            )
        if self.anchored and type(self.method) is not MAP:
            raise ValueError(
                f"anchored=True is for members that are modes of the posterior, credo.MAP(), and method is {name}: "
                "the spread of its members would be counted on top of the spread between them, or it has no prior"
            )
        if self.anchored and self.bagging:
            raise ValueError(
                "anchored=True disturbs the targets by their noise, and bagging=True draws them anew: together they "
                "would count that noise twice; choose one"
            )
        if self.weights is not None:
            object.__setattr__(self, "weights", _shares(self.weights, self.members))

    @property
    def inner(self) -> Method:
        """What a member does, its own disturbance included."""
        return Anchored(self.method) if self.anchored else self.method

    def plan(self) -> Plan:
        plan = replace(self.inner.plan(), num_chains=self.members)
        return replace(plan, rows="resampled") if self.bagging else plan

    @property
    def words(self) -> Guide:
        inner = self.method.words
        fewer = f"take fewer members, or, for each of them, {inner.if_too_large}"
        return replace(self.guide, if_non_finite=inner.if_non_finite, if_too_large=fewer)

    def stores(self, model: Model) -> Needs:
        one = self.method.stores(model)
        return Needs(one.num_parameters, f"{self.members} × {one.stored}", self.members * one.num_bytes)

    def init(self, key: Key, model: Model, theta: Theta, data: Batch, held_out: Batch | None) -> Tree:
        shuffle_key, init_key = jax.random.split(key)
        if self.plan().start == "network":
            theta = _shuffled(shuffle_key, model, theta)
        return super().init(init_key, model, theta, data, held_out)

    def posterior(self, model: Model, outcome: Outcome) -> Draws | Mixture:
        parts: list[Any] = [self.inner.posterior(model, outcome.part(index)) for index in range(outcome.num_chains)]
        # The time of the run, and of what each member took beside it.
        seconds = outcome.seconds + sum(part.provenance.seconds - outcome.seconds for part in parts)
        provenance = replace(outcome.provenance(self.to_config()), seconds=seconds)
        has_own_xi = len({part.model.xi for part in parts}) > 1
        if not has_own_xi and all(isinstance(part, Draws) for part in parts):
            return joined(parts, provenance, self.weights)
        # After an early stop the engine cuts all figures where a chunk ended, which is a matter of speed.
        traces = cut_to_shortest([part.trace or {} for part in parts])
        members = tuple(replace(part, trace=trace) for part, trace in zip(parts, traces, strict=True))
        return Mixture(members, provenance, self.weights)  # type: ignore[arg-type]

    # -- different architectures ---------------------------------------------------------------------------

    def dealt(self, num_models: int) -> list["DeepEnsemble"]:
        """The ensemble of each model: members are dealt to the models in turn. Their weights are left to `mixed`.

        >>> [share.members for share in DeepEnsemble(members=5).dealt(2)]
        [3, 2]
        """
        if not 1 <= num_models <= self.members:
            raise ValueError(
                f"model is a list of {num_models}, to which {self.members} members cannot be dealt; pass at least one "
                "model, and a member for each"
            )
        counts = [len(range(first, self.members, num_models)) for first in range(num_models)]
        return [replace(self, members=count, weights=None) for count in counts]

    def mixed(self, parts: Sequence[Any], num_models: int, seed: int) -> "Mixture":
        """The mixture of the members of all models, in the order in which they were dealt.

        Arguments:
            parts: the posterior of each model's members; of the first models only, where the run was interrupted.
        """
        dealt = {
            first + turn * num_models: member
            for first, part in enumerate(parts)
            for turn, member in enumerate(_members(part))
        }
        order = sorted(dealt)
        weights = None if self.weights is None else _shares([self.weights[index] for index in order], len(order))
        made = [part.provenance for part in parts]
        seconds, interrupted = sum(one.seconds for one in made), any(one.interrupted for one in made)
        provenance = Provenance(self.to_config(), seed, seconds, made[0].num_data, interrupted)
        members = tuple(dealt[index] for index in order)
        return Mixture(members, provenance, weights)  # type: ignore[arg-type]


def _shares(weights: Sequence[float], members: int) -> tuple[float, ...]:
    """The weights as shares of their sum."""
    values = np.asarray(weights, np.float64)
    if values.shape != (members,) or not np.all(np.isfinite(values)) or np.any(values < 0) or not values.sum() > 0:
        raise ValueError(
            f"weights must be {members} numbers of at least zero, one for each member and not all zero, got {weights}"
        )
    return tuple((values / values.sum()).tolist())


def _shuffled(key: Key, model: Model, theta: Theta) -> Theta:
    """theta with each of the network's own arrays shuffled within itself."""
    if model.initial is None:
        return theta
    # What is not the network's was drawn from the prior, for each member anew.
    own = sorted(jax.eval_shape(model.initial, model.example().x).keys() & theta.keys())
    keys = jax.random.split(key, len(own))
    shuffled = {
        name: jax.random.permutation(one, theta[name].reshape(-1)).reshape(theta[name].shape)
        for one, name in zip(keys, own, strict=True)
    }
    return theta | shuffled


def _members(posterior: "Draws | Mixture") -> "list[Any]":
    """The posterior of each member."""
    if isinstance(posterior, Mixture):
        return list(posterior.members)

    def chain(index: int) -> Draws:
        theta, infos, trace = (
            {name: leaf[index : index + 1] for name, leaf in (tree or {}).items()}
            for tree in (posterior.theta, posterior.infos, posterior.trace)
        )
        weights = None if posterior.weights is None else posterior.weights[index : index + 1]
        shares = None if weights is None else weights / weights.sum()
        places = (posterior.scaling, posterior.probes)
        return Draws(posterior.model, theta, posterior.provenance, shares, infos, trace, *places)

    return [chain(index) for index in range(posterior.num_chains)]
