"""How far the predictions of another run of the same length would be from these: their Monte Carlo error.

    MCSE(m) = sd(mᵢ)/√ESS,    mᵢ = E[y | x, thetaᵢ], or P(y ≤ q | x, thetaᵢ) at an end q of the 90% interval

as a share of the predictive sd, noise included: what a prediction shows of it. The sd of the functions is at most that,
so an ESS of 100 makes a share of 0.1 whatever the noise is, and fewer draws do where there is much noise.

A mean that is δ predictive sds off costs δ²/2 nats per row, and takes 0.17 δ² from what a 90% interval holds (normal
predictives, to second order).
"""

from typing import NamedTuple

import numpy as np
from scipy import stats

from credo.diagnostics._arviz import ess
from credo.diagnostics.functions import ratio
from credo.predictive import Predictive, RegressionPredictive
from credo.predictive.laws import name_without_cdf

# Shares of the predictive sd: 0.005 nats per row, which no test set shows; and 0.045, with a 90% interval that holds
# 88.5%.
GOOD_SHARE, BAD_SHARE = 0.1, 0.3
LEVEL = 0.9
# The density of a standard normal at an end of that interval: how fast the level changes there, per sd.
DENSITY_AT_END = float(stats.norm.pdf(stats.norm.ppf((1 + LEVEL) / 2)))
# Half the interval of this level is the sd of a normal, and exists where tails are too heavy for an sd.
ONE_SD = 0.6827


class Precision(NamedTuple):
    """Root mean squares over probed outputs, in predictive sds: the loss of nats per row goes with the square.

    Arguments:
        mean: the Monte Carlo error of the mean; of classes, of their probabilities.
        ends: that of the ends of the 90% interval; None for classes, and where y has no distribution function.
        disagreement: the sd of the chains' mean functions; None for one chain.
    """

    mean: float
    ends: float | None
    disagreement: float | None

    @property
    def share(self) -> float:
        """The larger one of the two errors."""
        return max(self.mean, self.ends or 0.0)


def precision_of(prediction: Predictive, num_chains: int) -> Precision:
    """The Monte Carlo error of a prediction, whose draws are chains of equal length, one after another."""
    functions = _by_chain(prediction.functions, num_chains)
    ends = None
    if not isinstance(prediction, RegressionPredictive):
        probs = functions.mean(axis=(0, 1))
        sd = np.sqrt(probs * (1 - probs))
    elif name_without_cdf(prediction.conditional_of, prediction.draws, prediction.x):
        sd = prediction.std.ravel()
    else:
        low, high = prediction.interval(ONE_SD)
        sd = (high - low).ravel() / 2
        levels = [_by_chain(prediction.cdf_by_draw(end), num_chains) for end in prediction.interval(LEVEL)]
        ends = max(_root_mean_square(_errors(level) / DENSITY_AT_END) for level in levels)
    between = functions.mean(axis=1).std(axis=0, ddof=1) if num_chains > 1 else None
    return Precision(
        mean=_root_mean_square(ratio(_errors(functions), sd)),
        ends=ends,
        disagreement=None if between is None else _root_mean_square(ratio(between, sd)),
    )


def _by_chain(draws: np.ndarray, num_chains: int) -> np.ndarray:
    """(chains, draws, quantities) of (all draws, rows, output…)."""
    return draws.reshape(num_chains, len(draws) // num_chains, -1).astype(np.float64)


def _errors(draws: np.ndarray) -> np.ndarray:
    """MCSE of the mean of each quantity; nothing for one that is the same in all draws."""
    errors = np.zeros(draws.shape[-1])
    moving = np.ptp(draws, axis=(0, 1)) > 0
    if moving.any():
        # Chains that stand still have no variance within: their ESS is one of each at best.
        with np.errstate(divide="ignore", invalid="ignore"):
            num = ess(draws[..., moving], "mean")
        num = np.where(np.isfinite(num), num, 1.0)
        errors[moving] = draws[..., moving].std(axis=(0, 1)) / np.sqrt(np.maximum(num, 1.0))
    return errors


def _root_mean_square(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
