"""One house style: few colours that stay apart in greyscale, no frame above and to the right."""

from pathlib import Path
from typing import Any

from matplotlib import pyplot
from matplotlib.axes import Axes

INK, EPISTEMIC, ALEATORIC, DATA = "#1b1b1b", "#2a6f97", "#a9cce3", "#d1495b"


def axes(ax: Axes | None, **size: Any) -> Axes:
    """The axes to draw in: those given, or new ones in the house's style."""
    if ax is None:
        ax = pyplot.figure(figsize=(size.get("width", 6.4), size.get("height", 4.0)), layout="constrained").gca()
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
    return ax


def save(ax: Axes, path: str | Path) -> None:
    """Write the figure that holds the axes to a file, and let go of it."""
    figure = ax.get_figure(root=True)
    if figure is None:
        raise ValueError("these axes belong to no figure")
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
