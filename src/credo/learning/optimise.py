"""`credo.optimise`: the optimum of a function that is dear to evaluate, found with few evaluations.

A Bayesian network is fitted to the values that are known; where it promises the largest improvement, the function is
asked next (paper, "Advantages of Bayesian methods for deep learning": ask where the answer tells most).
"""

import math
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import jax
import numpy as np
from scipy.stats import qmc

from credo import random
from credo._checks import require_at_least, require_one_of
from credo._folders import require_nothing_to_resume
from credo._precision import working_precision
from credo._progress import working
from credo.data import capacity_for
from credo.inference.auto import Choice
from credo.inference.method import Method
from credo.learning.evaluations import Evaluation, History, Notebook
from credo.learning.optimum import EvaluationError, Optimum
from credo.learning.search import NUM_BEST, Functions, as_acquisition, best_points, candidates
from credo.learning.space import Point, Space
from credo.learning.surrogate import Surrogate, check_noise
from credo.models.program import Model
from credo.posterior import Posterior

# Coordinates closer than this are the same point.
SAME = 1e-6


class Settings(TypedDict, total=False):
    """What `optimise` hands on to an `Optimiser`."""

    goal: Literal["minimise", "maximise"]
    acquisition: str | Callable[..., Any]
    noise: float | str
    model: Model | None
    method: Method | Choice | str | None
    num_initial: int | None
    seed: int
    checkpoint: str | Path | None
    resume: bool


def optimise(
    function: Callable[[Point], Any],
    bounds: Any,
    *,
    num_evaluations: int = 50,
    batch: int = 1,
    progress: bool | None = None,
    **settings: Unpack[Settings],
) -> Optimum:
    """The minimum of a function that is dear to evaluate (or its maximum, goal="maximise").

        x ← argmax E[max(0, best − f(x))]  over the posterior of f given all values so far,    y ← function(x)

    Arguments:
        function: of one point, in the form of the bounds: a dictionary, or an array. It returns a number; NaN or an
            infinite one says that there is no answer at this point, which counts as the worst value so far.
        bounds: {"name": (low, high)}, where a third entry "log", "integer" or "log integer" says more about the range,
            and a list holds options: {"rate": (1e-4, 1.0, "log"), "layers": (1, 4, "integer"), "kind": ["a", "b"]}.
            A list of pairs, [(low, high), …], makes points arrays.
        num_evaluations: how often the function may be asked, those before a resumed search included.
        batch: how many points are chosen at once, before the value of the first is known.
        progress: show which evaluation is under way; by default where stderr is a terminal.
        settings: goal, acquisition, noise, model, method, num_initial, seed, checkpoint and resume, as for
            `credo.Optimiser`.

    Where the function raises, a `credo.EvaluationError` names the point and holds the history. Ctrl-C ends the search
    with what it has found so far.

    >>> found = optimise(lambda x: (x["a"] - 0.3) ** 2, {"a": (0.0, 1.0)}, num_evaluations=8, noise=0)
    >>> abs(found.x["a"] - 0.3) < 0.1
    True

    Reference: Jones, Schonlau and Welch, Efficient global optimization of expensive black-box functions, 1998.
    """
    require_at_least(1, num_evaluations=num_evaluations, batch=batch)
    if not callable(function):
        raise ValueError(f"function is {function!r}; pass a function of one point that returns a number")
    with Optimiser(bounds, **settings) as optimiser:
        try:
            while len(optimiser.history) < num_evaluations:
                # What a search before has left open comes first.
                if not optimiser.pending:
                    _ask(optimiser, min(batch, num_evaluations - len(optimiser.history)))
                for point in optimiser.pending:
                    with working(f"evaluation {len(optimiser.history) + 1} of {num_evaluations} …", show=progress):
                        optimiser.tell(point, _evaluated(function, point, optimiser))
        except Exhausted as end:
            warnings.warn(f"the search ends after {len(optimiser.history)} evaluations: {end}", stacklevel=2)
        except KeyboardInterrupt:
            if not any(np.isfinite(optimiser.history.values)):
                raise
            warnings.warn(f"interrupted after {len(optimiser.history)} of {num_evaluations} evaluations", stacklevel=2)
            return optimiser.result(interrupted=True)
        return optimiser.result()


def _ask(optimiser: "Optimiser", num: int) -> None:
    """A batch of so many points, or of those that are left."""
    for _ in range(num):
        try:
            optimiser.ask()
        except Exhausted:
            if not optimiser.pending:
                raise
            return


def _evaluated(function: Callable[[Point], Any], point: Point, optimiser: "Optimiser") -> float:
    """The function's answer; an error of it, or an answer that is no number, comes with the point and all before it."""
    history = optimiser.history
    kept = f"the {len(history)} evaluations before it are in the history of this error"
    if optimiser.notebook is not None:
        kept += f", and in {optimiser.notebook.path.parent}: go on with resume=True"
    try:
        answer = function(point)
    except Exception as error:
        raise EvaluationError(f"the function failed at {point!r} ({error!r}); {kept}", point, history) from error
    try:
        return _as_number(answer)
    except ValueError as error:
        raise EvaluationError(
            f"the function returned {answer!r} at {point!r}, {error}; {kept}", point, history
        ) from error


