"""Maps over two inputs: the mean of a regression, the boundary of a classifier, and their uncertainties."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh

from credo.data import Data
from credo.plot import style
from credo.predictive import ClassPredictive, Predictive, RegressionPredictive

Grid = tuple[np.ndarray, np.ndarray]


def class_map(
    predictive: Predictive, grid: Grid, *, show: str = "epistemic", data: Data | None = None, ax: Axes | None = None
) -> Axes:
    """An uncertainty of a classifier over a plane, with its decision boundary.

    Arguments:
        predictive: the prediction on the grid's points, row by row: np.column_stack([a.ravel() for a in grid]).
        grid: from np.meshgrid.
        show: "epistemic", "aleatoric" or "entropy".
        data: training points to show, by class; those without a label are small and grey.

    >>> import numpy as np
    >>> import credo
    >>> grid = np.meshgrid(np.linspace(-1, 1, 5), np.linspace(-1, 1, 5))
    >>> right = 1 / (1 + np.exp(-4 * grid[0].ravel()))
    >>> prediction = credo.from_probs(np.stack([1 - right, right], 1))
    >>> type(credo.plot.class_map(prediction, tuple(grid), show="entropy")).__name__
    'Axes'
    """
    if show not in ("epistemic", "aleatoric", "entropy"):
        raise ValueError(f"show must be 'epistemic', 'aleatoric' or 'entropy', got {show!r}")
    if not isinstance(predictive, ClassPredictive):
        raise TypeError(f"class_map draws class probabilities, got {type(predictive).__name__}; use maps")
    ax, _ = _mesh(ax, grid, getattr(predictive, show), f"{show} (nats)", data)
    # The boundary is where a class is as probable as the best of the others: smoother than the edges of the labels.
    # Class 0 needs no line of its own, since the others have drawn it.
    for label in range(1, predictive.probs.shape[1]):
        lead = predictive.probs[:, label] - np.delete(predictive.probs, label, 1).max(1)
        if lead.min() < 0 < lead.max():
            ax.contour(*grid, lead.reshape(grid[0].shape), levels=[0.0], colors=style.INK, linewidths=1.2)
    if data is not None:
        style.unlabelled(ax, data)
        for number, label in enumerate(np.unique(data.y[data.labelled])):
            marker = style.MARKERS[number % len(style.MARKERS)]
            colour = style.COLOURS[(number + 3) % len(style.COLOURS)]
            points = style.columns(data, 2)[data.y == label].T
            ax.plot(*points, marker, ms=4.5, mec=style.INK, mew=0.4, color=colour, label=f"class {label}")
        ax.legend(frameon=True, fontsize=8)
    return ax


def maps(
    predictive: Predictive, grid: Grid, *, show: str = "mean", data: Data | None = None, ax: Axes | None = None
) -> Axes:
    """The mean of a regression over a plane, or one of its uncertainties.

    Arguments:
        predictive, grid: as for `class_map`.
        show: "mean", "std", or the variances "epistemic" and "aleatoric".
        data: training points to show; on a map of the mean their colour is their target. Those without are grey.

    >>> import numpy as np
    >>> import credo
    >>> grid = np.meshgrid(np.linspace(-1, 1, 5), np.linspace(-1, 1, 5))
    >>> type(credo.plot.maps(credo.from_normal((grid[0] * grid[1]).ravel(), 0.1), tuple(grid))).__name__
    'Axes'
    """
    words = {"mean": "mean", "std": "sd", "epistemic": "epistemic variance", "aleatoric": "aleatoric variance"}
    if show not in words:
        raise ValueError(f"show must be one of {', '.join(map(repr, words))}, got {show!r}")
    if not isinstance(predictive, RegressionPredictive):
        raise TypeError(f"maps draws a regression, got {type(predictive).__name__}; use class_map")
    target, unit = (data.target or "y", data.unit) if data is not None else ("y", None)
    if unit and show in ("epistemic", "aleatoric"):
        unit = f"{unit}²" if unit.isalpha() else f"({unit})²"
    label = style.with_unit(f"{words[show]} of {target}", unit)
    colours = "viridis" if show == "mean" else "Blues"
    ax, mesh = _mesh(ax, grid, getattr(predictive, show), label, data, colours=colours)
    if data is not None:
        style.unlabelled(ax, data)
        seen = data.only_labelled()
        by_target: dict[str, Any] = {"c": seen.y, "cmap": mesh.cmap, "norm": mesh.norm}
        fill = by_target if show == "mean" else {"color": style.DATA}
        first, second = style.columns(seen, 2).T
        ax.scatter(first, second, s=18, ec="white", lw=0.8, **fill)
    return ax


def _mesh(
    ax: Axes | None, grid: Grid, values: np.ndarray, label: str, data: Data | None, *, colours: str = "Blues"
) -> tuple[Axes, QuadMesh]:
    """One number at each point of a grid, with its colour bar and the names of the inputs."""
    shape = np.shape(grid[0])
    if len(grid) != 2 or len(shape) != 2 or np.shape(grid[1]) != shape or values.shape != (np.prod(shape),):
        raise ValueError(
            f"a map needs a grid of two (rows, columns) arrays and one output for each of its points, got grids "
            f"{' and '.join(str(np.shape(part)) for part in grid)} and outputs {values.shape}"
        )
    if data is not None:
        style.columns(data, 2)  # raises before anything is drawn
    ax = style.axes(ax)
    mesh = ax.pcolormesh(*grid, values.reshape(shape), cmap=colours, shading="gouraud", rasterized=True)
    ax.figure.colorbar(mesh, ax=ax, label=label)
    ax.grid(visible=False)
    ax.set(xlim=(np.min(grid[0]), np.max(grid[0])), ylim=(np.min(grid[1]), np.max(grid[1])))
    ax.set(xlabel=style.input_label(data, 0), ylabel=style.input_label(data, 1))
    return ax, mesh
