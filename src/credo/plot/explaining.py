"""What a posterior goes by: importance of columns, partial dependence, and why a row is uncertain."""

import numpy as np
from matplotlib.axes import Axes

from credo._text import in_one_line
from credo.explaining import Dependence, Explanation, UnsureRow
from credo.plot import style

# More bars cannot be read; more classes in one plot neither.
MAX_BARS, MAX_LINES = 20, 8
# Characters of a name beside a bar or below an axis.
MAX_NAME, MAX_LEVEL = 28, 12


def importance(explanation: Explanation, *, ax: Axes | None = None) -> Axes:
    """The fall of R² when each column is shuffled, the greatest on top, with two standard errors.

    Arguments:
        explanation: from `credo.explain`.

    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> import credo
    >>> posterior = SimpleNamespace(predict=lambda x, num_draws: credo.from_normal(np.stack([x[:, 0]] * 2), 0.5))
    >>> x = np.random.default_rng(0).normal(size=(40, 2))
    >>> ax = credo.plot.importance(credo.explain(posterior, (x, x[:, 0])))
    >>> sorted(label.get_text() for label in ax.get_yticklabels())
    ['x1', 'x2']
    """
    if not isinstance(explanation, Explanation):
        raise ValueError(f"importance draws what credo.explain gives, got {type(explanation).__name__}")
    shown = list(explanation.importance.items())[:MAX_BARS]
    means = [one.mean for _, one in shown]
    reach = [2 * one.standard_error for _, one in shown]
    ax = _bars(ax, [name for name, _ in shown])
    colours = [style.EPISTEMIC if one.matters else style.ALEATORIC for _, one in shown]
    ax.barh(range(len(shown)), means, xerr=reach, color=colours, height=0.62, ecolor=style.INK, capsize=2.5)
    ax.axvline(0, color=style.INK, lw=0.8)
    ax.set_xlabel("fall of R² when it is shuffled, ±2 standard errors")
    return ax


def dependence(explanation: Explanation, name: str, *, ax: Axes | None = None) -> Axes:
    """The prediction over one column, averaged over the others, with the interval of 95% of the draws.

    Of two classes the second is drawn, of more each, up to eight.

    Arguments:
        explanation: from `credo.explain`.
        name: of a column that it has the dependence on.

    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> import credo
    >>> posterior = SimpleNamespace(predict=lambda x, num_draws: credo.from_normal(np.stack([x[:, 0]] * 2), 0.5))
    >>> x = np.random.default_rng(0).normal(size=(40, 2))
    >>> credo.plot.dependence(credo.explain(posterior, (x, x[:, 0])), "x1").get_xlabel()
    'x1'
    """
    if name not in explanation.dependence:
        raise ValueError(f"name is {name!r}; there are curves of {', '.join(map(repr, explanation.dependence))}")
    curve, classes = explanation.dependence[name], explanation.classes
    num_outputs = curve.mean.shape[1]
    outputs = [1] if classes and num_outputs == 2 else list(range(min(num_outputs, MAX_LINES)))
    names = classes or tuple(f"output {output + 1}" for output in range(num_outputs))
    ax = style.axes(ax)
    for number, output in enumerate(outputs):
        colour = style.line(number)["color"] if len(outputs) > 1 else style.EPISTEMIC
        draw = _curve if curve.ordered else _levels
        draw(
            ax,
            curve,
            output,
            0.5 * ((number + 0.5) / len(outputs) - 0.5),
            color=colour,
            label=style.plain(names[output]),
        )
    if curve.ordered:
        ax.plot(curve.at, np.zeros(len(curve.at)), "|", color=style.FAINT, transform=ax.get_xaxis_transform(), ms=6)
    else:
        levels = [style.plain(in_one_line(one, MAX_LEVEL)) for one in curve.settings]
        slanted = max(map(len, levels)) > 36 // len(levels)
        ax.set_xticks(curve.at, levels, rotation=35 if slanted else 0, ha="right" if slanted else "center")
        ax.set_xlim(-0.5, len(levels) - 0.5)
    single = f"probability of {names[outputs[0]]}" if classes else explanation.target
    ax.set(xlabel=style.plain(name), ylabel="probability" if classes and len(outputs) > 1 else style.plain(single))
    if len(outputs) > 1:
        ax.legend(frameon=False, fontsize=8)
    return ax


def _curve(ax: Axes, curve: Dependence, output: int, place: float, *, color: str, label: str) -> None:
    ax.fill_between(curve.at, curve.lower[:, output], curve.upper[:, output], alpha=0.3, lw=0, color=color)
    ax.plot(curve.at, curve.mean[:, output], lw=1.4, color=color, label=label)


def _levels(ax: Axes, curve: Dependence, output: int, place: float, *, color: str, label: str) -> None:
    mean = curve.mean[:, output]
    # The mean of draws that are far from normal may lie outside their interval.
    reach = np.maximum([mean - curve.lower[:, output], curve.upper[:, output] - mean], 0.0)
    ax.errorbar(curve.at + place, mean, yerr=reach, fmt="o", ms=4.5, capsize=3, color=color, label=label)


def unsure(row: UnsureRow, *, ax: Axes | None = None) -> Axes:
    """Where the uncertainty of a row comes from: what a typical row has, and what each column adds or takes.

    Arguments:
        row: one of the rows of `credo.explain`.

    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> import credo
    >>> posterior = SimpleNamespace(predict=lambda x, num_draws: credo.from_normal(np.stack([x[:, 0]] * 2), 0.5))
    >>> x = np.random.default_rng(0).normal(size=(40, 2))
    >>> found = credo.explain(posterior, (x, x[:, 0]))
    >>> type(credo.plot.unsure(found.rows[0])).__name__
    'Axes'
    """
    if not isinstance(row, UnsureRow):
        raise ValueError(f"unsure draws one of the rows of credo.explain, got {type(row).__name__}")
    ranked = sorted(row.because.items(), key=lambda item: -abs(sum(item[1])))[:8]
    names = ["a typical row", *(f"{name} = {row.values[name]}" for name, _ in ranked)]
    parts = np.array([row.typical, *(both for _, both in ranked)]) / row.total
    ax = _bars(ax, names)
    places = np.arange(len(names))
    for number, (name, colour) in enumerate((("epistemic", style.EPISTEMIC), ("aleatoric", style.ALEATORIC))):
        ax.barh(places + 0.36 * number - 0.18, parts[:, number], height=0.34, color=colour, label=name)
    ax.axvline(0, color=style.INK, lw=0.8)
    ax.set_xlabel(f"share of the uncertainty of row {row.index + 1}")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    ax.legend(frameon=False, fontsize=8)
    return ax


def _bars(ax: Axes | None, names: list[str]) -> Axes:
    """Axes with a name on the left for each bar, from the top down."""
    ax = style.axes(ax, height=max(2.6, 0.3 * len(names) + 1.0))
    ax.set_yticks(range(len(names)), [style.plain(in_one_line(name, MAX_NAME)) for name in names])
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", length=0)
    return ax
