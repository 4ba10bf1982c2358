"""How far an estimate may be off before a test fails, and the moments that draws must have.

A statistical test takes its seed from the fixture `seed`, and passes for every other seed, on other machines and under
other compile flags: its tolerance is a number of its own Monte Carlo standard errors, which the budget below sets. What
an estimate is known to be off by beyond that, such as the bias of a step size, is added by name.
"""

import numpy as np
from scipy import stats

from credo.diagnostics import _arviz

# A test that is right fails once in 10,000 seeds; once in 1,000 where standard errors are themselves estimates.
FALSE_FAILURE = 1e-4
# Draws must tell an sd this well, as a share of it. Chains that do not mix cannot: they fail, however wide their error.
RESOLUTION = 0.1


def sigmas(num: int = 1, dof: float = np.inf) -> float:
    """How many standard errors the largest of `num` normal errors may reach, within the budget of a test.

    Where the standard error comes from a few values, their degrees of freedom make it Student's law.
    """
    return float(stats.t.isf(FALSE_FAILURE / (2 * num), dof))


def assert_plausible(*p_values: float) -> None:
    """The p-values of a test share its budget."""
    assert min(p_values) > FALSE_FAILURE / len(p_values), p_values


def assert_mean(values: np.ndarray, expected: np.ndarray | float, *, slack: np.ndarray | float = 0.0) -> None:
    """Independent values (num, …) have this mean, as far as their own spread can tell; up to `slack`."""
    values = np.asarray(values, np.float64)
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    off = np.abs(values.mean(axis=0) - expected)
    allowed = sigmas(error.size, len(values) - 1) * error + slack
    assert np.all(off <= allowed), f"means off by {(off / error).round(1)} standard errors"


def assert_covariance(draws: np.ndarray, covariance: np.ndarray) -> None:
    """Independent normal draws (num, D) have this covariance: an entry's standard error is √((Σᵢᵢ Σⱼⱼ + Σᵢⱼ²)/num)."""
    variances = np.diag(covariance)
    error = np.sqrt((np.outer(variances, variances) + covariance**2) / len(draws))
    off = np.abs(np.cov(draws.T) - covariance)
    num = len(variances) * (len(variances) + 1) // 2
    assert np.all(off < sigmas(num) * error), f"covariances off by {(off / error).round(1)} standard errors"


def assert_moments(
    draws: np.ndarray, mean: np.ndarray, sd: np.ndarray, *, kurtosis: float = 3.0, bias: float = 0.0
) -> None:
    """Draws (chains, draws, D) have this mean and this sd, up to a `bias` that is a share of the sd.

    Each is within `sigmas(2D)` of its standard errors sd/√ESS. Squared scores are as good as sds, and have a mean of
    one, with the sd √(κ − 1) of the target: their own would be too small where draws are too narrow.
    """
    scores = (np.asarray(draws, np.float64) - mean) / sd
    num = sigmas(2 * scores.shape[-1])
    mean_error = 1 / np.sqrt(ess(scores))
    # A variance is off by twice the share that the sd is off by.
    square_error = np.sqrt((kurtosis - 1) / ess(scores**2))
    mean_off, square_off = np.abs(scores.mean((0, 1))), np.abs((scores**2).mean((0, 1)) - 1)
    assert np.all(num * square_error < 2 * RESOLUTION), f"sds known to {(square_error / 2).round(3)} only"
    assert np.all(mean_off < num * mean_error + bias), (
        f"means off by {(mean_off / mean_error).round(1)} standard errors"
    )
    assert np.all(square_off < num * square_error + 2 * bias), f"sds off by {(square_off / 2).round(3)}"


def passes(draws: np.ndarray, mean: np.ndarray, sd: np.ndarray, **known: float) -> bool:
    """Whether `assert_moments` would pass: negative controls must not."""
    try:
        assert_moments(draws, mean, sd, **known)
    except AssertionError:
        return False
    return True


def ess(draws: np.ndarray) -> np.ndarray:
    """Effective number of draws (chains, draws, D), for their means."""
    return _arviz.ess(draws, "mean")
