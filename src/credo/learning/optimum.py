"""What a search for the optimum of a function has found."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from credo._html import InNotebook
from credo.learning.evaluations import History
from credo.learning.space import Point, Space
from credo.posterior import Posterior
from credo.predictive import Predictive


@dataclass(frozen=True, eq=False)
class Optimum(InNotebook):
    """The best point that was asked, and all that is known of the function.

    Arguments:
        x: the point, in the form of the bounds. With noise it is the one of the best *expected* value.
        value: what is expected there; without noise, what the function answered.
        history: all points and values.
        posterior: of the network that stands for the function, over coordinates: ask it by `predict`.
        goal: "minimise" or "maximise".
        space: the bounds.
        interrupted: whether the search was stopped before its end.

    >>> import credo
    >>> found = credo.optimise(lambda x: (x["a"] - 0.3) ** 2, {"a": (0.0, 1.0)}, num_evaluations=4, noise=0)
    >>> found.goal, bool(found.value == min(found.history.values)), len(found.best_so_far)
    ('minimise', True, 4)
    """

    x: Point
    value: float
    history: History
    posterior: Posterior
    goal: str
    space: Space = field(repr=False)
    interrupted: bool = False

    def predict(self, points: Sequence[Point]) -> Predictive:
        """The marginal p(y | x, D) of the function's values at points in the form of the bounds."""
        return self.posterior.predict(self.space.encode(points))

    @property
    def best_so_far(self) -> np.ndarray:
        """The best value after each evaluation."""
        return self.history.best_so_far(self.goal)

    def __repr__(self) -> str:
        return f"Optimum(value {self.value:.6g} at {self.x!r}, after {len(self.history)} evaluations)"


class EvaluationError(RuntimeError):
    """The function could not be evaluated; nothing that was known before is lost.

    Arguments:
        x: the point at which it failed.
        history: all points and values before it.

    >>> import credo
    >>> def broken(x):
    ...     raise RuntimeError("the oven is cold")
    >>> try:
    ...     credo.optimise(broken, {"x": (0.0, 1.0)}, num_evaluations=3, progress=False)
    ... except credo.EvaluationError as error:
    ...     print(list(error.x), len(error.history))
    ['x'] 0
    """

    def __init__(self, message: str, x: Any, history: History) -> None:
        super().__init__(message)
        self.x = x
        self.history = history
