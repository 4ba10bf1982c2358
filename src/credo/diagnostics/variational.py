"""Diagnostics of a q, a Gaussian or a flow: has it converged, has it collapsed, and how far is it from the posterior?

Pareto k̂ of the importance weights p(theta, D)/q(theta) is the honest verdict (Yao et al., 2018): below 0.5 q is close,
up to 0.7 it is usable, above that expectations under q are not those of the posterior, however good the ELBO looks.
For a network of many weights it always is above: the predictions may still be good, and `credo.evaluate` tells.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import jax
import numpy as np

from credo import random
from credo.diagnostics.base import Diagnostics
from credo.models.program import Model
from credo.typing import Theta

GOOD_K, BAD_K = 0.5, 0.7
# Scales of q as a share of the prior's: below the first q is a point; above the second, with means within a tenth of
# the prior's sd, nothing was learned.
POINT, PRIOR = 1e-3, 0.9
NUM_PRIOR_DRAWS = 16
# Standard errors of q's own means, in its sds, and of its sds: above this, q is not what its family can reach.
UNSETTLED = 0.1
# The last two tenths of the trace are compared.
TENTHS = 10


@dataclass(frozen=True)
class ElboEvidence:
    """What is known of q beside its numbers; None if it is not.

    Arguments:
        elbo, elbo_error, k_hat: from its draws, the ELBO with its standard error, and Pareto k̂.
        sd_off: from them too, how far an sd of q may be from that of the posterior in the worst direction, relative.
        mean_error, sd_error: Monte Carlo errors of its own means, in its sds, and of its sds, relative: from the two
            halves of the steps that it is the average of.
    """

    elbo: float | None = None
    elbo_error: float | None = None
    k_hat: float | None = None
    sd_off: float | None = None
    mean_error: float | None = None
    sd_error: float | None = None


@dataclass(frozen=True, kw_only=True)
class VariationalDiagnostics(Diagnostics):
    """What a variational fit tells about itself. Print it for the verdict.

    Arguments:
        elbo, elbo_error: a lower bound of log p(D), from fresh draws of q, with its standard error; None if not known.
        log_likelihood, kl: its two parts, smoothed over the last steps; KL is None where q was not fitted by the ELBO.
        relative_scale: median over arrays of (sd of q)/(sd of the prior).
        k_hat: of the importance weights; None where they would cost too much.
        sd_off, mean_error, sd_error: as in `ElboEvidence`.
        family: "Gaussian" or "Flow".
        objective: what was climbed, "ELBO" or "log joint".
    """

    num_parameters: int
    num_steps: int
    elbo: float | None
    elbo_error: float | None
    log_likelihood: float
    kl: float | None
    relative_scale: float
    k_hat: float | None
    sd_off: float | None = None
    mean_error: float | None = None
    sd_error: float | None = None
    family: str = "Gaussian"
    objective: str = "ELBO"

    @property
    def praise(self) -> str:
        if self.k_hat is None:
            return f"The {self.objective} has settled. How far q is from the posterior was too costly to find out."
        off = self.sd_off or 0.0
        but = f", though in some direction its sd may be {off:.0%} off" if off > UNSETTLED else ""
        return f"The {self.objective} has settled, and q is close to the posterior{but}."

    @property
    def figures(self) -> list[str]:
        bound = "" if self.elbo is None else f"ELBO {self.elbo:.5g} ± {self.elbo_error:.2g}, "
        likelihood = "log likelihood" if self.kl is None else "expected log likelihood"
        kl = "" if self.kl is None else f", KL {self.kl:.5g}"
        k_hat = "not computed" if self.k_hat is None else f"{self.k_hat:.2f}"
        lines = [
            f"{self.family} over {self.num_parameters:,} numbers, {self.num_steps:,} steps",
            f"{bound}{likelihood} {self.log_likelihood:.5g}{kl} (nats)",
            f"sd of q / sd of the prior {self.relative_scale:.3g}, Pareto k̂ {k_hat}",
        ]
        if self.mean_error is not None:
            lines.append(
                f"Monte Carlo error of q: its means ± {self.mean_error:.2g} sds, its sds ± {self.sd_error:.1%}"
            )
        return lines


class Fitted(Protocol):
    """A q over theta, as far as diagnostics look at it."""

    @property
    def model(self) -> Model: ...

    @property
    def trace(self) -> dict[str, np.ndarray] | None: ...

    def moments(self) -> tuple[Theta, Theta]: ...


def diagnose_variational(posterior: Fitted, evidence: ElboEvidence) -> VariationalDiagnostics:
    """All diagnostics of a q that was fitted by climbing the ELBO, or to the iterates of a climb of the log joint."""
    trace = {name: values[0] for name, values in (posterior.trace or {}).items()}
    last = {name: float(np.mean(tenth(values, -1))) for name, values in trace.items()}
    scale, shift = relative_to_prior(posterior)
    objective = "ELBO" if "elbo" in trace else "log joint"
    climbed = trace["elbo" if "elbo" in trace else "log_joint"]
    return VariationalDiagnostics(
        num_parameters=posterior.model.num_parameters,
        num_steps=len(climbed),
        elbo=evidence.elbo,
        elbo_error=evidence.elbo_error,
        log_likelihood=last["log_likelihood"],
        kl=last.get("kl"),
        relative_scale=scale,
        k_hat=evidence.k_hat,
        sd_off=evidence.sd_off,
        mean_error=evidence.mean_error,
        sd_error=evidence.sd_error,
        advice=tuple(_advice(objective, climbed, scale, shift, evidence)),
        family=type(posterior).__name__,
        objective=objective,
    )


def _advice(objective: str, climbed: np.ndarray, scale: float, shift: float, evidence: ElboEvidence) -> list[str]:
    found, k_hat = [], evidence.k_hat
    if evidence.mean_error is not None and max(evidence.mean_error, evidence.sd_error or 0.0) > UNSETTLED:
        found.append(
            f"q has not settled (its means are known to {evidence.mean_error:.2g} of its sds, its sds to "
            f"{evidence.sd_error:.0%}), so take more steps, at a rate that falls: the default, or "
            "credo.schedules.Settling"
        )
    if still_climbing(climbed):
        found.append(f"the {objective} is still climbing, so train longer or with a larger learning rate")
    if scale < POINT:
        found.append("q has collapsed to a point and shows no epistemic uncertainty")
    if scale > PRIOR and shift < 1 - PRIOR:
        found.append("q sits on the prior, so the data have taught it nothing: look at the noise and the learning rate")
    if k_hat is not None and k_hat > BAD_K:
        instead = "try a richer family, or NUTS" if objective == "ELBO" else "or try NUTS"
        found.append(
            f"q is far from the posterior (Pareto k̂ {k_hat:.2f}, above {BAD_K}): judge its predictions on held-out "
            f"data, {instead} where the model is small"
        )
    return found


def still_climbing(trace: np.ndarray) -> bool:
    """Whether the last tenth of a trace lies above the one before by more than its noise explains."""
    before, after = tenth(trace, -2), tenth(trace, -1)
    error = np.sqrt((np.var(before) + np.var(after)) / max(len(after), 1))
    return len(after) > 1 and bool(np.mean(after) - np.mean(before) > 4 * error)


def tenth(values: np.ndarray, place: int) -> np.ndarray:
    """The last tenth of a trace (−1), or the one before it (−2)."""
    size = max(len(values) // TENTHS, 1)
    return values[len(values) + place * size :][:size]


def relative_to_prior(posterior: Fitted, names: Iterable[str] | None = None) -> tuple[float, float]:
    """Median over arrays of the sd of q, and of the distance of its mean, both in sds of the prior."""
    draws = jax.jit(posterior.model.sample_prior, static_argnums=1)(random.key(0), NUM_PRIOR_DRAWS)
    means, variance = posterior.moments()
    scales, shifts = [], []
    for name in means if names is None else names:
        prior, mean = np.asarray(draws[name]), np.asarray(means[name])
        sd = max(float(prior.std()), np.finfo(np.float32).tiny)
        scales.append(np.sqrt(np.mean(np.asarray(variance[name]))) / sd)
        shifts.append(np.sqrt(np.mean((mean - prior.mean()) ** 2)) / sd)
    return float(np.median(scales)), float(np.median(shifts))
