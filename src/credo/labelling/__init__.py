"""Labels from people: a pool of items, a log of answers, a model that learns meanwhile and says what to ask next."""

from credo.labelling.learner import BackgroundLearner
from credo.labelling.lesson import Lesson
from credo.labelling.opening import opened
from credo.labelling.pools import read_pool
from credo.labelling.session import Labelling
from credo.labelling.terminal import label_at_terminal, oracle_at_terminal

__all__ = [
    "BackgroundLearner",
    "Labelling",
    "Lesson",
    "label_at_terminal",
    "opened",
    "oracle_at_terminal",
    "read_pool",
]
