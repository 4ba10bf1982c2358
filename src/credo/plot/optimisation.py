"""A search for an optimum as a picture: the best value so far, and over one input what is believed of the function."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from credo.data import Data
from credo.learning.optimum import Optimum
from credo.learning.space import Range
from credo.plot import style
from credo.plot.prediction import bands

NUM_POINTS = 400


def optimisation(
    results: Optimum | Sequence[Any] | Mapping[str, Any], *, optimum: float | None = None, ax: Axes | None = None
) -> Axes:
    """The best value after each evaluation; of several seeds the median, and a band from quartile to quartile.

    Arguments:
        results: an `Optimum`, one for each seed, or such lists by name: {"credo": results, "random": values}. In place
            of an `Optimum` the best values so far will do, (evaluations,): random search has no posterior.
        optimum: the value that is known to be the best: then it is the distance to it, on a logarithmic scale.

    >>> import numpy as np
    >>> import credo
    >>> best_so_far = {"random": [np.array([3.0, 2.0, 2.0]), np.array([4.0, 2.5, 1.0])]}
    >>> credo.plot.optimisation(best_so_far).get_xlabel()
    'evaluations'
    """
    ax, goal = style.axes(ax), "minimise"
    for number, (name, several) in enumerate(style.named(results).items()):
        runs = several if isinstance(several, Sequence) and not isinstance(several, Optimum) else [several]
        if not len(runs):
            raise ValueError(f"results has no run of {name!r}; pass one Optimum at least")
        goal = next((one.goal for one in runs if isinstance(one, Optimum)), goal)
        curves = [one.best_so_far if isinstance(one, Optimum) else np.asarray(one, float) for one in runs]
        shortest = min(map(len, curves))
        values = np.stack([curve[:shortest] for curve in curves])
        shown = values if optimum is None else np.abs(values - optimum)
        low, middle, high = np.nanquantile(shown, [0.25, 0.5, 0.75], axis=0)
        count, look = np.arange(1, shortest + 1), style.line(number)
        if len(curves) > 1:
            ax.fill_between(count, low, high, color=look["color"], alpha=0.18, lw=0, step="post")
        ax.step(count, middle, where="post", lw=1.6, label=style.plain(name) or None, **look)
    what = "smallest" if goal == "minimise" else "largest"
    ax.set(xlabel="evaluations", ylabel=f"{what} value so far" if optimum is None else "distance to the optimum")
    if optimum is not None:
        ax.set_yscale("log")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False, fontsize=8)
    return ax


def belief(result: Optimum, *, ax: Axes | None = None) -> Axes:
    """What is believed of a function of one number: the mean, both uncertainties, what was asked, and the best point.

    Arguments:
        result: of `credo.optimise` over one range.

    >>> import credo
    >>> found = credo.optimise(lambda x: (x["a"] - 0.3) ** 2, {"a": (0.0, 1.0)}, num_evaluations=4, noise=0)
    >>> credo.plot.belief(found).get_xlabel()
    'a'
    """
    (first, *others) = result.space.dimensions
    if others or not isinstance(first, Range):
        raise ValueError(f"this plot is over one range of numbers, and the bounds have {len(others) + 1} dimension(s)")
    x = np.array([first.decode(place) for place in np.linspace(-1, 1, NUM_POINTS)[:, None]], float)
    x = np.unique(x)
    name = None if result.space.names is None else result.space.names[0]
    asked = [_number(point) for point in result.history.inputs]
    points = [[value] if name is None else {name: value} for value in x]
    data = Data(np.array(asked), result.history.values, names=None if name is None else [name])
    ax = bands(result.predict(points), x, data=data, ax=ax)
    ax.plot(_number(result.x), result.value, "*", color=style.INK, ms=11, label="best", zorder=4)
    if first.log:
        ax.set_xscale("log")
    ax.legend(frameon=False, fontsize=8)
    return ax


def _number(point: Any) -> float:
    return float(next(iter(point.values())) if isinstance(point, Mapping) else point[0])
