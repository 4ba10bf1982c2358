"""Invariant and equivariant functions are free; others pay for the difference."""

import jax.numpy as jnp
import numpy as np
import pytest

from credo import conditions
from tests.models.conditions.evaluated import Binary, penalties

RNG = np.random.default_rng(0)
X = RNG.normal(size=(10, 3)).astype(np.float32)
IMAGES = RNG.normal(size=(10, 3, 3)).astype(np.float32)


def total(x):
    return jnp.sum(jnp.sin(x.reshape(len(x), -1)), axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("transform", "x", "free", "after"),
    [
        ("negate", X, lambda x: total(x**2), -X),
        (("permute", (2, 0, 1)), X, total, X[:, [2, 0, 1]]),
        (("shift", 2 * np.pi), X, total, X + 2 * np.pi),
        (("shift", (0.0, 1.0, 0.0)), X, lambda x: x[:, ::2], X + np.array([0, 1, 0])),
        (("flip", 1), IMAGES, total, IMAGES[:, :, ::-1]),
        ("transpose", IMAGES, total, IMAGES.transpose(0, 2, 1)),
        (lambda x: 2 * x, X, lambda x: jnp.sign(x[:, :1]), 2 * X),
    ],
)
def test_invariance(transform, x, free, after):
    condition = conditions.invariant(transform)
    np.testing.assert_allclose(penalties(condition, free, x), 0, atol=1e-9)

    def other(x):
        x = x.reshape(len(x), -1)
        return x * jnp.arange(1.0, 1.0 + x.shape[1])

    expected = np.sum((other(after) - other(x)) ** 2, axis=1)
    np.testing.assert_allclose(penalties(condition, other, x), expected, rtol=1e-3, atol=1e-5)


def test_odd_functions_and_exchanged_outputs():
    odd = conditions.equivariant("negate", "negate")
    np.testing.assert_allclose(penalties(odd, jnp.sin, X), 0, atol=1e-12)
    np.testing.assert_allclose(penalties(odd, lambda x: x + 1, X), 3 * 2**2, rtol=1e-5)
    turned = conditions.equivariant(("permute", (1, 2, 0)), ("permute", (1, 2, 0)))
    np.testing.assert_allclose(penalties(turned, jnp.sin, X), 0, atol=1e-12)
    assert penalties(turned, lambda x: x * jnp.array([1.0, 2.0, 3.0]), X).min() > 0


def test_equivariance_is_in_the_users_units():
    swapped = conditions.equivariant("negate", ("permute", (1, 0)))
    np.testing.assert_allclose(penalties(swapped, Binary(lambda x: 3 * x), X[:, :1]), 0, atol=1e-10)
    assert penalties(swapped, Binary(lambda x: x + 1), X[:, :1]).min() > 0.01


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: conditions.invariant("negat"), "transform must be one of .*did you mean 'negate'"),
        (lambda: conditions.invariant(3), "transform must be a function of x"),
        (lambda: conditions.invariant(("flip",)), r"transform must be \(\"flip\", setting\)"),
        (lambda: conditions.invariant(("negate", 1)), 'transform must be "negate"'),
        (lambda: conditions.invariant(("permute", (0, 0))), "each of 0 to n − 1 once"),
        (lambda: conditions.invariant(("flip", -1)), "flip takes an axis"),
        (lambda: conditions.invariant(("shift", np.nan)), "shift takes a finite number"),
        (lambda: conditions.equivariant("negate", "nagate"), "of_output must be one of"),
        (lambda: conditions.invariant(("permute", (1, 0))).prepare(X), "2 numbers for rows of 3"),
        (lambda: conditions.invariant(("shift", (1.0, 0.0))).prepare(X), "2 numbers for rows of 3"),
        (lambda: conditions.invariant(("flip", 1)).prepare(X), "no axis 1 in rows of shape"),
        (lambda: conditions.invariant("transpose").prepare(X), "no axis 1"),
        (lambda: conditions.invariant(lambda x: x[:, :2]).prepare(X), "it must keep the shape"),
        (lambda: conditions.invariant("transpose").prepare(np.zeros((2, 3, 4))), "it must keep the shape"),
        (lambda: penalties(conditions.equivariant("negate", lambda y: y[:, :1]), jnp.sin, X), "of_output turns"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(ValueError, match=message):
        make()
