"""Online learning: data come batch by batch, and each posterior is the prior of the next batch.

Paper, "Advantages of Bayesian methods for deep learning", online learning:

    p(theta | D₁ … D_t) ∝ p(D_t | theta) p(theta | D₁ … D_{t−1})

No row need be kept. For a posterior that is exact (`ClosedForm`) the order and the sizes of the batches do not matter,
and the evidence adds up, log p(D₁, D₂) = log p(D₁) + log p(D₂ | D₁); for others each step is as good as their q.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, Self

import numpy as np

from credo._machine import memory_told
from credo.data import Data, require_equal_precisions, require_uncensored
from credo.data.capacity import capacity_for
from credo.inference.distilled import Distilled
from credo.inference.dropout.mc_dropout import MCDropout
from credo.inference.engine.stages import FitStages
from credo.inference.ensemble.deep_ensemble import DeepEnsemble
from credo.inference.fit import Job
from credo.inference.method import Method
from credo.inference.point.map import MAP
from credo.inference.registry import as_method
from credo.learning import online_folder
from credo.learning.beliefs import Density, belief_of
from credo.learning.drift import DriftAlarm
from credo.learning.going_on import NothingToGoOnFrom
from credo.learning.held_back import Choice, held_back, joined
from credo.learning.judgement import Judgement, judged_before
from credo.learning.learned import Learned, Settings, log_evidence_of
from credo.learning.new_classes import with_new_classes
from credo.learning.reweighted import reweighted
from credo.models.program import Model
from credo.posterior import Mixture, Posterior


def online(
    model: Model | Posterior,
    method: Method | str,
    *,
    forgetting: float = 1.0,
    coreset: int = 0,
    choice: Choice = "random",
    density: Density = "gaussian",
    seed: int = 0,
) -> "Online":
    """A learner for data that come batch by batch: `learner.update(batch)` makes its posterior the prior of the next.

        p(theta | D₁ … D_t) ∝ p(D_t | theta) · p(theta | D₁ … D_{t−1})^λ · p(theta)^(1−λ)

    λ = 1 is Bayes' rule. Below one it forgets, for streams that drift: before each batch the natural parameters of what
    is believed move back towards the prior by the share 1 − λ, so that a batch counts λᵏ after k more, and the learner
    remembers about 1/(1 − λ) batches.

    Gaussians of any structure are handed on as they are, draws through a Gaussian or a flow fitted to them; each
    component of a mixture is updated by itself, and weighted by its evidence (the members of a `DeepEnsemble` keep
    their weights). What the first batch fixes stays: the scaling of the data, point layers, and what the prior or the
    noise leaves to be tuned.

    Before a batch is learned it is predicted: `learner.judgement` is its log score, and `learner.drift` an alarm that
    rings when the targets become more improbable than they have been. A label that nobody has seen before is a new
    class: the output layer grows, its new outputs come from the prior, and what is known about the others is kept.

    Arguments:
        model: of `credo.models`, or a posterior to go on from, of any fit.
        method: what learns each batch, such as `credo.ClosedForm()`, `credo.Laplace()` or `credo.BayesByBackprop()`.
        forgetting: λ, above 0 and at most 1.
        coreset: rows of each batch that are held back from the posterior, kept, and learned last: on the way to each
            prediction the posterior is refined on all of them (Nguyen et al.), so that old tasks are not forgotten.
        choice: which rows are held back, "random" or "k-center" (those that are farthest from each other).
        density: how draws, and flows, are handed on: by a "gaussian" that is fitted to them (with all covariances where
            there are ten draws for each of up to 2,000 numbers, else the variances alone), a "diagonal" one, a "flow",
            or as they are, by "weights" that follow the likelihood of each batch, which is exact while enough draws
            have weight.
        seed: the same seed and the same batches give the same bits.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.1)
    >>> learner = credo.online(model, credo.ClosedForm())
    >>> x = np.linspace(-1, 1, 20)
    >>> for half in (x[:10], x[10:]):
    ...     posterior = learner.update((half, 2 * half))
    >>> posterior.provenance.num_data
    20

    Reference: Opper, "A Bayesian approach to on-line learning" (1998); Nguyen et al., "Variational continual learning"
    (2018); Ritter, Botev and Barber, "Online structured Laplace approximations" (2018).
    """
    settings = Settings(forgetting, coreset, choice, density, seed)
    return Online(model, method, settings) if isinstance(model, Model) else Online.of(model, method, settings)


class Online:
    """What learns batch by batch: see `online`.

    Arguments:
        model: of which nothing is known yet; what is known is in `learned`.
        method: what learns each batch.
        settings: how it is handed on.
        learned: where it stands; None before the first batch.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.3)
    >>> learner = credo.online(model, credo.ClosedForm())
    >>> for batch in (credo.datasets.gap(20), credo.datasets.gap(10, seed=1)):
    ...     posterior = learner.update(batch)
    >>> learner.num_data, learner.num_updates
    (30, 2)
    """

    def __init__(
        self, model: Model, method: Method | str, settings: Settings | None = None, learned: Learned | None = None
    ) -> None:
        self.model, self.method = model, as_method(method)
        self.settings, self.learned = settings or Settings(), learned
        require_distribution(self.method)
        self._lock = Lock()

    @classmethod
    def of(cls, posterior: Any, method: Method | str, settings: Settings | None = None) -> Self:
        """A learner that goes on from a posterior, of whatever fit."""
        if not hasattr(posterior, "provenance"):
            raise ValueError(
                f"model must be a credo.Model, or a posterior to go on from, got {type(posterior).__name__}; wrap a "
                "network with credo.models.regression(net) or credo.models.classification(net)"
            )
        chosen = settings or Settings()
        for member in _members(posterior) if chosen.density != "weights" else ():
            belief_of(member, chosen.density)
        return cls(posterior.model, method, chosen, Learned.of(posterior, chosen))

    @property
    def posterior(self) -> Any:
        """p(theta | D₁ … D_t); a ValueError before the first batch."""
        if self.learned is None:
            raise ValueError("the learner has not seen any data; call learner.update(batch) first")
        return self.learned.posterior

    @property
    def num_updates(self) -> int:
        """How many batches it has learned."""
        return 0 if self.learned is None else self.learned.num_updates

    @property
    def num_data(self) -> int:
        """How many rows with a target it has learned."""
        return 0 if self.learned is None else self.learned.num_data

    @property
    def log_evidence(self) -> float | None:
        """log p(D₁ … D_t) = Σ log p(D_t | D₁ … D_{t−1}), or a lower bound; None where it is not known."""
        return None if self.learned is None else self.learned.log_evidence

    @property
    def drift(self) -> DriftAlarm:
        """The alarm: it hears how improbable each batch is before it is learned, up to 2,000 rows of each."""
        return DriftAlarm(seed=self.settings.seed) if self.learned is None else self.learned.drift

    @property
    def judgement(self) -> Judgement:
        """What the last batch was before it was learned: its log score, and classes that nobody had seen before."""
        return Judgement() if self.learned is None else self.learned.judgement

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles, which have a lock of their own."""
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=Lock())

    def __repr__(self) -> str:
        return f"Online({type(self.method).__name__}, {self.num_updates} batches, {self.num_data:,} rows)"

    def update(self, batch: Any, *, progress: bool | None = None) -> Posterior:
        """Learn a batch, and return the posterior of all data so far; if that fails, nothing has been learned.

        Arguments:
            batch: `credo.Data` or (x, y), rows like those of the first batch, whose scaling is kept.
            progress: a live bar on stderr; by default where stderr is a terminal.
        """
        with self._lock:
            self.learned = self._after(batch, progress)
            return self.learned.posterior

    @memory_told("learning a batch", "take fewer rows at a time, or a smaller network")
    def _after(self, batch: Any, progress: bool | None) -> Learned:
        before, seed = self.learned, self._seed()
        data, judgement, drift = self._like_before(batch), self.judgement, self.drift
        if before is not None:
            judgement, drift = judged_before(before.posterior, data, drift)
            if judgement.new_classes:
                before = replace(before, belief=with_new_classes(before.belief, data, seed=seed))
        rest, kept = data, None if before is None else before.kept
        if self.settings.coreset:
            rest, chosen = held_back(data, self.settings.coreset, self.settings.choice, seed)
            kept = joined(kept, chosen)
        work = _Work(self, progress)
        belief = work.first(rest, seed) if before is None else work.next(before.belief, rest, seed)
        num_data = self.num_data + data.num_labelled
        posterior = belief
        if kept is not None:
            # A seed of its own, apart from those of the batches.
            posterior = work.refined(belief, kept.padded(capacity_for(kept.size)), seed + 1)
        belief, posterior = (_of_rows(one, num_data) for one in (belief, posterior))
        evidence, num_updates = self._evidence_after(belief), self.num_updates + 1
        return Learned(belief, posterior, num_updates, num_data, evidence, kept, drift, judgement)

    def _seed(self) -> int:
        """The first batch has the seed itself: it is an ordinary fit. Others have seeds apart from all of these."""
        if self.learned is None:
            return self.settings.seed
        return int(np.random.SeedSequence((self.settings.seed, self.num_updates)).generate_state(1)[0] >> 1)

    def _like_before(self, batch: Any) -> Data:
        """The batch in the units of the first one; a ValueError if its rows are not like those."""
        if self.learned is None:
            first = self.model.suited(batch)
            require_uncensored(first, "credo.online")
            require_equal_precisions(first, "credo.online")
            return first
        model, scaling = self.learned.belief.model, self.learned.belief.scaling
        try:
            data = model.like_training(batch)
        except ValueError as error:
            raise ValueError(f"batch: {error}") from error
        require_uncensored(data, "credo.online")
        require_equal_precisions(data, "credo.online")
        rows = model.rows
        for what, found, expected in (
            ("x", data.x.shape[1:], rows.x_shape[1:]),
            ("y", data.y.shape[1:], (rows.y_shape or (0,))[1:]),
        ):
            if found != expected:
                raise ValueError(
                    f"batch: rows of {what} have shape {found}, and those of the batches before {expected}"
                )
        return data.with_scaling(scaling)

    def _evidence_after(self, belief: Any) -> float | None:
        before = 0.0 if self.learned is None else self.learned.log_evidence
        found = log_evidence_of(belief)
        if before is None or found is None or self.settings.forgetting < 1 or self.settings.coreset:
            return None
        return before + found

    def save(self, folder: str | Path) -> None:
        """Write the learner into a folder: `credo.Online.load` goes on from there, `credo.load` reads its posterior."""
        if self.learned is None:
            raise ValueError("the learner has not seen any data, so there is nothing to save; call update first")
        online_folder.save(self.learned, self.method, self.settings, folder)

    @classmethod
    def load(cls, folder: str | Path, *, method: Method | None = None, network: Any = None, model: Any = None) -> Self:
        """The learner that `save` wrote: it goes on with the same bits as if nothing had stopped it.

        Arguments:
            method: the one that it was made with, where that has settings that text cannot hold (an optax optimiser).
            network, model: as in `credo.load`.
        """
        learned, chosen, settings = online_folder.load(folder, method=method, network=network, model=model)
        return cls(learned.belief.model, chosen, settings, learned)


