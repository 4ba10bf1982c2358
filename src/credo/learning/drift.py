"""Has the world changed? An alarm that listens to how improbable the targets of a stream are to the model.

Of each row, before it is learned from, the tail probability of its log score: how often the prediction itself expects a
target as improbable as this one.

    u = P(log p(Y | x, D) ≤ log p(y | x, D)),  Y ~ p(· | x, D)      uniform where the model is right, whatever x
    p = the rank of u among those of all rows so far                uniform where nothing changes, right or not
    S ← f(p) (S + 1),  f(p) = ε p^(ε − 1)                           rings at S ≥ 1/rate

f(p) is a bet on small p, fair where p is uniform. S − n is then a martingale, so that by Doob's inequality the chance
of a false alarm within any n rows is at most n · rate, and their mean distance at least 1/rate rows: the Shiryaev–
Roberts procedure, on the p-values of a conformal test. S is a mean over several ε, which is a fair bet too.

References: Vovk, Testing randomness online, 2021; Shin, Ramdas and Rinaldo, E-detectors, 2023.
"""

import math
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Self

import msgspec
import numpy as np

from credo._checks import require_fraction
from credo._schema import Count, Positive, Seed, checked
from credo.evaluation.checks import checked as checked_targets
from credo.evaluation.checks import judged
from credo.predictive import ClassPredictive, Predictive

# Small ε bets on a few great surprises, large ε on many little ones.
EXPONENTS = np.linspace(0.1, 0.9, 9)
NONE = (0.0,) * len(EXPONENTS)
# Improbability, −log u, is counted in steps of this many nats: rows of one step are ranked by lot, which is as exact.
STEP, NUM_STEPS = 0.05, 500
# What the model says of itself counts as so many rows. With 200, a noise scale that is a fifth too small rings in half
# of the streams that are learned row by row; with none, nobody would notice a change that comes before the first row.
OWN_WORD = 50


# Finite, and no NaN.
NotNegative = Annotated[float, msgspec.Meta(ge=0, le=1e300)]
Counts = Annotated[tuple[NotNegative, ...], msgspec.Meta(min_length=NUM_STEPS, max_length=NUM_STEPS)]
Evidence = Annotated[tuple[NotNegative, ...], msgspec.Meta(min_length=len(EXPONENTS), max_length=len(EXPONENTS))]


@dataclass(frozen=True)
class Ring:
    """The alarm rang.

    Arguments:
        row: at which it rang, counted from one.
        since: where the change began, roughly.
        surprise: of a row since then, in nats: how much more improbable than the model expects, on average.
    """

    row: Positive
    since: Positive
    surprise: float

    def __str__(self) -> str:
        return (
            f"rang at row {self.row:,}: since about row {self.since:,} the targets are {self.surprise:.1f} nats a row "
            "more improbable than the model expects"
        )


@dataclass(frozen=True)
class DriftAlarm:
    """An alarm that rings when targets become more improbable than they have been.

    A model that is sure and wrong rings it, and so does noise that grows. Inputs from elsewhere alone do not, as long
    as the model knows that it does not know them; nor does a model that is a little too sure of itself all the time,
    because a row is compared with those before it. After it has rung it begins anew, with the rows to come.

    Rows of one batch share what the model does not know yet, and are no independent witnesses: n rows count as
    n / (1 + n V), where V is how far the functions of the posterior disagree about the batch as a whole. So do they in
    the ranks of later rows: of a model that knew little, hardly any target was improbable. Fewer rows to be compared
    with make ranks less extreme, so that the promise holds.

    Arguments:
        rate: of false alarms for each row, at most.
        seed: ranks that are equal are settled by lot.
        num_rows: watched so far.
        rings: when it rang.
        counts, evidence: its memory: rows by the step of their improbability, and S for each ε.
        start, excess, improbability: the row after which a change may have begun, and sums since then.

    >>> from credo import from_normal
    >>> noise = np.random.default_rng(0).normal(size=400)
    >>> alarm = DriftAlarm().watch(from_normal(np.zeros(300), 1.0), noise[:300])
    >>> print(alarm)
    no change seen in 300 rows
    >>> print(alarm.watch(from_normal(np.zeros(100), 1.0), 3 + noise[300:]))
    rang at row 307: since about row 301 the targets are 5.5 nats a row more improbable than the model expects
    """

    rate: float = 1e-5
    seed: Seed = 0
    num_rows: Count = 0
    rings: tuple[Ring, ...] = ()
    counts: Counts = ()
    evidence: Evidence = NONE
    start: Count = 0
    excess: float = 0.0
    improbability: float = 0.0

    def __post_init__(self) -> None:
        require_fraction(rate=self.rate)
        if not self.counts:
            own_word = steps_of(-np.log(1 - self._lots(OWN_WORD)))
            object.__setattr__(self, "counts", tuple(np.bincount(own_word, minlength=NUM_STEPS).tolist()))

    @property
    def rang(self) -> bool:
        """Whether it has rung at all."""
        return bool(self.rings)

    def __str__(self) -> str:
        if not self.rings:
            return f"no change seen in {self.num_rows:,} rows"
        return "; ".join(map(str, self.rings))

    def watch(self, predictive: Predictive, y: Any) -> Self:
        """The alarm after more rows, whose targets the prediction has not seen.

        Arguments:
            predictive: p(y | x, D) of the rows, in the order in which they came.
            y: their targets, (rows,) or (rows, outputs); rows without one are left out.
        """
        predictive, y = judged(predictive, y)
        targets = checked_targets(predictive, y)
        lots = self._lots(2 * len(targets), self.num_rows + 1).reshape(-1, 2)
        improbable = -np.log(tail_probability(predictive, targets, lots[:, 0]))
        weight = independence(predictive)
        counts, alarm = np.array(self.counts, np.float64), self
        for row, step, lot in zip(improbable.tolist(), steps_of(improbable), lots[:, 1], strict=True):
            rank = (counts[step + 1 :].sum() + (1 - lot) * (counts[step] + 1)) / (counts.sum() + 1)
            counts[step] += weight
            after = alarm._after(rank, row, weight)
            if after.rings != alarm.rings:
                counts[:] = 0
            alarm = after
        return replace(alarm, counts=tuple(counts.tolist()))

    def _after(self, rank: float, improbable: float, weight: float) -> Self:
        """The alarm after one row, without its counts."""
        evidence = (EXPONENTS * rank ** (EXPONENTS - 1)) ** weight * (np.asarray(self.evidence) + 1)
        num_rows, improbability = self.num_rows + 1, self.improbability + improbable
        if evidence.mean() >= 1 / self.rate:
            # −log u of a uniform u is 1 on average.
            ring = Ring(num_rows, self.start + 1, improbability / (num_rows - self.start) - 1)
            return replace(
                self,
                num_rows=num_rows,
                rings=(*self.rings, ring),
                evidence=NONE,
                start=num_rows,
                excess=0.0,
                improbability=0.0,
            )
        # The most likely beginning of a change, by the bet with ε = ½: a sum of log f(p) that has not come to nothing.
        excess = self.excess + math.log(0.5) - 0.5 * math.log(rank)
        begins = excess <= 0
        return replace(
            self,
            num_rows=num_rows,
            evidence=tuple(evidence.tolist()),
            start=num_rows if begins else self.start,
            excess=0.0 if begins else excess,
            improbability=0.0 if begins else improbability,
        )

    def _lots(self, num: int, *after: int) -> np.ndarray:
        return np.random.default_rng((self.seed % 2**64, *after)).random(num)

    # -- storage -------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Any, source: Any = "the alarm") -> Self:
        """The inverse of `to_dict`; `source` is where it was read."""
        return checked(source, stored, cls)


