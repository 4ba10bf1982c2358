"""Leave-one-out without refitting: how well would the model predict its training rows if it had not seen them?

PSIS-LOO weighs the draws of one fit by 1 / p(yₙ | thetaᵢ), smoothed (Vehtari, Gelman and Gabry, 2017); WAIC corrects
the training density by its variance over draws (Watanabe, 2010). The first comes from ArviZ; both need
log p(yₙ | thetaᵢ) of every row and draw.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import logsumexp

from credo._html import InNotebook
from credo.data import Data
from credo.diagnostics._arviz import ess, leave_one_out, smoothed_weights
from credo.evaluation.checks import predicted, rows_for
from credo.posterior import Draws

# Above this the importance weights of a row have no finite variance (Vehtari et al., 2024).
BAD_K = 0.7
# Nats. A row that is as good as certain under all draws, such as one censored early, has no tail for PSIS to smooth:
# it gets this one.
LEAST_SPREAD = 1e-9
# Above this variance over draws the correction of WAIC is no longer small (Vehtari, Gelman and Gabry, 2017).
BAD_VARIANCE = 0.4
# The ESS of the importance weights is averaged over this many rows, a millisecond each.
NUM_ESS_ROWS = 50


@dataclass(frozen=True, eq=False)
class LeaveOneOut(InNotebook):
    """The expected log predictive density of new rows, summed over rows.

    Arguments:
        elpd: in nats, in the user's units.
        standard_error: over rows.
        num_effective: the effective number of parameters.
        pointwise: elpd of each row.
        k_hat: of each row; above 0.7 its estimate cannot be trusted. None for WAIC.
        advice: whether to trust the estimate, in words.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.3)
    >>> posterior = credo.fit(model, credo.datasets.gap(20), credo.NUTS(num_samples=50, num_warmup=50), seed=0)
    >>> found = credo.evaluation.loo(posterior, credo.datasets.gap(20))
    >>> found.method, found.pointwise.shape, float(found.k_hat.max()) < 0.7
    ('PSIS-LOO', (20,), True)
    """

    method: Literal["PSIS-LOO", "WAIC"]
    elpd: float
    standard_error: float
    num_effective: float
    pointwise: np.ndarray
    k_hat: np.ndarray | None
    advice: str

    def __str__(self) -> str:
        return (
            f"{self.method}: elpd {self.elpd:.1f} ± {self.standard_error:.1f} over {len(self.pointwise):,} rows, "
            f"{self.num_effective:.1f} effective parameters. {self.advice}"
        )


def loo(posterior: Draws, data: Data | tuple[Any, Any]) -> LeaveOneOut:
    """Pareto-smoothed importance sampling leave-one-out, on the rows the posterior was fitted to.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.3)
    >>> posterior = credo.fit(model, credo.datasets.gap(20), credo.NUTS(num_samples=50, num_warmup=50), seed=0)
    >>> round(credo.evaluation.loo(posterior, credo.datasets.gap(20)).elpd)
    -2
    """
    densities = _log_densities(posterior, data)
    pointwise, k_hat = leave_one_out(densities, _relative_efficiency(densities))
    num_bad = int(np.sum(~(k_hat <= BAD_K)))  # without a number too: there was no tail to fit
    trusted = "No row decides the fit alone: the estimate can be trusted."
    advice = f"{num_bad} rows have k̂ above {BAD_K}: too influential to be left out by weighting; hold some out."
    return _result("PSIS-LOO", densities, pointwise, advice if num_bad else trusted, k_hat)


def waic(posterior: Draws, data: Data | tuple[Any, Any]) -> LeaveOneOut:
    """The widely applicable information criterion, on the rows the posterior was fitted to.

    log p(yₙ | D) − Var[log p(yₙ | thetaᵢ)],    the variance over draws

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.3)
    >>> posterior = credo.fit(model, credo.datasets.gap(20), credo.NUTS(num_samples=50, num_warmup=50), seed=0)
    >>> round(credo.evaluation.waic(posterior, credo.datasets.gap(20)).elpd)
    -2
    """
    densities = _log_densities(posterior, data)
    variances = densities.var(axis=(0, 1))
    trusted = "The log densities vary little over draws: the estimate can be trusted."
    unsure = "The log density of some rows varies too much over draws (by more than 0.4) for WAIC; prefer PSIS-LOO."
    advice = unsure if np.any(variances > BAD_VARIANCE) else trusted
    return _result("WAIC", densities, _log_mean(densities) - variances, advice)


def _result(
    method: Literal["PSIS-LOO", "WAIC"],
    densities: np.ndarray,
    pointwise: np.ndarray,
    advice: str,
    k_hat: np.ndarray | None = None,
) -> LeaveOneOut:
    """The parameters that count are what a row's density gains from having been fitted."""
    standard_error = float(np.sqrt(len(pointwise) * np.var(pointwise)))
    num_effective = float(np.sum(_log_mean(densities) - pointwise))
    return LeaveOneOut(method, float(np.sum(pointwise)), standard_error, num_effective, pointwise, k_hat, advice)


