"""Layout of a belief network: rows by depth, columns such that plates hold their members and no others."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from credo.models.graph import Graph, Node

# More sites than this that differ only in name become one node.
MAX_SIBLINGS = 8
# Room between two plates side by side, in columns.
MARGIN = 0.35


def grouped(graph: Graph) -> tuple[Graph, set[str]]:
    """The graph with inputs in the data's plate and similar sites as one node, and the names of such nodes."""
    inputs = tuple(node.name for node in graph.nodes if node.kind == "input")
    # NumPyro renames a plate when it is entered again.
    plates: dict[str, tuple[str, ...]] = {}
    for plate, members in graph.plates.items():
        plate = plate.removesuffix("__CLONE")
        plates[plate] = (*plates.get(plate, ()), *members)
    if "data" in plates:
        plates["data"] = (*inputs, *(name for name in plates["data"] if name not in inputs))
    alike: dict[object, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        children = frozenset(child for parent, child in graph.edges if parent == node.name)
        around = frozenset(plate for plate, members in plates.items() if node.name in members)
        same = (node.distribution, frozenset(graph.parents(node.name)), children, around)
        alike[same if node.kind == "latent" else node.name].append(node)
    crowds = [nodes for nodes in alike.values() if len(nodes) > MAX_SIBLINGS]
    names = {node.name: f"θ: {len(nodes)} sites" for nodes in crowds for node in nodes}

    def once(items: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
        return list(dict.fromkeys(tuple(names.get(name, name) for name in item) for item in items))

    merged = {names.get(node.name, node.name): node for node in graph.nodes}
    nodes = tuple(replace(node, name=name) for name, node in merged.items())
    edges = tuple((parent, child) for parent, child in once(graph.edges))
    inside = {plate: tuple(name for (name,) in once((m,) for m in members)) for plate, members in plates.items()}
    return Graph(nodes, edges, inside), set(names.values())


def rows(graph: Graph) -> dict[str, int]:
    """Each node below its parents and as near to its children as that allows; inputs beside their first child."""
    inputs = {node.name for node in graph.nodes if node.kind == "input"}
    depth = {node.name: 0 for node in graph.nodes if node.name not in inputs}
    edges = [(parent, child) for parent, child in graph.edges if parent not in inputs]
    for _ in range(len(depth) + 1):
        lower = [(parent, child) for parent, child in edges if depth[child] <= depth[parent]]
        if not lower:
            break
        for parent, child in lower:
            depth[child] = max(depth[child], depth[parent] + 1)
    else:
        raise ValueError("the graph has a cycle: no order of its nodes puts parents before children")
    for name in sorted(depth, key=depth.__getitem__, reverse=True):
        depth[name] = min((depth[child] for parent, child in edges if parent == name), default=depth[name] + 1) - 1
    for name in inputs:
        depth[name] = min((depth[child] for parent, child in graph.edges if parent == name), default=0)
    return depth


def columns(names: Iterable[str], plates: list[frozenset[str]], row: dict[str, int]) -> dict[str, float]:
    """Plates that share a row stand side by side, with other nodes to their right, and each row is centred."""
    names = list(names)
    outer = [plate for plate in dict.fromkeys(plates) if not any(plate < other for other in plates)]
    # A node in two overlapping plates belongs to neither box; it is centred, and so lies between them.
    shared = {name for name in names if sum(name in plate for plate in outer) > 1}
    free: dict[int, float] = defaultdict(float)
    linked = {level: level for level in row.values()}
    place: dict[str, float] = {}
    for plate in outer:
        members = [name for name in names if name in plate and name not in shared]
        if not members:
            continue
        inner = columns(members, [other for other in plates if other < plate], row)
        span = range(min(row[name] for name in members), max(row[name] for name in members) + 1)
        left = max(free[level] for level in span)
        left += (1 if shared else MARGIN) if left else 0.0
        place |= {name: left + x for name, x in inner.items()}
        for level in span:
            free[level] = left + max(inner.values()) + 1 + MARGIN
            linked[level] = linked[span[0]]
    for name in names:
        if name not in place:
            place[name] = free[row[name]]
            free[row[name]] += 1
    width: dict[int, float] = defaultdict(float)
    for name, x in place.items():
        width[linked[row[name]]] = max(width[linked[row[name]]], x)
    return {name: x + (max(width.values()) - width[linked[row[name]]]) / 2 for name, x in place.items()}
