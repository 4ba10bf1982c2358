"""The rows that a posterior was most wrong about."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from credo.data import Data
from credo.evaluation.checks import judged, uncensored
from credo.predictive import ClassPredictive, Predictive
from credo.reporting.page import Section

NUM_ROWS = 8


def add_surprises(section: Section, prediction: Predictive, test: Data) -> None:
    """A table of the most confident mistakes, or of the targets that were least expected."""
    where = np.flatnonzero(test.with_labels().seen)
    seen, targets = uncensored(*judged(prediction, test.outcomes))[:2]
    if isinstance(seen, ClassPredictive):
        _mistakes(section, seen, seen.targets(targets), where, test.classes)
    elif np.ndim(targets) == 1:
        _unexpected(section, seen, np.asarray(targets, float), where)


def _mistakes(
    section: Section, seen: ClassPredictive, labels: np.ndarray, where: np.ndarray, names: Sequence[str] | None
) -> None:
    called = names or [str(number) for number in range(seen.probs.shape[1])]
    wrong = np.flatnonzero(seen.label != labels)
    if not len(wrong):
        section.text("No label is wrong.")
        return
    confidence = seen.probs.max(axis=1)
    worst = wrong[np.argsort(-confidence[wrong], kind="stable")[:NUM_ROWS]]
    section.text(f"The most confident of {len(wrong):,} mistakes:")
    section.table(
        ("row", "predicted", "its probability", "true class", "its probability", "epistemic (nats)"),
        [
            (
                f"{where[row] + 1:,}",
                called[seen.label[row]],
                f"{confidence[row]:.3f}",
                called[labels[row]],
                f"{seen.probs[row, labels[row]]:.3f}",
                f"{seen.epistemic[row]:.3f}",
            )
            for row in worst
        ],
        numbers=(0, 2, 4, 5),
    )


def _unexpected(section: Section, seen: Any, y: np.ndarray, where: np.ndarray) -> None:
    away = (y - seen.mean) / seen.std
    worst = np.argsort(-np.abs(away), kind="stable")[:NUM_ROWS]
    section.text("The targets that lie furthest from their prediction, in its sds:")
    section.table(
        ("row", "observed", "predicted", "sd", "sds away"),
        [
            (f"{where[row] + 1:,}", *(f"{of[row]:.4g}" for of in (y, seen.mean, seen.std)), f"{away[row]:+.1f}")
            for row in worst
        ],
        numbers=(0, 1, 2, 3, 4),
    )
