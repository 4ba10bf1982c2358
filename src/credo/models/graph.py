"""The belief network of a program: nodes, edges and plates, in the paper's symbols.

Paper, figure "PGM symbols": a filled circle is observed, an empty one is latent, a rectangle is a parameter, a frame
around nodes is a plate. The edges come from the program itself, by following what each distribution was computed from.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpyro
from numpyro import handlers
from numpyro.infer.inspect import get_model_relations

from credo.typing import Array, Program

NodeKind = Literal["latent", "observed", "input", "parameter"]
# The inputs, declared as a param so that NumPyro follows them; no site of a program has this name.
_INPUT = " x"


@dataclass(frozen=True)
class Node:
    """One variable: its name, what it is, and the distribution it is drawn from."""

    name: str
    kind: NodeKind
    distribution: str = ""


@dataclass(frozen=True)
class Graph:
    """Nodes, directed edges (parent, child), and the names inside each plate."""

    nodes: tuple[Node, ...]
    edges: tuple[tuple[str, str], ...]
    plates: dict[str, tuple[str, ...]]

    def parents(self, name: str) -> tuple[str, ...]:
        """The variables that the factor p(v | parents(v)) is conditioned on."""
        return tuple(parent for parent, child in self.edges if child == name)

    def __str__(self) -> str:
        """The joint density as a product over nodes, one factor per line; inputs and parameters have none."""
        lines = []
        for node in self.nodes:
            if node.kind in ("input", "parameter"):
                continue
            given = ", ".join(self.parents(node.name))
            plates = [plate for plate, members in self.plates.items() if node.name in members]
            suffix = f"   [plate {', '.join(plates)}]" if plates else ""
            lines.append(f"{node.name}{' | ' + given if given else ''} ~ {node.distribution}{suffix}")
        return "\n".join(lines)


def graph_of(program: Program, x: Array, y: Array | None, inputs: Mapping[str, Array] | None = None) -> Graph:
    """p_xi(v₁, …, vₙ) = Π p_xi(vᵢ | parents(vᵢ)), read off a program."""

    def followed(x: Array, y: Array | None) -> None:
        program(numpyro.param(_INPUT, x), y, **(inputs or {}))

    relations: dict[str, Any] = get_model_relations(handlers.seed(followed, 0), (x, y))
    distributions, plates = relations["sample_dist"], relations["plate_sample"]
    observed = set(relations["observed"])
    params = [name for name in relations["param_constraint"] if name != _INPUT]
    nodes = [Node("x", "input"), *(Node(name, "parameter") for name in params)] + [
        Node(name, "observed" if name in observed else "latent", kind) for name, kind in distributions.items()
    ]
    edges = [(parent, child) for child, parents in relations["sample_sample"].items() for parent in parents]
    for name in (*params, _INPUT):
        children = [child for child, parents in relations["sample_param"].items() if name in parents]
        edges += [("x" if name == _INPUT else name, child) for child in children]
    return Graph(tuple(nodes), tuple(edges), {plate: tuple(members) for plate, members in plates.items()})
