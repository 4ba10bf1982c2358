"""Derivatives of a function at many points, row by row."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from credo._checks import require_at_least
from credo._precision import working_precision
from credo.typing import Array


def derivative(function: Callable[[Array], Array], x: Array, *, column: int = 0, order: int = 1) -> Array:
    """∂ᵒʳᵈᵉʳ f / ∂x_columnᵒʳᵈᵉʳ at each point, in the user's units: for a `differential_equation`.

    A mixed derivative is a derivative of a derivative: `derivative(lambda x: derivative(u, x, column=0), x, column=1)`.

    Arguments:
        function: `x -> (rows, outputs)`, each row of which depends on its own row of x only.
        x: (rows, columns).

    Returns:
        (rows, outputs).

    >>> derivative(lambda x: x**3, jnp.array([[2.0], [3.0]]), order=2)[:, 0].tolist()
    [12.0, 18.0]
    """
    require_at_least(1, order=order)
    if x.ndim != 2 or not 0 <= column < x.shape[1]:
        raise ValueError(f"derivative: there is no column {column} in x of shape {x.shape}; x is (rows, columns)")
    unit = jnp.zeros_like(x).at[:, column].set(1)

    def differentiated(inner: Callable[[Array], Array]) -> Callable[[Array], Array]:
        return lambda points: jax.jvp(inner, (points,), (unit,))[1]

    for _ in range(order):
        function = differentiated(function)
    return function(x)


def along(function: Callable[[Array], Array], x: Array, directions: Array | np.ndarray) -> Array:
    """Derivatives along directions of a row's shape, (directions, …): (directions, rows, outputs), by forward mode."""

    def one(direction: Array) -> Array:
        return jax.jvp(function, (x,), (jnp.broadcast_to(direction, x.shape).astype(x.dtype),))[1]

    return jax.vmap(one)(jnp.asarray(directions))


def gradients(function: Callable[[Array], Array], x: Array) -> Array:
    """∇ₓ of each output, (outputs, rows, …), by reverse mode."""
    outputs, pullback = jax.vjp(function, x)

    def one(output: Array) -> Array:
        return pullback(jnp.broadcast_to(output, outputs.shape).astype(outputs.dtype))[0]

    return jax.vmap(one)(jnp.eye(outputs.shape[-1]))


def units(shape: tuple[int, ...]) -> np.ndarray:
    """The unit directions of a row of this shape, (entries, …)."""
    num = int(np.prod(shape))
    return np.eye(num, dtype=working_precision()).reshape(num, *shape)
