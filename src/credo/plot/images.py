"""Images, and what a classifier says about each."""

from collections.abc import Mapping

import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes

from credo.plot import style
from credo.predictive import ClassPredictive, Predictive

# Images of each set.
NUM_IMAGES = 6


def images(inputs: Mapping[str, np.ndarray], answers: Mapping[str, Predictive]) -> np.ndarray:
    """A few images of each set (a row), with the probabilities of the classes and their sd over the draws.

    Returns the Axes as an array (sets, 2 · images): an image, its probabilities, the next image, …

    Arguments:
        inputs: by set, (rows, height, width).
        answers: the prediction on each set.
    """
    for name, values in inputs.items():
        if np.ndim(values) != 3 or len(values) != len(answers[name]):
            raise ValueError(f"{name} needs images (rows, height, width), one per answer, got shape {np.shape(values)}")
    figure = pyplot.figure(figsize=(12.5, 1.45 * len(inputs) + 0.5), layout="constrained")
    grid = figure.subplots(len(inputs), 2 * NUM_IMAGES, squeeze=False, width_ratios=[1, 1.3] * NUM_IMAGES)
    for row, (name, values) in enumerate(inputs.items()):
        chosen = style.thinned(len(values), NUM_IMAGES)
        answer = answers[name]
        if not isinstance(answer, ClassPredictive):
            raise TypeError(f"images shows class probabilities, got {type(answer).__name__}")
        for ax in grid[row]:
            ax.set_axis_off()
        for place, index in enumerate(chosen):
            picture, bars = grid[row, 2 * place : 2 * place + 2]
            picture.imshow(values[index], cmap="Greys")
            _bars(bars, answer.probs[index], answer.probs_std[index])
        grid[row, 0].set_title(name, fontsize=8, loc="left")
    figure.supxlabel("class: the bars are mean probabilities, the lines reach one sd over the draws", fontsize=9)
    return grid


def _bars(ax: Axes, probs: np.ndarray, sd: np.ndarray) -> None:
    ax.set_axis_on()
    style.axes(ax).grid(visible=False)
    colours = [style.EPISTEMIC if label == np.argmax(probs) else style.ALEATORIC for label in range(len(probs))]
    ax.bar(range(len(probs)), probs, color=colours, width=0.8)
    ax.errorbar(range(len(probs)), probs, sd, fmt="none", ecolor=style.INK, elinewidth=0.7, capsize=0)
    ax.set_ylim(0, 1.05)
    ax.set_xticks(range(len(probs)))
    ax.set_yticks([0, 1])
    ax.tick_params(labelsize=6, length=2)
