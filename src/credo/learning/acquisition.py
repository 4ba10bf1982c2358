"""What an acquisition is: it scores the rows of a pool, and chooses those to ask about.

No two rows of a batch hold the same, and ties are broken at random.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from credo.predictive import Predictive

# Of each posterior so many functions are asked what they say of the pool, unless an acquisition is told otherwise.
NUM_DRAWS = 100


class Chosen(NamedTuple):
    """The rows to ask about, best first, and the score of each row of the pool on its own, (rows,).

    >>> import numpy as np
    >>> import credo
    >>> everywhere, rng = np.full(3, True), np.random.default_rng(0)
    >>> chosen = credo.acquisitions.Random().choose(None, np.arange(3.0)[:, None], 2, allowed=everywhere, rng=rng)
    >>> chosen.rows.shape, chosen.scores.shape
    ((2,), (3,))
    """

    rows: np.ndarray
    scores: np.ndarray


@dataclass(frozen=True)
class Acquisition(ABC):
    """What a label is worth, row by row, and which rows to ask about.

    >>> import numpy as np
    >>> from credo import acquisitions
    >>> class First(acquisitions.Acquisition):
    ...     def choose(self, posterior, x, num, *, allowed, rng):
    ...         return acquisitions.Chosen(np.flatnonzero(allowed)[:num], np.zeros(len(x)))
    >>> First().choose(None, np.zeros((4, 1)), 2, allowed=np.array([False, True, True, True]), rng=None).rows.tolist()
    [1, 2]
    """

    num_draws: int = field(default=NUM_DRAWS, kw_only=True)

    @abstractmethod
    def choose(
        self, posterior: Any, x: np.ndarray, num: int, *, allowed: np.ndarray, rng: np.random.Generator
    ) -> Chosen:
        """At most `num` rows; fewer where fewer are allowed, or where they hold the same.

        Arguments:
            posterior: whatever predicts.
            x: the pool, in the user's units, (rows, …).
            allowed: which rows may be asked about, (rows,).
            rng: breaks ties, and makes random choices.
        """


@dataclass(frozen=True)
class Scored(Acquisition):
    """The rows of the highest scores.

    Arguments:
        score: from a prediction on the pool to a number for each row, the higher the better.
        num_draws: of theta, that the prediction averages.

    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> import credo
    >>> posterior = SimpleNamespace(predict=lambda x, num_draws: credo.from_probs([[0.9, 0.1], [0.5, 0.5], [0.7, 0.3]]))
    >>> asking, everywhere = credo.acquisitions.Scored(credo.acquisitions.margin), np.full(3, True)
    >>> pool, rng = np.arange(3.0)[:, None], np.random.default_rng(0)
    >>> asking.choose(posterior, pool, 2, allowed=everywhere, rng=rng).rows.tolist()
    [1, 2]
    """

    score: Callable[[Predictive], Any]

    def choose(
        self, posterior: Any, x: np.ndarray, num: int, *, allowed: np.ndarray, rng: np.random.Generator
    ) -> Chosen:
        scores = checked(self.score(posterior.predict(x, num_draws=self.num_draws)), len(x), self.score)
        return Chosen(best(scores, x, num, allowed=allowed, rng=rng), scores)


@dataclass(frozen=True)
class Random(Acquisition):
    """Rows at random: what every other acquisition has to beat.

    >>> import numpy as np
    >>> import credo
    >>> pool, rng = np.arange(100.0)[:, None], np.random.default_rng(0)
    >>> len(credo.acquisitions.Random().choose(None, pool, 5, allowed=np.full(100, True), rng=rng).rows)
    5
    """

    def choose(
        self, posterior: Any, x: np.ndarray, num: int, *, allowed: np.ndarray, rng: np.random.Generator
    ) -> Chosen:
        scores = rng.random(len(x))
        return Chosen(best(scores, x, num, allowed=allowed, rng=rng), scores)


def best(scores: np.ndarray, x: np.ndarray, num: int, *, allowed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The allowed rows of the highest scores, the best first, each content once; equal scores in a random order.

    >>> rng = np.random.default_rng(0)
    >>> best(np.array([1.0, 3.0, 3.0]), np.array([[0.0], [1.0], [1.0]]), 3, allowed=np.full(3, True), rng=rng).size
    2
    """
    found: dict[bytes, int] = {}
    for row in np.lexsort((rng.permutation(len(scores)), -scores)):
        if len(found) == num:
            break
        if allowed[row]:
            found.setdefault(x[row].tobytes(), int(row))
    return np.array(list(found.values()), np.int64)


def checked(scores: Any, num_rows: int, function: Any) -> np.ndarray:
    """Scores as finite numbers, one for each row."""
    found = np.asarray(scores)
    if found.shape != (num_rows,) or found.dtype.kind not in "biuf" or not np.isfinite(found).all():
        name = getattr(function, "__name__", repr(function))
        what = f"{found.dtype} of shape {found.shape}" if found.shape != (num_rows,) else "not all finite numbers"
        raise ValueError(f"acquisition {name!r} gave {what}; return a finite number for each of the {num_rows} rows")
    return found.astype(np.float64)
