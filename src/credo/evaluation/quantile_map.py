"""Recalibrated regression: P'(Y ≤ y) = R(F(y)), R the distribution function of F(y) on held-out rows.

Kuleshov, Fenner and Ermon, "Accurate uncertainties for deep learning using calibrated regression" (2018).
"""

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from credo.evaluation.checks import checked, judged, required
from credo.evaluation.mapped import Mapped
from credo.predictive import RegressionPredictive, streaming
from credo.predictive.conditional import Conditional, each_output
from credo.predictive.laws import cdf_of
from credo.predictive.quantiles import as_levels
from credo.typing import Array, Key

# Beyond this many sds single precision knows 1 − F to less than two digits.
REACH = 4.5
# Points of a row's table of F: every 0.07 sd of a normal. Later rounds find modes narrower than a cell.
NUM_POINTS = 129
NUM_ROUNDS = 3


def _cdf_at(conditional: Conditional, y: Array) -> Array:
    return jax.vmap(partial(cdf_of, each_output(conditional)), 1, 1)(y)


_CDF_AT = streaming.Accumulator(
    start=lambda conditional, y: jnp.zeros(y.shape),
    add=lambda carry, conditional, weight, y: carry + weight * _cdf_at(conditional, y),
)


@dataclass(frozen=True, eq=False)
class IsotonicQuantiles:
    """R, the distribution function of the levels u = F(y), with equally many held-out rows between its knots.

    Isotonic regression of the empirical distribution function of u passes through every point and has no density to
    score; with a knot at every (n/K)-th point it has one. K = ⌈2 n^(2/5)⌉ after Mann and Wald (1942), halved by Moore
    (1986). Between and beyond the knots R is linear on the scale of normal scores, z = Φ⁻¹(u) ↦ Φ⁻¹(R(u)): there a
    normal prediction with a wrong mean and scale is a line, tails included. If R were linear in u, the tails would stay
    as in the old prediction: too light where it was overconfident. The outermost knot at each end is the mean score of
    the rows beyond the others, so that all the rows of a tail shape it.

    Arguments:
        predicted: normal scores of the predicted levels at the knots, increasing, (K + 1,).
        observed: those of the observed levels: Φ⁻¹(k/K), and at both ends the mean of a normal beyond them.

    >>> from credo.predictive.tabulated import from_normal
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> claimed = from_normal(np.zeros(1000), 0.5)
    >>> calibrated = IsotonicQuantiles.fit(claimed, y)(claimed)
    >>> print(claimed.std[0], calibrated.std[0].round(1))
    0.5 1.0
    """

    predicted: np.ndarray
    observed: np.ndarray

    @classmethod
    def fit(cls, predictive: RegressionPredictive, y: object) -> Self:
        """Fit R to targets (data,) that the model was not trained on."""
        predictive, y = judged(predictive, y)
        targets = checked(predictive, y, RegressionPredictive)
        scores, _ = NormalScores(predictive).of(targets)
        num = len(targets)
        # A knot from fewer than five rows would be noise (Cochran's rule); two knots fix a location and a scale.
        if num < 15:
            raise ValueError(f"isotonic recalibration needs at least 15 rows, got {num}")
        num_parts = min(math.ceil(2 * num**0.4), num // 5)
        levels = np.arange(1, num_parts) / num_parts
        # The i-th of n uniform levels is i/(n + 1) on average: with this kind of quantile R is unbiased.
        inner = np.quantile(scores, levels, method="weibull")
        lowest, highest = scores[scores <= inner[0]].mean(), scores[scores >= inner[-1]].mean()
        predicted = np.concatenate([[lowest], inner, [highest]])
        # The mean of a normal beyond its quantile a at a tail of 1/K is K φ(a).
        tail = num_parts * math.exp(_log_normal(ndtri(levels[-1])))
        observed = np.concatenate([[-tail], ndtri(levels), [tail]])
        if np.any(np.diff(predicted) <= 0):
            raise ValueError(
                f"the levels F(y) of {num} rows take {len(np.unique(scores))} different values; isotonic recalibration "
                f"needs at least {num_parts}, and none shared by many rows: y must be continuous"
            )
        return cls(predicted, observed)

    def __call__(self, predictive: RegressionPredictive) -> "RecalibratedRegression":
        required(predictive, RegressionPredictive)
        return RecalibratedRegression(predictive, self)

    def scores(self, predicted: Any) -> np.ndarray:
        """Φ⁻¹(R(Φ(z)))."""
        return _line(predicted, self.predicted, self.observed)

    def inverse(self, observed: Any) -> np.ndarray:
        """The inverse of `scores`."""
        return _line(observed, self.observed, self.predicted)

    def slope(self, predicted: Any) -> np.ndarray:
        """The derivative of `scores`."""
        cell = np.searchsorted(self.predicted[1:-1], predicted)
        return (np.diff(self.observed) / np.diff(self.predicted))[cell]


class NormalScores:
    """z = Φ⁻¹(F(y)) of a prediction with one output, and back, both from a table of F for each row.

    Where single precision cannot tell F from 0 or 1, z continues as a line, which is exact for normal tails.
    """

    def __init__(self, predictive: RegressionPredictive) -> None:
        if isinstance(predictive, RecalibratedRegression):
            raise ValueError("the prediction is already recalibrated; recalibrate the posterior's own")
        if predictive.mean.ndim > 1:
            raise ValueError(
                f"recalibration is for a regression with one output, got a prediction of shape {predictive.mean.shape}"
            )
        self.predictive = predictive

    def of(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """z and log dz/dy at one target for each row, both (data,)."""
        scores = np.clip(ndtri(np.asarray(self.predictive.cdf(y), np.float64)), -2 * REACH, 2 * REACH)
        log_slope = self.predictive.log_prob(y) - _log_normal(scores)
        beyond = np.abs(scores) > REACH
        if np.any(beyond):
            end_z, end_y, slope = (np.where(scores < 0, low, high) for low, high in self._ends)
            scores = np.where(beyond, end_z + slope * (y - end_y), scores)
            log_slope = np.where(beyond, np.log(slope), log_slope)
        return scores, log_slope

    def at(self, scores: np.ndarray) -> np.ndarray:
        """y of each row at normal scores (data, points), or (points,) for all rows."""
        table_z, table_y = self._table
        wanted = np.broadcast_to(scores, (len(table_y), scores.shape[-1]))
        inside = _by_row(wanted, table_z, table_y)
        for side, end in enumerate(zip(*self._ends, strict=True)):
            end_z, end_y, slope = (values[:, None] for values in end)
            beyond = wanted > end_z if side else wanted < end_z
            inside = np.where(beyond, end_y + (wanted - end_z) / slope, inside)
        return inside

    def levels(self, y: np.ndarray) -> np.ndarray:
        """F at several points of each row, (data, points)."""
        targets = self.predictive.scaling.targets(y)
        return np.asarray(self.predictive.with_cdf.fold(_CDF_AT, targets), np.float64)

    @cached_property
    def _table(self) -> tuple[np.ndarray, np.ndarray]:
        """z and y at points of each row, spread evenly over y and over z, both (data, points).

        Each round evaluates F where the last one located the wanted z: some 600 evaluations for each draw and row,
        where bisection for every level would take 8,000.
        """
        low, high = self.predictive.quantile(ndtr([-REACH, REACH]))
        y = even_y = np.linspace(low, high, NUM_POINTS, axis=1)
        z = even_z = ndtri(self.levels(y))
        grid = np.broadcast_to(np.linspace(-REACH, REACH, NUM_POINTS), y.shape)
        for _ in range(NUM_ROUNDS):
            y = _by_row(grid, z, y)
            z = ndtri(self.levels(y))
        # Even steps of z skip the gaps between modes, where y moves far; z grows with y, so each can be sorted alone.
        both = np.sort(np.concatenate([even_z, z], axis=1)), np.sort(np.concatenate([even_y, y], axis=1))
        return np.clip(both[0], -REACH, REACH), both[1]

    @cached_property
    def _ends(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """z, y and dz/dy at both ends of the table; over a sixteenth of it the slope has two digits."""
        z, y = self._table
        far = NUM_POINTS // 8
        low = (z[:, far] - z[:, 0]) / (y[:, far] - y[:, 0])
        high = (z[:, -1] - z[:, -1 - far]) / (y[:, -1] - y[:, -1 - far])
        return (z[:, 0], z[:, -1]), (y[:, 0], y[:, -1]), (low, high)


class RecalibratedRegression(Mapped, RegressionPredictive):
    """A prediction seen through R: P'(Y ≤ y) = R(F(y)); `input_covariance` stays that of the draws."""

    def __init__(self, base: RegressionPredictive, map: IsotonicQuantiles) -> None:
        super().__init__(base, map)
        self._scores = NormalScores(base)

    @property
    def is_normal(self) -> bool:
        """Whether the marginal is normal: it is not, since R bends it."""
        return False

    def cdf(self, y: Any) -> np.ndarray:
        """R(F(y)) of each row."""
        return ndtr(self.map.scores(self._scores.of(self.parted(self.targets(y))[0])[0]))

    def log_prob(self, y: Any) -> np.ndarray:
        """log p(y | x, D) + log R'(F(y)) of each row."""
        values, censored = self.parted(self.targets(y))
        scores, log_slope = self._scores.of(values)
        mapped = self.map.scores(scores)
        density = _log_normal(mapped) + np.log(self.map.slope(scores)) + log_slope
        return density if censored is None else np.where(censored, log_ndtr(-mapped), density)

    def quantile(self, level: Any) -> np.ndarray:
        """F⁻¹(R⁻¹(level)); axes as in any prediction."""
        levels = as_levels(level)
        found = self._scores.at(self.map.inverse(ndtri(levels.ravel())))
        return found.T.reshape(*levels.shape, len(self))

    def samples(self, key: Key, num: int) -> np.ndarray:
        """`num` draws of y, (num, data): those of `base`, each moved to its new quantile.

        A draw is still shared by all rows, so rows depend on each other as before.
        """
        levels = self._scores.levels(super().samples(key, num).T)
        return self._scores.at(self.map.inverse(np.clip(ndtri(levels), -REACH, REACH))).T

    @property
    def mean(self) -> np.ndarray:
        """∫ F⁻¹(u) dR(u), (data,)."""
        return self._mean_variance[0]

    @property
    def variance(self) -> np.ndarray:
        """∫ (F⁻¹(u) − mean)² dR(u), (data,)."""
        return self._mean_variance[1]

    @property
    def epistemic(self) -> np.ndarray:
        """As for the draws, scaled like the variance."""
        return self.base.epistemic * (self.variance / self.base.variance)

    @property
    def aleatoric(self) -> np.ndarray:
        """variance − epistemic."""
        return self.variance - self.epistemic

    @cached_property
    def covariance(self) -> np.ndarray:
        """The variance as (data, 1, 1)."""
        return self.variance[:, None, None]

    @cached_property
    def _mean_variance(self) -> tuple[np.ndarray, np.ndarray]:
        """By the trapezoidal rule on normal scores: for a normal exact to double precision."""
        scores = np.linspace(-6, 6, NUM_POINTS)
        weights = np.exp(_log_normal(scores))
        y = self._scores.at(self.map.inverse(scores))
        mean = np.average(y, axis=1, weights=weights)
        return mean, np.average((y - mean[:, None]) ** 2, axis=1, weights=weights)


def _line(at: Any, known: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Linear interpolation, extrapolated from the last two points."""
    cell = np.searchsorted(known[1:-1], at)
    return values[cell] + (at - known[cell]) * (np.diff(values) / np.diff(known))[cell]


def _by_row(at: np.ndarray, known: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Linear interpolation in each row, (rows, points)."""
    return np.stack([np.interp(*row) for row in zip(at, known, values, strict=True)])


def _log_normal(scores: np.ndarray) -> np.ndarray:
    return -(scores**2 + math.log(2 * math.pi)) / 2