def _log_mean(densities: np.ndarray) -> np.ndarray:
    """log p(yₙ | D), averaged over draws of the posterior of all rows."""
    return logsumexp(densities, axis=(0, 1)) - np.log(densities.shape[0] * densities.shape[1])


def left_out_weights(posterior: Draws, data: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What each draw weighs where a row is left out, (draws, rows), that row's k̂, and its log density without itself.

    wᵢₙ ∝ 1 / p(yₙ | thetaᵢ), smoothed,    p(yₙ | D without n) = Σᵢ wᵢₙ p(yₙ | thetaᵢ)

    Where rows belong together, what is left out is all rows of a group; and a row as often as it was seen.
    """
    by_chain = _log_densities(posterior, data)
    densities = by_chain.reshape(-1, by_chain.shape[2])
    seen = data.only_labelled()
    units, log_units = np.arange(seen.size), densities if seen.counts is None else densities * seen.counts
    if seen.groups is not None:
        units = np.unique(seen.groups, return_inverse=True)[1]
        log_units = np.stack([np.bincount(units, row) for row in log_units])
    logs, k_hat = smoothed_weights(-log_units.T, _relative_efficiency(by_chain))
    weights, k_hat = np.exp(logs.T)[:, units], np.asarray(k_hat)[units]
    return weights, k_hat, np.log(np.sum(weights * np.exp(densities), axis=0))


def _log_densities(posterior: Draws, data: Data | tuple[Any, Any]) -> np.ndarray:
    """log p(yₙ | thetaᵢ), (chains, draws, rows)."""
    if posterior.weights is not None:
        raise ValueError("leave-one-out needs draws of equal weight")
    if posterior.num_chains * posterior.num_draws < 2:
        raise ValueError("leave-one-out weighs draws against each other; a point estimate has only one")
    rows = rows_for(posterior, data).with_labels().only_labelled()
    densities = predicted(posterior, rows).log_prob_by_draw(rows.outcomes).astype(np.float64)
    steady = np.ptp(densities, axis=0) < LEAST_SPREAD
    densities += steady * LEAST_SPREAD * np.linspace(-1, 1, len(densities))[:, None]
    return densities.reshape(posterior.num_chains, posterior.num_draws, -1)


def _relative_efficiency(densities: np.ndarray) -> float:
    """Effective over actual draws of the densities, from which Pareto smoothing takes the length of its tail."""
    if densities.shape[1] < 4:
        return 1.0
    chosen = np.linspace(0, densities.shape[2] - 1, min(NUM_ESS_ROWS, densities.shape[2])).astype(int)
    num = ess(np.exp(densities[..., chosen]), "mean")
    return float(min(1.0, np.nanmean(num) / (densities.shape[0] * densities.shape[1])))
