"""Lessons: the inputs that a teacher is asked about, and its answers as targets for a student.

Paper, "Bayesian teachers": D′ has inputs only, and can be much larger than D. Around the data and beyond them it tells
the student where its teacher stops knowing.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo import random
from credo._precision import working_precision
from credo._progress import working
from credo.data import Data, Scaling
from credo.data.scaling import fitted
from credo.models.augmentations import Augmentation
from credo.models.student import DirichletHead, Head, NormalHead
from credo.posterior import Posterior
from credo.predictive import ClassPredictive, Predictive
from credo.predictive.conditional import is_discrete, look

# Inputs that a lesson has at least, if the teacher can answer about so many: with 10,000 and with 30,000, students of
# concrete and energy were about equally good.
NUM_INPUTS = 20_000
# Work that questions beyond D may be: inputs × draws × parameters. A minute and a half on two cores.
MAX_WORK = 2e12
# The noise that a row gets has a scale between this part of the largest and the largest, all orders alike likely: most
# inputs are near the data, and some far out.
LEAST_SHARE = 0.05
# So many start part of the way to another row. Digits with two left out, AUROC of these by the mutual information of
# the student of an ensemble (the teacher: 0.964): 0.943 without such inputs, 0.956 with them,
# one fit each, when α₀ was still set by variances.
SHARE_BETWEEN = 0.5
# Columns of so few whole numbers are categories: there is nothing between them, and rows between two others have that
# of one or the other, column by column, so that all combinations are asked about.
MAX_LEVELS = 10


@dataclass(frozen=True, eq=False)
class Lesson:
    """What a teacher said: inputs in the user's units, statistics in those of the scaling, (rows, statistics).

    Arguments:
        num_own: the first so many inputs are those of D′ itself, the others lie beyond.
    """

    x: np.ndarray
    num_own: int
    statistics: np.ndarray
    head: Head
    scaling: Scaling

    @property
    def data(self) -> Data:
        """The same as inputs and targets, those of D′ itself so often that they are at least half."""
        num, own = len(self.x), np.arange(self.num_own)
        order = np.concatenate([np.resize(own, max(self.num_own, num - self.num_own)), np.arange(self.num_own, num)])
        scaling = Scaling(self.scaling.x_mean, self.scaling.x_scale)
        return Data(self.x[order], self.statistics[order]).with_scaling(scaling)


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
        parts = map(jnp.asarray, (prediction.probs, prediction.mutual_information, prediction.aleatoric))
        return Lesson(asked, len(x), np.asarray(classes.statistics(*parts)), classes, scaling)
    _refuse_counts(prediction)
    mean, variance = prediction.mean, prediction.variance
    centre, scale = mean[: len(x)].mean(0), np.sqrt(mean[: len(x)].var(0) + variance[: len(x)].mean(0))
    head = NormalHead(1 if mean.ndim == 1 else mean.shape[1], mean.ndim == 1)
    scaled = (mean - centre) / scale, prediction.epistemic / scale**2, prediction.aleatoric / scale**2
    statistics = np.asarray(head.statistics(*map(jnp.asarray, scaled)))
    return Lesson(asked, len(x), statistics, head, Scaling(scaling.x_mean, scaling.x_scale, centre, scale))


def num_beyond(teacher: Posterior, x: np.ndarray) -> int:
    """How many inputs beyond x a teacher is asked about: as many again at least, unless that takes too long."""
    wanted = max(NUM_INPUTS - len(x), len(x))
    work = teacher.predict(x[:1]).num_draws * teacher.model.num_parameters
    return int(min(wanted, MAX_WORK / max(work, 1)))


def inputs_beyond(x: np.ndarray, num: int, beyond: Any, *, seed: int) -> np.ndarray:
    """`num` inputs around rows of x that are drawn at random: with noise, half of them part of the way to another row.

    Or what an augmentation makes of these rows.

    >>> inputs_beyond(np.array([[1.0, 0.3], [0.0, 0.7]]), 4, 0.5, seed=0)[:, 0].round(3).tolist()  # a category
    [0.0, 0.0, 0.0, 1.0]
    """
    rng, kept = np.random.default_rng(seed), _is_category(x)
    rows = x[rng.integers(0, len(x), num)]
    if isinstance(beyond, Augmentation):
        keys = jax.random.split(random.key(seed), num)
        constants = beyond.constants(x)
        beyond.check(x.shape[1:])
        moved = jax.jit(jax.vmap(lambda key, row: beyond(key, row, **constants)))(
            keys, rows.astype(working_precision())
        )
        return np.asarray(moved)
    each = (num, *[1] * (x.ndim - 1))
    other, is_between = x[rng.integers(0, len(x), num)], rng.random(each) < SHARE_BETWEEN
    way = np.where(kept, rng.random(rows.shape) < 0.5, rng.random(each))
    rows = rows + is_between * way * (other - rows)
    share = np.exp(rng.uniform(np.log(LEAST_SHARE), 0.0, each))
    scale = np.where(kept, 0.0, fitted(x, np.zeros(len(x), np.int32)).x_scale)
    return rows + beyond * share * scale * rng.standard_normal(rows.shape)


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
