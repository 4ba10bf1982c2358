"""The drawn belief network: its symbols, who is above whom, what is inside which frame, and what stands for many."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle, Wedge

from credo import plot
from credo.models import regression
from credo.models.graph import Graph, Node
from credo.networks import MLP
from credo.plot import layout
from tests.plot.cases import network


@pytest.fixture(autouse=True)
def _closed():
    yield
    pyplot.close("all")


def patches(ax, kind):
    return [patch for patch in ax.patches if isinstance(patch, kind)]


def test_every_node_edge_and_plate_is_drawn():
    ax = plot.graph(network())
    assert len(patches(ax, Circle)) == 7
    assert len(patches(ax, FancyArrowPatch)) == 8
    assert len(patches(ax, FancyBboxPatch)) == 1
    said = " ".join(text.get_text() for text in ax.texts)
    assert all(word in said for word in ("tau", "noise", "hidden.0\n.kernel", "y", "x", "data", "~ HalfCauchy"))


def drawn(kind, shape):
    """The shapes of one class in the drawing of a single node."""
    return patches(plot.graph(Graph((Node("v", kind),), (), {})), shape)


def grey(patch):
    return np.mean(patch.get_facecolor()[:3])


def test_every_kind_has_the_symbol_of_the_paper():
    assert [grey(*drawn(kind, Circle)) for kind in ("latent", "deterministic")] == [1, 1]
    assert [0.5 < grey(*drawn(kind, Circle)) < 0.9 for kind in ("observed", "input")] == [True, True]
    assert [drawn(kind, Circle)[0].get_linestyle() for kind in ("latent", "deterministic")] == ["-", "--"]
    (box,), (factor,) = drawn("parameter", Rectangle), drawn("factor", Rectangle)
    assert grey(box) == 1
    assert grey(factor) < 0.2
    assert factor.get_width() < box.get_width() / 2
    assert not drawn("parameter", Circle)


def test_sometimes_observed_is_filled_on_the_right_half():
    (wedge,) = drawn("partly", Wedge)
    assert (wedge.theta1, wedge.theta2) == (-90, 90)
    assert 0.5 < grey(wedge) < 0.9


def test_a_line_to_a_factor_has_no_head():
    nodes = Node("w", "latent"), Node("y", "observed"), Node("c", "factor")
    graph = Graph(nodes, (("w", "y"), ("w", "c")), {})
    heads = [type(line.get_arrowstyle()).__name__ for line in patches(plot.graph(graph), FancyArrowPatch)]
    assert heads == ["CurveFilledB", "Curve"]


def test_a_model_is_drawn_as_its_graph_and_needs_data_for_it():
    model = regression(MLP(features=[2], out=1))
    with pytest.raises(ValueError, match=r"model\.bind"):
        plot.graph(model)
    bound = model.bind((np.ones((3, 1)), np.ones(3)))
    said = [[text.get_text() for text in plot.graph(one).texts] for one in (bound, bound.graph())]
    assert said[0] == said[1]
    assert "data, N" in said[0]


def test_a_saved_svg_holds_the_names_as_text_and_is_the_same_every_time(tmp_path):
    for file in ("one.svg", "two.svg"):
        plot.save(plot.graph(network()), tmp_path / file)
    one, two = ((tmp_path / file).read_text(encoding="utf-8") for file in ("one.svg", "two.svg"))
    assert all(f">{name}</text>" in one for name in ("x", "y", "tau", "noise", "data, N", "~ HalfCauchy"))
    assert one == two


def test_parents_are_above_children_and_near_them():
    row = layout.rows(network()).row
    assert (row["tau"], row["hidden.0.kernel"], row["y"]) == (0, 1, 2)
    assert row["noise"] == row["x"] == 1  # not 0: as near to y as they can be


def test_an_edge_that_skips_rows_goes_around_what_stands_there():
    nodes = tuple(Node(name, "latent") for name in "abc")
    graph = Graph(nodes, (("a", "b"), ("b", "c"), ("a", "c")), {"p": ("a", "b", "c")})
    rows = layout.rows(graph)
    (joint,) = rows.joints
    assert rows.row[joint] == rows.row["b"] == 1
    assert joint in rows.plates["p"]
    ax = plot.graph(graph)
    middle = patches(ax, Circle)[1]
    bent = max(patches(ax, FancyArrowPatch), key=lambda line: len(line.get_path()))
    away = np.hypot(*(bent.get_path().interpolated(20).vertices - bent.axes.transData.transform(middle.center)).T)
    inch = np.diff(ax.transData.transform([(0, 0), (1, 0)])[:, 0])
    assert away.min() > middle.radius * inch


def test_lines_cross_only_where_they_must():
    child = {"a": "f", "b": "e", "c": "d"}
    nodes = tuple(Node(name, "latent") for name in "abcdef")
    place = layout.ordered(layout.rows(Graph(nodes, tuple(child.items()), {})))
    above, below = (sorted(names, key=place.__getitem__) for names in ("abc", "def"))
    assert [child[name] for name in above] == below


def test_a_cycle_is_refused():
    graph = Graph((Node("a", "latent"), Node("b", "latent")), (("a", "b"), ("b", "a")), {})
    with pytest.raises(ValueError, match="cycle"):
        plot.graph(graph)


def test_many_alike_sites_become_one():
    merged, crowds = layout.grouped(network(12))
    assert crowds == {"θ: 12 sites"}
    assert set(merged.edges) == {("tau", "θ: 12 sites"), ("θ: 12 sites", "y"), ("noise", "y"), ("x", "y")}
    assert layout.grouped(network(8))[1] == set()
    assert len(patches(plot.graph(network(12)), Circle)) == 7  # two more behind the crowd


def plated(*plates, rows):
    """Nodes a, b, c… in rows, with edges from each row to the next."""
    nodes = tuple(Node(name, "latent", "Normal") for row in rows for name in row)
    edges = tuple((a, b) for above, below in pairwise(rows) for a in above for b in below)
    return Graph(nodes, edges, {f"plate {number}": tuple(members) for number, members in enumerate(plates)})


GRAPHS = [
    network(),
    plated("bc", rows=["ab", "cd"]),
    plated("bd", "ae", rows=["abc", "def"]),
    plated("bcd", "cd", rows=["a", "be", "cdf"]),
    plated("ab", "ab", rows=["a", "b"]),  # one in the other, with the same members
    plated("ac", "bc", rows=["ab", "c"]),  # crossed, as users and items
]


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_frame_holds_its_members_and_no_others(graph):
    ax = plot.graph(graph)
    graph, _ = layout.grouped(graph)
    circles = dict(zip((node.name for node in graph.nodes), patches(ax, Circle), strict=True))
    frames = patches(ax, FancyBboxPatch)
    for members, frame in zip(graph.plates.values(), frames, strict=True):
        box = frame.get_bbox()
        inside = {name for name, circle in circles.items() if box.contains(*circle.center)}
        touched = {
            name
            for name, circle in circles.items()
            if box.overlaps(circle.get_path().get_extents(circle.get_transform() - ax.transData))
        }
        assert inside == touched == set(members)


@pytest.mark.parametrize("graph", GRAPHS)
def test_no_text_lies_on_another_or_on_a_node(graph):
    ax = plot.graph(graph)
    ax.figure.draw_without_rendering()
    said = [text for text in ax.texts if text.get_text()]
    boxes = [one.get_window_extent() for one in (*said, *patches(ax, Circle))]
    inside = [text for text in said if len(text.get_text()) <= 3]
    overlaps = sum(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert overlaps == len(inside)  # a short name stands in its circle


@pytest.mark.parametrize("parent", "ab")
def test_the_label_of_a_plate_stands_in_the_corner_that_no_line_crosses(parent):
    nodes = tuple(Node(name, "latent") for name in "abc")
    ax = plot.graph(Graph(nodes, ((parent, "c"),), {"plate": ("a", "b")}))
    place = dict(zip("abc", (circle.center[0] for circle in patches(ax, Circle)), strict=True))
    (label,) = [text for text in ax.texts if text.get_text() == "plate"]
    assert place[parent] == place["c"]  # the line leaves the frame straight below its parent
    assert label.get_ha() == ("left" if place[parent] == max(place.values()) else "right")


def test_frames_one_in_the_other_do_not_touch():
    outer, inner = sorted(
        (frame.get_bbox() for frame in patches(plot.graph(plated("ab", "ab", rows=["a", "b"])), FancyBboxPatch)),
        key=lambda box: -box.width,
    )
    assert outer.x0 < inner.x0 < inner.x1 < outer.x1
    assert outer.y0 < inner.y0 < inner.y1 < outer.y1


def test_plates_that_no_frames_can_hold_are_still_drawn():
    ring = plated("ab", "bc", "ac", rows=["abc"])
    assert len(patches(plot.graph(ring), FancyBboxPatch)) == 3
