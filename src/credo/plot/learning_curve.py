"""Learning curves of strategies: what labels buy."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from credo.learning.curve import LearningCurve
from credo.plot import style

# The shaded part holds eight of ten runs.
BAND = (0.1, 0.9)


def learning_curve(
    strategies: Mapping[str, Any], *, by: str | None = None, level: float | None = None, ax: Axes | None = None
) -> Axes:
    """The median over seeds of each strategy by the number of labels, with the middle 80 % of the runs.

    Arguments:
        strategies: runs by name, {"bald": [rounds of one seed, …], "random": […]}: lists of the rounds of
            `credo.active`, which had a test set; or a `LearningCurve`.
        by: the figure: "accuracy", "rmse" or "nll".
        level: what is to be reached, as a line.

    >>> import credo
    >>> runs = {"bald": [{10: 0.5, 20: 0.9}, {10: 0.6, 20: 0.97}], "random": [{10: 0.4, 20: 0.7}]}
    >>> credo.plot.learning_curve(runs, by="accuracy").get_xlabel()
    'number of labels'
    """
    ax = style.axes(ax)
    curves = {name: LearningCurve.of(runs, by) for name, runs in style.named(strategies).items()}
    for number, (name, curve) in enumerate(curves.items()):
        shape = style.line(number)
        ax.plot(curve.num_labels, np.median(curve.values, axis=0), label=name, **shape)
        if len(curve.values) > 1:
            band = np.quantile(curve.values, BAND, axis=0)
            ax.fill_between(curve.num_labels, *band, color=shape["color"], alpha=0.15, lw=0)
    if level is not None:
        ax.axhline(level, color=style.FAINT, lw=0.8, ls="--")
    figures = {curve.by for curve in curves.values()}
    ax.set(xlabel="number of labels", ylabel=f"{' and '.join(sorted(figures))} on test rows")
    ax.legend(frameon=False)
    return ax
