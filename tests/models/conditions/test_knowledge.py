"""Known functions and differential equations: exact solutions are free."""

import jax.numpy as jnp
import numpy as np
import pytest

from credo import conditions
from credo.models.conditions import agrees, derivative, differential_equation
from tests.models.conditions.evaluated import Binary, penalties

T = np.linspace(0.0, 2.0, 9)[:, None]
TX = np.random.default_rng(0).uniform(size=(20, 2))


def decay(y, t):
    return derivative(y, t) + 2.0 * y(t)


def oscillator(y, t):
    return derivative(y, t, order=2) + 9.0 * y(t)


def heat(u, x):
    return derivative(u, x, column=0) - 0.1 * derivative(u, x, column=1, order=2)


def predator(y, t):
    """Two equations for two outputs: a rotation."""
    return derivative(y, t) - y(t)[:, ::-1] * jnp.array([-1.0, 1.0])


@pytest.mark.parametrize(
    ("residual", "solution", "x"),
    [
        (decay, lambda t: 3.0 * jnp.exp(-2.0 * t), T),
        (oscillator, lambda t: jnp.sin(3.0 * t) - jnp.cos(3.0 * t), T),
        (heat, lambda x: jnp.exp(-0.1 * np.pi**2 * x[:, :1]) * jnp.sin(np.pi * x[:, 1:]), TX),
        (predator, lambda t: jnp.concatenate([jnp.cos(t), jnp.sin(t)], axis=1), T),
    ],
)
def test_exact_solutions_are_free(residual, solution, x):
    condition = differential_equation(residual)
    # Rounding of terms of size nine, squared.
    np.testing.assert_allclose(penalties(condition, solution, x), 0, atol=1e-9)
    assert penalties(condition, lambda x: x[:, :1] ** 2 + solution(x), x).max() > 0.1


def test_other_functions_pay_the_square_of_the_residual():
    values = penalties(differential_equation(decay), lambda t: t**2, T)
    np.testing.assert_allclose(values, (2 * T + 2 * T**2)[:, 0] ** 2, rtol=1e-5)
    without_axis = differential_equation(lambda y, t: decay(y, t)[:, 0])
    np.testing.assert_allclose(penalties(without_axis, lambda t: t**2, T), values, rtol=1e-6)


def test_derivatives_are_those_of_polynomials():
    x = jnp.asarray(TX, jnp.float32)

    def f(x):
        return x[:, :1] ** 3 * x[:, 1:] ** 2

    a, b = x[:, :1], x[:, 1:]
    np.testing.assert_allclose(derivative(f, x), 3 * a**2 * b**2, rtol=1e-5)
    np.testing.assert_allclose(derivative(f, x, column=0, order=3), 6 * b**2, rtol=1e-5)
    mixed = derivative(lambda x: derivative(f, x, column=0), x, column=1)
    np.testing.assert_allclose(mixed, 6 * a**2 * b, rtol=1e-5)


def test_agreement_is_in_the_users_units():
    np.testing.assert_allclose(penalties(agrees(lambda t: 2 * t + 1), lambda t: t, T), (T + 1)[:, 0] ** 2, rtol=1e-5)
    np.testing.assert_allclose(penalties(agrees(lambda t: t[:, 0]), lambda t: t, T), 0)
    np.testing.assert_allclose(penalties(agrees(Binary(lambda t: t)), Binary(lambda t: t), T), 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: agrees(3.0), "known must be a function"),
        (lambda: differential_equation("y' = -y"), "residual must be a function"),
        (lambda: penalties(agrees(lambda t: jnp.zeros((9, 2))), lambda t: t, T), r"shape \(9, 2\), but the prediction"),
        (lambda: penalties(differential_equation(lambda y, t: jnp.mean(y(t))), lambda t: t, T), "do not average"),
        (lambda: derivative(jnp.sin, jnp.zeros((2, 1)), column=1), r"no column 1 in x of shape \(2, 1\)"),
        (lambda: derivative(jnp.sin, jnp.zeros((2, 1)), order=0), "order must be a whole number"),
        (lambda: conditions.differential_equation(None), "got None"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(ValueError, match=message):
        make()
