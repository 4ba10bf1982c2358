"""Sampled functions of one input, model beside model."""

from collections.abc import Mapping

import numpy as np
from matplotlib import pyplot

from credo.data import Data
from credo.plot import style

NUM_CURVES = 12
LEVEL = 0.9


def beside(
    x: np.ndarray,
    functions: Mapping[str, np.ndarray],
    *,
    truth: np.ndarray | None = None,
    data: Data | None = None,
    labels: tuple[str, str] = ("x", "y"),
) -> np.ndarray:
    """A panel for each model: the mean of its functions, their 90% interval, and a few of them; an array of Axes.

    Arguments:
        x: (points,).
        functions: by model, (draws, points).
        truth: the function behind the data, (points,).
        data: training points of one input.
        labels: of the axes.
    """
    _check(x, functions)
    figure = pyplot.figure(figsize=(3.6 * len(functions), 2.9), layout="constrained")
    grid = figure.subplots(1, len(functions), sharex=True, sharey=True, squeeze=False)[0]
    for ax, (name, drawn) in zip(grid, functions.items(), strict=True):
        style.axes(ax)
        low, high = _interval(drawn)
        ax.fill_between(x, low, high, color=style.ALEATORIC, alpha=0.6, lw=0, label=f"{LEVEL:.0%} interval")
        chosen = style.thinned(len(drawn), NUM_CURVES)
        ax.plot(x, drawn[chosen].T, color=style.EPISTEMIC, lw=0.6, alpha=0.5)
        ax.plot(x, drawn.mean(axis=0), color=style.INK, lw=1.4, label="mean")
        if truth is not None:
            ax.plot(x, truth, color=style.DATA, lw=1.3, ls="--", label="truth")
        if data is not None:
            ax.plot(style.columns(data, 1)[:, 0], data.y, "o", color=style.DATA, ms=3.5, mec="white", mew=0.5)
        ax.set(title=name, xlabel=labels[0])
    grid[0].set_ylabel(labels[1])
    grid[0].set_ylim(*_limits(functions, truth, data))
    grid[0].legend(frameon=False, fontsize=8)
    return grid


def _interval(drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return low, high


def _limits(functions: Mapping[str, np.ndarray], truth: np.ndarray | None, data: Data | None) -> tuple[float, float]:
    """All intervals, the truth and the data; single functions may leave the panel."""
    shown = [edge for drawn in functions.values() for edge in _interval(drawn)]
    shown += [values for values in (truth, None if data is None else data.y) if values is not None]
    low, high = min(float(np.nanmin(one)) for one in shown), max(float(np.nanmax(one)) for one in shown)
    margin = 0.05 * (high - low)
    return low - margin, high + margin


def _check(x: np.ndarray, functions: Mapping[str, np.ndarray]) -> None:
    if not functions:
        raise ValueError("nothing to draw: functions is empty")
    for name, drawn in functions.items():
        if x.ndim != 1 or np.shape(drawn)[1:] != x.shape:
            raise ValueError(
                f"functions of {name} must have shape (draws, points) for x of shape (points,), got "
                f"{np.shape(drawn)} and {x.shape}"
            )
