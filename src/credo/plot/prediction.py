"""Predictions over one input: the mean, and bands of both uncertainties around it."""

import numpy as np
from matplotlib.axes import Axes

from credo.data import Data
from credo.plot import style
from credo.predictive import Predictive, RegressionPredictive


def bands(
    predictive: Predictive,
    x: np.ndarray,
    *,
    data: Data | None = None,
    held_out: Data | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Mean and two standard deviations over one input: epistemic alone, and with the aleatoric part around it.

    Arguments:
        predictive: the prediction on x.
        x: (rows,) or (rows, 1), in the user's units.
        data: training points to show; inputs without a target are ticks along the axis.
        held_out: test points to show, hollow.

    >>> import numpy as np
    >>> import credo
    >>> x = np.linspace(-1, 1, 9)
    >>> ax = credo.plot.bands(credo.from_normal(np.stack([x**2, x**2 + 0.1 * x]), 0.1), x)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['with noise, ±2 sd', 'epistemic, ±2 sd', 'mean']
    """
    if not isinstance(predictive, RegressionPredictive):
        raise TypeError(f"bands draws a regression, got {type(predictive).__name__}")
    x, mean = np.asarray(x), predictive.mean
    if x.shape not in ((len(mean),), (len(mean), 1)) or mean.ndim != 1:
        raise ValueError(f"bands need one input and one output, got inputs {x.shape} and outputs {mean.shape}")
    points = [(style.columns(given, 1)[:, 0], given.y) if given is not None else None for given in (data, held_out)]
    ax = style.axes(ax)
    order = np.argsort(x.ravel())
    x, mean = x.ravel()[order], mean[order]
    epistemic, total = 2 * np.sqrt(predictive.epistemic[order]), 2 * predictive.std[order]
    for reach, colour, name in ((total, style.ALEATORIC, "with noise"), (epistemic, style.EPISTEMIC, "epistemic")):
        ax.fill_between(x, mean - reach, mean + reach, color=colour, alpha=0.6, lw=0, label=f"{name}, ±2 sd")
    ax.plot(x, mean, color=style.INK, lw=1.4, label="mean")
    for pair, fill, name in zip(points, (style.DATA, "white"), ("data", "test data"), strict=True):
        if pair is not None:
            ax.plot(*pair, "o", mfc=fill, mec=style.DATA, ms=3.2, mew=0.7, label=name)
    if data is not None:
        style.unlabelled(ax, data)
    shown = data if data is not None else held_out
    ax.set_xlabel(style.input_label(shown, 0) if shown is not None else "x")
    ax.set_ylabel(style.target_label(shown))
    ax.legend(frameon=False, fontsize=8)
    return ax
