"""A network that was imported: a graph and, if it was imported just now, the values of its parameters."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from credo._precision import in_working_precision
from credo.networks.functional import Network, as_network
from credo.networks.torch.graph import Graph, Ref
from credo.networks.torch.interpreter import run
from credo.networks.torch.table import require_known
from credo.networks.zoo import REGISTRY
from credo.typing import Array, Theta

NAME = "Exported"
# A posterior keeps what it needs of the network's constants up to this many letters: batch statistics, masks, positions
# of a large network take some 10⁵. A frozen base is larger, and stays with the user.
MAX_STORED = 2**22


def exported_network(graph: Graph, params: Theta) -> Network:
    """The network of a graph."""
    require_known(graph.used)
    constants = {name: constant.array() for name, constant in graph.constants.items()}

    def call(theta: Theta, x: Array) -> Array:
        return run(graph, in_working_precision(constants), theta, x)

    is_small = sum(len(constant.packed) for constant in graph.constants.values()) <= MAX_STORED
    config = {"name": NAME, **graph.to_config()} if is_small else None
    network = as_network("the module", call, params, config=config, outputs_first=True)
    # A row of a table feeds the units by itself, however many there are.
    return replace(network, fan_in=network.fan_in | dict.fromkeys(_tables(graph), 1))


def exported(**config: Any) -> Network:
    """The network of the configuration of one. Its values are not those that the module had, but drawn anew."""
    graph = Graph.from_config(config)
    generator = np.random.default_rng(0)

    def drawn(path: str, shape: tuple[int, ...]) -> np.ndarray:
        if len(shape) < 2:  # the scale of a normalisation is one, a bias zero
            return np.full(shape, path.endswith("weight"), np.float32)
        return (generator.standard_normal(shape) / math.sqrt(math.prod(shape[1:]))).astype(np.float32)

    return exported_network(graph, {path: drawn(path, shape) for path, shape in graph.shapes.items()})


def _tables(graph: Graph) -> set[str]:
    """The paths of arrays in which rows are looked up, and no more."""
    uses: dict[str, set[str]] = {}
    for node in graph.nodes:
        for one in node.args:
            if isinstance(one, Ref) and one.ref in graph.parameters:
                uses.setdefault(graph.parameters[one.ref], set()).add(node.op)
    return {path for path, ops in uses.items() if ops == {"aten.embedding.default"}}


REGISTRY[NAME] = exported  # type: ignore[assignment]
