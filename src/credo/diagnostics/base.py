"""What all diagnostics share: a status, advice, a verdict in one sentence, and plain values for tables."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from credo import _html
from credo.diagnostics.status import Answer, Status


@dataclass(frozen=True, kw_only=True)
class Diagnostics(ABC):
    """What a fit tells about itself. Print it for the verdict.

    Arguments:
        advice: what is wrong and what to do about it, the worst first.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.3)
    >>> print(credo.fit(model, credo.datasets.gap(20), credo.ClosedForm()).diagnostics.verdict)
    The posterior is exact, and so is its evidence.
    """

    advice: tuple[str, ...]
    warning: ClassVar[str] = "Handle with care"
    alarm: ClassVar[str] = "Do not trust the uncertainties"

    @property
    def status(self) -> Status:
        """How far to trust it: with advice it is usable, unless the diagnostics of a method know better."""
        return Status.AMBER if self.advice else Status.GREEN

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The same by questions: one of them, unless there are chains to ask."""
        says = "; ".join(self.advice) if self.advice else self.praise[0].lower() + self.praise[1:].rstrip(".")
        return (Answer("fit", self.status, says),)

    @property
    def verdict(self) -> str:
        """One sentence."""
        if not self.advice:
            return self.praise
        lead = self.alarm if self.status is Status.RED else self.warning
        return f"{lead}: {'; '.join(self.advice)}."

    @property
    @abstractmethod
    def praise(self) -> str:
        """The verdict where there is nothing to advise."""

    @property
    @abstractmethod
    def figures(self) -> list[str]:
        """The evidence, line by line."""

    def _repr_html_(self) -> str:
        return _html.notebook(_html.verdict(self.verdict, self.status), _html.code("\n".join(self.figures)))

    def __str__(self) -> str:
        return "\n".join([*self.figures, self.verdict])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for tables and JSON."""
        return asdict(self) | {"status": str(self.status), "verdict": self.verdict}
