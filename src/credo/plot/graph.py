"""The belief network of a model, in the paper's symbols."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Patch, Rectangle, Wedge
from matplotlib.path import Path

from credo.models.graph import Graph, Node
from credo.models.program import Model
from credo.plot import layout, style
from credo.plot.alignment import PADDING, Box, aligned

# In inches, the units of the drawing. A character of the font below is about 0.065 wide, a line 0.12 high.
RADIUS, FACTOR, ARROW = 0.19, 0.06, 0.4
FONT, CHARACTER, LINE = 7.5, 0.065, 0.12
# The height of a plate's name, and how far the shapes of a crowd reach out behind its first.
LABEL, CROWD = 0.14, 0.07
# Longer names are broken at the last dot or before a capital; up to three characters stand inside their node.
MAX_CHARACTERS, MAX_INSIDE = 12, 3
FILLED = "#bdbdbd"
JOINT = Box(0.02, 0.02, 0.0, 0.0)
Place = tuple[float, float]
Frame = tuple[float, float, float, float]


def graph(model: Model | Graph, *, ax: Axes | None = None) -> Axes:
    """The belief network in the symbols of the paper, section "Probabilistic graphical models".

    A filled circle is observed (the inputs too), an empty one latent, a half-filled one observed in some rows, a dashed
    one computed from its parents; a rectangle is a learned parameter, a small square a factor. A frame is a plate,
    with its size; an arrow is a dependence. More than eight sites that differ only in name are drawn as one.

    Arguments:
        model: bound to data, or what its `graph()` returns.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([4], out=1)).bind(([[0.0], [1.0]], [0.0, 1.0]))
    >>> credo.plot.save(graph(model), "graph.svg")  # doctest: +SKIP
    """
    found = model.graph() if isinstance(model, Model) else model
    if not isinstance(found, Graph) or not found.nodes:
        raise ValueError(f"graph draws a model, or what model.graph() returns, with at least one node, got {model!r}")
    found, crowds = layout.grouped(found)
    rows = layout.rows(found)
    boxes = {node.name: _box(found, node, node.name in crowds) for node in found.nodes}
    boxes |= dict.fromkeys(rows.joints, JOINT)
    labels = {plate: f"{plate}, {found.sizes[plate]}" if plate in found.sizes else plate for plate in rows.plates}
    widths = {plate: CHARACTER * len(label) + PADDING for plate, label in labels.items()}
    column, sides = aligned(rows, layout.ordered(rows), boxes, widths)
    height = _heights(rows, boxes)
    place = {name: (column[name], height[rows.row[name]]) for name in rows.row}
    outlines = {name: _outline(place[name], box) for name, box in boxes.items()}
    frames = _frames(rows, sides, outlines)
    left, bottom, right, top = _around([*outlines.values(), *frames.values()], 0.08)
    # Narrow graphs keep the standard width.
    ax = style.axes(ax, width=max(6.4, right - left), height=max(2.0, top - bottom))
    for plate, label in labels.items():
        _draw_plate(ax, label, frames[plate])
    kinds = {node.name: node for node in found.nodes}
    for (parent, child), path in rows.paths.items():
        _draw_edge(ax, [place[name] for name in path], kinds[parent], kinds[child])
    for node in found.nodes:
        _draw_node(ax, node, place[node.name], node.name in crowds)
        _draw_text(ax, node, place[node.name], _side(found, node), node.name in crowds)
    ax.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
    ax.set_axis_off()
    return ax


# -- where ---------------------------------------------------------------------------------------------------


def _text(node: Node) -> tuple[str, list[str]]:
    """The text inside a node, and the lines beside it: a longer name, and the distribution."""
    head, dot, tail = node.name.rpartition(".")
    name = [head, dot + tail] if len(node.name) > MAX_CHARACTERS and head else [node.name]
    law = f"~ {node.distribution}" if node.distribution else ""
    words = re.findall(r"[A-Z]?[^A-Z]+|[A-Z]", law)
    laws = ["".join(words[:-1]), words[-1]] if len(law) > MAX_CHARACTERS and len(words) > 2 else [law]
    fits = len(node.name) <= MAX_INSIDE and node.kind != "factor"
    return (node.name if fits else ""), [line for line in ([] if fits else name) + laws if line]


def _side(graph: Graph, node: Node) -> str:
    """The side of a node where its text is out of the arrows' way."""
    if not graph.parents(node.name):
        return "above"
    return "below" if all(parent != node.name for parent, _ in graph.edges) else "right"


def _radius(node: Node) -> float:
    return FACTOR if node.kind == "factor" else RADIUS


def _box(graph: Graph, node: Node, is_crowd: bool) -> Box:
    """A node with its text."""
    side, lines, radius = _side(graph, node), _text(node)[1], _radius(node)
    wide, high = CHARACTER * max(map(len, lines), default=0), (LINE * len(lines) + 0.06) * bool(lines)
    half = max(radius + CROWD * is_crowd, 0.0 if side == "right" else wide / 2)
    reach = half + 0.05 + wide if side == "right" and lines else half
    return Box(half, reach, radius + high * (side == "above"), radius + high * (side == "below"))


