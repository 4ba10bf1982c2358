"""What a traced function computes for each row: the memory that its gradient will hold, known before it is compiled."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import jax

# Values that grow with the rows are told from others by their size: no other size is a multiple of this prime.
NUM_ROWS = 8191
# What the compiler never makes an array of its own for.
_FREE = {"broadcast_in_dim", "reshape", "squeeze", "expand_dims", "iota", "stop_gradient"}


def bytes_per_row(function: Callable[..., Any], *arguments: Any) -> int:
    """The values on the way to function(*arguments), whose rows are `NUM_ROWS` ones: bytes for each.

    Reverse differentiation keeps them all. Where numbers only become other numbers in the same places, the compiler
    fuses the steps into one, and what is between them takes no memory.

    >>> import jax.numpy as jnp
    >>> x, w = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((NUM_ROWS, 3), (3, 5)))
    >>> bytes_per_row(lambda x, w: jnp.sum(jnp.tanh(x @ w + 1) ** 2), x, w)  # of the product alone
    20
    """
    return _bytes(jax.make_jaxpr(function)(*arguments).jaxpr) // NUM_ROWS


def _bytes(jaxpr: Any) -> int:
    """Of the values that grow with the rows and are arrays of their own."""
    users = defaultdict(list)
    for eqn in jaxpr.eqns:
        for atom in eqn.invars:
            users[id(atom)].append(eqn)
    results = {id(atom) for atom in jaxpr.outvars}

    def is_array(eqn: Any, value: Any) -> bool:
        return not (_is_fused(eqn) and id(value) not in results and all(map(_is_fused, users[id(value)])))

    total = 0
    for eqn in jaxpr.eqns:
        bodies = list(_bodies(eqn))
        if bodies and not _is_fused(eqn):
            total += eqn.params.get("length", 1) * max(map(_bytes, bodies))
        else:
            total += sum(_row_bytes(value.aval) for value in eqn.outvars if is_array(eqn, value))
    return total


def _is_fused(eqn: Any) -> bool:
    """Whether an equation only makes numbers into others in the same places."""
    bodies = list(_bodies(eqn))
    if bodies:
        return all(_is_fused(inner) for body in bodies for inner in body.eqns)
    shapes = {atom.aval.shape for atom in (*eqn.invars, *eqn.outvars) if math.prod(atom.aval.shape) > 1}
    return eqn.primitive.name in _FREE or len(shapes) <= 1


def _bodies(eqn: Any) -> Iterator[Any]:
    """The jaxprs inside an equation: what it calls, repeats, or chooses from."""
    for value in eqn.params.values():
        for one in value if isinstance(value, tuple | list) else (value,):
            inner = getattr(one, "jaxpr", one)
            if hasattr(inner, "eqns"):
                yield inner


def _row_bytes(aval: Any) -> int:
    size = math.prod(aval.shape)
    return size * aval.dtype.itemsize if size and size % NUM_ROWS == 0 else 0
