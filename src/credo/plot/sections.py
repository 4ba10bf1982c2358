"""Sampled functions along lines through the inputs, method by method."""

from collections.abc import Callable, Mapping
from itertools import product

import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes

from credo.data import Data
from credo.plot import style

# More curves than this in one panel would blur.
MAX_CURVES = 40


def sections(
    functions: Mapping[str, np.ndarray],
    lines: Mapping[str, np.ndarray],
    *,
    known: Mapping[str, Callable[[np.ndarray], np.ndarray]] | None = None,
    data: Data | None = None,
) -> np.ndarray:
    """Sampled functions of each method (a row) along each line (a column), as an array of Axes (methods, lines).

    Arguments:
        functions: by method, (draws, lines, points).
        lines: the inputs along each line, by name, (points, inputs); the middle of a line is 0 on its axis.
        known: functions of the inputs to show in every panel, dashed, by name.
        data: training points; those that lie on a line are shown there.
    """
    _check(functions, lines)
    size = (2.6 * len(lines), 1.45 * len(functions) + 0.8)
    figure = pyplot.figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(functions), len(lines), sharex="col", sharey=True, squeeze=False)
    for (row, (method, values)), (column, (name, x)) in product(enumerate(functions.items()), enumerate(lines.items())):
        ax = style.axes(grid[row, column])
        colour = style.line(row)["color"]
        place, _ = _along(x, x)
        chosen = style.thinned(len(values), MAX_CURVES)
        few = len(chosen) < MAX_CURVES
        ax.plot(place, values[chosen, column].T, color=colour, lw=1.1 if few else 0.7, alpha=0.7 if few else 0.3)
        for dashes, (label, function) in zip(((0, (4, 2)), (0, (1, 1.5))), (known or {}).items(), strict=False):
            ax.plot(place, function(x), color=style.FAINT, lw=1.3, ls=dashes, label=label, zorder=3)
        if data is not None:
            _points(ax, x, data)
        ax.set(title=name if row == 0 else "", xlabel="distance from the centre" if row == len(functions) - 1 else "")
        if column == 0:
            ax.set_ylabel(f"{method}\n\n{style.target_label(data)}")
    low, high = _limits(functions, lines, known)
    grid[0, 0].set_ylim(low, high)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside upper right", ncols=len(handles), frameon=False, fontsize=8)
    figure.align_ylabels(grid[:, 0])
    return grid


def _along(points: np.ndarray, line: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each point, its signed position along a line from the middle, and its distance from the line."""
    direction = (line[-1] - line[0]) / np.linalg.norm(line[-1] - line[0])
    offset = points - line[len(line) // 2]
    along = offset @ direction
    return along, np.linalg.norm(offset - along[:, None] * direction, axis=1)


def _points(ax: Axes, line: np.ndarray, data: Data) -> None:
    along, away = _along(style.columns(data, line.shape[1]), line)
    x, y = along[away < 1e-6], data.y[away < 1e-6]
    ax.plot(x, y, "o", color=style.DATA, ms=4.5, mec="white", mew=0.6, zorder=4, label="data")


def _limits(
    functions: Mapping[str, np.ndarray], lines: Mapping[str, np.ndarray], known: Mapping | None
) -> tuple[float, float]:
    """The range of nearly all functions: a stray one must not flatten the rest."""
    bounds = [np.quantile(values, [0.002, 0.998]) for values in functions.values()]
    bounds += [function(x)[[0, -1]] for function in (known or {}).values() for x in lines.values()]
    low, high = float(np.min(bounds)), float(np.max(bounds))
    margin = 0.05 * (high - low)
    return low - margin, high + margin


def _check(functions: Mapping[str, np.ndarray], lines: Mapping[str, np.ndarray]) -> None:
    if not functions or not lines:
        raise ValueError("nothing to draw: functions or lines is empty")
    for method, values in functions.items():
        wanted = (len(lines), len(next(iter(lines.values()))))
        if values.ndim != 3 or values.shape[1:] != wanted:
            raise ValueError(
                f"functions of {method} must have shape (draws, {wanted[0]}, {wanted[1]}), got {values.shape}"
            )
