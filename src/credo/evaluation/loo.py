"""Leave-one-out without refitting: how well would the model predict its training rows if it had not seen them?

PSIS-LOO weighs the draws of one fit by 1 / p(yₙ | thetaᵢ), smoothed (Vehtari, Gelman and Gabry, 2017); WAIC corrects
the training density by its variance over draws (Watanabe, 2010). Both come from ArviZ, which needs log p(yₙ | thetaᵢ)
of every row and draw.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from credo.data import Data
from credo.diagnostics._arviz import arviz, quiet
from credo.evaluation.checks import rows_for
from credo.posterior import Draws

# Above this the importance weights of a row have no finite variance (Vehtari et al., 2024).
BAD_K = 0.7
# The ESS of the importance weights is averaged over this many rows, a millisecond each.
NUM_ESS_ROWS = 50


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """The expected log predictive density of new rows, summed over rows.

    Arguments:
        elpd: in nats, in the user's units.
        standard_error: over rows.
        num_effective: the effective number of parameters.
        pointwise: elpd of each row.
        k_hat: of each row; above 0.7 its estimate cannot be trusted. None for WAIC.
        advice: whether to trust the estimate, in words.
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
    """Pareto-smoothed importance sampling leave-one-out, on the rows the posterior was fitted to."""
    densities = _log_densities(posterior, data)
    with quiet():  # the advice says what ArviZ warns of
        found = arviz.loo(_as_arviz(densities), pointwise=True, reff=_relative_efficiency(densities))
    k_hat = found.pareto_k.values
    num_bad = int(np.sum(k_hat > BAD_K))
    trusted = "No row decides the fit alone: the estimate can be trusted."
    advice = f"{num_bad} rows have k̂ above {BAD_K}: too influential to be left out by weighting; hold some out."
    return _result("PSIS-LOO", "loo", found, advice if num_bad else trusted, k_hat)


def waic(posterior: Draws, data: Data | tuple[Any, Any]) -> LeaveOneOut:
    """The widely applicable information criterion, on the rows the posterior was fitted to."""
    densities = _log_densities(posterior, data)
    with quiet():
        found = arviz.waic(_as_arviz(densities), pointwise=True)
    trusted = "The log densities vary little over draws: the estimate can be trusted."
    unsure = "The log density of some rows varies too much over draws (by more than 0.4) for WAIC; prefer PSIS-LOO."
    return _result("WAIC", "waic", found, unsure if found.warning else trusted)


def _result(
    method: Literal["PSIS-LOO", "WAIC"], name: str, found: Any, advice: str, k_hat: np.ndarray | None = None
) -> LeaveOneOut:
    elpd, num_effective = float(found[f"elpd_{name}"]), float(found[f"p_{name}"])
    return LeaveOneOut(method, elpd, float(found.se), num_effective, found[f"{name}_i"].values, k_hat, advice)


def _log_densities(posterior: Draws, data: Data | tuple[Any, Any]) -> np.ndarray:
    """log p(yₙ | thetaᵢ), (chains, draws, rows)."""
    if posterior.weights is not None:
        raise ValueError("leave-one-out needs draws of equal weight")
    if posterior.num_chains * posterior.num_draws < 2:
        raise ValueError("leave-one-out weighs draws against each other; a point estimate has only one")
    rows = rows_for(posterior, data).with_labels().only_labelled()
    densities = posterior.predict(rows.x).log_prob_by_draw(rows.y)
    return densities.reshape(posterior.num_chains, posterior.num_draws, -1).astype(np.float64)


def _as_arviz(densities: np.ndarray) -> arviz.InferenceData:
    return arviz.from_dict(log_likelihood={"y": densities})


def _relative_efficiency(densities: np.ndarray) -> float:
    """Effective over actual draws of the densities, from which Pareto smoothing takes the length of its tail."""
    if densities.shape[1] < 4:
        return 1.0
    chosen = np.linspace(0, densities.shape[2] - 1, min(NUM_ESS_ROWS, densities.shape[2])).astype(int)
    ess = arviz.ess(arviz.convert_to_dataset({"y": np.exp(densities[..., chosen])}), method="mean")["y"].values
    return float(min(1.0, np.nanmean(ess) / (densities.shape[0] * densities.shape[1])))
