"""The belief network of a model, in the paper's symbols."""

import re
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Patch, Rectangle

from credo.models.graph import Graph, Node
from credo.plot import layout, style

# In inches, the units of the drawing. A character of the font below is about 0.065 wide, a line 0.12 high.
RADIUS, COLUMN, ROW = 0.19, 1.0, 1.25
FONT, CHARACTER, LINE = 7.5, 0.065, 0.12
# Longer names are broken at the last dot or before a capital.
MAX_CHARACTERS = 12
ARROW: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 9, "lw": 0.9, "color": style.INK}
Place = tuple[float, float]
Box = tuple[float, float, float, float]


def graph(graph: Graph, *, ax: Axes | None = None) -> Axes:
    """Filled circles are observed, empty ones latent, dots are inputs, squares are learned parameters.

    A frame is a plate, an arrow a dependence. More than eight sites that differ only in name are drawn as one.

    Arguments:
        graph: from model.graph().
    """
    if not isinstance(graph, Graph) or not graph.nodes:
        raise ValueError(f"graph draws what model.graph() returns, with at least one node, got {graph!r}")
    graph, crowds = layout.grouped(graph)
    row = layout.rows(graph)
    plates = [frozenset(members) for members in graph.plates.values()]
    column = layout.columns((node.name for node in graph.nodes), plates, row)
    place = {name: (COLUMN * column[name], -ROW * row[name]) for name in row}
    boxes = {node.name: _box(graph, node, place[node.name]) for node in graph.nodes}
    frames = {name: _frame(graph, members, boxes) for name, members in graph.plates.items() if members}
    left, bottom, right, top = _around([*boxes.values(), *frames.values()], 0.08)
    # Narrow graphs keep the standard width.
    ax = style.axes(ax, width=max(6.4, right - left), height=max(2.0, top - bottom))
    for name, frame in frames.items():
        _draw_plate(ax, name, frame)
    drawn = {node.name: _draw_node(ax, graph, node, place[node.name], node.name in crowds) for node in graph.nodes}
    for parent, child in graph.edges:
        # An edge that skips a row bends around what stands there.
        bend = f"arc3,rad={0.25 if row[child] - row[parent] > 1 else 0.0}"
        shape, other = drawn[parent], drawn[child]
        ax.add_patch(
            FancyArrowPatch(place[parent], place[child], connectionstyle=bend, patchA=shape, patchB=other, **ARROW)
        )
    ax.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
    ax.set_axis_off()
    return ax


def _text(node: Node) -> tuple[str, list[str]]:
    """The text inside a node, and the lines beside it: a longer name, and the distribution."""
    head, dot, tail = node.name.rpartition(".")
    name = [head, dot + tail] if len(node.name) > MAX_CHARACTERS and head else [node.name]
    law = f"~ {node.distribution}" if node.distribution else ""
    words = re.findall(r"[A-Z]?[^A-Z]+|[A-Z]", law)
    laws = ["".join(words[:-1]), words[-1]] if len(law) > MAX_CHARACTERS and len(words) > 2 else [law]
    fits = len(node.name) <= 3 and node.kind != "input"
    return (node.name if fits else ""), [line for line in ([] if fits else name) + laws if line]


def _side(graph: Graph, node: Node) -> str:
    """The side of a node where its text is out of the arrows' way."""
    if not graph.parents(node.name) and node.kind != "input":
        return "above"
    return "below" if node.kind == "input" or all(parent != node.name for parent, _ in graph.edges) else "right"


def _box(graph: Graph, node: Node, place: Place) -> Box:
    """The box of a node with its text."""
    (x, y), side, lines = place, _side(graph, node), _text(node)[1]
    wide, high = CHARACTER * max(map(len, lines), default=0), LINE * len(lines) + 0.08
    half = max(RADIUS + 0.06, 0.0 if side == "right" else wide / 2)
    reach = RADIUS + 0.05 + wide if side == "right" else half
    return x - half, y - RADIUS - high * (side == "below"), x + reach, y + RADIUS + high * (side == "above")


def _frame(graph: Graph, members: tuple[str, ...], boxes: dict[str, Box]) -> Box:
    """The box around the members, wide enough for the frames inside, with its name at the bottom."""
    inside = sum(set(other) < set(members) for other in graph.plates.values())
    left, bottom, right, top = _around([boxes[name] for name in members], 0.08 + 0.08 * inside)
    return left, bottom - 0.14 * (1 + inside), right, top


def _around(boxes: list[Box], margin: float) -> Box:
    lefts, bottoms, rights, tops = zip(*boxes, strict=True)
    return min(lefts) - margin, min(bottoms) - margin, max(rights) + margin, max(tops) + margin


def _draw_plate(ax: Axes, name: str, frame: Box) -> None:
    left, bottom, right, top = frame
    corner = "round,pad=0,rounding_size=0.1"
    ax.add_patch(FancyBboxPatch((left, bottom), right - left, top - bottom, corner, fc="none", ec=style.FAINT, lw=1))
    ax.text(right - 0.07, bottom + 0.04, name, ha="right", va="bottom", fontsize=8, fontstyle="italic")


def _draw_node(ax: Axes, graph: Graph, node: Node, place: Place, is_crowd: bool) -> Patch:
    (x, y), side = place, _side(graph, node)
    radius = RADIUS / 3 if node.kind == "input" else RADIUS
    fill = {"observed": "#bdbdbd", "input": style.INK}.get(node.kind, "white")
    look: dict[str, Any] = {"fc": fill, "ec": style.INK, "lw": 1.1}
    if is_crowd:  # circles behind the first stand for several sites
        for shift in (-0.07, 0.07):
            ax.add_patch(Circle((x + shift, y), radius, zorder=2, **look))
    shape: Patch = Circle(place, radius, zorder=3, **look)
    if node.kind == "parameter":
        shape = Rectangle((x - radius, y - radius), 2 * radius, 2 * radius, zorder=3, **look)
    ax.add_patch(shape)
    inside, lines = _text(node)
    ax.text(x, y, inside, ha="center", va="center", fontsize=9, zorder=4)
    gap, said = radius + 0.05, "\n".join(lines)
    if side == "right":
        ax.text(x + gap, y, said, va="center", fontsize=FONT)
    else:
        up = side == "above"
        ax.text(x, y + gap if up else y - gap, said, ha="center", va="bottom" if up else "top", fontsize=FONT)
    return shape
