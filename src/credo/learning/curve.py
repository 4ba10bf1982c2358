"""Learning curves: a figure on the test set over the number of labels, of several runs of one strategy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """What several runs, of different seeds, have reached with the same numbers of labels.

    Arguments:
        num_labels: (points,), those that all runs have in common.
        values: (runs, points).
        by: what the values are.
    """

    num_labels: np.ndarray
    values: np.ndarray
    by: str

    @classmethod
    def of(cls, runs: Any, by: str | None = None) -> "LearningCurve":
        """From runs: each a list of rounds of `credo.active`, or a mapping from numbers of labels to values.

        >>> curve = LearningCurve.of([{10: 0.5, 20: 0.8}, {10: 0.6, 20: 0.9}], by="accuracy")
        >>> curve.num_labels.tolist(), curve.labels_to_reach(0.85)
        ([10, 20], [None, 20])
        """
        if isinstance(runs, LearningCurve):
            return runs
        by = by or next((name for run in runs if not isinstance(run, Mapping) for name in run[0].test), "accuracy")
        points = [run if isinstance(run, Mapping) else _points(run, by) for run in runs]
        common = sorted(set.intersection(*(set(one) for one in points))) if points else []
        if not common:
            raise ValueError("runs: there is no number of labels that all of them have; run them with the same batch")
        return cls(np.array(common), np.array([[one[num] for num in common] for one in points]), by)

    def labels_to_reach(self, level: float) -> list[int | None]:
        """The first number of labels with which each run has reached a level, None where it has not."""
        return [next((int(self.num_labels[at]) for at in np.flatnonzero(run >= level)), None) for run in self.values]


def _points(rounds: Sequence[Any], by: str) -> dict[int, float]:
    missing = [one.number for one in rounds if by not in one.test]
    if missing:
        raise ValueError(f"round {missing[0]} has no {by!r} on a test set; run credo.active with test=(x, y)")
    return {one.num_labels: one.test[by] for one in rounds}
