"""The belief network of a model, in the paper's symbols."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
# How steep arrows are, as far as a row of that height allows.
SLOPE, MAX_DROP = 0.5, 1.6
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
    plan = _planned(found, crowds)
    left, bottom, right, top = plan.limits
    # Narrow graphs keep the standard width.
    ax = style.axes(ax, width=max(6.4, right - left), height=max(2.0, top - bottom))
    lines = _along([(plan.place[above], plan.place[below]) for above, below in plan.rows.steps])
    for plate, label in plan.labels.items():
        _draw_plate(ax, label, plan.frames[plate], lines)
    nodes = {node.name: node for node in found.nodes}
    for (parent, child), path in plan.rows.paths.items():
        _draw_edge(ax, [plan.place[name] for name in path], nodes[parent], nodes[child])
    for name, node in nodes.items():
        _draw_node(ax, node, plan.place[name], name in crowds)
        _draw_text(ax, node, plan.place[name], plan.side[name], name in crowds)
    ax.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
    ax.set_axis_off()
    return ax


# -- where ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    """Where everything goes: nodes and joints, the text of each node, and the frame and label of each plate."""

    rows: layout.Rows
    place: dict[str, Place]
    side: dict[str, str]
    frames: dict[str, Frame]
    labels: dict[str, str]
    limits: Frame


def _planned(graph: Graph, crowds: set[str]) -> _Plan:
    rows = layout.rows(graph)
    order = layout.ordered(rows)
    side = {node.name: _side(graph, node, order) for node in graph.nodes}
    boxes = {node.name: _box(node, side[node.name], node.name in crowds) for node in graph.nodes}
    boxes |= dict.fromkeys(rows.joints, JOINT)
    labels = {plate: f"{plate}, {graph.sizes[plate]}" if plate in graph.sizes else plate for plate in rows.plates}
    column, sides = aligned(rows, order, boxes, {plate: _width(label) for plate, label in labels.items()})
    height = _heights(rows, boxes, column)
    place = {name: (column[name], height[level]) for name, level in rows.row.items()}
    outlines = {name: _outline(place[name], box) for name, box in boxes.items()}
    frames = _frames(rows, sides, outlines)
    limits = _around([*outlines.values(), *frames.values()], 0.08)
    return _Plan(rows, place, side, frames, labels, limits)


def _width(label: str) -> float:
    """Of the label of a plate, with some room."""
    return CHARACTER * len(label) + PADDING


def _text(node: Node) -> tuple[str, list[str]]:
    """The text inside a node, and the lines beside it: a longer name, and the distribution."""
    head, dot, tail = node.name.rpartition(".")
    name = [head, dot + tail] if len(node.name) > MAX_CHARACTERS and head else [node.name]
    law = f"~ {node.distribution}" if node.distribution else ""
    words = re.findall(r"[A-Z]?[^A-Z]+|[A-Z]", law)
    laws = ["".join(words[:-1]), words[-1]] if len(law) > MAX_CHARACTERS and len(words) > 2 else [law]
    fits = len(node.name) <= MAX_INSIDE and node.kind != "factor"
    return (node.name if fits else ""), [line for line in ([] if fits else name) + laws if line]


def _side(graph: Graph, node: Node, order: Mapping[str, float]) -> str:
    """The side of a node where its text is out of the arrows' way."""
    parents = graph.parents(node.name)
    children = [child for parent, child in graph.edges if parent == node.name]
    if not parents or not children:
        return "below" if parents else "above"
    return "left" if np.mean([order[name] for name in (*parents, *children)]) > order[node.name] else "right"


def _radius(node: Node) -> float:
    return FACTOR if node.kind == "factor" else RADIUS


