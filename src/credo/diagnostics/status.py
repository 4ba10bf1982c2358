"""How far to trust a fit: one of three words, for each of the questions that a verdict answers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

Question = Literal["mixing", "precision", "calibration", "fit"]


class Status(StrEnum):
    """How far to trust something.

    >>> print(Status.AMBER, Status.AMBER.words)
    amber usable
    """

    GREEN = "green"
    AMBER = "amber"
    RED = "red"

    @property
    def words(self) -> str:
        """For people."""
        return {"green": "good", "amber": "usable", "red": "do not trust"}[self.value]


@dataclass(frozen=True)
class Answer:
    """What there is to say to one question.

    Arguments:
        question: "mixing" (do the chains agree?), "precision" (how far would another run be?), "calibration" (do the
            intervals hold what they say?), or "fit" for methods without chains, whose diagnostics are one sentence.
        status: None where it could not be judged.
        says: the answer with its figures, as part of a sentence.
        remedy: settings of the method, by name, that would mend it.
        mend: what else would, in words.
        method: another method that would, by its name.
    """

    question: Question
    status: Status | None
    says: str
    remedy: Mapping[str, Any] = field(default_factory=dict)
    mend: str = ""
    method: str = ""

    @property
    def in_words(self) -> str:
        """good, usable, do not trust, or not judged."""
        return "not judged" if self.status is None else self.status.words

    @property
    def advice(self) -> str:
        """What is wrong, and what to do about it."""
        settings = ", ".join(f"{name}={value}" for name, value in self.remedy.items())
        todo = " and ".join(filter(None, [f"set {settings}" if settings else "", self.mend]))
        return f"{self.says}; {todo}" if todo else self.says


def worst(answers: Iterable[Status | None]) -> Status:
    """The worst of some statuses; what was not judged does not count.

    >>> print(worst([Status.GREEN, Status.RED, None]))
    red
    """
    order = list(Status)
    return max((one for one in answers if one is not None), key=order.index, default=Status.GREEN)


def remedies(answers: Iterable[Answer]) -> dict[str, Any]:
    """The settings that would mend all of it: of two counts the larger one."""
    found: dict[str, Any] = {}
    for answer in answers:
        for name, value in answer.remedy.items():
            found[name] = max(found.get(name, value), value)
    return found
