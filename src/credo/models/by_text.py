"""Models whose network is a text: equal ones are the same object, so that they share what is compiled."""

from functools import lru_cache
from typing import Any

from credo.models.program import Model
from credo.models.registry import MODELS
from credo.networks import from_text


def model_of(task: str, network: Any, outputs: int, **settings: Any) -> Model:
    """The model of a task with a network, or with the one that a text describes.

    Arguments:
        task: its name among `credo.models.MODELS`.
        outputs: of the network, if it is a text.

    >>> model_of("regression", "mlp:5", 1) is model_of("regression", "mlp:5", 1)
    True
    """
    if not isinstance(network, str):
        return MODELS[task](network, **settings)
    try:
        return _shared(task, network, outputs, **settings)
    except TypeError:  # settings that cannot be hashed
        return _shared.__wrapped__(task, network, outputs, **settings)


@lru_cache(maxsize=32)
def _shared(task: str, network: str, outputs: int, **settings: Any) -> Model:
    return MODELS[task](from_text(network, outputs), **settings)
