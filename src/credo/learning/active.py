"""`credo.active`: labels where they tell the most.

Paper, "Advantages of Bayesian methods for deep learning", the active learning loop: until enough is known,

    fit p(theta | D),    ask the oracle about the rows x of the pool with the highest acquisition,    D ← D ∪ {(x, y)}

What is compiled for the first round serves all others: the labels so far are padded to those to come.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from credo._checks import require_at_least
from credo._files import checksum_of
from credo._folders import locked, require_nothing_to_resume
from credo._html import InNotebook
from credo.data import Data, as_inputs, capacity_for, filled, has_target
from credo.evaluation.checks import predicted
from credo.evaluation.scores import accuracy, nll, rmse
from credo.inference.auto import Choice, choose
from credo.inference.fit import fit
from credo.inference.method import Method
from credo.inference.registry import as_method
from credo.learning.acquisition import Acquisition
from credo.learning.acquisitions import as_acquisition
from credo.learning.answers import Answers
from credo.models.program import Model
from credo.posterior import Posterior, load
from credo.predictive import ClassPredictive

NO_ROWS = np.empty(0, np.int64)


class OracleError(RuntimeError):
    """The oracle failed; `data` is the pool with all labels that were given until then, a pool to go on with."""

    def __init__(self, message: str, data: Data | None) -> None:
        super().__init__(message)
        self.data = data


@dataclass(frozen=True, eq=False)
class Round(InNotebook):
    """One turn of the loop.

    Arguments:
        number: of the round: how many batches of questions have been answered.
        posterior: given the labels so far.
        num_labels: how many these are.
        asked: rows of the pool that the oracle is asked about when the loop goes on, the best first; none at the end.
        scores: of each row of the pool, on its own; None at the end.
        test: figures on the test set, by name: accuracy or rmse, and nll.
        data: the pool, with the labels so far.
    """

    number: int
    posterior: Posterior
    num_labels: int
    asked: np.ndarray
    scores: np.ndarray | None
    test: dict[str, float]
    data: Data = field(repr=False)

    def __str__(self) -> str:
        figures = "".join(f", {name} {value:.4g}" for name, value in self.test.items())
        asks = f"asks about rows {', '.join(map(str, self.asked))}" if len(self.asked) else "asks nothing more"
        return f"Round {self.number}: {self.num_labels:,} labels{figures}; {asks}"


def active(
    model: Model,
    pool: Any,
    oracle: Any,
    method: Method | Choice | str = "auto",
    acquisition: Any = "bald",
    batch: int = 10,
    stop: int | Callable[[Round], bool] | None = None,
    *,
    initial: int | Sequence[int] | None = None,
    test: Any = None,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    warm_start: bool = False,
) -> Iterator[Round]:
    """Learn from few labels: fit, ask about the rows that would tell the most, and again. A generator of rounds.

    The oracle is asked when the loop goes on to the next round; the last round asks nothing. It comes when `stop` says
    so, or when the pool is used up.

    Arguments:
        model: of `credo.models`, or `credo.Model(program)`.
        pool: inputs (rows, …), or `credo.Data`, of which rows with a target are labels to begin with.
        oracle: the targets of all rows, hidden until they are asked for; or a function from the number of a row to its
            target, which may be None: it cannot tell, and is not asked again.
        method: as for `credo.fit`; "auto" chooses by the number of labels in the end.
        acquisition: what a label is worth: "bald", "batch_bald", "epig", "entropy", "margin", "variation_ratios",
            "variance", "largest_eigenvalue", "log_det", "random"; a function from a prediction to a score for each row;
            or one of `credo.acquisitions` with settings of its own.
        batch: how many rows are asked about at a time.
        stop: how many labels to stop at, or a function that says of a round whether it is the last one.
        initial: rows to ask about first, or how many, drawn at random; a batch, if the pool has no labels.
        test: `Data` or (x, y) to judge each round on.
        seed: the same seed gives the same rounds.
        checkpoint: a folder in which every answer is written down before the next question.
        resume: go on from what the folder holds, with the round in which the run before ended.
        warm_start: whether a fit sets out from the posterior of the round before.

    >>> from credo import MAP, DeepEnsemble, models, networks
    >>> x = np.linspace(-2, 2, 50)
    >>> net = DeepEnsemble(MAP(num_steps=20), members=3)
    >>> rounds = active(models.regression(networks.MLP([8], out=1)), x, np.sin(x), net, batch=2, stop=6)
    >>> [one.num_labels for one in rounds]
    [2, 4, 6]
    """
    data = pool if isinstance(pool, Data) else None
    x = as_inputs(pool)
    loop = _Loop(
        model=model,
        x=x,
        pool=data,
        oracle=_as_oracle(oracle, len(x)),
        method=method if isinstance(method, Choice) or method == "auto" else Choice(as_method(method)),
        acquisition=as_acquisition(acquisition),
        batch=batch,
        stop=stop,
        test=None if test is None else model.suited(test),
        seed=seed,
        warm_start=warm_start,
    )
    first = loop.first_rows(initial)
    if checkpoint is None:
        require_nothing_to_resume(resume)
        return loop.rounds(Answers(len(x)), first, resume=False)
    run = {"pool": [list(x.shape), checksum_of(x.tobytes())], "seed": seed, "batch": batch, "first rows": first}
    return loop.rounds(Answers(len(x), run, Path(checkpoint)), first, resume=resume)


def _as_oracle(oracle: Any, num_rows: int) -> Callable[[int], Any]:
    if callable(oracle):
        return oracle
    targets = np.asarray(filled(oracle))
    if targets.ndim == 0 or len(targets) != num_rows:
        raise ValueError(
            f"oracle has shape {targets.shape}, and the pool {num_rows} rows; pass a target for each, or a function "
            "from the number of a row to its target"
        )
    return lambda row: targets[row]


@dataclass(frozen=True, eq=False)
class _Loop:
    """What all rounds share. See `active` for the fields."""

    model: Model
    x: np.ndarray
    pool: Data | None
    oracle: Callable[[int], Any]
    method: Any
    acquisition: Acquisition
    batch: int
    stop: Any
    test: Data | None
    seed: int
    warm_start: bool

    def __post_init__(self) -> None:
        require_at_least(1, batch=self.batch)
        if self.stop is not None and not callable(self.stop):
            require_at_least(1, stop=self.stop)

    @property
    def num_rows(self) -> int:
        return len(self.x)

    @property
    def most(self) -> int:
        """How many labels there may be."""
        return self.num_rows if self.stop is None or callable(self.stop) else min(self.stop, self.num_rows)

    @property
    def known(self) -> np.ndarray | None:
        """The targets that the pool came with."""
        return None if self.pool is None else self.pool.y

    def first_rows(self, initial: int | Sequence[int] | None) -> list[int]:
        """Which rows to ask about first."""
        free = np.flatnonzero(~has_target(self.known)) if self.known is not None else np.arange(self.num_rows)
        if initial is None:
            initial = 0 if self.known is not None else min(self.batch, self.most)
        if isinstance(initial, int | np.integer):
            require_at_least(0 if self.known is not None else 1, initial=int(initial))
            if initial > len(free):
                raise ValueError(f"initial is {initial}, and the pool has {len(free)} rows without a label")
            return np.random.default_rng((self.seed, 0)).permutation(free)[:initial].tolist()
        rows = np.asarray(initial)
        if rows.dtype.kind not in "iu" or rows.ndim != 1 or not np.isin(rows, free).all() or not len(rows):
            raise ValueError(
                f"initial is {initial!r}; pass how many rows to begin with, or their numbers, each one of a row of the "
                "pool that has no label"
            )
        return list(dict.fromkeys(rows.tolist()))

    def rounds(self, answers: Answers, first: list[int], *, resume: bool) -> Iterator[Round]:
        if answers.folder is None:
            yield from self._rounds(answers, first)
            return
        with locked(answers.folder):
            answers.restore(resume=resume)
            yield from self._rounds(answers, first)

    def _rounds(self, answers: Answers, first: list[int]) -> Iterator[Round]:
        if not answers.batches and first:
            answers.ask(first)
        data = self._asked(answers, None)
        posterior: Any = None
        while True:
            number = len(answers.batches)
            posterior = self._fit(data, number, answers.folder, posterior)
            found = self._round(number, posterior, data, answers)
            yield found
            if not len(found.asked):
                return
            answers.ask(found.asked.tolist())
            data = self._asked(answers, data)

    def _asked(self, answers: Answers, data: Data | None) -> Data:
        """The pool with the answers to all that is open; more is asked at random until there is one label at least."""
        rng = np.random.default_rng((self.seed, 1))
        while True:
            try:
                answers.answer(map(self.oracle, answers.open))
            except Exception as error:
                row = answers.open[0]
                so_far = self._labelled(answers, data)
                raise OracleError(
                    f"the oracle failed at row {row} ({error}); what it has answered is kept: go on with "
                    + ("resume=True" if answers.folder is not None else "the `data` of this error as the pool"),
                    so_far,
                ) from error
            found = self._labelled(answers, data)
            if found is not None:
                return found
            left = np.setdiff1d(np.arange(self.num_rows), answers.rows)
            if not len(left):
                raise ValueError("oracle: it cannot tell the target of any row, so there is nothing to learn from")
            answers.ask(rng.permutation(left)[: self.batch].tolist())

    def _labelled(self, answers: Answers, data: Data | None) -> Data | None:
        """The pool with all labels so far; None where there is none."""
        y = answers.targets(self.known)
        if not has_target(y).any():
            return None
        before = self.pool if data is None else data
        return self.model.suited(Data(self.x, y) if before is None else before.with_targets(y))

    def _fit(self, data: Data, number: int, folder: Path | None, before: Any) -> Posterior:
        room = self.most
        if self.stop is None or callable(self.stop):
            room = min(self.num_rows, capacity_for(data.num_labelled))
        seed = int(np.random.SeedSequence((self.seed, number)).generate_state(1)[0] >> 1)
        room = max(room, data.num_labelled)
        method = self.method
        if method == "auto":
            method = choose(self.model, data.select(np.resize(np.flatnonzero(data.labelled), room)))
        place = None if folder is None else folder / _name(number)
        if self.warm_start and before is None and folder is not None and (folder / _name(number - 1)).exists():
            before = load(folder / _name(number - 1), model=method.method.leaves(self.model, data))
        start = before if self.warm_start else None
        posterior = fit(
            self.model, data.padded(room), method, seed=seed, checkpoint=place, resume=folder is not None, start=start
        )
        if posterior.provenance.interrupted:
            raise KeyboardInterrupt(f"interrupted in round {number}")
        if folder is not None:
            shutil.rmtree(folder / _name(number - 2), ignore_errors=True)
        return posterior

    def _round(self, number: int, posterior: Posterior, data: Data, answers: Answers) -> Round:
        free = ~data.labelled
        free[answers.rows] = False
        num_labels = data.num_labelled
        num = min(self.batch, self.most - num_labels)
        last = Round(number, posterior, num_labels, NO_ROWS, None, self._test(posterior), data)
        if num < 1 or not free.any():
            return last
        rng = np.random.default_rng((self.seed, number, 2))
        chosen = self.acquisition.choose(posterior, self.x, num, allowed=free, rng=rng)
        found = replace(last, asked=chosen.rows, scores=chosen.scores)
        return replace(found, asked=NO_ROWS) if callable(self.stop) and self.stop(found) else found

    def _test(self, posterior: Posterior) -> dict[str, float]:
        if self.test is None:
            return {}
        predictive = predicted(posterior, self.test)
        own = {"accuracy": accuracy} if isinstance(predictive, ClassPredictive) else {"rmse": rmse}
        return {name: metric(predictive, self.test.outcomes) for name, metric in (own | {"nll": nll}).items()}


def _name(number: int) -> str:
    return f"round-{number:04d}"
