"""Pair plots: draws of several variables against each other, method by method."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import pyplot
from matplotlib.figure import Figure, SubFigure

from credo.plot import style

# More points than this hide each other.
MAX_POINTS = 2000
NUM_BINS = 30

Variables = dict[str, np.ndarray]


def pairs(
    draws: Any,
    *,
    names: Sequence[str] | None = None,
    max_variables: int = 6,
    figure: Figure | SubFigure | None = None,
) -> np.ndarray:
    """Each variable against each other, with its histogram on the diagonal.

    Returns the Axes as an array (variables, variables); those above the diagonal are empty.

    Arguments:
        draws: an array (draws, variables), or variables by name, each (draws,) or (chains, draws). To compare methods,
            a dict of these by method; if they are arrays, pass `names`, which tells methods from variables.
        names: of the columns of an array.
        max_variables: only the first so many are shown, and the figure says so.
        figure: to draw in.

    >>> import numpy as np
    >>> import credo
    >>> draws = np.random.default_rng(0).normal(size=(50, 2))
    >>> credo.plot.pairs(draws, names=["slope", "offset"]).shape
    (2, 2)
    """
    methods = _methods(draws, names)
    found = list(next(iter(methods.values())))
    if any(list(variables) != found for variables in methods.values()):
        raise ValueError(f"all methods must have the same variables, in the same order: {', '.join(found)}")
    if max_variables < 2 or len(found) < 2:
        raise ValueError(f"a pair plot needs two variables, got {len(found)} and max_variables={max_variables}")
    shown = found[:max_variables]
    size = max(4.0, 1.15 * len(shown))
    figure = figure or pyplot.figure(figsize=(max(6.4, size), size), layout="constrained")
    grid = figure.subplots(len(shown), len(shown), sharex="col", squeeze=False)
    for (row, column), ax in np.ndenumerate(grid):
        if column > row:
            ax.set_axis_off()
            continue
        style.axes(ax).tick_params(labelsize=6)
        for number, variables in enumerate(methods.values()):
            if row == column:
                _histogram(ax, variables[shown[row]], number)
            else:
                _scatter(ax, variables[shown[column]], variables[shown[row]], number)
        ax.set_xlabel(shown[column] if row == len(shown) - 1 else "", fontsize=8)
        ax.set_ylabel(shown[row] if column == 0 else "", fontsize=8)
        ax.tick_params(labelleft=column == 0 and row > 0, left=row != column)
    _legend(grid, list(methods), f"{len(shown)} of {len(found)} variables" if shown != found else None)
    figure.align_labels()
    return grid


def _methods(draws: Any, names: Sequence[str] | None) -> dict[str, Variables]:
    """Variables by method; a single set of draws has the method ""."""
    if not isinstance(draws, Mapping):
        return {"": _columns(draws, names)}
    nested = [isinstance(value, Mapping) for value in style.named(draws).values()]
    if any(nested) and not all(nested):
        raise ValueError("draws mixes methods (dicts) and variables (arrays); pass one or the other")
    if all(nested):
        return {method: _variables(variables) for method, variables in draws.items()}
    if names is not None:
        return {method: _columns(array, names) for method, array in draws.items()}
    return {"": _variables(draws)}


def _columns(array: Any, names: Sequence[str] | None) -> Variables:
    array = np.asarray(array)
    if array.ndim != 2 or (names is not None and array.shape[1] != len(names)):
        wanted = "(draws, variables)" if names is None else f"(draws, {len(names)}), for {len(names)} names"
        raise ValueError(f"draws must have shape {wanted}, got {array.shape}")
    return dict(zip(names or [f"θ{column + 1}" for column in range(array.shape[1])], array.T, strict=True))


def _variables(variables: Mapping[str, Any]) -> Variables:
    flat = {name: np.asarray(values) for name, values in variables.items()}
    for name, values in flat.items():
        if values.ndim not in (1, 2) or values.size != next(iter(flat.values())).size:
            raise ValueError(f"{name} must be scalars of shape (draws,) or (chains, draws), got {values.shape}")
    return {name: values.ravel() for name, values in flat.items()}


def _histogram(ax: Any, values: np.ndarray, number: int) -> None:
    num_bins = int(np.clip(np.sqrt(len(values)), 5, NUM_BINS))
    ax.hist(values, num_bins, density=True, histtype="step", lw=1.2, **style.line(number))


def _scatter(ax: Any, x: np.ndarray, y: np.ndarray, number: int) -> None:
    rows = style.thinned(len(x), MAX_POINTS)
    marker = style.MARKERS[number % len(style.MARKERS)]
    colour = style.line(number)["color"]
    # A few points, such as the members of an ensemble, must not drown among thousands.
    few = len(rows) <= 100
    look = {"ms": 4, "alpha": 0.95, "mew": 0.4, "zorder": 3} if few else {"ms": 2.2, "alpha": 0.45, "mew": 0}
    ax.plot(x[rows], y[rows], marker, color=colour, mec="white", rasterized=True, **look)


def _legend(grid: np.ndarray, methods: list[str], note: str | None) -> None:
    """Put the legend in the empty corner above the diagonal."""
    corner = grid[0, -1]
    for number, method in enumerate(methods):
        if method:
            marker = style.MARKERS[number % len(style.MARKERS)]
            corner.plot([], [], marker=marker, ms=4, label=method, **style.line(number))
    if any(methods):
        corner.legend(loc="upper right", frameon=False, fontsize=8, title=note, title_fontsize=8)
    elif note:
        corner.text(1, 1, note, ha="right", va="top", fontsize=8, transform=corner.transAxes)
