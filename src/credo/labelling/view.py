"""What the model thinks of the pool, as of its last round: whom to ask about next, what it believes, and why."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from credo.labelling.cards import Belief

# Nine in ten of the sampled models lie between.
LOW, HIGH = 0.05, 0.95
NO_MODEL = "there is no model yet"


@dataclass(frozen=True, eq=False)
class View:
    """The model's last word, which does not change: a new round brings a new one.

    Arguments:
        order: places of items, those first whose labels tell most; the others come by chance.
        probs: of each class by each sampled model, (draws, items, classes); None before there is a model.
        round: how often the model has learned.
    """

    order: np.ndarray
    probs: np.ndarray | None = None
    round: int = 0

    def predicted(self, place: int) -> int | None:
        """The most probable class of an item."""
        return None if self.probs is None else int(self.probs[:, place].mean(axis=0).argmax())

    def belief(self, place: int, classes: Sequence[str]) -> dict[str, Belief] | None:
        """The probability of each class of an item."""
        if self.probs is None:
            return None
        own = self.probs[:, place].astype(np.float64)
        low, high = np.quantile(own, [LOW, HIGH], axis=0)
        rows = zip(own.mean(axis=0), low, high, strict=True)
        return {name: Belief(*map(float, row)) for name, row in zip(classes, rows, strict=True)}

    def reason(self, place: int, classes: Sequence[str]) -> str:
        """Why an item is asked, in words."""
        if place not in self.order:
            return f"drawn by chance: {NO_MODEL if self.probs is None else 'what tells most is asked already'}"
        if self.probs is None:
            return f"{NO_MODEL}: this one is unlike those before it"
        votes = Counter(self.probs[:, place].argmax(axis=-1).tolist()).most_common()
        num = len(self.probs)
        if len(votes) > 1:
            said = ", ".join(f"{count} {'say' if count > 1 else 'says'} {classes[k]}" for k, count in votes)
            return f"the sampled models disagree: of {num}, {said}"
        means = self.probs[:, place].mean(axis=0)
        first, second = np.argsort(means)[::-1][:2]
        return (
            f"all {num} sampled models say {classes[first]}, but they are unsure: {means[first]:.0%}, and "
            f"{means[second]:.0%} for {classes[second]}"
        )
