"""`credo.fit`: from a model, data and a method to a posterior."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo import random
from credo._compilation_cache import keep_programs
from credo._folders import require_nothing_to_resume
from credo._machine import memory_told
from credo._mesh import as_mesh
from credo._processes import by_one_of, entered_by_first, losses_told, require_same
from credo.data import Data, FileData, as_data
from credo.inference.auto import Choice, choose
from credo.inference.engine.feed import require_by_batch
from credo.inference.engine.fit_folder import FitFolder, Place, identity_of
from credo.inference.engine.same import digests
from credo.inference.engine.stages import FitStages
from credo.inference.ensemble.deep_ensemble import DeepEnsemble
from credo.inference.fitting_memory import refuse_if_too_large
from credo.inference.method import Method
from credo.inference.outcome import NonFiniteError, Outcome
from credo.inference.registry import as_method
from credo.inference.variational.vi import BayesByBackprop
from credo.models.on_features import on_features
from credo.models.program import Model
from credo.posterior import Draws, Posterior, load
from credo.posterior.architectures import Architectures
from credo.posterior.belief import Belief
from credo.posterior.believed import Believed
from credo.typing import Batch, Theta


@losses_told()
@memory_told("fitting", "take fewer rows, draws or chains, or a smaller network")
def fit(
    model: Model | Sequence[Model],
    data: Any,
    method: Method | Choice | str = "auto",
    *,
    seed: int = 0,
    validation: Any = None,
    progress: bool | None = None,
    checkpoint: str | Path | Place | None = None,
    resume: bool = False,
    start: Any = None,
    budget: float | None = None,
    mesh: Any = None,
) -> Posterior:
    """Infer p(theta | D): run a method on a model and data.

    Arguments:
        model: of `credo.models`, or `credo.Model(program)`; for a `DeepEnsemble` also a list of models that agree
            about y, of different architectures, to whom its members are dealt in turn.
        data: `credo.Data`, or a pair (x, y) of arrays with one row per example; or rows in files that need not fit
            into memory, `credo.Data.open(…)`, for methods that see minibatches.
        method: a method such as `credo.NUTS(num_samples=500)`, or its name. "auto" takes what
            `credo.choose(model, data)` chooses by their sizes, and `posterior.provenance.why` says why.
        seed: the same seed gives the same bits.
        validation: held-out data for early stopping: `Data`, a pair, or the share of `data` to set aside.
        progress: a live bar on stderr; by default where stderr is a terminal.
        checkpoint: a folder in which the run is written down as it goes, and its posterior at the end, as by
            `posterior.save(folder)`.
        resume: go on from what the folder holds, however the run before ended: the draws are the same bits as those
            of a run that nothing stopped. Where it holds nothing, a new run begins.
        start: a posterior of the same model, from whose draws chains and training set out: a warm start.
        budget: seconds on the clock for "auto" to spend on the default model of tables, where they help most.
        mesh: devices to fit on, a `jax.sharding.Mesh` with axes "chains" (chains, members) and "data" (shares of the
            rows); "auto" for all devices of all processes: as many along "chains" as divide their number, and the
            others along "data".

    >>> from credo import MAP, datasets, models, networks
    >>> model = models.regression(networks.MLP([10], out=1), noise=0.1)
    >>> fit(model, datasets.gap(), MAP(num_steps=10)).num_draws
    1
    """
    keep_programs()
    several = isinstance(model, list | tuple)
    given: Any = model if several else [model]
    models = [_as_model(one) for one in given]
    suited = models[0].suited if models else as_data
    everything = data if isinstance(data, FileData) else suited(data)
    if method == "auto" and several:
        raise ValueError("model is a list, and 'auto' chooses for one; pass credo.DeepEnsemble(method, members=…)")
    if method == "auto":
        method = choose(models[0], everything, budget=budget)
    elif budget is not None:
        raise ValueError("budget is for method='auto' to spend; a method that is named has settings of its own")
    choice = method if isinstance(method, Choice) else Choice(as_method(method))
    validation = choice.validation if validation is None else validation
    devices = as_mesh(mesh, choice.method.plan().num_chains, type(choice.method).__name__)
    train, held_out = _split(everything, validation, choice.method, suited)
    if start is not None and (several or isinstance(choice.method, DeepEnsemble)):
        raise ValueError("start: the members of an ensemble set out from places of their own; pass no start")
    together = devices is not None and jax.process_count() > 1
    job = Job(train, held_out, seed, FitStages(progress=progress, mesh=devices), start=start)
    if checkpoint is None:
        require_nothing_to_resume(resume)
    if checkpoint is None and not together:
        return job.fit_chosen(models, choice, several)
    bound = [one.bind(train) for one in models]
    starts = None if start is None else _from_posterior(start, bound[0], choice.method.plan().num_chains)
    rows = train.checksum if isinstance(train, FileData) else train.batch()
    identity = identity_of(choice.method, bound, (rows, held_out), seed, starts)
    if together:
        require_same(digests(identity, bound))
    if checkpoint is None:
        return job.fit_chosen(models, choice, several)
    folder = FitFolder(checkpoint, identity, resume=resume)
    # Of several processes, the first one reads and writes.
    done: Any = by_one_of(devices)
    with entered_by_first(folder) if together else folder:
        left = [choice.method.leaves(one, train) for one in models]
        finished = done(lambda: load(folder.folder, model=left if several else left[0]) if folder.is_finished else None)
        if finished is not None:
            return finished
        stages = FitStages(folder.checkpoints, progress=progress, mesh=devices)
        posterior = replace(job, stages=stages).fit_chosen(models, choice, several)
        if not posterior.provenance.interrupted:
            done(lambda: folder.finish(posterior))
        return posterior


@dataclass(frozen=True, eq=False)
class Job:
    """What the fits of one call share.

    Arguments:
        belief: what is known of theta already, in place of the prior, and the share of it that is kept.
    """

    data: Data | FileData
    held_out: Batch | None
    seed: int
    stages: FitStages
    belief: Belief | None = None
    kept: float = 1.0
    start: Any = None

    def fit_chosen(self, models: Sequence[Model], choice: Choice, several: bool) -> Posterior:
        """The models by the method of choice; the posterior knows why that one."""
        posterior: Any = self.fit_each(models, choice.method) if several else self.fit(models[0], choice.method)
        return replace(posterior, provenance=replace(posterior.provenance, why=choice.why))

    def fit(self, model: Model, method: Method) -> Posterior:
        """One model: its starting points, the run, and the posterior in the user's units."""
        bound, before = model.bind(self.data), self.stages.seconds
        refuse_if_too_large([(method, bound)], self.data)
        batch = self.data.batch()
        bound = self._with_learned_xi(method, bound, batch)
        own, batch, held_out = self._on_features(method, bound, batch)
        if self.belief is not None:
            own = Believed.of(own, self.belief, self.kept)

        def placed(posterior: Any) -> Posterior:
            whole = posterior if own is bound else posterior.with_model(restored)
            return whole.placed(self.data)

        def restored(found: Model) -> Model:
            return bound.freeze(found.frozen_xi) if found.frozen_xi else bound

        try:
            starts = self._starts(method, own, batch)
            outcome = self._run(method, own, batch, starts=starts, held_out=held_out)
        except NonFiniteError as error:
            if error.posterior is not None:
                error.posterior = placed(error.posterior)
            raise
        # What it took to find where to start, and parameters of the prior, is part of the fit.
        outcome = replace(outcome, seconds=self.stages.seconds - before)
        return placed(method.posterior(own, outcome))

    def fit_each(self, models: Sequence[Model], method: Method) -> Posterior:
        """An ensemble of several models: the members of each are one run."""
        if not isinstance(method, DeepEnsemble):
            raise ValueError(
                "model is a list, which only an ensemble can deal to its members, and method is "
                f"{type(method).__name__}; pass one model, or credo.DeepEnsemble(method, members=…)"
            )
        shares = method.dealt(len(models))
        bound = [model.bind(self.data) for model in models]
        Architectures(tuple(bound))  # refuses models that do not go together, before any of them is trained
        refuse_if_too_large(list(zip(shares, bound, strict=True)), self.data)
        parts: list[Any] = []
        for index, (model, share) in enumerate(zip(models, shares, strict=True)):
            # Seeds apart from each other, and from those of runs with the next seed.
            own = int(np.random.SeedSequence((self.seed, index)).generate_state(1)[0] >> 1)
            parts.append(replace(self, seed=own).fit(model, share))
            if parts[-1].provenance.interrupted:
                break
        return method.mixed(parts, len(models), self.seed)

    def _run(self, method: Method, model: Model, data: Batch, **options: Any) -> Outcome:
        files = self.data if isinstance(self.data, FileData) else None
        if files is not None:
            require_by_batch(type(method).__name__, options.get("plan") or method.plan())
        return self.stages.run(method, model, data, seed=self.seed, files=files, **options)

    def _with_learned_xi(self, method: Method, model: Model, data: Batch) -> Model:
        """The `param` sites that the method does not learn, parameters of the prior or points: found first, then fixed.

        Laplace climbs the evidence in a few parameters of the prior; whole layers are not for it.
        """
        plan = method.plan()
        points = [] if plan.learns_points else [name for name in model.xi_template if name in model.points]
        others = [] if plan.learns_xi else [name for name in model.xi_template if name not in model.points]
        if not points and not others:
            return model
        first = BayesByBackprop()
        outcome = self._run(first, model, data)
        what = {"parameters": others, "point layers": points}
        listed = " or ".join(f"{kind} {', '.join(names)}" for kind, names in what.items() if names)
        warnings.warn(
            f"{type(method).__name__} does not learn the model's {listed}: "
            "credo.BayesByBackprop() has found them first, and they are kept fixed",
            stacklevel=4,
        )
        found = first.posterior(model, replace(outcome, stages=None)).model.frozen_xi
        return model.freeze({name: found[name] for name in (*others, *points)})

    def _on_features(self, method: Method, model: Model, data: Batch) -> tuple[Model, Batch, Batch | None]:
        """Model, data and held-out data, on features that are computed once where all points are constants."""
        is_whole = not (method.plan().acts_inside or isinstance(self.data, FileData))
        found = on_features(model, data.x.shape[0]) if is_whole else None
        if found is None:
            return model, data, self.held_out
        held_out = None if self.held_out is None else found.batch(self.held_out)
        return found.model, found.batch(data), held_out

    def _starts(self, method: Method, model: Model, data: Batch) -> Theta | None:
        """Where another method is to find the starting points, run it first: one member per chain, from the prior.

        What is believed already is a place to start from: its centre, or a draw for each chain.
        """
        first, num_chains = method.plan().start, method.plan().num_chains
        if self.start is not None:
            return _from_posterior(self.start, model, num_chains)
        if self.belief is not None and first == "network":
            return {name: jnp.stack([leaf] * num_chains) for name, leaf in self.belief.typical().items()}
        if not isinstance(first, Method) and self.belief is None:
            return None
        # A key apart from those of the chains, which are numbered from zero.
        draws = model.sample_prior(jax.random.fold_in(random.key(self.seed), 2**31), num_chains)
        if not isinstance(first, Method):
            return draws
        plan = replace(first.plan(), num_chains=num_chains)
        outcome = self._run(first, model, data, plan=plan, starts=draws)
        if outcome.interrupted:
            raise KeyboardInterrupt("interrupted on the way to the starting points: nothing has been drawn yet")
        found: Any = first.posterior(model, outcome)
        return {name: leaf[:, -1] for name, leaf in found.theta.items()}


