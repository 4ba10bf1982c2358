"""Diagnostics of an ensemble: do its members differ, by how much, and are some in trouble themselves?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from credo.diagnostics.base import Diagnostics
from credo.diagnostics.functions import ratio, total_variance
from credo.predictive import Predictive

# Below this share of the epistemic variance, what lies between the members moves its standard deviation by under 3%.
SMALL_SHARE = 0.05
# Below this share of the standard deviation of y, it moves that of y by under one part in 10⁴.
SMALL_SPREAD = 0.01


@dataclass(frozen=True, kw_only=True)
class EnsembleDiagnostics(Diagnostics):
    """What the members of an ensemble tell about each other. Print it for the verdict.

    Arguments:
        verdicts: of the members on themselves.
        disagreement: share of the epistemic variance that lies between the members' mean functions, averaged over
            probed outputs; 1 for members that are points, None without probes.
        spread: largest ratio, over probed outputs, of the sd between those functions to the sd of y.
    """

    num_members: int
    verdicts: tuple[str, ...]
    disagreement: float | None
    spread: float | None

    @property
    def praise(self) -> str:
        return "The members differ where the data leave room, and none of them is in trouble."

    @property
    def figures(self) -> list[str]:
        lines = [f"Ensemble of {self.num_members} member(s)"]
        if self.disagreement is not None and self.spread is not None:
            lines.append(
                f"between members: {self.disagreement:.0%} of the epistemic variance (average over probed outputs), "
                f"up to {self.spread:.2g} sds of y"
            )
        return lines


def diagnose_ensemble(
    members: Sequence[Diagnostics], prediction: Predictive | None = None, owners: np.ndarray | None = None
) -> EnsembleDiagnostics:
    """The diagnostics of an ensemble.

    Arguments:
        members: the diagnostics of each.
        prediction: of all members, at inputs to probe their functions at; None where there are none.
        owners: which member each draw of the prediction is of.
    """
    share, spread = None, None
    if prediction is not None and owners is not None:
        share, spread = _between(prediction, owners)
    verdicts = tuple(member.verdict for member in members)
    troubled = [index for index, member in enumerate(members) if member.advice]
    advice = []
    if len(members) == 1:
        advice.append("one member is no ensemble: it has none to disagree with")
    elif share is None or spread is None:
        advice.append("there are no inputs to probe the members' functions at")
    elif share < SMALL_SHARE or spread < SMALL_SPREAD:
        advice.append("the ensemble adds nothing: members agree everywhere")
    if troubled:
        first = verdicts[troubled[0]].rstrip(".")
        advice.append(f"{len(troubled)} of {len(members)} members are in trouble themselves, the first one: “{first}”")
    return EnsembleDiagnostics(
        num_members=len(members), verdicts=verdicts, disagreement=share, spread=spread, advice=tuple(advice)
    )


def _between(prediction: Predictive, owners: np.ndarray) -> tuple[float, float]:
    """How far apart the members' mean functions are, as a share of the epistemic variance, and in sds of y.

    With mᵢ and vᵢ the mean and the variance of the functions of member i:  Var = Σ wᵢ (mᵢ − m)² + Σ wᵢ vᵢ.
    """
    functions = prediction.functions.reshape(len(owners), -1).astype(np.float64)
    by_member = (owners == np.arange(owners.max() + 1)[:, None]) * prediction.weights
    weights = by_member.sum(axis=1)
    by_member /= np.where(weights > 0, weights, 1.0)[:, None]
    means = by_member @ functions
    # Variances from a few draws, unbiased: 1/n of them is lost, and is the error of the mean.
    lost = np.sum(by_member**2, axis=1)
    kept = np.where(lost < 1 - 1e-9, 1 - lost, 1.0)
    variances = by_member @ (functions - means[owners]) ** 2 / kept[:, None]
    mean = weights @ means
    chance = (weights * (1 - weights) * lost) @ variances
    between = np.maximum(weights @ (means - mean) ** 2 - chance, 0.0)
    epistemic = between + weights @ variances
    total = total_variance(prediction, mean, epistemic)
    return float(np.mean(ratio(between, epistemic))), float(np.sqrt(np.max(ratio(between, total))))
