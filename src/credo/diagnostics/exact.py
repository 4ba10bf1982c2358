"""Diagnostics of an exact posterior: there is nothing to converge; what is left to say is the evidence."""

from dataclasses import dataclass

import numpy as np

from credo.diagnostics.base import Diagnostics
from credo.diagnostics.variational import still_climbing


@dataclass(frozen=True)
class ExactEvidence:
    """What a posterior in closed form knows of itself.

    Arguments:
        log_evidence: log p(D) of the model, to compare it with others on the same data, in nats.
        num_effective: how many directions of the weights the data know better than the prior does.
        num_weights: how many weights there are.
    """

    log_evidence: float
    num_effective: float
    num_weights: int


@dataclass(frozen=True, kw_only=True)
class ExactDiagnostics(Diagnostics):
    """What an exact posterior tells about itself. Print it for the verdict.

    Arguments:
        num_weights, num_effective, log_evidence: as in `ExactEvidence`.
        num_steps: for which the evidence was climbed.
    """

    num_weights: int
    num_effective: float
    log_evidence: float
    num_steps: int

    @property
    def praise(self) -> str:
        return "The posterior is exact, and so is its evidence."

    @property
    def figures(self) -> list[str]:
        climbed = f", climbed for {self.num_steps:,} steps" if self.num_steps else ""
        return [
            f"closed form over {self.num_weights:,} weights, of which the data determine {self.num_effective:.3g}",
            f"log evidence {self.log_evidence:.6g} nats{climbed}",
        ]


def diagnose_exact(evidence: ExactEvidence, trace: dict[str, np.ndarray] | None) -> ExactDiagnostics:
    """All diagnostics of a posterior in closed form, with the trace of the climb that found what else is learned."""
    climbed = (trace or {}).get("log_joint", np.zeros((1, 0)))[0]
    advice = []
    if len(climbed) and still_climbing(climbed):
        advice.append(
            "the evidence is still climbing, so train longer, or stop by held-out data (validation=0.1) where it would "
            "only fit the noise"
        )
    return ExactDiagnostics(
        num_weights=evidence.num_weights,
        num_effective=evidence.num_effective,
        log_evidence=evidence.log_evidence,
        num_steps=len(climbed),
        advice=tuple(advice),
    )