class Exhausted(ValueError):
    """Every point there is has been asked."""


class Optimiser:
    """Asks for points and is told their values, in any order and from anywhere: experiments, queues, other threads.

        optimiser = credo.Optimiser({"temperature": (20.0, 90.0), "acid": ["a", "b"]}, goal="maximise")
        x = optimiser.ask()                 # again before the value is known: another point, that goes well with it
        optimiser.tell(x, run(x))           # values of points that it did not ask for are welcome too
        optimiser.result().x

    Arguments:
        bounds: as for `credo.optimise`.
        goal: "minimise" or "maximise".
        acquisition: "improvement", the expected one over the best expected value; "thompson", the optimum of one
            sampled function; or a function of the values of sampled functions, (draws, points), and of the best value
            of each, (draws,), larger is better, to scores of the points, in `jax.numpy`.
        noise: the standard deviation of the function's values around their mean; 0 for none; or "learned".
        model: of values over coordinates from −1 to 1 (`credo.learning.space`); by default a wide network whose last
            layer is uncertain (`credo.learning.surrogate`).
        method: to fit it by; for a model of your own, what `credo.fit` would choose.
        num_initial: points before the first posterior, spread evenly; by default one more than there are coordinates,
            and four at least.
        seed: the same seed, and the same values told in the same order, give the same points.
        checkpoint: a folder that holds every question and every answer as soon as there are.
        resume: go on from what the folder holds; where it holds nothing, a new search begins.

    >>> optimiser = Optimiser([(-1.0, 1.0)], num_initial=2)
    >>> for _ in range(3):
    ...     x = optimiser.ask()
    ...     optimiser.tell(x, float(x[0] ** 2))
    >>> len(optimiser.history)
    3
    """

    def __init__(
        self,
        bounds: Any,
        *,
        goal: Literal["minimise", "maximise"] = "minimise",
        acquisition: str | Callable[..., Any] = "improvement",
        noise: float | str = "learned",
        model: Model | None = None,
        method: Method | Choice | str | None = None,
        num_initial: int | None = None,
        seed: int = 0,
        checkpoint: str | Path | None = None,
        resume: bool = False,
    ) -> None:
        require_one_of(("minimise", "maximise"), goal=goal)
        check_noise(noise, model)
        self.space = Space.of(bounds)
        self.goal = goal
        self.acquisition = as_acquisition(acquisition)
        self.surrogate = Surrogate(noise, model, method)
        self.num_initial = max(4, self.space.width + 1) if num_initial is None else num_initial
        require_at_least(1, num_initial=self.num_initial)
        self.seed = seed
        self._evaluations: list[Evaluation] = []
        self._fitted: tuple[int, Posterior] | None = None
        self._lock = threading.RLock()
        self.notebook: Notebook | None = None
        if checkpoint is not None:
            self.notebook = Notebook(checkpoint, self._identity(acquisition), resume=resume)
            self._evaluations = self.notebook.found
        else:
            require_nothing_to_resume(resume)

    def __enter__(self) -> "Optimiser":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Give the folder back, if there is one; what it holds stays."""
        if self.notebook is not None:
            self.notebook.close()

    @property
    def history(self) -> History:
        """All points that have come back, with their values."""
        return History.of(self.space, self._evaluations)

    @property
    def pending(self) -> list[Point]:
        """Points that were asked for, and whose values are still out."""
        return [self.space.from_plain(one.point) for one in self._evaluations if one.value is None]

    def ask(self) -> Point:
        """A point to evaluate next."""
        with self._lock:
            row = self._next_row()
            (point,) = self.space.decode(row[None])
            num_known = self._num_known if self._is_informed else 0
            self._write([*self._evaluations, Evaluation(tuple(self.space.to_plain(point)), None, num_known)])
            return point

    def tell(self, x: Point, value: Any) -> None:
        """The value of the function at x; NaN or an infinite one where it has none.

        Arguments:
            x: a point that was asked for, or any other.
        """
        number = _as_number(value)
        plain = tuple(self.space.to_plain(x))
        if not math.isfinite(number):
            warnings.warn(
                f"the function has no value at {x!r} (it is {number}): that counts as the worst so far", stacklevel=2
            )
            number = math.nan
        with self._lock:
            asked = [index for index, one in enumerate(self._evaluations) if one.point == plain and one.value is None]
            told = list(self._evaluations)
            if asked:
                told.append(told.pop(asked[0])._replace(value=number))
            else:
                told.append(Evaluation(plain, number, 0))
            self._write(told)

    def result(self, *, interrupted: bool = False) -> Optimum:
        """The best point so far, and what is known of the function."""
        with self._lock:
            known = [one for one in self._evaluations if one.is_known]
            if not known:
                asked = len(self.history)
                what = f"the function had no value at any of {asked} points" if asked else "no value is known yet"
                raise ValueError(f"{what}; tell some, optimiser.tell(x, value)")
            posterior = self._posterior()
            points = [self.space.from_plain(one.point) for one in known]
            values = np.array([one.value for one in known], float)
            if self.surrogate.noise != 0:
                values = posterior.predict(self.space.encode(points)).mean
            best = int(np.argmax(self._sign * values))
            return Optimum(
                points[best], float(values[best]), self.history, posterior, self.goal, self.space, interrupted
            )

    # -- where to ask ------------------------------------------------------------------------------------------

    @property
    def _sign(self) -> float:
        return -1.0 if self.goal == "minimise" else 1.0

    @property
    def _is_informed(self) -> bool:
        """Whether a posterior is worth more than points spread evenly."""
        return self._num_known > 0 and len(self._evaluations) >= self.num_initial

    @property
    def _num_known(self) -> int:
        return sum(one.is_known for one in self._evaluations)

    def _next_row(self) -> np.ndarray:
        rows = self._rows(self._evaluations)
        rng = np.random.default_rng((self.seed, len(rows)))
        if not self._is_informed:
            spread = qmc.Sobol(self.space.width, rng=self.seed).random_base2(max(len(rows), 1).bit_length())
            found = self.space.snapped(np.concatenate([2 * spread[len(rows) :] - 1, rng.uniform(-1, 1, spread.shape)]))
        else:
            found = self._promising(rows, rng)
        new = [row for row in found if self._may_repeat or not np.any(np.all(np.abs(rows - row) < SAME, axis=1))]
        if not new and self.space.num_points <= len(rows):
            raise Exhausted(f"all {self.space.num_points:.0f} points of bounds have been asked")
        # Where every candidate has been asked, any point that has not will do.
        return new[0] if new else self._any_other(rows, rng)

    @property
    def _may_repeat(self) -> bool:
        """Whether a point may be asked twice: where its values differ from time to time, and that is known."""
        return self.surrogate.noise not in ("learned", 0)

    def _any_other(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        while True:
            row = self.space.snapped(rng.uniform(-1, 1, (1, self.space.width)))[0]
            if not np.any(np.all(np.abs(rows - row) < SAME, axis=1)):
                return row

    def _promising(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Rows of coordinates, the most promising first."""
        posterior = self._posterior()
        known = [one for one in self._evaluations if one.is_known]
        order = np.argsort([-self._sign * (one.value or 0.0) for one in known])[:NUM_BEST]
        best = self._rows([known[index] for index in order])
        functions = _functions(posterior, self.acquisition.num_draws, self._key(len(rows)), self._sign)
        # Repeated rows change nothing, and keep the shape that was compiled.
        asked = rows[np.minimum(np.arange(capacity_for(len(rows))), len(rows) - 1)]
        found = candidates(self.space, best, rng)
        return best_points(self.acquisition.score, functions, asked, found, self.space.continuous)

    def _key(self, number: int) -> jax.Array:
        return jax.random.fold_in(random.key(self.seed), number)

    def _posterior(self) -> Posterior:
        """Of all values so far; a failure counts as the worst of them."""
        back = [one for one in self._evaluations if one.value is not None]
        if self._fitted is None or self._fitted[0] != len(back):
            values = np.array([one.value for one in back], float)
            worst = np.nanmin(self._sign * values) * self._sign
            filled = np.where(np.isnan(values), worst, values)
            self._fitted = (len(back), self.surrogate.fit(self._rows(back), filled, self._sign, self.seed))
        return self._fitted[1]

    def _rows(self, evaluations: list[Evaluation]) -> np.ndarray:
        return self.space.encode([self.space.from_plain(one.point) for one in evaluations])

    # -- storage -----------------------------------------------------------------------------------------------

    def _write(self, evaluations: list[Evaluation]) -> None:
        """On disk first: what memory knows, the next process would know too."""
        if self.notebook is not None:
            self.notebook.write(evaluations)
        self._evaluations = evaluations

    def _identity(self, acquisition: Any) -> dict[str, Any]:
        """What makes a search the same search."""
        surrogate = self.surrogate
        return {
            "bounds": repr((self.space.names, self.space.dimensions)),
            "goal": self.goal,
            "acquisition": getattr(acquisition, "__qualname__", acquisition),
            "noise": surrogate.noise,
            "model": None
            if surrogate.model is None
            else surrogate.model.config or surrogate.model.program.__qualname__,
            "method": None if surrogate.method is None else repr(surrogate.method),
            "num_initial": self.num_initial,
            "seed": self.seed,
            "precision": str(working_precision()),
        }


def _functions(posterior: Any, num_draws: int, key: jax.Array, sign: float) -> Functions:
    """Draws of a posterior as functions, whose learned constants are arguments of what is compiled."""
    (model,) = posterior.models
    draws = {**posterior.sample(key, num_draws), **model.local_noise(num_draws)}
    return Functions(model, draws, dict(posterior.model.frozen_xi), sign)


def _as_number(value: Any) -> float:
    """A number; NaN is one."""
    if value is None or isinstance(value, str | bytes):
        raise ValueError(f"value is {value!r}, which is no number")
    try:
        return float(np.asarray(value, dtype=float).reshape(()))
    except (TypeError, ValueError) as error:
        raise ValueError(f"value is {value!r}, which is no number") from error