def _heights(rows: layout.Rows, boxes: Mapping[str, Box]) -> list[float]:
    """The height of each row: below the one before, with room for text, for the ends of frames, and for arrows."""
    ups, downs = (
        [max(getattr(boxes[name], side) for name in rows.row if rows.row[name] == level) for level in _levels(rows)]
        for side in ("up", "down")
    )
    heights = [0.0]
    for level in _levels(rows)[1:]:
        spans = {plate: rows.span(members) for plate, members in rows.plates.items()}
        ends = max((rows.depth(plate) for plate, span in spans.items() if span[-1] == level - 1), default=0)
        starts = max((rows.depth(plate) for plate, span in spans.items() if span[0] == level), default=0)
        frames = (PADDING + LABEL) * ends + PADDING * starts
        heights.append(heights[-1] - downs[level - 1] - ups[level] - ARROW - frames)
    return heights


def _levels(rows: layout.Rows) -> range:
    return range(max(rows.row.values()) + 1)


def _frames(
    rows: layout.Rows, sides: Mapping[str, tuple[float, float]], outlines: Mapping[str, Frame]
) -> dict[str, Frame]:
    """The frame of each plate: around its members and the frames inside, with its name at the bottom."""
    frames: dict[str, Frame] = {}
    for plate in sorted(rows.plates, key=rows.depth):
        within = [outlines[name] for name in rows.plates[plate]] + [frames[other] for other in rows.inside(plate)]
        _, bottom, _, top = _around(within, PADDING)
        frames[plate] = (sides[plate][0], bottom - LABEL, sides[plate][1], top)
    return frames


def _outline(place: Place, box: Box) -> Frame:
    return place[0] - box.left, place[1] - box.down, place[0] + box.right, place[1] + box.up


def _around(boxes: Sequence[Frame], margin: float) -> Frame:
    lefts, bottoms, rights, tops = zip(*boxes, strict=True)
    return min(lefts) - margin, min(bottoms) - margin, max(rights) + margin, max(tops) + margin


# -- what ----------------------------------------------------------------------------------------------------


def _draw_plate(ax: Axes, label: str, frame: Frame) -> None:
    left, bottom, right, top = frame
    corner = "round,pad=0,rounding_size=0.06"
    ax.add_patch(FancyBboxPatch((left, bottom), right - left, top - bottom, corner, fc="none", ec=style.FAINT, lw=1))
    ax.text(right - 0.06, bottom + 0.04, label, ha="right", va="bottom", fontsize=FONT, fontstyle="italic")


def _draw_edge(ax: Axes, points: Sequence[Place], parent: Node, child: Node) -> None:
    """A line through its joints, from rim to rim; towards a factor it has no head, since nothing is drawn from it."""
    start, *joints, end = np.array(points)
    start, end = _rim(parent, start, (*joints, end)[0]), _rim(child, end, (start, *joints)[-1])
    # A curve that bends towards each joint and is straight halfway between two of them.
    stops = [*((one + other) / 2 for one, other in pairwise(joints)), end]
    bends = [point for pair in zip(joints, stops, strict=True) for point in pair] if joints else [end]
    codes = [Path.MOVETO, *[Path.CURVE3 if joints else Path.LINETO] * len(bends)]
    path = Path(np.array([start, *bends]), codes)
    head = "-" if child.kind == "factor" else "-|>"
    ax.add_patch(FancyArrowPatch(path=path, arrowstyle=head, mutation_scale=9, lw=0.9, color=style.INK))


def _rim(node: Node, centre: np.ndarray, towards: np.ndarray) -> np.ndarray:
    """Where a line leaves a node."""
    step = towards - centre
    is_square = node.kind in ("parameter", "factor")
    return centre + _radius(node) * step / (np.abs(step).max() if is_square else np.hypot(*step))


def _draw_node(ax: Axes, node: Node, place: Place, is_crowd: bool) -> None:
    (x, y), radius = place, _radius(node)
    fill = {"observed": FILLED, "input": FILLED, "factor": style.INK}.get(node.kind, "white")
    look: dict[str, Any] = {"fc": fill, "ec": style.INK, "lw": 1.1, "ls": "--" if node.kind == "deterministic" else "-"}
    is_square = node.kind in ("parameter", "factor")
    # Shapes behind the first stand for several sites.
    for shift in (-CROWD, CROWD, 0.0) if is_crowd else (0.0,):
        shape: Patch = Circle((x + shift, y), radius, zorder=3, **look)
        if is_square:
            shape = Rectangle((x + shift - radius, y - radius), 2 * radius, 2 * radius, zorder=3, **look)
        ax.add_patch(shape)
    if node.kind == "partly":
        ax.add_patch(Wedge(place, radius, -90, 90, zorder=3, fc=FILLED, ec="none"))
        ax.add_patch(Circle(place, radius, zorder=3, fc="none", ec=style.INK, lw=1.1))


def _draw_text(ax: Axes, node: Node, place: Place, side: str, is_crowd: bool) -> None:
    (x, y), (inside, lines) = place, _text(node)
    gap, said = _radius(node) + 0.05, "\n".join(lines)
    ax.text(x, y, inside, ha="center", va="center", fontsize=9, zorder=4)
    if side == "right":
        ax.text(x + gap + CROWD * is_crowd, y, said, va="center", fontsize=FONT)
    else:
        up = side == "above"
        at, anchor = (y + gap, "bottom") if up else (y - gap, "top")
        ax.text(x, at, said, ha="center", va=anchor, fontsize=FONT, multialignment="center")
