"""What a simpler posterior saves and what it loses, as one picture."""

import numpy as np
from matplotlib.axes import Axes

from credo._text import size_in_words
from credo.plot import style
from credo.simplifying.trade_off import FULL, TradeOff

# Areas of the marks in square points: what takes a thousand times as long has a mark three times as wide.
SMALLEST_MARK, MARK_PER_DECADE = 40.0, 110.0


def trade_off(result: TradeOff, *, ax: Axes | None = None) -> Axes:
    """The log score of each option over its size; the larger the mark, the longer a row takes.

    Error bars are those of the difference to the full posterior, whose score is the line. Hollow marks lose more than
    the test rows can overlook; the recommended option is in bold.

    Arguments:
        result: of `credo.simplify`.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.3)
    >>> posterior = credo.fit(model, credo.datasets.gap(30), credo.NUTS(num_samples=50, num_warmup=50))
    >>> result = credo.simplify(posterior, credo.datasets.gap(30), ways=["quantised"])
    >>> credo.plot.trade_off(result).get_xscale()
    'log'
    """
    ax = style.axes(ax)
    fastest = min(one.microseconds_per_row for one in result.options.values())
    for number, (name, one) in enumerate(result.options.items()):
        colour = style.COLOURS[number % len(style.COLOURS)]
        area = SMALLEST_MARK + MARK_PER_DECADE * np.log10(one.microseconds_per_row / fastest)
        place = (one.num_bytes / 1000, one.lpd)
        ax.errorbar(*place, yerr=one.lost_error, fmt="none", ecolor=colour, capsize=3, lw=1)
        ax.scatter(
            *place,
            s=area,
            marker=style.MARKERS[number % len(style.MARKERS)],
            facecolor=colour if one.keeps else "white",
            edgecolor=colour,
            lw=1.5,
            zorder=3,
            label=f"{name}: {size_in_words(one.num_bytes)}, {one.microseconds_per_row:,.3g} µs per row",
        )
    ax.axhline(result.options[FULL].lpd, color=style.FAINT, lw=0.8, ls="--")
    ax.set_xscale("log")
    ax.margins(x=0.1, y=0.15)
    ax.set(xlabel="size (kB)", ylabel="log predictive density (higher is better)")
    legend = ax.legend(edgecolor="none", fontsize=8)
    for name, handle, text in zip(result.options, legend.legend_handles, legend.get_texts(), strict=True):
        handle.set_sizes([SMALLEST_MARK])  # type: ignore[union-attr]
        text.set_fontweight("bold" if name == result.recommended else "normal")
    return ax
