"""Acquisitions by name, as `credo.active` takes them, and those that have settings of their own.

    credo.active(model, pool, oracle, acquisition="batch_bald")
    credo.active(model, pool, oracle, acquisition=credo.acquisitions.EPIG(target=x_that_matter))

Each scores every row on its own; `BatchBALD` also looks at what the rows of a batch tell together.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from credo._text import nearest
from credo.learning.acquisition import Acquisition, Chosen, Random, Scored
from credo.learning.batch_bald import BatchBALD
from credo.learning.epig import EPIG
from credo.learning.scores import bald, entropy, largest_eigenvalue, log_det, margin, variance, variation_ratios
from credo.predictive import Predictive

__all__ = [
    "EPIG",
    "Acquisition",
    "BatchBALD",
    "Chosen",
    "Random",
    "Scored",
    "as_acquisition",
    "bald",
    "entropy",
    "largest_eigenvalue",
    "log_det",
    "margin",
    "variance",
    "variation_ratios",
]

SCORES: Mapping[str, Callable[[Predictive], np.ndarray]] = {
    one.__name__: one for one in (bald, entropy, variation_ratios, margin, variance, largest_eigenvalue, log_det)
}
OTHERS: Mapping[str, Callable[[], Acquisition]] = {"batch_bald": BatchBALD, "epig": EPIG, "random": Random}


def as_acquisition(acquisition: Any) -> Acquisition:
    """An acquisition from its name, from a function of a prediction, or as it is.

    >>> as_acquisition("batch_bald").num_answers
    1000
    """
    if isinstance(acquisition, Acquisition):
        return acquisition
    if callable(acquisition):
        return Scored(acquisition)
    if acquisition in OTHERS:
        return OTHERS[acquisition]()
    if acquisition in SCORES:
        return Scored(SCORES[acquisition])
    known = [*SCORES, *OTHERS]
    raise ValueError(
        f"acquisition is {acquisition!r}{nearest(str(acquisition), known)}; pass one of {', '.join(known)}, or a "
        "function from a prediction to a score for each row"
    )
