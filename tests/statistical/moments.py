"""Known moments, and the tests that draws of them must pass."""

import numpy as np

from credo.diagnostics._arviz import arviz

# Every estimate may be this many of its own Monte Carlo standard errors away from the truth. A normal error is beyond
# 4 once in 16,000; the suite makes some hundred comparisons, so it fails for no reason in well under 1% of new seeds
# (and the seeds are fixed).
NUM_STANDARD_ERRORS = 4.0
# Standard deviations must be right to this much. The chains are long enough for their own error to be below a third.
SD_TOLERANCE = 0.05


def assert_moments(draws: np.ndarray, mean: np.ndarray, sd: np.ndarray) -> None:
    """Draws (chains, draws, D) have this mean within 4 standard errors, and this sd within 5%."""
    mean_error, sd_error = moment_errors(draws, mean, sd)
    assert np.all(mean_error < NUM_STANDARD_ERRORS), f"means off by {mean_error.round(1)} standard errors"
    assert np.all(sd_error < SD_TOLERANCE), f"sds off by {sd_error.round(3)}"


def passes(draws: np.ndarray, mean: np.ndarray, sd: np.ndarray) -> bool:
    """Whether `assert_moments` would pass: negative controls must not."""
    mean_error, sd_error = moment_errors(draws, mean, sd)
    return bool(np.all(mean_error < NUM_STANDARD_ERRORS) and np.all(sd_error < SD_TOLERANCE))


def moment_errors(draws: np.ndarray, mean: np.ndarray, sd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Error of the mean in its own standard errors, and relative error of the sd."""
    draws = np.asarray(draws, np.float64)
    dataset = arviz.convert_to_dataset({"q": draws})
    ess = arviz.ess(dataset, method="mean")["q"].values
    standard_error = sd / np.sqrt(ess)
    pooled = draws.reshape(-1, draws.shape[-1])
    return np.abs(pooled.mean(0) - mean) / standard_error, np.abs(pooled.std(0) / sd - 1)