def _from_posterior(posterior: Any, model: Model, num: int) -> Theta:
    """theta of the last draw of each chain, or of the mean, or of draws at random: one for each of `num` chains."""
    if isinstance(posterior, Draws):
        found = {name: leaf[np.arange(num) % posterior.num_chains, -1] for name, leaf in posterior.theta.items()}
    elif num == 1 and hasattr(posterior, "mean"):
        found = {name: leaf[None] for name, leaf in posterior.mean.items()}
    else:
        found = posterior.sample(random.key(posterior.provenance.seed), num)
    shapes = {name: leaf.shape for name, leaf in model.template.items()}
    if {name: leaf.shape[1:] for name, leaf in found.items()} != shapes:
        raise ValueError(
            "start is a posterior of another model: its parameters have other names or shapes; pass one of this model"
        )
    return {name: np.asarray(found[name]) for name in shapes}


def _as_model(model: Any) -> Model:
    if isinstance(model, Model):
        return model
    raise ValueError(
        f"model must be a credo.Model, got {type(model).__name__}; wrap a network with "
        "credo.models.regression(net) or credo.models.classification(net)"
    )


def _split(data: Any, validation: Any, method: Method, suited: Callable[[Any], Data]) -> tuple[Any, Batch | None]:
    if validation is None:
        return data, None
    if not method.plan().uses_held_out:
        raise ValueError(f"validation: {type(method).__name__} does not stop early, so it has no use for held-out data")
    if isinstance(validation, float) and isinstance(data, FileData):
        raise ValueError("validation is a share of rows in files; pass rows of their own, credo.Data or (x, y)")
    if isinstance(validation, float):
        train, rest = data.split(validation)
        return train, rest.batch()
    held_out = suited(validation)
    try:
        held_out = held_out.arranged(data.names)
    except ValueError as error:
        raise ValueError(f"validation: {error}") from error
    if held_out.x.shape[1:] != data.x.shape[1:] or held_out.y.shape[1:] != data.y.shape[1:]:
        raise ValueError(
            f"validation: rows of x {held_out.x.shape[1:]} and y {held_out.y.shape[1:]} do not fit those of the data, "
            f"{data.x.shape[1:]} and {data.y.shape[1:]}"
        )
    if held_out.has_gaps and not data.has_gaps:
        raise ValueError(
            "validation: some of its rows miss some of their targets, and those of the data do not; leave them out"
        )
    return data, held_out.with_scaling(data.scaling).batch()
