"""How small noise may be: as small as the steps in which a target was recorded, and no smaller."""

import numpy as np

from credo.data import Data

# Of the target's sd; the least that noise may be where nothing else says how finely the target was recorded.
LEAST_SCALE = 1e-3
# A value that all rows have would have this scale, of the target's sd.
SCALE_OF_ATOMS = 0.25


def least_scales(data: Data) -> tuple[float, ...]:
    """How small the noise of each standardised target may be, so that no density is infinite at values that come often.

    A target recorded in steps is off by a uniform error, whose sd is step/√12; and a value that a share p of the rows
    have is known to p times `SCALE_OF_ATOMS`.

    >>> from credo import datasets
    >>> least_scales(datasets.gap())
    (0.0025,)
    """
    seen = data.only_labelled()
    targets = seen.scaling.targets(seen.y).reshape(seen.size, -1)
    return tuple(_least_scale(column[np.isfinite(column)]) for column in targets.T)


def _least_scale(targets: np.ndarray) -> float:
    values, counts = np.unique(targets, return_counts=True)
    step = np.min(np.diff(values), initial=np.inf) if len(values) > 1 else 0.0
    return float(
        max(LEAST_SCALE, min(step / np.sqrt(12), SCALE_OF_ATOMS), SCALE_OF_ATOMS * counts.max() / len(targets))
    )


def in_logs(data: Data) -> tuple[float, float, float]:
    """The geometric mean of positive targets, the sd of their logarithms, and how small the noise of these may be."""
    seen = data.only_labelled()
    logs = Data(seen.x, np.log(seen.y), standardise=True)
    return float(np.exp(logs.scaling.y_mean)), float(logs.scaling.y_scale), least_scales(logs)[0]
