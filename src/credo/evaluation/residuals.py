"""The length of residuals, by the covariance of the prediction, and how probable one at most that long was.

    NSSRᵢ = (ŷᵢ − yᵢ)ᵀ Σᵢ⁻¹ (ŷᵢ − yᵢ),    p̂ᵢ = X²(NSSRᵢ)

Paper, "Performance metrics of Bayesian Neural Networks": for normal predictions with a known covariance the NSSR is χ².
"""

from typing import Any, Literal

import numpy as np
from scipy import stats

from credo._precision import working_precision
from credo.data import is_observed
from credo.evaluation.checks import checked, judged
from credo.predictive import RegressionPredictive

Law = Literal["chi2", "hotelling"]


def nssr_probabilities(
    predictive: RegressionPredictive, y: object, *, law: Law = "chi2", noise: bool = True
) -> tuple[np.ndarray, str]:
    """p̂ᵢ = X²(NSSRᵢ) of each row: how probable a residual at most that long was; and the note of `nssr`."""
    predictive, y = judged(predictive, y)
    values, note = nssr(predictive, y, noise=noise)
    dim, num = _num_outputs(predictive.targets(y)), predictive.num_draws
    if law == "chi2":
        return stats.chi2.cdf(values, dim), note
    if law != "hotelling":
        raise ValueError(f"law must be 'chi2' or 'hotelling', got {law!r}")
    if num <= np.max(dim):
        raise ValueError(f"the law of Hotelling needs more draws than outputs, got {num} and {np.max(dim)}")
    # A mean and a covariance of `num` normal draws: T²·num/(num + 1) ~ dim (num − 1)/(num − dim) · F.
    return stats.f.cdf(values * num * (num - dim) / ((num + 1) * (num - 1) * dim), dim, num - dim), note


def nssr(predictive: RegressionPredictive, y: object, *, noise: bool = True) -> tuple[np.ndarray, str]:
    """(ŷ − y)ᵀ Σ⁻¹ (ŷ − y) of each row, with the covariance Σ of the marginal, and a note if some Σ were singular.

    Without `noise` Σ is that of the draws, for y that are values of the function itself.

    Of a row that misses some of its outputs, it is that of the others: χ² with as many degrees of freedom as these.

    >>> import credo
    >>> values, note = credo.evaluation.nssr(credo.from_normal([0.0, 1.0], 0.5), [1.0, 1.0])
    >>> values.tolist(), note
    ([4.0, 0.0], '')
    """
    predictive, y = judged(predictive, y)
    targets, censored = predictive.parted(checked(predictive, y, RegressionPredictive))
    if censored is not None:
        raise ValueError("of a censored target there is no residual: take the curves 'quantile' and 'interval'")
    residuals = predictive.mean - targets
    if residuals.ndim == 1:
        variance = predictive.variance if noise else predictive.epistemic
        if np.any(variance <= 0):
            raise ValueError("the predictive variance of some rows is zero: a model without noise has no NSSR")
        return np.asarray(residuals**2 / variance), ""
    covariance, observed = predictive.covariance if noise else predictive.epistemic_covariance, is_observed(targets)
    covariance = np.asarray(covariance, np.float64)
    if not observed.all():
        # Outputs that are missing add nothing if they are independent of the others, and have no residual.
        both = observed[:, :, None] & observed[:, None, :]
        covariance = np.where(both | np.eye(both.shape[-1], dtype=bool), covariance, 0.0)
        residuals = np.where(observed, residuals, 0.0)
    roots, note = _roots(covariance)
    whitened = np.linalg.solve(roots, residuals[..., None])[..., 0]
    return np.sum(whitened**2, axis=-1), note


def _num_outputs(targets: np.ndarray) -> Any:
    """The degrees of freedom of the NSSR: one number, or one for each row where some outputs are missing."""
    observed = is_observed(targets).reshape(len(targets), -1)
    return observed.shape[1] if observed.all() else observed.sum(axis=1)


def _roots(covariance: np.ndarray) -> tuple[np.ndarray, str]:
    """Cholesky roots, and a note if singular matrices needed a ridge."""
    eigenvalues = np.linalg.eigvalsh(covariance)
    least, greatest = eigenvalues[:, 0], eigenvalues[:, -1]
    if np.any(greatest <= 0):
        raise ValueError("the predictive covariance of some rows is zero: a model without noise has no NSSR")
    # The precision in which the moments were summed: smaller eigenvalues are rounding errors.
    floor = np.finfo(working_precision()).eps * covariance.shape[-1] * greatest
    singular = least < floor
    ridge = np.where(singular, floor - least, 0.0)
    note = (
        f"The predictive covariance of {np.sum(singular):,} of {len(singular):,} rows was singular: a ridge of up to "
        f"{ridge.max():.2g} was added to its diagonal."
    )
    roots = np.linalg.cholesky(covariance + ridge[:, None, None] * np.eye(covariance.shape[-1]))
    return roots, note if np.any(singular) else ""
