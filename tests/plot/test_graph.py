"""The drawn belief network: who is above whom, what is inside which frame, and what stands for many."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

from credo import plot
from credo.models.graph import Graph, Node
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


def test_observed_is_filled_latent_is_empty_and_an_input_is_a_dot():
    graph = Graph((Node("x", "input"), Node("w", "latent"), Node("y", "observed")), (("w", "y"), ("x", "y")), {})
    dot, latent, observed = patches(plot.graph(graph), Circle)
    assert np.mean(latent.get_facecolor()[:3]) == 1
    assert 0.5 < np.mean(observed.get_facecolor()[:3]) < 0.9
    assert dot.radius < latent.radius


def test_parents_are_above_children_and_near_them():
    row = layout.rows(network())
    assert (row["tau"], row["hidden.0.kernel"], row["y"]) == (0, 1, 2)
    assert row["noise"] == 1  # not 0: as near to y as it can be
    assert row["x"] == row["y"]


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


@pytest.mark.parametrize(
    "graph",
    [
        network(),
        plated("bc", rows=["ab", "cd"]),
        plated("bd", "ae", rows=["abc", "def"]),
        plated("bcd", "cd", rows=["a", "be", "cdf"]),
        plated("ac", "bc", rows=["ab", "c"]),  # crossed, as users and items
    ],
)
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
