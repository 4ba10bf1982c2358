"""Class-probability fans of several sets of inputs, side by side."""

from collections.abc import Mapping

import numpy as np
from matplotlib import pyplot

from credo.plot.fans import fan
from credo.predictive import Predictive


def fan_row(answers: Mapping[str, Predictive]) -> np.ndarray:
    """One `fan` for each set of inputs, with one legend above, as an array of Axes.

    Arguments:
        answers: the prediction on each set, by name.
    """
    if not answers:
        raise ValueError("nothing to draw: answers is empty")
    figure = pyplot.figure(figsize=(4.1 * len(answers), 3.5), layout="constrained")
    row = np.atleast_1d(figure.subplots(1, len(answers), sharey=True))
    for ax, (name, answer) in zip(row, answers.items(), strict=True):
        fan(answer, ax=ax).set_title(f"{name} ({len(answer):,} inputs)")
        ax.get_legend().remove()
        ax.set_ylabel("probability" if ax is row[0] else "")
    handles, labels = row[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(handles), frameon=False, fontsize=9)
    return row
