"""Layout of a belief network: rows by depth, and an order within them with few crossings.

An edge that skips rows is led through a joint in each of them, which takes its place in the row like a node. A plate
keeps an interval of its rows to its members alone.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np

from credo.models.graph import Graph, Node

# More sites than this that differ only in name become one node.
MAX_SIBLINGS = 8


@dataclass(frozen=True)
class Rows:
    """A graph in rows: the row of each node and joint, the edges from row to row, and the plates with their joints."""

    row: dict[str, int]
    paths: dict[tuple[str, str], list[str]]
    plates: dict[str, frozenset[str]]

    @cached_property
    def joints(self) -> set[str]:
        """Where edges that skip rows pass through."""
        return {name for path in self.paths.values() for name in path[1:-1]}

    @cached_property
    def steps(self) -> list[tuple[str, str]]:
        """The edges, each from one row to the next."""
        return list(dict.fromkeys(step for path in self.paths.values() for step in pairwise(path)))

    def span(self, members: Iterable[str]) -> range:
        """The rows that a plate reaches over."""
        rows = [self.row[name] for name in members]
        return range(min(rows), max(rows) + 1)

    def inside(self, plate: str) -> list[str]:
        """The plates inside a plate; of two with the same members, the first is inside."""
        numbers = {name: number for number, name in enumerate(self.plates)}
        members = self.plates[plate]
        return [
            other
            for other, theirs in self.plates.items()
            if theirs < members or (theirs == members and numbers[other] < numbers[plate])
        ]

    def depth(self, plate: str) -> int:
        """How many frames lie in each other, with that of the plate around them."""
        return 1 + max(map(self.depth, self.inside(plate)), default=0)


def grouped(graph: Graph) -> tuple[Graph, set[str]]:
    """The graph with similar sites as one node, and the names of such nodes."""
    alike: dict[object, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        children = frozenset(child for parent, child in graph.edges if parent == node.name)
        around = frozenset(plate for plate, members in graph.plates.items() if node.name in members)
        same = (node.kind, node.distribution, frozenset(graph.parents(node.name)), children, around)
        alike[same if node.kind in ("latent", "parameter") else node.name].append(node)
    crowds = [nodes for nodes in alike.values() if len(nodes) > MAX_SIBLINGS]
    symbol = {"latent": "θ", "parameter": "ξ"}
    names = {node.name: f"{symbol[node.kind]}: {len(nodes)} sites" for nodes in crowds for node in nodes}

    def called(name: str) -> str:
        return names.get(name, name)

    merged = {called(node.name): node for node in graph.nodes}
    nodes = tuple(replace(node, name=name) for name, node in merged.items())
    edges = dict.fromkeys((called(parent), called(child)) for parent, child in graph.edges)
    inside = {plate: tuple(dict.fromkeys(map(called, members))) for plate, members in graph.plates.items()}
    return Graph(nodes, tuple(edges), inside, graph.sizes), set(names.values())


def rows(graph: Graph) -> Rows:
    """Each node below its parents and as near to its children as that allows."""
    depth = {node.name: 0 for node in graph.nodes}
    for _ in range(len(depth) + 1):
        lower = [(parent, child) for parent, child in graph.edges if depth[child] <= depth[parent]]
        if not lower:
            break
        for parent, child in lower:
            depth[child] = max(depth[child], depth[parent] + 1)
    else:
        raise ValueError("the graph has a cycle: no order of its nodes puts parents before children")
    for name in sorted(depth, key=depth.__getitem__, reverse=True):
        nearest = min((depth[child] for parent, child in graph.edges if parent == name), default=depth[name] + 1)
        depth[name] = nearest - 1
    plates = {plate: set(members) for plate, members in graph.plates.items() if members}
    paths = {}
    for parent, child in graph.edges:
        joints = {f"{parent} → {child}, row {level}": level for level in range(depth[parent] + 1, depth[child])}
        paths[parent, child] = [parent, *joints, child]
        depth |= joints
        for members in plates.values():
            if {parent, child} <= members:
                members |= set(joints)
    return Rows(depth, paths, {plate: frozenset(members) for plate, members in plates.items()})


def ordered(rows: Rows) -> dict[str, float]:
    """Rough columns of nodes and joints, in an order with few crossings and short edges.

    Two of them change places as long as that helps.
    """
    plates = list(dict.fromkeys(rows.plates.values()))
    # The paper's drawings have the plate on the left.
    names = sorted(rows.row, key=lambda name: not any(name in plate for plate in plates))
    place = _packed(rows, names, plates)
    cost, is_better = _cost(rows, place), True
    while is_better:
        is_better = False
        for one, other in combinations(range(len(names)), 2):
            swapped = list(names)
            swapped[one], swapped[other] = names[other], names[one]
            tried = _packed(rows, swapped, plates)
            if _cost(rows, tried) < cost:
                names, place, cost, is_better = swapped, tried, _cost(rows, tried), True
    return place


def _cost(rows: Rows, place: Mapping[str, float]) -> tuple[int, float]:
    """How many edges cross, and how far they go sideways: squared, since few long ones are worse than many short."""
    if not rows.steps:
        return 0, 0.0
    above, below, level = np.array([(place[a], place[b], rows.row[a]) for a, b in rows.steps]).T
    turned = np.subtract.outer(above, above) * np.subtract.outer(below, below) < 0
    crossings = np.sum(turned & np.equal.outer(level, level)) // 2
    return int(crossings), round(float(np.sum((above - below) ** 2)), 6)


def _packed(rows: Rows, names: Sequence[str], plates: Sequence[frozenset[str]]) -> dict[str, float]:
    """Places one apart in the order of the names; a plate stands where its first member does, and rows are centred."""
    outer = [plate for plate in plates if not any(plate < other for other in plates)]
    # A node in two overlapping plates belongs to neither box; it is centred, and so lies between them.
    shared = {name for name in names if sum(name in plate for plate in outer) > 1}
    free: dict[int, float] = defaultdict(float)
    linked = {level: level for level in rows.row.values()}
    place: dict[str, float] = {}
    for members, is_plate in _units(names, outer, shared):
        within = [other for other in plates if other < set(members)]
        inner = _packed(rows, members, within) if is_plate else dict.fromkeys(members, 0.0)
        span = rows.span(members)
        left = max(free[level] for level in span)
        place |= {name: left + x for name, x in inner.items()}
        for level in span:
            free[level] = left + max(inner.values()) + 1
            linked[level] = linked[span[0]]
    width: dict[int, float] = defaultdict(float)
    for name, x in place.items():
        width[linked[rows.row[name]]] = max(width[linked[rows.row[name]]], x)
    middle = max(width.values(), default=0.0) / 2
    return {name: x + middle - width[linked[rows.row[name]]] / 2 for name, x in place.items()}


def _units(names: Sequence[str], outer: Sequence[frozenset[str]], shared: set[str]) -> Iterator[tuple[list[str], bool]]:
    """What stands side by side: the members of a plate, or a node alone."""
    done: set[str] = set()
    for name in names:
        if name in done:
            continue
        plate = next((plate for plate in outer if name in plate and name not in shared), frozenset({name}))
        members = [other for other in names if other in plate and (other not in shared or other == name)]
        done |= set(members)
        yield members, plate in outer
