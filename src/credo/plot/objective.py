"""The objective of an optimiser or a sampler, step by step."""

import numpy as np
from matplotlib.axes import Axes

from credo.plot import style


def objective(trace: np.ndarray, *, label: str = "ELBO", window: int | None = None, ax: Axes | None = None) -> Axes:
    """ELBO or log joint at each step: raw in light, its running mean in dark.

    Arguments:
        trace: (steps,) or (chains, steps), as in posterior.trace; values that are not finite leave a gap.
        label: of the vertical axis.
        window: steps of the running mean; 2% of all by default.

    >>> import numpy as np
    >>> import credo
    >>> credo.plot.objective(-np.exp(-np.linspace(0, 5, 200)), label="log joint").get_ylabel()
    'log joint'
    """
    values = np.atleast_2d(np.asarray(trace, np.float64))
    if values.ndim != 2 or values.size == 0:
        raise ValueError(f"trace must have shape (steps,) or (chains, steps), got {np.shape(trace)}")
    if not np.any(np.isfinite(values)):
        raise ValueError("trace holds no finite number")
    window = max(values.shape[1] // 50, 1) if window is None else window
    if not 1 <= window <= values.shape[1]:
        raise ValueError(f"window must lie between 1 and the {values.shape[1]} steps, got {window}")
    ax = style.axes(ax)
    steps = np.arange(1, values.shape[1] + 1)
    for chain, raw in enumerate(values):
        look = style.line(chain) if len(values) > 1 else {"color": style.EPISTEMIC, "ls": "-"}
        ax.plot(steps, raw, lw=0.6, alpha=0.35, color=look["color"], rasterized=len(raw) > 10_000)
        name = f"chain {chain + 1}" if len(values) > 1 else f"mean of {window:,} steps"
        ax.plot(steps, _running_mean(raw, window), lw=1.6, label=name, **look)
    ax.set(xlabel="step", ylabel=label, xlim=(0, values.shape[1]))
    note = _limit(ax, values[np.isfinite(values)])
    ncols = 2 if len(values) > 4 else 1
    ax.legend(frameon=False, fontsize=8, loc="lower right", ncols=ncols, title=note, title_fontsize=7)
    return ax


def _running_mean(values: np.ndarray, window: int) -> np.ndarray:
    """A centred mean over the finite values within the window."""
    present = np.isfinite(values)
    kernel = np.ones(window)
    totals = np.convolve(np.where(present, values, 0.0), kernel, mode="same")
    counts = np.convolve(present.astype(float), kernel, mode="same")
    return np.divide(totals, counts, out=np.full(len(values), np.nan), where=counts > 0.5)


def _limit(ax: Axes, values: np.ndarray) -> str | None:
    # The first steps from a random start may lie orders of magnitude below the rest and would flatten it to a line. So
    # the axis shows the upper 95% of the values and as much again below them; a note tells what it leaves out.
    low, high = np.quantile(values, 0.05), values.max()
    reach = max(high - low, 1e-9 * max(abs(high), 1.0))
    bottom = max(values.min(), low - reach)
    ax.set_ylim(bottom - 0.05 * (high - bottom or 1.0), high + 0.08 * (high - bottom or 1.0))
    lowest = f"{values.min():.3g}".replace("-", "−")
    return f"below the axis: down to {lowest}" if bottom > values.min() else None
