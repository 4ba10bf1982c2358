"""Mean and standard deviation over two inputs, method by method, on common scales."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib import pyplot

from credo.data import Data
from credo.plot import style
from credo.plot.maps import Grid


def surfaces(
    moments: Mapping[str, tuple[np.ndarray, np.ndarray]], grid: Grid, *, data: Data | None = None
) -> np.ndarray:
    """Maps of the mean (above) and the sd (below) of each method, as an array of Axes (2, methods).

    The first method sets the scales; values beyond them get the colour of their end.

    Arguments:
        moments: by method, mean and sd at the points of the grid, row by row.
        grid: from np.meshgrid.
        data: training points to show.
    """
    if not moments:
        raise ValueError("nothing to draw: moments is empty")
    shape = np.shape(grid[0])
    for method, pair in moments.items():
        if any(np.shape(values) != (np.prod(shape),) for values in pair):
            raise ValueError(
                f"mean and sd of {method} need one number for each of the {np.prod(shape)} points of the grid, got "
                f"shapes {' and '.join(str(np.shape(values)) for values in pair)}"
            )
    first = next(iter(moments.values()))
    figure = pyplot.figure(figsize=(2.3 * len(moments) + 0.9, 5.0), layout="constrained")
    axes = figure.subplots(2, len(moments), sharex=True, sharey=True, squeeze=False)
    target = style.target_label(data)
    for row, (word, colours) in enumerate((("mean", "viridis"), ("sd", "Blues"))):
        # Stray draws at the corners must not stretch the scale.
        scale: dict[str, Any] = {"cmap": colours, "vmin": 0.0, "vmax": float(np.quantile(first[row], 0.995))}
        if word == "mean":
            scale["vmin"] = float(np.quantile(first[row], 0.005))
        for column, (method, pair) in enumerate(moments.items()):
            ax = style.axes(axes[row, column])
            ax.grid(visible=False)
            mesh = ax.pcolormesh(*grid, pair[row].reshape(shape), shading="gouraud", rasterized=True, **scale)
            if data is not None:
                ax.plot(*style.columns(data, 2).T, "o", color=style.DATA, ms=4, mec="white", mew=0.7, clip_on=False)
            ax.set(aspect="equal", title=method if row == 0 else "")
            ax.set(
                xlabel=style.input_label(data, 0) if row else "", ylabel="" if column else style.input_label(data, 1)
            )
        figure.colorbar(mesh, ax=axes[row], label=f"{word} of {target}", extend="max" if row else "both", pad=0.01)
    return axes
