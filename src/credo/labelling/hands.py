"""Who has which item in hand: nobody else is asked about it meanwhile."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

# Who has not come back for so long has gone, and others are asked.
SECONDS_IN_HAND = 600.0


class Holder(NamedTuple):
    """A person at one of perhaps several windows."""

    labeller: str
    window: str = ""


@dataclass(frozen=True)
class Held:
    """An item in hand: until when, and whether it was drawn by chance."""

    until: float
    by_chance: bool


class Hands:
    """The items in each holder's hands, in the order in which they are to be answered."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._held: dict[Holder, dict[str, Held]] = {}

    def of(self, holder: Holder) -> dict[str, Held]:
        """What a holder has in hand."""
        return self._held.get(holder, {})

    def take(self, holder: Holder, item: str, *, by_chance: bool = False, first: bool = False) -> None:
        """Give an item into a holder's hands, before all others or after them."""
        new = {item: Held(self._clock() + SECONDS_IN_HAND, by_chance)}
        held = self.of(holder)
        self._held[holder] = new | held if first else held | new

    def renew(self, holder: Holder) -> None:
        """The holder is still there."""
        until = self._clock() + SECONDS_IN_HAND
        self._held[holder] = {item: Held(until, held.by_chance) for item, held in self.of(holder).items()}

    def drop(self, labeller: str, item: str) -> None:
        """Take an item out of all hands of a person."""
        for holder in self.holders(labeller):
            self._held[holder].pop(item, None)

    def holders(self, labeller: str) -> list[Holder]:
        """The windows of a person."""
        return [holder for holder in self._held if holder.labeller == labeller]

    def others(self, holder: Holder, item: str) -> Iterator[Holder]:
        """Who else has an item in hand."""
        now = self._clock()
        for other, held in self._held.items():
            if other != holder and item in held and held[item].until > now:
                yield other
