"""What a batch is to a learner that has not learned it yet: the honest score of a stream, batch by batch."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from credo._schema import Count
from credo.data import Data
from credo.evaluation.checks import predicted
from credo.learning.drift import DriftAlarm
from credo.predictive import ClassPredictive

# Rows of a batch that are predicted before it is learned; of more, so many that are spread evenly. A mean log score of
# 2,000 rows has a standard error of a fortieth of a row's own spread.
MAX_JUDGED = 2_000


@dataclass(frozen=True)
class Judgement:
    """What the posterior said of a batch before it had learned it.

    Arguments:
        num_rows: that were predicted: those with a target, of a class that was known.
        log_score: mean log p(y | x, D₁ … D_{t−1}) of these rows, in nats; None where there are none.
        new_classes: labels that nobody had seen before.
    """

    num_rows: Count = 0
    log_score: float | None = None
    new_classes: tuple[Count, ...] = ()


def judged_before(posterior: Any, data: Data, alarm: DriftAlarm) -> tuple[Judgement, DriftAlarm]:
    """How well a batch is predicted before it is learned, and the alarm after it has heard that.

    Arguments:
        posterior: of the batches before.
        data: the batch.
        alarm: of the batches before.
    """
    rows = np.flatnonzero(data.labelled)
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), MAX_JUDGED)).round().astype(int)]
    if len(rows) == 0:
        return Judgement(), alarm
    predictive, targets = predicted(posterior, data.select(rows)), data.y[rows]
    new: tuple[int, ...] = ()
    if isinstance(predictive, ClassPredictive):
        num_classes = predictive.probs.shape[1]
        new = tuple(np.unique(data.y[data.y >= num_classes]).tolist())
        known = targets < num_classes
        if not known.any():
            return Judgement(new_classes=new), alarm
        predictive, targets = predictive[known], targets[known]
    score = float(np.mean(predictive.log_prob(targets)))
    return Judgement(len(targets), score, new), alarm.watch(predictive, targets)
