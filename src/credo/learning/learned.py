"""What an online learner was asked for, and what it knows."""

from dataclasses import dataclass, field
from typing import Any, get_args

from credo._checks import require_at_least, require_one_of, require_positive
from credo.data import Data
from credo.learning.beliefs import Density
from credo.learning.drift import DriftAlarm
from credo.learning.held_back import Choice
from credo.learning.judgement import Judgement


@dataclass(frozen=True)
class Settings:
    """What an online learner was asked for: see `online`."""

    forgetting: float = 1.0
    coreset: int = 0
    choice: Choice = "random"
    density: Density = "gaussian"
    seed: int = 0

    def __post_init__(self) -> None:
        require_positive(forgetting=self.forgetting)
        if self.forgetting > 1:
            raise ValueError(
                f"forgetting must be at most 1, which forgets nothing, got {self.forgetting}; 0.99 remembers about a "
                "hundred batches"
            )
        require_at_least(0, coreset=self.coreset)
        require_one_of(get_args(Choice), choice=self.choice)
        require_one_of(get_args(Density), density=self.density)


@dataclass(frozen=True, eq=False)
class Learned:
    """What an online learner knows after some batches.

    Arguments:
        belief: the posterior that the next batch starts from; rows that were held back are no part of it.
        posterior: the one to predict with; the rows that were held back are a part of it.
        log_evidence: log p(D₁ … D_t), or a bound; None where the method does not tell, or the learner forgets.
        kept: the rows that were held back.
        drift: the alarm that listens to the batches, each before it is learned.
        judgement: what the last batch was before it was learned.
    """

    belief: Any
    posterior: Any
    num_updates: int
    num_data: int
    log_evidence: float | None
    kept: Data | None = None
    drift: DriftAlarm = field(default_factory=DriftAlarm)
    judgement: Judgement = field(default_factory=Judgement)

    @classmethod
    def of(cls, posterior: Any, settings: Settings) -> "Learned":
        """Where a learner stands that goes on from a posterior, of whatever fit."""
        evidence = None if settings.forgetting < 1 else log_evidence_of(posterior)
        drift = DriftAlarm(seed=settings.seed)
        return cls(posterior, posterior, 1, posterior.provenance.num_data, evidence, drift=drift)


def log_evidence_of(posterior: Any) -> float | None:
    """Of the last batch given those before, or a bound on it; None where it is not known, as of a mixture."""
    evidence = getattr(posterior, "evidence", None)
    found = getattr(evidence, "log_evidence", getattr(evidence, "elbo", None))
    return None if found is None else float(found)
