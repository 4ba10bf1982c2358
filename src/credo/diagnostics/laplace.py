"""Diagnostics of a Laplace approximation: is it at a mode, is it wide enough to matter, what is the evidence?"""

from dataclasses import dataclass

from credo.covariance import Root
from credo.diagnostics.base import Diagnostics
from credo.diagnostics.variational import POINT, Fitted, relative_to_prior

# Nats that a Newton step may still gain at what counts as a mode: a point within one sd of it, in one direction.
MODE_GAIN = 0.5


@dataclass(frozen=True)
class LaplaceEvidence:
    """What the curvature says about a Gaussian around a mode.

    Arguments:
        log_evidence: of the model, to compare it with others on the same data, in nats.
        newton_gain: nats that a Newton step from the centre would add to the log joint density; nothing at a mode.
        damping: the share by which the diagonal of H + P was raised so that it has a root.
    """

    log_evidence: float
    newton_gain: float
    damping: float


@dataclass(frozen=True, kw_only=True)
class LaplaceDiagnostics(Diagnostics):
    """What a Laplace approximation tells about itself. Print it for the verdict.

    Arguments:
        num_uncertain: how many of the parameters are uncertain.
        log_evidence, newton_gain, damping: as in `LaplaceEvidence`.
        relative_scale: median over arrays of (sd of the Gaussian)/(sd of the prior).
    """

    num_parameters: int
    num_uncertain: int
    log_evidence: float
    newton_gain: float
    relative_scale: float
    damping: float

    @property
    def praise(self) -> str:
        return "The Gaussian sits at a mode of the posterior. What lies beyond that mode, it does not see."

    @property
    def figures(self) -> list[str]:
        return [
            f"Laplace approximation over {self.num_uncertain:,} of {self.num_parameters:,} numbers",
            f"log evidence {self.log_evidence:.6g} nats; a Newton step would gain {self.newton_gain:.2g}",
            f"sd / sd of the prior {self.relative_scale:.3g}",
        ]


def diagnose_laplace(posterior: Fitted, root: Root, evidence: LaplaceEvidence) -> LaplaceDiagnostics:
    """All diagnostics of a Gaussian with the covariance root √Σ that `credo.Laplace` has found."""
    num = root.num_entries
    scale, _ = relative_to_prior(posterior, root.names)
    gain, damping = evidence.newton_gain, evidence.damping
    found = []
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
        advice=tuple(found),
    )
