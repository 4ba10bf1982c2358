"""Diagnostics of a Laplace approximation: is it at a mode, is it wide enough to matter, what is the evidence?"""

from dataclasses import dataclass
from typing import Any, Protocol

from credo.covariance import Root
from credo.diagnostics.base import Diagnostics
from credo.diagnostics.status import Status
from credo.diagnostics.variational import POINT, Fitted, relative_to_prior

# Nats that a Newton step may still gain at what counts as a mode: a point within one sd of it, in one direction.
MODE_GAIN = 0.5
# Of N rows the data determine γ directions. A mode fits the noise among them too: the variance of its residuals is
# 1 − γ/N of the true one (MacKay, 1992), and at these shares a 90% interval holds 85% and 80% of new rows.
MANY_DIRECTIONS, TOO_MANY_DIRECTIONS = 0.23, 0.39


@dataclass(frozen=True)
class LaplaceEvidence:
    """What the curvature says about a Gaussian around a mode.

    Arguments:
        log_evidence: of the model, to compare it with others on the same data, in nats.
        newton_gain: nats that a Newton step from the centre would add to the log joint density; nothing at a mode.
        damping: the share by which the diagonal of H + P was raised so that it has a root.
        num_effective: γ = Σ (1 − Pⱼ Σⱼⱼ), how many directions the data determine; None in fits of earlier versions.
    """

    log_evidence: float
    newton_gain: float
    damping: float
    num_effective: float | None = None


class FittedToRows(Fitted, Protocol):
    """A Gaussian that knows how many rows it was fitted to."""

    @property
    def provenance(self) -> Any: ...


@dataclass(frozen=True, kw_only=True)
class LaplaceDiagnostics(Diagnostics):
    """What a Laplace approximation tells about itself. Print it for the verdict.

    Arguments:
        num_uncertain: how many of the parameters are uncertain.
        log_evidence, newton_gain, damping, num_effective: as in `LaplaceEvidence`.
        relative_scale: median over arrays of (sd of the Gaussian)/(sd of the prior).
        num_rows: that it was fitted to.
    """

    num_parameters: int
    num_uncertain: int
    log_evidence: float
    newton_gain: float
    relative_scale: float
    damping: float
    num_effective: float | None = None
    num_rows: int = 0

    @property
    def determined(self) -> float:
        """γ/N, the directions that the data determine for each row; 0 where it is not known."""
        return (self.num_effective or 0.0) / self.num_rows if self.num_rows else 0.0

    @property
    def status(self) -> Status:
        is_lost = self.determined > TOO_MANY_DIRECTIONS or self.relative_scale < POINT
        return Status.RED if is_lost else super().status

    @property
    def praise(self) -> str:
        return "The Gaussian sits at a mode of the posterior. What lies beyond that mode, it does not see."

    @property
    def figures(self) -> list[str]:
        return [
            f"Laplace approximation over {self.num_uncertain:,} of {self.num_parameters:,} numbers",
            f"log evidence {self.log_evidence:.6g} nats; a Newton step would gain {self.newton_gain:.2g}",
            f"sd / sd of the prior {self.relative_scale:.3g}",
            *([f"{self.num_effective:.3g} directions determined by {self.num_rows:,} rows"] if self.determined else []),
        ]


def diagnose_laplace(posterior: FittedToRows, root: Root, evidence: LaplaceEvidence) -> LaplaceDiagnostics:
    """All diagnostics of a Gaussian with the covariance root √Σ that `credo.Laplace` has found."""
    num = root.num_entries
    scale, _ = relative_to_prior(posterior, root.names)
    gain, damping = evidence.newton_gain, evidence.damping
    num_rows, directions = posterior.provenance.num_data, evidence.num_effective
    if directions is not None and num_rows:
        # Products of factors count some directions more than once; N rows determine no more than N.
        directions = min(directions, float(num_rows))
    found = []
    if directions is not None and directions > MANY_DIRECTIONS * num_rows > 0:
        found.append(
            f"the data determine {directions:.0f} directions with {num_rows:,} rows, so the mode has learned noise by "
            "heart and takes what is left of it for all there is; sample instead (credo.NUTS or credo.MCLMC), or take "
            "a smaller network or more rows"
        )
    if gain > MODE_GAIN * num:
        found.append(
            f"the centre is no mode (a Newton step would gain {gain:.3g} nats), so train longer, or with a smaller "
            "learning rate at the end"
        )
    if scale < POINT:
        found.append("the Gaussian has collapsed to a point and shows no epistemic uncertainty")
    if damping > 0:
        found.append(
            f"rounding had left the precision without a root, and {damping:.0e} of its diagonal was added to mend it, "
            "so directions of which the data say nothing may look too certain"
        )
    return LaplaceDiagnostics(
        num_parameters=posterior.model.num_parameters,
        num_uncertain=num,
        log_evidence=evidence.log_evidence,
        newton_gain=gain,
        relative_scale=scale,
        damping=damping,
        num_effective=directions,
        num_rows=num_rows,
        advice=tuple(found),
    )
