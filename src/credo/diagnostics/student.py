"""Diagnostics of a student: does it say what its teacher says?"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from credo import random
from credo.diagnostics.base import Diagnostics
from credo.predictive import ClassPredictive, Predictive

# Nats per row that a student may lose before that is advice, and the share of the epistemic part: of two posteriors
# that differ by less, a few hundred test rows could not tell which is better.
MAX_DIVERGENCE, MAX_EPISTEMIC_ERROR = 0.02, 0.3
# An epistemic part below this share of all uncertainty, as of a teacher that is a point, is none to get wrong: errors
# are taken relative to this share.
SMALL_SHARE = 0.01
# Draws of y from the teacher at each input. Their log densities under two laws that are alike differ by a few
# hundredths of a nat, so that hundreds of inputs give the divergence to a thousandth.
NUM_SAMPLES = 10


class StudentEvidence(NamedTuple):
    """How far a student is from its teacher, on inputs that it was not trained on.

    Arguments:
        num_inputs: that both were asked about.
        divergence: KL(teacher ‖ student) of y, nats per row.
        mean_error: of the mean, root mean square, in the teacher's standard deviations; of classes, half the sum of
            the differences between the probabilities.
        epistemic_error: of the epistemic standard deviation, or of the mutual information, as a share of its average
            (where the teacher has next to none: of a hundredth of all its uncertainty).
    """

    num_inputs: int
    divergence: float
    mean_error: float
    epistemic_error: float


@dataclass(frozen=True, kw_only=True)
class StudentDiagnostics(Diagnostics):
    """What a student tells about itself. Print it for the verdict.

    Arguments:
        evidence: None where nobody has compared it with its teacher.
    """

    num_parameters: int
    evidence: StudentEvidence | None

    @property
    def praise(self) -> str:
        if self.evidence is None:
            return "The student was taught along the way, by draws that are gone: judge it by held-out data."
        return "The student says what its teacher says, where its inputs are like those it was asked about."

    @property
    def figures(self) -> list[str]:
        lines = [f"Student of {self.num_parameters:,} numbers"]
        if self.evidence is not None:
            found = self.evidence
            lines += [
                f"on {found.num_inputs:,} held-out inputs: KL to the teacher {found.divergence:.3g} nats per row",
                f"error of the mean {found.mean_error:.2g} sds, of the epistemic part {found.epistemic_error:.0%}",
            ]
        return lines


def compare_with_teacher(teacher: Predictive, student: Predictive, seed: int) -> StudentEvidence:
    """Both asked about the same inputs."""
    if isinstance(teacher, ClassPredictive):
        probs, own = teacher.probs.astype(np.float64), student.probs.astype(np.float64)
        logs = np.log(np.maximum(probs, np.finfo(float).tiny)) - np.log(np.maximum(own, np.finfo(float).tiny))
        divergence = np.mean(np.sum(probs * logs, axis=1))
        mean_error = np.mean(np.sum(np.abs(probs - own), axis=1)) / 2
        parts, whole = (teacher.mutual_information, student.mutual_information), teacher.entropy
    else:
        drawn = teacher.samples(random.key(seed), NUM_SAMPLES)
        divergence = np.mean([teacher.log_prob(y) - student.log_prob(y) for y in drawn])
        mean_error = np.sqrt(np.mean((teacher.mean - student.mean) ** 2 / teacher.variance))
        parts, whole = (np.sqrt(teacher.epistemic), np.sqrt(student.epistemic)), teacher.std
    average = max(float(np.mean(parts[0])), SMALL_SHARE * float(np.mean(whole)))
    epistemic_error = np.mean(np.abs(parts[0] - parts[1])) / average if average > 0 else 0.0
    return StudentEvidence(len(teacher), float(divergence), float(mean_error), float(epistemic_error))


def diagnose_student(num_parameters: int, evidence: StudentEvidence | None) -> StudentDiagnostics:
    """All diagnostics of a student with so many weights."""
    advice = []
    if evidence is not None and evidence.divergence > MAX_DIVERGENCE:
        advice.append(
            f"the student's answers cost {evidence.divergence:.2g} nats per row beside its teacher's; give it a larger "
            "network, more inputs, or a longer training"
        )
    if evidence is not None and evidence.epistemic_error > MAX_EPISTEMIC_ERROR:
        advice.append(
            f"its epistemic part is off by {evidence.epistemic_error:.0%} on average; give it a larger network, or "
            "more inputs"
        )
    return StudentDiagnostics(num_parameters=num_parameters, evidence=evidence, advice=tuple(advice))