def tail_probability(predictive: Predictive, targets: np.ndarray, lots: np.ndarray) -> np.ndarray:
    """P(log p(Y) ≤ log p(y)) of each row, under the prediction; equal ones by lot.

    Of numbers, that of both tails: the same for a symmetric density with one mode. Of several outputs, the chance that
    the least of so many independent ones is as small.

    Arguments:
        lots: a number between 0 and 1 for each row.

    >>> from credo import from_normal, from_probs
    >>> tail_probability(from_normal([0.0], [1.0]), np.array([1.96]), np.zeros(1)).round(3)
    array([0.05])
    >>> tail_probability(from_probs([[0.7, 0.2, 0.1]]), np.array([1]), np.full(1, 0.5)).round(3)
    array([0.2])
    """
    if isinstance(predictive, ClassPredictive):
        probs = np.asarray(predictive.probs, np.float64)
        own = np.take_along_axis(probs, targets[:, None], axis=1)
        below, equal = (np.sum(probs * which, axis=1) for which in (probs < own, probs == own))
        tail = (below + (1 - lots) * equal) / probs.sum(axis=1)
    else:
        levels = np.asarray(predictive.cdf(targets), np.float64).reshape(len(targets), -1)
        least = np.nanmin(2 * np.minimum(levels, 1 - levels), axis=1)
        tail = 1 - (1 - least) ** np.sum(~np.isnan(levels), axis=1)
    return np.clip(tail, math.exp(-STEP * NUM_STEPS), 1.0)


def independence(predictive: Any) -> float:
    """1 / (1 + n Var[h̄]): the share of the n rows that are independent witnesses, given all that they share.

    h̄(theta) is the mean of what the rows would say if theta were true, in units of what a row says by chance. Of
    numbers that is the squared error, whose variance under the prediction is 2; of classes −log u, of variance 1.
    """
    functions = np.asarray(predictive.functions, np.float64)
    if isinstance(predictive, ClassPredictive):
        half = np.full(len(predictive), 0.5)
        labels = np.arange(functions.shape[-1])
        tails = [tail_probability(predictive, np.full(len(predictive), label), half) for label in labels]
        said = np.sum(functions * -np.log(np.stack(tails, axis=-1)), axis=-1)
    else:
        said = (functions - predictive.mean) ** 2 / predictive.variance / math.sqrt(2)
    by_draw = said.reshape(len(said), -1).mean(axis=1)
    weights = predictive.weights if len(predictive.weights) == len(by_draw) else None
    spread = np.average((by_draw - np.average(by_draw, weights=weights)) ** 2, weights=weights)
    return float(1 / (1 + len(predictive) * spread))


def steps_of(improbable: Any) -> np.ndarray:
    """The step that each improbability is counted in."""
    return np.minimum(np.asarray(improbable) / STEP, NUM_STEPS - 1).astype(int)
