"""Predicted against observed targets, for any number of inputs."""

import numpy as np
from matplotlib.axes import Axes

from credo.data import Data
from credo.plot import style
from credo.predictive import Predictive, RegressionPredictive

# More error bars than this hide each other.
MAX_POINTS = 400


def observed(predictive: Predictive, data: Data, *, output: int = 0, ax: Axes | None = None) -> Axes:
    """Predicted means with two predictive standard deviations against observed targets; on the diagonal they agree.

    Arguments:
        predictive: the prediction on the inputs of `data`.
        data: the targets, with their name and unit; rows without one are left out.
        output: which of several.

    >>> import credo
    >>> data = credo.Data([[0.0], [1.0]], [0.1, 0.8], target="price", unit="€")
    >>> credo.plot.observed(credo.from_normal([0.0, 1.0], 0.2), data).get_xlabel()
    'observed price (€)'
    """
    if not isinstance(predictive, RegressionPredictive):
        raise TypeError(f"observed draws a regression, got {type(predictive).__name__}; use confusion")
    if data.size != len(predictive):
        raise ValueError(f"the prediction has {len(predictive):,} rows and the data {data.size:,}")
    num_outputs = data.y.reshape(data.size, -1).shape[1]
    if not 0 <= output < num_outputs:
        raise ValueError(f"output must lie between 0 and {num_outputs - 1}, got {output}")
    there = np.flatnonzero(data.observed.reshape(data.size, -1)[:, output])
    rows = there[style.thinned(len(there), MAX_POINTS)]
    mean, std, y = (values.reshape(data.size, -1)[rows, output] for values in (predictive.mean, predictive.std, data.y))
    ax = style.axes(ax)
    low, high = min(mean.min(), y.min()), max(mean.max(), y.max())
    ax.plot([low, high], [low, high], color=style.FAINT, lw=1, label="perfect")
    ax.errorbar(y, mean, yerr=2 * std, fmt="none", ecolor=style.ALEATORIC, elinewidth=1)
    ax.plot(y, mean, "o", mfc=style.DATA, mec="white", mew=0.4, ms=4, label="mean, ±2 sd")
    ax.set_xlabel(f"observed {style.target_label(data)}")
    ax.set_ylabel(f"predicted {style.target_label(data)}")
    ax.legend(frameon=False, fontsize=8)
    return ax
