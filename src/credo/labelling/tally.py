"""What stands of the answers: the last word of each person on each item."""

from collections import Counter
from collections.abc import Iterable, Iterator

from credo.labelling.answers import Answer


class Tally:
    """The last word of each person on each item, in the order in which they were said.

    >>> tally = Tally()
    >>> for label in ("cat", "dog"):
    ...     tally.take(Answer("7.png", "label", label, "ana", label, 0.0, "3f"))
    >>> tally.votes("7.png")
    Counter({'dog': 1})
    """

    def __init__(self, answers: Iterable[Answer] = ()) -> None:
        # In order of the last word, for what is recent, and by item, for who else has said something.
        self._standing: dict[tuple[str, str], Answer] = {}
        self._by_item: dict[str, dict[str, Answer]] = {}
        for answer in answers:
            self.take(answer)

    def take(self, answer: Answer) -> None:
        """One more answer: it replaces what that person said of that item before, and "undo" leaves nothing."""
        name = (answer.labeller, answer.item)
        self._standing.pop(name, None)
        said = self._by_item.setdefault(answer.item, {})
        said.pop(answer.labeller, None)
        if answer.kind != "undo":
            self._standing[name] = said[answer.labeller] = answer
        if not said:
            del self._by_item[answer.item]

    def __iter__(self) -> Iterator[Answer]:
        return iter(self._standing.values())

    @property
    def items(self) -> tuple[str, ...]:
        """Items of which something stands."""
        return tuple(self._by_item)

    def of(self, labeller: str, item: str) -> Answer | None:
        """What stands of a person on an item."""
        return self._standing.get((labeller, item))

    def about(self, item: str) -> tuple[Answer, ...]:
        """What stands on an item, by whomever."""
        return tuple(self._by_item.get(item, {}).values())

    def by(self, labeller: str) -> tuple[Answer, ...]:
        """What stands of a person, the last first."""
        return tuple(answer for answer in reversed(self._standing.values()) if answer.labeller == labeller)

    def votes(self, item: str) -> Counter[str]:
        """How many people gave an item each label."""
        return Counter(answer.label for answer in self.about(item) if answer.label is not None)

    def is_flagged(self, item: str) -> bool:
        """Whether somebody says that something is wrong with an item."""
        return any(answer.kind == "flag" for answer in self.about(item))

    def num_decided(self, item: str) -> int:
        """How many people have said what an item is, or that it is nothing of all that."""
        return sum(answer.kind in ("label", "none") for answer in self.about(item))
