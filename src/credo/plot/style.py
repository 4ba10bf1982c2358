"""The style of all plots: few colours, distinct in greyscale, and no frame at the top and right."""

from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from credo._files import put
from credo._text import visible
from credo.data import Data

INK, EPISTEMIC, ALEATORIC, DATA, FAINT = "#1b1b1b", "#2a6f97", "#a9cce3", "#d1495b", "#8a8a8a"
# Lines in one plot differ in lightness, dashes and markers, so hue is never needed. Five colours and four dashes are
# coprime: twenty lines before a pair repeats.
COLOURS = (INK, "#e08e2b", EPISTEMIC, DATA, "#6fb7a0")
DASHES = ("-", "--", "-.", ":")
MARKERS = "o^sDvP*X"

T = TypeVar("T")


def axes(ax: Axes | None, **size: Any) -> Axes:
    """The axes to draw in, those given or new ones, in the style of all plots."""
    if ax is None:
        ax = pyplot.figure(figsize=(size.get("width", 6.4), size.get("height", 4.0)), layout="constrained").gca()
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
    return ax


def line(number: int) -> dict[str, Any]:
    """Colour and dashes of the line with this number."""
    return {"color": COLOURS[number % len(COLOURS)], "ls": DASHES[number % len(DASHES)]}


def named(values: T | Mapping[str, T], label: str = "") -> dict[str, T]:
    """What to draw, by name: a mapping as it is, or one thing under its label."""
    if not isinstance(values, Mapping):
        return {label: values}
    if not values:
        raise ValueError("nothing to draw: the mapping is empty")
    return dict(values)


def thinned(num: int, limit: int) -> np.ndarray:
    """At most `limit` of `num` positions, evenly spaced, with both ends."""
    return np.unique(np.linspace(0, num - 1, min(num, limit)).round().astype(int))


def class_names(names: Any, num_classes: int) -> list[str]:
    """A name for each class: those given, or numbers from 0."""
    if names is None:
        return [str(number) for number in range(num_classes)]
    if isinstance(names, str) or len(names) != num_classes:
        raise ValueError(f"names is {names!r}, but there are {num_classes} classes; pass one name for each")
    return [plain(str(name)) for name in names]


def columns(data: Data, num: int) -> np.ndarray:
    """The inputs of the data, which must be `num` columns."""
    if data.x.shape[1:] != (num,):
        raise ValueError(f"this plot is over {num} input(s), but the data has rows of shape {data.x.shape[1:]}")
    return data.x


def unlabelled(ax: Axes, data: Data) -> None:
    """Show inputs that have no target: small and grey on a plane, ticks along the axis of a single input."""
    points = data.x[~data.labelled]
    look: dict[str, Any] = {"color": FAINT, "ls": "none", "label": "unlabelled", "zorder": 1.5}
    if len(points) and points.shape[1] == 1:
        ax.plot(points[:, 0], np.zeros(len(points)), "|", ms=7, mew=0.8, transform=ax.get_xaxis_transform(), **look)
    elif len(points):
        ax.plot(*points.T, ".", ms=3, **look)


def plain(name: str) -> str:
    """A name from the data as text to draw: dollars in it do not begin a formula.

    >>> print(plain("price in $, $/m²"))
    price in \\$, \\$/m²
    """
    return visible(name).replace("$", r"\$")


def with_unit(name: str, unit: str | None) -> str:
    """The label of an axis."""
    return plain(f"{name} ({unit})" if unit else name)


def input_label(data: Data | None, column: int) -> str:
    """Name and unit of an input; x₁, x₂, … where it has none."""
    number = chr(ord("₁") + column) if data is None or data.x.ndim != 2 or data.x.shape[1] > 1 else ""
    name = data.names[column] if data is not None and data.names is not None else f"x{number}"
    return with_unit(name, data.units[column] if data is not None and data.units is not None else None)


def target_label(data: Data | None) -> str:
    """Name and unit of the target."""
    return "y" if data is None else with_unit(data.target or "y", data.unit)


def save(ax: Axes, path: str | Path) -> None:
    """Write the figure of the axes to a file, which is whole or not there, and close it.

    In an SVG file text stays text, to be searched, and the same figure makes the same bytes.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> import credo
    >>> with TemporaryDirectory() as folder:
    ...     credo.plot.save(credo.plot.confusion(np.eye(2)), Path(folder) / "confusion.svg")
    ...     sorted(file.name for file in Path(folder).iterdir())
    ['confusion.svg']
    """
    figure = _figure(ax)
    target = Path(path) if Path(path).suffix else Path(f"{path}.png")
    kind = target.suffix.lower().removeprefix(".")
    metadata = {"Date": None} if kind == "svg" else None
    with pyplot.rc_context({"svg.fonttype": "none", "svg.hashsalt": "credo"}):
        put(target, lambda fresh: figure.savefig(fresh, format=kind, dpi=130, metadata=metadata))
    pyplot.close(figure)


def svg(ax: Axes) -> str:
    """The figure of the axes as SVG, byte for byte reproducible; closes the figure.

    It is made a little smaller first, so that its letters are large enough on a page with two columns.
    """
    figure = _figure(ax)
    width, height = figure.get_size_inches()
    figure.set_size_inches(0.88 * width, 0.88 * height)
    text = StringIO()
    with pyplot.rc_context({"svg.hashsalt": "credo"}):
        figure.savefig(text, format="svg", metadata={"Date": None}, dpi=160)
    pyplot.close(figure)
    return text.getvalue()


def _figure(ax: Axes) -> Figure:
    figure = ax.get_figure(root=True)
    if figure is None:
        raise ValueError("these axes belong to no figure")
    return figure
