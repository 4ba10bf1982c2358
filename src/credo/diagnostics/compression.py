"""What compressing a posterior saved and lost: the evidence that a compressed posterior has about itself."""

from dataclasses import dataclass
from typing import ClassVar

from credo._schema import Count, Positive
from credo._text import size_in_words
from credo.diagnostics.base import Diagnostics

# Up to here a loss passes unnoticed: a hundredth of a nat per row is what a predictive sd that is 7% off costs, and the
# epistemic sd of 50 independent draws is 10% off.
SMALL_NATS, SMALL_EPISTEMIC = 0.01, 0.1


@dataclass(frozen=True)
class Loss:
    """What a predictive has lost beside the full one, over rows that the compressor has not seen.

    Arguments:
        nats: E[log p_full(y | x) − log p(y | x)] per row, for y from the full predictive.
        mean: root mean square error of the mean, in predictive sds.
        epistemic: relative error of the epistemic sd, averaged over rows (of classes: of √Σ Var[p_c]).
        epistemic_median, epistemic_90: its median over rows, and what nine rows in ten stay below.
    """

    nats: float
    mean: float
    epistemic: float
    epistemic_median: float
    epistemic_90: float

    @property
    def total(self) -> float:
        """Both in nats: those of y, and δ², those between Gaussians over functions whose sds differ by a factor 1 + δ.

        >>> round(Loss(nats=0.002, mean=0.01, epistemic=0.1, epistemic_median=0.1, epistemic_90=0.2).total, 6)
        0.012
        """
        return self.nats + self.epistemic**2

    @property
    def is_small(self) -> bool:
        """Whether it passes unnoticed."""
        return self.nats <= SMALL_NATS and self.epistemic <= SMALL_EPISTEMIC

    def __str__(self) -> str:
        return f"{self.nats:.4f} nats per row, mean off by {self.mean:.3f} sds, epistemic sd by {self.epistemic:.1%}"


@dataclass(frozen=True)
class Trial:
    """One compressor: what it made of the posterior, or why it was left out.

    Arguments:
        by: its name.
        num_bytes: what the result takes, with its loss and the seconds it took to make; None where it was left out.
        why: it was left out.
    """

    by: str
    num_bytes: int | None = None
    loss: Loss | None = None
    seconds: float = 0.0
    why: str = ""

    @property
    def badness(self) -> float:
        """The total loss; infinite for what was left out."""
        return float("inf") if self.loss is None else self.loss.total

    def __str__(self) -> str:
        if self.loss is None or self.num_bytes is None:
            return f"{self.by}: left out, {self.why}"
        return f"{self.by}: {size_in_words(self.num_bytes)}, {self.loss} ({self.seconds:.1f} s)"


@dataclass(frozen=True, kw_only=True)
class Compression(Diagnostics):
    """What compressing a posterior saved and lost. Print it for the figures and the verdict.

    Arguments:
        by: the compressor that was chosen, or asked for.
        bytes_before, bytes_after: what the numbers of the posterior take.
        judged_on: in words, the rows that the losses were measured on.
        trials: all compressors that were considered, those of least loss first.
    """

    by: str
    bytes_before: Count
    bytes_after: Positive
    judged_on: str
    trials: tuple[Trial, ...]
    warning: ClassVar[str] = "Something was lost"

    @property
    def loss(self) -> Loss:
        """Of the compressor that was chosen."""
        return next(trial.loss for trial in self.trials if trial.by == self.by and trial.loss is not None)

    @property
    def ratio(self) -> float:
        """How many times smaller it is."""
        return self.bytes_before / self.bytes_after

    @property
    def praise(self) -> str:
        return f"Compressed {self.ratio:.0f}-fold, and the predictions are the same for all that one can see."

    @property
    def figures(self) -> list[str]:
        sizes = f"{size_in_words(self.bytes_before)} → {size_in_words(self.bytes_after)}"
        return [
            f"{sizes} ({self.ratio:.1f}-fold) by {self.by}, lost on {self.judged_on}:",
            *(f"  {trial}" for trial in self.trials),
        ]


def advice_on(trial: Trial) -> tuple[str, ...]:
    """What to do about a loss that shows."""
    if trial.loss is None or trial.loss.is_small:
        return ()
    return (f"{trial.loss}; keep more bytes, pass more inputs like those to predict on, or train a student instead",)
