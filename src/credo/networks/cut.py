"""A network in two: what depends on x and on weights that stay, its features, and the head that does the rest.

Paper, "Bayesian inference on the (n-)last layer(s) only": a point estimate of a transformation, then a shallow BNN.

The network is not asked where it could be cut. Its program for one row is traced, and each equation goes to the head if
what it computes depends on weights that vary, else to the features. What the head reads of x crosses the frontier, and
is one vector for each row,

    f(theta, x) = head(theta, features(x)),

whichever layers vary: the last one crosses by its inputs, one in the middle by its inputs and by whatever passes by it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo._dataflow import PLAIN_CALLS, as_it_is, body, walk
from credo._precision import working_precision
from credo.networks.functional import Network
from credo.typing import Array, Theta


@dataclass(frozen=True, eq=False)
class Cut:
    """The two parts of a network.

    Arguments:
        features: from rows (n, …) to their features (n, num_features), a pure function.
        head: the network from features to outputs, whose parameters are those that vary.
    """

    features: Callable[[Array], Array]
    head: Network
    num_features: int


def cut(network: Network, fixed: Theta, x: Any) -> Cut | None:
    """Split a network into features, which `fixed` weights compute, and a head of all other weights.

    None where that cannot be: where the output does not depend on the other weights, or where numbers cross the
    frontier that a float32 cannot hold.

    Arguments:
        fixed: values by path.
        x: an example batch, of which only shape and dtype are used.

    >>> from credo.networks import MLP, functional
    >>> network = functional(MLP([50], 1, inputs=3))
    >>> hidden = {path: value for path, value in network.params.items() if path.startswith("hidden")}
    >>> parts = cut(network, hidden, np.zeros((1, 3), np.float32))
    >>> parts.num_features, sorted(parts.head.params)
    (50, ['head.bias', 'head.kernel'])
    """
    free = {path: value for path, value in network.params.items() if path not in fixed}
    constants = {path: jnp.asarray(fixed[path]) for path in fixed}
    row = jax.ShapeDtypeStruct((1, *x.shape[1:]), x.dtype)
    closed = jax.make_jaxpr(lambda free, row: network.apply({**constants, **free}, row))(free, row)
    unknown = dict.fromkeys(free)

    def crossing(row: Array) -> list[Array]:
        """What the head reads of a row, in the order in which it does."""
        found: list[Array] = []
        _run(closed, unknown, row, found.append)
        return found

    pieces = jax.eval_shape(crossing, row)
    if not pieces or not all(np.can_cast(one.dtype, working_precision()) for one in pieces):
        return None
    ends = np.cumsum([math.prod(one.shape) for one in pieces])

    def features(x: Array) -> Array:
        def of_row(row: Array) -> Array:
            return jnp.concatenate([jnp.ravel(value).astype(working_precision()) for value in crossing(row[None])])

        return jax.vmap(of_row)(x)

    def head(theta: Theta, features: Array) -> Array:
        def of_row(own: Array) -> Array:
            parts = zip(jnp.split(own, ends[:-1]), pieces, strict=True)
            values = (part.reshape(one.shape).astype(one.dtype) for part, one in parts)
            return _run(closed, theta, None, lambda _: next(values))[0]

        return jax.vmap(of_row)(features)

    return Cut(features, Network(head, free, {path: network.fan_in[path] for path in free}), int(ends[-1]))


@dataclass(frozen=True, eq=False)
class _Varying:
    """What depends on weights that vary; None where they are not known."""

    value: Array | None


@dataclass(frozen=True, eq=False)
class _OfRow:
    """What depends on x, and on no weights that vary; None where x is not known."""

    value: Array | None


def _run(closed: Any, theta: Theta, row: Array | None, cross: Callable[[Any], Any]) -> Any:
    """The output of a network for one row, as far as it is known.

    Arguments:
        closed: its equations, of the weights that vary by sorted name, and of the row.
        cross: what the head is given for a value of the row that it reads: called once for each, in one order.
    """
    crossed: dict[_OfRow, Any] = {}

    def equation(eqn: Any, inputs: list[Any]) -> Sequence[Any]:
        rows = [value for value in inputs if isinstance(value, _OfRow)]
        if not any(isinstance(value, _Varying) for value in inputs):
            outputs = _computed(eqn, [_plain(value) for value in inputs])
            return [_OfRow(output) for output in outputs] if rows else outputs
        # A call is entered where it holds both parts; one with derivatives of its own belongs to the head.
        if rows and eqn.primitive.name in PLAIN_CALLS:
            return walk(body(eqn), inputs, equation)
        for value in rows:
            if value not in crossed:
                crossed[value] = cross(value.value)
        given = [crossed[value] if isinstance(value, _OfRow) else _plain(value) for value in inputs]
        return [_Varying(output) for output in _computed(eqn, given)]

    weights = [_Varying(theta[name]) for name in sorted(theta)]
    return _plain(walk(closed, [*weights, _OfRow(row)], equation)[0])


def _computed(eqn: Any, inputs: list[Any]) -> Sequence[Any]:
    known = all(value is not None for value in inputs)
    return as_it_is(eqn, inputs) if known else [None] * len(eqn.outvars)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, _Varying | _OfRow) else value
