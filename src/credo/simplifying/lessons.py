"""Lessons: the inputs that a teacher is asked about, and its answers as targets for a student.

Paper, "Bayesian teachers": D′ has inputs only, and can be much larger than D. Around the data and beyond them it tells
the student where its teacher stops knowing.
"""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from credo import random
from credo._progress import working
from credo.data import Data, Scaling
from credo.data.scaling import fitted
from credo.models.augmentations import Augmentation
from credo.models.student import DirichletHead, Head, NormalHead
from credo.posterior import Posterior
from credo.predictive import ClassPredictive, Predictive
from credo.predictive.conditional import is_discrete, look

# Inputs that a lesson has at least, if the teacher can answer about so many: beyond 20,000 rows, students of UCI sets
# did not get better.
NUM_INPUTS = 20_000
# Work that questions beyond D may be: inputs × draws × parameters. A minute and a half on two cores.
MAX_WORK = 2e12
# The noise that a row gets has a scale between this part of the largest and the largest, all orders alike likely: most
# inputs are near the data, and some far out.
LEAST_SHARE = 0.05
# Columns of so few whole numbers are categories, and keep their values: there is nothing between them.
MAX_LEVELS = 10


@dataclass(frozen=True, eq=False)
class Lesson:
    """What a teacher said: inputs in the user's units, statistics in those of the scaling, (rows, statistics)."""

    x: np.ndarray
    statistics: np.ndarray
    head: Head
    scaling: Scaling

    @property
    def data(self) -> Data:
        """The same as inputs and targets."""
        return Data(self.x, self.statistics).with_scaling(Scaling(self.scaling.x_mean, self.scaling.x_scale))


def teach(teacher: Posterior, x: np.ndarray, beyond: Any, *, seed: int, progress: bool | None = None) -> Lesson:
    """Ask a teacher about inputs, and about others beyond them.

    Arguments:
        x: inputs in the user's units, (rows, …).
        beyond: as for `credo.distill`.
    """
    num = num_beyond(teacher, x)
    asked = np.concatenate([x, inputs_beyond(x, num, beyond, seed=seed)]) if num and beyond else x
    with working(f"Asking the teacher about {len(asked):,} inputs", show=progress):
        return lesson_of(teacher.predict(asked), asked, x)


def lesson_of(prediction: Predictive, asked: np.ndarray, x: np.ndarray) -> Lesson:
    """The answers of a teacher as a lesson, in units in which those about x are of order one."""
    scaling = fitted(x, np.zeros(len(x), np.int32))
    if isinstance(prediction, ClassPredictive):
        classes = DirichletHead(prediction.probs.shape[1])
        found = classes.statistics(prediction.probs, prediction.probs_std**2, prediction.probs)
        return Lesson(asked, np.asarray(found), classes, scaling)
    _refuse_counts(prediction)
    mean, variance = prediction.mean, prediction.variance
    centre, scale = mean[: len(x)].mean(0), np.sqrt(mean[: len(x)].var(0) + variance[: len(x)].mean(0))
    head = NormalHead(1 if mean.ndim == 1 else mean.shape[1], mean.ndim == 1)
    parts = (mean - centre) / scale, prediction.epistemic / scale**2, prediction.aleatoric / scale**2
    statistics = np.asarray(head.statistics(*parts))
    return Lesson(asked, statistics, head, Scaling(scaling.x_mean, scaling.x_scale, centre, scale))


def num_beyond(teacher: Posterior, x: np.ndarray) -> int:
    """How many inputs beyond x a teacher is asked about: as many again at least, unless that takes too long."""
    wanted = max(NUM_INPUTS - len(x), len(x))
    work = teacher.predict(x[:1]).num_draws * teacher.model.num_parameters
    return int(min(wanted, MAX_WORK / max(work, 1)))


def inputs_beyond(x: np.ndarray, num: int, beyond: Any, *, seed: int) -> np.ndarray:
    """`num` inputs around rows of x that are drawn at random: with noise, or by an augmentation.

    >>> inputs_beyond(np.array([[1.0, 0.3], [0.0, 0.7]]), 4, 0.5, seed=0)[:, 0].round(3).tolist()  # a category
    [0.0, 0.0, 0.0, 1.0]
    """
    rng = np.random.default_rng(seed)
    rows = x[rng.integers(0, len(x), num)]
    if isinstance(beyond, Augmentation):
        keys = jax.random.split(random.key(seed), num)
        constants = beyond.constants(x)
        beyond.check(x.shape[1:])
        moved = jax.jit(jax.vmap(lambda key, row: beyond(key, row, **constants)))(keys, rows.astype(np.float32))
        return np.asarray(moved)
    share = np.exp(rng.uniform(np.log(LEAST_SHARE), 0.0, (num, *[1] * (x.ndim - 1))))
    noise = beyond * share * rng.standard_normal(rows.shape)
    return rows + noise * np.where(_is_category(x), 0.0, fitted(x, np.zeros(len(x), np.int32)).x_scale)


def _is_category(x: np.ndarray) -> np.ndarray:
    """Which columns hold a few whole numbers; none of an image."""
    if x.ndim != 2:
        return np.zeros((), bool)
    return np.array([len(np.unique(column)) <= MAX_LEVELS and np.all(column == np.round(column)) for column in x.T])


def _refuse_counts(prediction: Predictive) -> None:
    if look(prediction.conditional_of, prediction.draws, prediction.x, is_discrete):
        raise ValueError(
            "the teacher predicts counts, and a student gives normal numbers or classes; keep the teacher, or fit a "
            "regression to the logarithm of the counts"
        )