@dataclass(frozen=True, eq=False)
class _Work:
    """The fits of one update."""

    learner: Online
    progress: bool | None

    def first(self, data: Data, seed: int) -> Any:
        """An ordinary fit: the prior is the model's own."""
        return self._job(data, seed).fit(self.learner.model, self.learner.method)

    def next(self, before: Any, data: Data, seed: int) -> Any:
        """Each component of what is believed is updated by itself."""
        return self._updated(before, data, seed, self.learner.settings.forgetting)

    def refined(self, before: Any, data: Data, seed: int) -> Any:
        """The same on rows that were held back: nothing is forgotten on the way."""
        return self._updated(before, data, seed, 1.0)

    def _updated(self, before: Any, data: Data, seed: int, kept: float) -> Any:
        if self.learner.settings.density == "weights":
            return reweighted(before, data, kept=kept)
        learner, members = self.learner, _members(before)
        is_ensemble = isinstance(learner.method, DeepEnsemble)
        method = learner.method.method if isinstance(learner.method, DeepEnsemble) else learner.method
        parts: list[Any] = []
        for index, member in enumerate(members):
            job = self._job(data, seed + index)
            belief = belief_of(member, learner.settings.density)
            parts.append(replace(job, belief=belief, kept=kept).fit(member.model, method))
        if not isinstance(before, Mixture):
            return parts[0]
        weights = before.weights if is_ensemble else _weighted(before.weights, parts)
        made = parts[0].provenance
        seconds = sum(part.provenance.seconds for part in parts)
        return Mixture(tuple(parts), replace(made, method=learner.method.to_config(), seconds=seconds), weights)

    def _job(self, data: Data, seed: int) -> Job:
        return Job(data, None, seed, FitStages(progress=self.progress))


