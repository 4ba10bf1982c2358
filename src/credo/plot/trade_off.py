"""What a simpler posterior saves and what it loses, as one picture."""

import numpy as np
from matplotlib.axes import Axes

from credo._text import size_in_words
from credo.plot import style
from credo.simplifying.trade_off import FULL, TradeOff

# Areas of the marks in square points: a posterior a thousand times as large has a mark three times as wide.
SMALLEST_MARK, MARK_PER_DECADE = 40.0, 110.0


def trade_off(result: TradeOff, *, ax: Axes | None = None) -> Axes:
    """The log score of each option over the time that a row takes; the larger the mark, the larger the posterior.

    Error bars are those of the difference to the full posterior, whose score is the line; hollow marks are options that
    lose more than the test rows can overlook. The recommended one is in bold.

    Arguments:
        result: of `credo.simplify`.
    """
    ax = style.axes(ax)
    smallest = min(one.num_bytes for one in result.options.values())
    for number, (name, one) in enumerate(result.options.items()):
        colour = style.COLOURS[number % len(style.COLOURS)]
        area = SMALLEST_MARK + MARK_PER_DECADE * np.log10(one.num_bytes / smallest)
        place = (one.microseconds_per_row, one.lpd)
        ax.errorbar(*place, yerr=one.lost_error, fmt="none", ecolor=colour, capsize=3, lw=1)
        ax.scatter(*place, s=area, facecolor=colour if one.keeps else "white", edgecolor=colour, lw=1.5, zorder=3)
        ax.annotate(
            f"{name}, {size_in_words(one.num_bytes)}",
            place,
            xytext=(3 + np.sqrt(area) / 2, 4),
            textcoords="offset points",
            fontsize=8,
            fontweight="bold" if name == result.recommended else "normal",
        )
    ax.axhline(result.options[FULL].lpd, color=style.FAINT, lw=0.8, ls="--")
    ax.set_xscale("log")
    ax.margins(x=0.25, y=0.15)
    ax.set(xlabel="microseconds per row", ylabel="log predictive density (higher is better)")
    return ax
