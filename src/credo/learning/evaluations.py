"""What a function was asked and what it answered; in a folder too, before anything else happens."""

import json
import math
import weakref
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from credo._files import LoadError, read_json, require_unaltered, write_json
from credo._folders import locked, unwritable
from credo._schema import checked
from credo.learning.space import Point, Space

FILE = "evaluations.json"


class Evaluation(NamedTuple):
    """One question.

    Arguments:
        point: as numbers, see `Space.to_plain`.
        value: None while it is out; NaN for a question that has no answer.
        num_known: how many values the posterior was fitted to by which it was chosen; 0 without one.
    """

    point: tuple[float, ...]
    value: float | None
    num_known: int

    @property
    def is_known(self) -> bool:
        """Whether it was answered by a number."""
        return self.value is not None and math.isfinite(self.value)


@dataclass(frozen=True, eq=False)
class History:
    """All that was asked and answered, in that order.

    Arguments:
        inputs: the points.
        values: (evaluations,), NaN where the function had no answer.
        rounds: the number of the posterior by which each was chosen, (evaluations,): 0 without one.
    """

    inputs: list[Point]
    values: np.ndarray
    rounds: np.ndarray

    @classmethod
    def of(cls, space: Space, evaluations: list[Evaluation]) -> "History":
        """Those that have come back."""
        back = [one for one in evaluations if one.value is not None]
        points = [space.from_plain(one.point) for one in back]
        rounds = np.unique([0, *(one.num_known for one in back)], return_inverse=True)[1][1:]
        return cls(points, np.array([one.value for one in back], float), rounds)

    def __len__(self) -> int:
        return len(self.inputs)

    def best_so_far(self, goal: str) -> np.ndarray:
        """The best value of the first evaluations, (evaluations,); NaN until there is one."""
        return (np.fmin if goal == "minimise" else np.fmax).accumulate(self.values)


class Notebook:
    """A folder that holds the evaluations, and that no other process can write to meanwhile.

    Arguments:
        identity: of the search, as JSON: what is in the folder must have the same, or is another's.
        resume: whether to go on from what is there; without it the folder must not hold a search.
    """

    def __init__(self, folder: str | Path, identity: Mapping[str, Any], *, resume: bool) -> None:
        self.path = Path(folder) / FILE
        # As it is read again: JSON knows no tuples.
        self.identity = json.loads(json.dumps(identity))
        with ExitStack() as stack:
            stack.enter_context(locked(self.path.parent))
            self.found = self._read(resume)
            # The lock goes with the notebook, or earlier, by `close`.
            self.close = weakref.finalize(self, stack.pop_all().close)

    def _read(self, resume: bool) -> list[Evaluation]:
        if not self.path.exists():
            return []
        held = require_unaltered(self.path, read_json(self.path))
        if not resume:
            raise ValueError(
                f"{self.path.parent} holds a search; pass resume=True to go on with it, or choose another folder"
            )
        search = checked(self.path, held.get("search"), dict[str, Any])
        different = [name for name in self.identity if search.get(name) != self.identity[name]]
        if different:
            raise ValueError(
                f"{self.path.parent} holds another search, begun with another {', '.join(different)}; pass what it was "
                "begun with, or choose another folder"
            )
        found = checked(self.path, held.get("evaluations"), list[tuple[tuple[float, ...], float | str | None, int]])
        return [Evaluation(point, _value(self.path, value), number) for point, value, number in found]

    def write(self, evaluations: list[Evaluation]) -> None:
        """Put all of them on disk."""
        plain = [
            (one.point, "none" if one.value is not None and not one.is_known else one.value, one.num_known)
            for one in evaluations
        ]
        try:
            write_json(self.path, {"search": self.identity, "evaluations": json.loads(json.dumps(plain))})
        except OSError as error:
            raise unwritable(self.path.parent, error) from error


def _value(path: Path, value: float | str | None) -> float | None:
    if isinstance(value, str):
        if value != "none":
            raise LoadError(f"{path} is damaged: {value!r} is no value")
        return math.nan
    return value