def _box(node: Node, side: str, is_crowd: bool) -> Box:
    """A node with its text."""
    lines, radius = _text(node)[1], _radius(node)
    wide, high = CHARACTER * max(map(len, lines), default=0), (LINE * len(lines) + 0.06) * bool(lines)
    half = max(radius + CROWD * is_crowd, wide / 2 if side in ("above", "below") else 0.0)
    reach = {side: half + (0.05 + wide) * bool(lines)}
    up, down = radius + high * (side == "above"), radius + high * (side == "below")
    return Box(reach.get("left", half), reach.get("right", half), up, down)


def _heights(rows: layout.Rows, boxes: Mapping[str, Box], column: Mapping[str, float]) -> list[float]:
    """The height of each row: below the one before, with room for text, for the ends of frames, and for arrows.

    Arrows that go far sideways get more room, so that they do not lie on the text beside their row.
    """
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
        widest = max((abs(column[a] - column[b]) for a, b in rows.steps if rows.row[b] == level), default=0.0)
        drop = max(downs[level - 1] + ups[level] + ARROW + frames, min(SLOPE * widest, MAX_DROP))
        heights.append(heights[-1] - drop)
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


def _draw_plate(ax: Axes, label: str, frame: Frame, lines: np.ndarray) -> None:
    """A frame, and its label in the corner at the bottom that fewer lines cross."""
    (left, bottom, right, top), width = frame, _width(label)
    corner = "round,pad=0,rounding_size=0.06"
    ax.add_patch(FancyBboxPatch((left, bottom), right - left, top - bottom, corner, fc="none", ec=style.FAINT, lw=1))
    x = lines[(lines[:, 1] > bottom) & (lines[:, 1] < bottom + LABEL + 0.04), 0]
    is_left = np.sum((x > left) & (x < left + width)) < np.sum((x < right) & (x > right - width))
    side: dict[str, Any] = {"x": left + 0.06, "ha": "left"} if is_left else {"x": right - 0.06, "ha": "right"}
    ax.text(y=bottom + 0.04, s=label, va="bottom", fontsize=FONT, fontstyle="italic", **side)


def _along(lines: Sequence[tuple[Place, Place]]) -> np.ndarray:
    """Places along lines, closer to each other than a letter is high."""
    return np.array([np.linspace(start, end, 100) for start, end in lines]).reshape(-1, 2)


def _draw_edge(ax: Axes, points: Sequence[Place], parent: Node, child: Node) -> None:
    """A line through its joints, from rim to rim; towards a factor it has no head, since nothing is drawn from it."""
    start, *joints, end = np.array(points)
    start, end = _rim(parent, start, (*joints, end)[0]), _rim(child, end, (start, *joints)[-1])
    path = _curve([start, *joints, end])
    head = "-" if child.kind == "factor" else "-|>"
    ax.add_patch(FancyArrowPatch(path=path, arrowstyle=head, mutation_scale=9, lw=0.9, color=style.INK))


def _curve(stops: Sequence[np.ndarray]) -> Path:
    """From stop to stop by cubic curves, upright in between; two stops are joined by a straight line."""
    points = [stops[0]]
    for number, (above, below) in enumerate(pairwise(stops), start=1):
        straight = (below - above) / 3
        upright = straight * [0.0, 1.0]
        points += [above + (straight if number == 1 else upright)]
        points += [below - (straight if number == len(stops) - 1 else upright), below]
    return Path(np.array(points), [Path.MOVETO, *[Path.CURVE4] * (len(points) - 1)])


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
    gap = _radius(node) + 0.05
    across = gap + CROWD * is_crowd
    x_at, y_at, ha, va = {
        "above": (x, y + gap, "center", "bottom"),
        "below": (x, y - gap, "center", "top"),
        "left": (x - across, y, "right", "center"),
        "right": (x + across, y, "left", "center"),
    }[side]
    ax.text(x, y, inside, ha="center", va="center", fontsize=9, zorder=4)
    ax.text(x_at, y_at, "\n".join(lines), ha=ha, va=va, multialignment=ha, fontsize=FONT)
