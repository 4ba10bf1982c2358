"""The belief network of a program: nodes, edges and plates, in the paper's symbols.

Paper, figure "PGM symbols": a filled circle is observed, an empty one is latent, a rectangle around nodes is a
plate. The edges come from the program itself, by following which draws each distribution was computed from.
"""

from dataclasses import dataclass
from typing import Any, Literal

from numpyro import handlers
from numpyro.infer.inspect import get_model_relations

from credo.models.program import Program
from credo.typing import Array

Kind = Literal["latent", "observed", "input"]


@dataclass(frozen=True)
class Node:
    """One variable: its name, what it is, and the distribution it is drawn from."""

    name: str
    kind: Kind
    distribution: str = ""


@dataclass(frozen=True)
class Graph:
    """Nodes, directed edges (parent, child), and the names inside each plate."""

    nodes: tuple[Node, ...]
    edges: tuple[tuple[str, str], ...]
    plates: dict[str, tuple[str, ...]]

    def parents(self, name: str) -> tuple[str, ...]:
        """The factor p(v | parents(v)) of a variable needs exactly these."""
        return tuple(parent for parent, child in self.edges if child == name)

    def __str__(self) -> str:
        """The joint density as a product over nodes, one factor per line."""
        lines = []
        for node in self.nodes:
            if node.kind == "input":
                continue
            given = ", ".join(self.parents(node.name))
            plates = [plate for plate, members in self.plates.items() if node.name in members]
            suffix = f"   [plate {', '.join(plates)}]" if plates else ""
            lines.append(f"{node.name}{' | ' + given if given else ''} ~ {node.distribution}{suffix}")
        return "\n".join(lines)


def graph_of(program: Program, x: Array, y: Array | None) -> Graph:
    """p(v₁, …, vₙ) = Π p(vᵢ | parents(vᵢ)), read off a program."""
    relations: dict[str, Any] = get_model_relations(handlers.seed(program, 0), (x, y))
    distributions = relations["sample_dist"]
    observed = set(relations["observed"])
    nodes = [Node("x", "input")] + [
        Node(name, "observed" if name in observed else "latent", kind) for name, kind in distributions.items()
    ]
    edges = [
        (parent, child)
        for child, parents in relations["sample_sample"].items()
        for parent in parents
        if parent != child
    ]
    plates = {plate: tuple(members) for plate, members in relations["plate_sample"].items()}
    inputs = [("x", name) for name in plates.get("data", ()) if name in observed]
    return Graph(tuple(nodes), tuple(edges + inputs), plates)
