"""Diagnostics of a Laplace approximation: is it at a mode, is it wide enough to matter, what is the evidence?"""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from credo.evaluation.variational import POINT, relative_to_prior
from credo.inference.structure import names_of

if TYPE_CHECKING:
    from credo.posterior import Gaussian

# Nats that a Newton step may still gain at what counts as a mode: a point within one sd of it, in one direction.
MODE_GAIN = 0.5


@dataclass(frozen=True)
class LaplaceDiagnostics:
    """What a Laplace approximation tells about itself. Print it for the verdict.

    Arguments:
        num_uncertain: how many of the parameters are uncertain.
        log_evidence: of the model, to compare it with others on the same data, in nats.
        newton_gain: nats that a Newton step from the centre would add to the log joint density; nothing at a mode.
        relative_scale: median over arrays of (sd of the Gaussian)/(sd of the prior).
        damping: by which share the diagonal of H + P was raised, for it to have a root.
    """

    num_parameters: int
    num_uncertain: int
    log_evidence: float
    newton_gain: float
    relative_scale: float
    damping: float
    advice: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """One sentence."""
        if self.advice:
            return "Handle with care: " + "; ".join(self.advice) + "."
        return "The Gaussian sits at a mode of the posterior. What lies beyond that mode, it does not see."

    def __str__(self) -> str:
        return (
            f"Laplace approximation over {self.num_uncertain:,} of {self.num_parameters:,} numbers\n"
            f"log evidence {self.log_evidence:.6g} nats; a Newton step would gain {self.newton_gain:.2g}\n"
            f"sd / sd of the prior {self.relative_scale:.3g}\n{self.verdict}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for tables and JSON."""
        return asdict(self) | {"verdict": self.verdict}


def diagnose_laplace(posterior: "Gaussian") -> LaplaceDiagnostics:
    """All diagnostics of a Gaussian that `credo.Laplace` has found."""
    names = names_of(posterior.root)
    num = sum(posterior.mean[name].size for name in names)
    scale, _ = relative_to_prior(posterior, names)
    gain, damping = posterior.evidence["newton_gain"], posterior.evidence["damping"]
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
    evidence = posterior.evidence["log_evidence"]
    return LaplaceDiagnostics(posterior.model.num_parameters, num, evidence, gain, scale, damping, tuple(found))
