"""A graph as a function in JAX: each node is a call of an operation of the table."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from credo.networks.torch.graph import Graph, Number, Ref
from credo.networks.torch.ops import OPS
from credo.typing import Array, Theta


def run(graph: Graph, constants: dict[str, np.ndarray], theta: Theta, x: Array) -> Array:
    """f_theta(x).

    Arguments:
        constants: those of the graph, unpacked.
        theta: parameters by path; others are ignored.
        x: rows, (n, ...), in the order of axes of the graph's user.
    """
    # All are arrays of JAX: NumPy's cannot be looked up in by what is traced.
    values: dict[str, Any] = {name: jnp.asarray(constant) for name, constant in constants.items()}
    values |= {name: jnp.asarray(theta[path]) for name, path in graph.parameters.items()}
    values[graph.input] = _rows(graph, x)
    for node in graph.nodes:
        arguments = [_value(argument, values) for argument in node.args]
        options = {name: _value(argument, values) for name, argument in node.kwargs.items()}
        values[node.name] = OPS[node.op](*arguments, **options)
    return values[graph.output]


def row_shape(graph: Graph) -> tuple[int, ...]:
    """The shape of a row as it comes, before it is turned."""
    return (*graph.row[1:], graph.row[0]) if graph.channels_last else graph.row


def _rows(graph: Graph, x: Array) -> Array:
    expected = row_shape(graph)
    if x.shape[1:] != expected:
        raise ValueError(
            f"x has rows of shape {x.shape[1:]}, but the network was imported with rows of {expected}; pass x of shape "
            f"(n, {', '.join(map(str, expected))}), or import it with example inputs like x"
        )
    x = jnp.moveaxis(x, -1, 1) if graph.channels_last else x
    # Data come as floating-point numbers; tokens of up to 2²⁴ kinds are whole in them.
    return x.astype(int) if graph.integers else x


def _value(argument: Any, values: dict[str, Any]) -> Any:
    if isinstance(argument, Ref):
        return values[argument.ref]
    if isinstance(argument, Number):
        return float(argument.number)
    if isinstance(argument, tuple):
        return [_value(one, values) for one in argument]
    return argument
