"""What a person is shown: an item, what the model believes of it, why it is asked, and how far the work has come."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Belief:
    """The probability of a class: its mean over the sampled models, and where nine in ten of them are."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Card:
    """One question.

    Arguments:
        item: its name in the pool; an image is had by `pool.image(item)`.
        kind: "row", "image" or "text".
        reason: why this one is asked, in words.
        fields: names and values of a row.
        text: a line.
        belief: by class, in the order of the classes; None where the model has none yet, or keeps it to itself.
    """

    item: str
    kind: str
    reason: str
    fields: tuple[tuple[str, str], ...] = ()
    text: str = ""
    belief: Mapping[str, Belief] | None = None


@dataclass(frozen=True)
class CurvePoint:
    """The model's accuracy on items drawn by chance, just before it learned them, and where it lies by nine in ten."""

    num_labels: int
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True)
class Progress:
    """How far the work has come.

    Arguments:
        num_items: of the pool.
        num_labels: items with a label, those that the pool brought along included.
        num_done: items that nobody is asked about any more: labelled by enough people, without a class, or flagged.
        by_class, by_labeller: labels of each.
        disagreements: items with different labels by different people, most in dispute first.
        curve: accuracy over the number of labels.
        still_needed: how many labels are probably still needed, in words.
        learning: whether the model is learning at this moment.
        round: how often it has learned.
        problem: what keeps it from learning, in words.
    """

    num_items: int
    num_labels: int
    num_done: int
    by_class: Mapping[str, int]
    by_labeller: Mapping[str, int]
    disagreements: tuple[str, ...] = ()
    curve: tuple[CurvePoint, ...] = field(default=())
    still_needed: str = "too early to tell"
    learning: bool = False
    round: int = 0
    problem: str = ""
