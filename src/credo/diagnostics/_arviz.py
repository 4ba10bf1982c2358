"""ArviZ behind one door: what credo asks of it, of 0.23 and of 1.x alike, over plain arrays.

ArviZ 1.x needs Python 3.12 or newer. It takes groups in one dict, of which it makes xarray's DataTree in place of
InferenceData; it has other names for the parts of an expected log predictive density; and what smooths importance
weights stands in a package of its own and takes log likelihoods, the weights upside down. The figures are the same,
but for the rule by which the tail of the weights begins.

Draws are (chains, draws, quantities); each figure is one number for each quantity.
"""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Literal

import numpy as np

with warnings.catch_warnings():
    # 0.23 tells every user of its next major version.
    warnings.simplefilter("ignore", FutureWarning)
    import arviz

FROM_ONE = int(arviz.__version__.split(".")[0]) >= 1
_ARRAY_STATS = import_module("arviz_stats.base").array_stats if FROM_ONE else None
_LOCK = threading.Lock()


def rhat(draws: np.ndarray) -> np.ndarray:
    """Rank-normalised split R-hat."""
    return arviz.rhat(_dataset(draws))["q"].values


def ess(draws: np.ndarray, method: Literal["bulk", "tail", "mean"]) -> np.ndarray:
    """Effective number of draws: for the bulk, for the tails, or for the mean."""
    return arviz.ess(_dataset(draws), method=method)["q"].values


def mcse(draws: np.ndarray, method: Literal["mean", "sd"]) -> np.ndarray:
    """Monte Carlo standard error of the mean or of the sd."""
    return arviz.mcse(_dataset(draws), method=method)["q"].values


def smoothed_weights(log_ratios: np.ndarray, efficiency: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Log weights that add up to one along the last axis, their tail Pareto-smoothed; and k̂ of each row."""
    with quiet():  # who asks gives advice about k̂
        if _ARRAY_STATS is None:
            return arviz.psislw(log_ratios, reff=efficiency)
        return _ARRAY_STATS.psislw(-log_ratios, r_eff=efficiency)


def leave_one_out(densities: np.ndarray, efficiency: float) -> tuple[np.ndarray, np.ndarray]:
    """log p(yₙ | D without n) of each row by PSIS, and its k̂, from log p(yₙ | thetaᵢ), (chains, draws, rows)."""
    with quiet():
        found = arviz.loo(inference_data(log_likelihood={"y": densities}), pointwise=True, reff=efficiency)
    return (found.elpd_i if FROM_ONE else found.loo_i).values, found.pareto_k.values


def inference_data(**groups: dict[str, np.ndarray]) -> Any:
    """Groups of variables, each (chains, draws, …): an InferenceData of 0.23, or a DataTree of 1.x."""
    return arviz.from_dict(groups) if FROM_ONE else arviz.from_dict(**groups)


@contextmanager
def quiet() -> Iterator[None]:
    """While it lasts, ArviZ warns of nothing.

    Python has one list of filters for all threads: of two that change it at once, the last would leave behind what the
    first had set. So they come one after another, and the warnings of others are heard.
    """
    with _LOCK, warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="arviz")
        yield


def _dataset(draws: np.ndarray) -> Any:
    return arviz.convert_to_dataset({"q": draws})
