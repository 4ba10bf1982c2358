"""What all diagnostics share: advice, a verdict in one sentence, and plain values for tables."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, kw_only=True)
class Diagnostics(ABC):
    """What a fit tells about itself. Print it for the verdict.

    Arguments:
        advice: what is wrong and what to do about it, the worst first.
    """

    advice: tuple[str, ...]
    warning: ClassVar[str] = "Handle with care"

    @property
    def verdict(self) -> str:
        """One sentence."""
        return f"{self.warning}: {'; '.join(self.advice)}." if self.advice else self.praise

    @property
    @abstractmethod
    def praise(self) -> str:
        """The verdict where there is nothing to advise."""

    @property
    @abstractmethod
    def figures(self) -> list[str]:
        """The evidence, line by line."""

    def __str__(self) -> str:
        return "\n".join([*self.figures, self.verdict])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for tables and JSON."""
        return asdict(self) | {"verdict": self.verdict}
