"""Squared slopes between pairs of points, against the law that they are expected to follow."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from scipy import stats

from credo.plot import style

NUM_BINS = 50
# The tail beyond this quantile of the law would squeeze the rest.
SHOWN = 0.97


def slopes(ratios: Mapping[str, np.ndarray], dims: tuple[int, int], *, ax: Axes | None = None) -> Axes:
    """Histograms of ‖Δy‖²/‖Δx‖², each as a density over its mean squares, and the density of F(n, m).

    Arguments:
        ratios: by name, (pairs,); the first is drawn filled.
        dims: (n, m), the numbers of outputs and of inputs.
    """
    if not ratios or any(np.ndim(one) != 1 or not np.size(one) for one in ratios.values()):
        raise ValueError("slopes draws ratios by name, each (pairs,) with at least one pair")
    n, m = dims
    law = stats.f(n, m)
    edges = np.linspace(0, law.ppf(SHOWN), NUM_BINS + 1)
    ax = style.axes(ax)
    for number, (name, ratio) in enumerate(ratios.items()):
        # Pairs beyond the last edge count too: the densities of all pairs integrate to one.
        heights = np.histogram(ratio * m / n, edges)[0] / (len(ratio) * np.diff(edges))
        if number == 0:
            ax.stairs(heights, edges, fill=True, color=style.ALEATORIC, label=name)
        else:
            ax.stairs(heights, edges, lw=1.2, label=name, **style.line(number))
    shown = np.linspace(0, edges[-1], 300)
    ax.plot(shown, law.pdf(shown), color=style.INK, lw=1.5, label=f"density of F({n}, {m})")
    ax.set(xlim=(0, edges[-1]), xlabel="‖Δy‖² / ‖Δx‖²" if n == m else "‖Δy‖²/n / (‖Δx‖²/m)", ylabel="density of pairs")
    ax.legend(frameon=False, fontsize=8)
    return ax