def _members(posterior: Any) -> tuple[Any, ...]:
    return posterior.members if isinstance(posterior, Mixture) else (posterior,)


def _weighted(weights: np.ndarray, parts: list[Any]) -> np.ndarray:
    """wᵢ p(D_t | component i), over their sum; as they are where the evidence is not known."""
    found = [log_evidence_of(part) for part in parts]
    if any(one is None for one in found):
        return weights
    log_weights = np.log(np.maximum(weights, np.finfo(float).tiny)) + np.array(found)
    shares = np.exp(log_weights - log_weights.max())
    return shares / shares.sum()


def _of_rows(posterior: Any, num_data: int) -> Any:
    return replace(posterior, provenance=replace(posterior.provenance, num_data=num_data))


def require_distribution(method: Method) -> None:
    """Refuse a method that leaves points or functions: there would be nothing to be the prior of the next batch."""
    inner = method.method if isinstance(method, DeepEnsemble) else method
    if isinstance(inner, MAP | MCDropout | Distilled):
        raise NothingToGoOnFrom(
            f"method: {type(inner).__name__} leaves no distribution over theta, which could be the prior of the next "
            "batch",
            "take credo.Laplace(), credo.BayesByBackprop(), credo.IVON() or credo.SWAG(), an ensemble of those, or a "
            "sampler such as credo.NUTS()",
        )
