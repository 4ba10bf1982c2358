"""One number for each output of a model, as bars side by side."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes

from credo.plot import style

# The share of the room of an output that its bars take.
FILLED = 0.8


def outputs(values: Mapping[str, np.ndarray], *, label: str, marked: int | None = None, ax: Axes | None = None) -> Axes:
    """A group of bars for each output, one bar for each model.

    Arguments:
        values: by model, (outputs,).
        label: what they are.
        marked: an output that stands out, if there is one.
    """
    sizes = {name: np.shape(one) for name, one in values.items()}
    if not values or len(set(sizes.values())) > 1 or len(next(iter(sizes.values()))) != 1:
        raise ValueError(f"outputs draws one number for each output, the same outputs for all models; got {sizes}")
    ax = style.axes(ax)
    (num,) = next(iter(sizes.values()))
    width = FILLED / len(values)
    if marked is not None:
        ax.axvspan(marked - 0.5, marked + 0.5, color=style.ALEATORIC, alpha=0.35, lw=0)
    for number, (name, heights) in enumerate(values.items()):
        left = np.arange(num) + (number - (len(values) - 1) / 2) * width
        ax.bar(left, heights, width, color=style.COLOURS[number % len(style.COLOURS)], ec="white", lw=0.5, label=name)
    ax.set(xticks=range(num), xlabel="output", ylabel=label)
    ax.grid(axis="x", visible=False)
    ax.legend(frameon=False, fontsize=8)
    return ax
