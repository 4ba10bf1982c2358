"""Predictions: bands over one input, and maps over two."""

import numpy as np
from matplotlib.axes import Axes

from credo.data import Data
from credo.plot import style
from credo.predictive import Predictive


def bands(
    predictive: Predictive,
    x: np.ndarray,
    *,
    data: Data | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Mean and two standard deviations over one input: epistemic alone, and with the aleatoric part around it.

    Arguments:
        predictive: the prediction on x.
        x: (rows,) or (rows, 1), in the user's units.
        data: training points to show.
    """
    x = np.asarray(x).reshape(len(predictive), -1)
    if x.shape[1] != 1 or predictive.mean.ndim != 1:
        raise ValueError(
            f"bands need one input and one output, got inputs {x.shape} and outputs {predictive.mean.shape}"
        )
    ax = style.axes(ax)
    order = np.argsort(x[:, 0])
    x, mean = x[order, 0], predictive.mean[order]
    epistemic, total = 2 * np.sqrt(predictive.epistemic[order]), 2 * predictive.std[order]
    ax.fill_between(x, mean - total, mean + total, color=style.ALEATORIC, alpha=0.6, lw=0, label="with noise, ±2 sd")
    ax.fill_between(
        x,
        mean - epistemic,
        mean + epistemic,
        color=style.EPISTEMIC,
        alpha=0.6,
        lw=0,
        label="epistemic, ±2 sd",
    )
    ax.plot(x, mean, color=style.INK, lw=1.4, label="mean")
    if data is not None:
        ax.plot(data.x.ravel(), data.y, "o", color=style.DATA, ms=3.2, mew=0, label="data")
    ax.set_xlabel(_input_label(data, 0))
    ax.set_ylabel(_target_label(data))
    ax.legend(frameon=False, fontsize=8)
    return ax


def class_map(
    predictive: Predictive,
    grid: tuple[np.ndarray, np.ndarray],
    *,
    show: str = "epistemic",
    data: Data | None = None,
    ax: Axes | None = None,
) -> Axes:
    """An uncertainty of a classifier over a plane, with its decision boundary.

    Arguments:
        predictive: the prediction on the grid's points, row by row: np.column_stack([a.ravel() for a in grid]).
        grid: from np.meshgrid.
        show: "epistemic", "aleatoric" or "entropy".
        data: training points to show, by class.
    """
    if show not in ("epistemic", "aleatoric", "entropy"):
        raise ValueError(f"show must be 'epistemic', 'aleatoric' or 'entropy', got {show!r}")
    ax = style.axes(ax)
    shape = grid[0].shape
    mesh = ax.pcolormesh(*grid, getattr(predictive, show).reshape(shape), cmap="Blues", shading="auto", rasterized=True)
    ax.figure.colorbar(mesh, ax=ax, label=f"{show} (nats)")
    num_classes = predictive.probs.shape[1]
    # Between two classes the probability itself gives a smooth line.
    height = predictive.probs[:, 1] if num_classes == 2 else predictive.label
    ax.contour(*grid, height.reshape(shape), levels=np.arange(0.5, num_classes - 1), colors=style.INK)
    if data is not None:
        for label, marker in zip(np.unique(data.y), "o^sDvP*X", strict=False):
            rows = data.y == label
            ax.plot(
                *data.x[rows].T,
                marker,
                ms=4,
                mec="white",
                mew=0.5,
                color=f"C{int(label) + 1}",
                label=f"class {label}",
            )
        ax.legend(frameon=True, fontsize=8)
    ax.set_xlabel(_input_label(data, 0))
    ax.set_ylabel(_input_label(data, 1))
    return ax


def _input_label(data: Data | None, column: int) -> str:
    names = data.names if data is not None else None
    return names[column] if names is not None else ("x" if column == 0 else "x₂")


def _target_label(data: Data | None) -> str:
    if data is None:
        return "y"
    return f"{data.target or 'y'} ({data.unit})" if data.unit else data.target or "y"
