"""Methods side by side: score against training time."""

from matplotlib.axes import Axes

from credo.evaluation.compare import Comparison
from credo.plot import style


def comparison(result: Comparison, *, by: str | None = None, ax: Axes | None = None) -> Axes:
    """A score of each method with its standard error, over the time it took to train.

    Arguments:
        result: of `credo.compare`.
        by: the score; by default the one that the methods are sorted by.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.3)
    >>> posterior = credo.fit(model, credo.datasets.gap(20), credo.ClosedForm())
    >>> compared = credo.compare({"exact": posterior}, credo.datasets.gap(20, seed=1))
    >>> credo.plot.comparison(compared).get_xscale()
    'log'
    """
    name = by or result.by
    ax = style.axes(ax)
    for number, (method, scores) in enumerate(result.scores.items()):
        score = scores[name]
        ax.errorbar(
            result.costs[method].training_seconds,
            score.value,
            yerr=score.standard_error,
            fmt=style.MARKERS[number % len(style.MARKERS)],
            color=style.COLOURS[number % len(style.COLOURS)],
            capsize=3,
            label=method,
        )
    first = next(iter(result.scores.values()))
    best = first.best(name)
    hint = f"{best} is better" if best in ("higher", "lower") else f"best at {best}"
    ax.set_xscale("log")
    ax.set(xlabel="seconds to train", ylabel=style.plain(f"{first.label(name)} ({hint})"))
    ax.legend(frameon=False)
    return ax
