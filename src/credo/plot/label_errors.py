"""Labels that are probably wrong: the most suspicious rows, and how many there are."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.offsetbox import AnnotationBbox, OffsetImage

from credo.data import Data, as_data
from credo.plot import style
from credo.predictive import ClassPredictive, Predictive

# The height of a small image, in points.
IMAGE_HEIGHT = 13.0


def label_errors(
    errors: np.ndarray, data: Data | tuple[Any, Any], answer: Predictive, *, num: int = 12, ax: Axes | None = None
) -> Axes:
    """The rows whose labels are most probably wrong, what was given and what is proposed; beside, all probabilities.

    Images are shown where the inputs are images.

    Arguments:
        errors: `posterior.label_errors(data)`, in the shape of y; NaN where nothing was given.
        data: what they are of, credo.Data or (x, y).
        answer: `posterior.predict(data.x)`, which proposes.
        num: how many rows to show.

    >>> import numpy as np
    >>> import credo
    >>> data, answer = credo.Data([[0.0], [1.0]], [0, 0]), credo.from_probs([[0.9, 0.1], [0.2, 0.8]])
    >>> type(credo.plot.label_errors(np.array([0.1, 0.9]), data, answer)).__name__
    'Axes'
    """
    rows, found = as_data(data), np.asarray(errors)
    if found.shape != rows.y.shape or len(answer) != rows.size:
        raise ValueError(
            f"errors has shape {found.shape} and answer {len(answer)} rows, but y has shape {rows.y.shape}; pass those "
            "of the same data"
        )
    known = found[~np.isnan(found)]
    if not len(known):
        raise ValueError("errors holds no probability: all of it is NaN")
    order = np.argsort(-np.nan_to_num(found, nan=-1.0), axis=None, kind="stable")[: min(num, len(known))]
    places = [tuple(map(int, place)) for place in np.transpose(np.unravel_index(order, found.shape))]
    ax = style.axes(ax, height=max(3.2, 0.24 * len(places) + 1.0))
    ax.barh(range(len(places)), [found[place] for place in places], color=style.EPISTEMIC, height=0.7)
    ax.set_yticks(range(len(places)), [_in_words(rows, answer, place) for place in places], fontsize=8)
    if rows.x.ndim == 3:
        for height, (row, *_) in enumerate(places):
            _thumbnail(ax, rows.x[row], height)
        ax.tick_params(axis="y", pad=IMAGE_HEIGHT + 6)
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    # The bars take three fifths of the width, the histogram the rest.
    ax.set(xlim=(0, 1 / 0.6), xticks=[0, 0.5, 1], ylabel="most suspicious first")
    ax.set_xlabel("probability that it is wrong", x=0.0, ha="left")
    ax.spines["bottom"].set_bounds(0, 1)
    _histogram(ax.inset_axes((0.68, 0.0, 0.32, 0.9)), known)
    return ax


def _in_words(data: Data, answer: Predictive, place: tuple[int, ...]) -> str:
    given, row = data.y[place], place[0]
    if isinstance(answer, ClassPredictive):
        names = style.class_names(data.classes, answer.probs.shape[1])
        said = f"{names[given]}, rather {names[answer.label[row]]}"
        return f"{row}: {said}" if len(place) == 1 else f"{row}, annotator {place[1]}: {said}"
    said = f"{given:.3g}, rather {answer.mean[place]:.3g}"
    return f"{row}: {said}" if len(place) == 1 else f"{row}, output {place[1]}: {said}"


def _thumbnail(ax: Axes, image: np.ndarray, height: int) -> None:
    picture = OffsetImage(image, zoom=IMAGE_HEIGHT / image.shape[0], cmap="Greys")
    box = AnnotationBbox(
        picture, (0, height), xybox=(-IMAGE_HEIGHT, 0), boxcoords="offset points", frameon=False, annotation_clip=False
    )
    ax.add_artist(box)


def _histogram(ax: Axes, probabilities: np.ndarray) -> None:
    style.axes(ax)
    ax.hist(probabilities, bins=20, range=(0, 1), color=style.ALEATORIC, ec=style.EPISTEMIC, lw=0.6)
    ax.set_yscale("log")
    ax.yaxis.tick_right()
    ax.spines[["left"]].set_visible(False)
    ax.set(xlim=(0, 1), xticks=[0, 0.5, 1], xlabel=f"of all {len(probabilities):,}")
    ax.tick_params(labelsize=8)
    ax.set_title(f"about {probabilities.sum():,.0f} are wrong", fontsize=9)
