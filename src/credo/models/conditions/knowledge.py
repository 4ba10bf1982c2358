"""What is known of the function: another function, or an equation that its derivatives keep."""

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp

from credo.models.conditions.condition import Function, Ready
from credo.typing import Array


@dataclass(frozen=True)
class Agrees(Ready):
    """‖f(x) − g(x)‖². See `agrees`.

    >>> import jax.numpy as jnp
    >>> from credo import conditions
    >>> conditions.agrees(jnp.sin)(conditions.Plain(lambda x: jnp.sin(x) + 1.0), jnp.ones((2, 1))).tolist()
    [1.0, 1.0]
    """

    name = "agrees"
    known: Callable[[Array], Array]

    def __call__(self, function: Function, rows: Array, **constants: Array) -> Array:
        predicted = function(rows)
        return jnp.sum((predicted - _like(self.known(rows), predicted)) ** 2, axis=-1)


@dataclass(frozen=True)
class DifferentialEquation(Ready):
    """‖residual(f, x)‖². See `differential_equation`.

    >>> import jax.numpy as jnp
    >>> from credo import conditions
    >>> constant = conditions.differential_equation(lambda f, x: conditions.derivative(f, x))
    >>> constant(conditions.Plain(lambda x: 3.0 * x), jnp.ones((1, 1))).tolist()
    [9.0]
    """

    name = "differential_equation"
    residual: Callable[[Function, Array], Array]

    def __call__(self, function: Function, rows: Array, **constants: Array) -> Array:
        residual = jnp.asarray(self.residual(function, rows))
        if residual.ndim == 0 or residual.shape[0] != rows.shape[0]:
            raise ValueError(
                f"differential_equation: residual(f, x) has shape {residual.shape}, but (rows,) or (rows, equations) "
                f"with {rows.shape[0]} rows was expected; do not average over the rows"
            )
        return jnp.sum(residual.reshape(rows.shape[0], -1) ** 2, axis=-1)


def agrees(known: Callable[[Array], Array]) -> Agrees:
    """The prediction is near that of a known function: a formula, a simulation, an older model.

        C(theta, x) = ‖f(x) − g(x)‖²,    in the user's units

    Arguments:
        known: g, a pure JAX function of x (rows, …), (rows,) or (rows, outputs).

    >>> from credo.models.conditions import Plain
    >>> agrees(lambda x: 2 * x)(Plain(lambda x: x), jnp.array([[1.0], [3.0]])).tolist()
    [1.0, 9.0]
    """
    return Agrees(_function("agrees", "known", known))


def differential_equation(residual: Callable[[Function, Array], Array]) -> DifferentialEquation:
    """The function keeps a differential equation at the inputs: the physics-informed network as a prior.

        C(theta, x) = ‖r(f, x)‖²,    r = 0 the equation, in the user's units

    Arguments:
        residual: r(f, x), (rows,) or (rows, equations), of the function f and points x (rows, columns); f(x) is the
            prediction and `derivative(f, x, column=…, order=…)` its derivatives, both (rows, outputs).

    Decay y′ = −k y, the oscillator y″ + ω² y = 0, and heat u_t = κ u_xx in columns (t, x):

    >>> from credo.models.conditions import Plain, derivative
    >>> decay = differential_equation(lambda y, t: derivative(y, t) + 2.0 * y(t))
    >>> oscillator = differential_equation(lambda y, t: derivative(y, t, order=2) + 9.0 * y(t))
    >>> heat = differential_equation(lambda u, x: derivative(u, x) - 0.1 * derivative(u, x, column=1, order=2))
    >>> float(decay(Plain(lambda t: jnp.exp(-2.0 * t)), jnp.array([[0.5]]))[0]) < 1e-12
    True

    Reference: Raissi, Perdikaris, Karniadakis, 2019, Physics-informed neural networks.
    """
    return DifferentialEquation(_function("differential_equation", "residual", residual))


def _function(name: str, argument: str, value: Callable[..., Array]) -> Callable[..., Array]:
    if not callable(value):
        raise ValueError(f"{name}: {argument} must be a function, got {value!r}")
    return value


def _like(known: Array, predicted: Array) -> Array:
    """Known values in the shape of the predictions; a single output may come without its axis."""
    values = jnp.asarray(known)
    values = values[:, None] if values.ndim == 1 else values
    if values.shape != predicted.shape:
        raise ValueError(
            f"agrees: known(x) has shape {jnp.shape(known)}, but the prediction has shape {predicted.shape}, "
            "(rows, outputs)"
        )
    return values
