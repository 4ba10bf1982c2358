"""The confusion matrix: which class was mistaken for which."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from credo.plot import style


def confusion(matrix: np.ndarray, *, names: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """Counts of predicted (columns) by true class (rows), shaded by their share of the row.

    Arguments:
        matrix: (classes, classes), counts.
        names: of the classes.

    >>> import numpy as np
    >>> import credo
    >>> ax = credo.plot.confusion(np.array([[8, 2], [1, 9]]), names=["cat", "dog"])
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['cat', 'dog']
    """
    counts = np.asarray(matrix)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or counts.size == 0:
        raise ValueError(f"matrix must have shape (classes, classes), got {counts.shape}")
    if counts.dtype.kind not in "iuf" or np.any(counts < 0) or np.any(counts != np.round(counts)):
        raise ValueError("matrix must hold counts: whole numbers, none negative")
    num_classes = len(counts)
    names = style.class_names(names, num_classes)
    ax = style.axes(ax, height=max(4.0, 0.32 * num_classes + 1), width=max(5.4, 0.42 * num_classes + 1.8))
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    share = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    image = ax.imshow(share, cmap="Blues", vmin=0, vmax=1)
    ax.figure.colorbar(image, ax=ax, label="share of the true class")
    for (row, column), count in np.ndenumerate(counts):
        colour = "white" if share[row, column] > 0.5 else style.INK if count else style.FAINT
        size = 9 if num_classes <= 10 else 6
        ax.text(column, row, f"{int(count):,}", ha="center", va="center", fontsize=size, color=colour)
    slanted = max(map(len, names)) > 40 // num_classes
    place = range(num_classes)
    ax.set_xticks(place, names, rotation=35 if slanted else 0, ha="right" if slanted else "center")
    ax.set_yticks(place, names)
    ax.tick_params(length=0)
    ax.set(xlabel="predicted class", ylabel="true class")
    return ax
