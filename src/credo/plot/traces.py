"""Chains at a glance: traces and rank plots."""

import numpy as np
from matplotlib.axes import Axes
from scipy.stats import rankdata

from credo.plot import style


def traces(values: np.ndarray, *, label: str = "f(x)", ax: Axes | None = None) -> Axes:
    """Each chain's values in order; chains that have mixed cannot be told apart. values: (chains, draws).

    >>> import numpy as np
    >>> import credo
    >>> chains = np.random.default_rng(0).normal(size=(4, 100))
    >>> len(credo.plot.traces(chains, label="f(0)").lines)
    4
    """
    values = _checked(values)
    ax = style.axes(ax)
    for chain, draws in enumerate(values):
        # Dashes would be lost in noise: chains differ in colour only.
        colour = style.line(chain)["color"]
        ax.plot(draws, lw=0.6, alpha=0.8, color=colour, label=f"chain {chain + 1}")
    ax.set_xlabel("draw")
    ax.set_ylabel(label)
    _legend(ax)
    return ax


def ranks(values: np.ndarray, *, num_bins: int = 20, ax: Axes | None = None) -> Axes:
    """Histogram of each chain's ranks among all draws: flat where the chains agree (Vehtari et al., 2021).

    >>> import numpy as np
    >>> import credo
    >>> chains = np.random.default_rng(0).normal(size=(4, 100))
    >>> type(credo.plot.ranks(chains)).__name__
    'Axes'
    """
    values = _checked(values)
    ax = style.axes(ax)
    ranked = rankdata(values).reshape(values.shape)
    for chain, own in enumerate(ranked):
        look = style.line(chain)
        name = f"chain {chain + 1}"
        ax.hist(own, bins=num_bins, range=(0, values.size), histtype="step", lw=1.2, label=name, **look)
    ax.axhline(values.shape[1] / num_bins, color=style.FAINT, lw=0.8)
    ax.set_xlabel("rank among all draws")
    ax.set_ylabel("draws")
    _legend(ax)
    return ax


def _legend(ax: Axes) -> None:
    """Put the legend above the axes, where it hides no chain."""
    ax.legend(frameon=False, fontsize=7, ncols=6, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.1)


def _checked(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values)
    if values.ndim != 2 or values.size == 0:
        raise ValueError(f"values must have shape (chains, draws), got {values.shape}")
    return values
