"""Class-probability fans: what a classifier believes about a set of inputs, and how sure it is."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from credo.evaluation.classes import class_summary
from credo.plot import style
from credo.predictive import Predictive


def fan(predictive: Predictive, *, names: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """Mean probability of each class over a set of inputs, with its sd within and across the inputs.

    "Within" is over the draws for one input: the model does not know. "Across" is over the inputs: they differ. See
    `credo.evaluation.class_summary`.

    Arguments:
        predictive: the prediction on the set, such as all images of one class.
        names: of the classes.

    >>> import credo
    >>> ax = credo.plot.fan(credo.from_probs([[0.7, 0.3], [0.6, 0.4]]), names=["cat", "dog"])
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['cat', 'dog']
    """
    summary = class_summary(predictive)
    names = style.class_names(names, len(summary.mean))
    ax = style.axes(ax)
    ax.grid(visible=False, axis="x")
    place = np.arange(len(names))
    ax.bar(place - 0.24, summary.mean, 0.32, color=style.EPISTEMIC, label="mean probability")
    ax.bar(place + 0.05, summary.within, 0.22, label="sd within an input (over draws)", **_hatched("////"))
    ax.bar(place + 0.28, summary.across, 0.22, label="sd across inputs", **_hatched("...."))
    ax.set(ylim=(0, 1), xlabel="class", ylabel="probability")
    long = max(map(len, names)) > 60 // len(names)
    ax.set_xticks(place, names, rotation=35 if long else 0, ha="right" if long else "center")
    ax.legend(frameon=False, fontsize=8, title=f"{len(predictive):,} inputs", title_fontsize=8, alignment="left")
    return ax


def _hatched(hatch: str) -> dict[str, Any]:
    return {"fc": "white", "ec": style.INK, "lw": 0.7, "hatch": hatch}
