"""Convex by midpoints."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credo import conditions
from tests.models.conditions.evaluated import penalties

X = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)


def hinge(x):
    """Convex, made of ReLUs: its second derivative is zero wherever there is one."""
    return jnp.sum(jax.nn.relu(x - 0.1), axis=1, keepdims=True) + jax.nn.relu(-x[:, :1])


def test_a_convex_function_is_free_and_its_negative_is_not():
    np.testing.assert_allclose(penalties(conditions.convex(), hinge, X), 0, atol=1e-12)
    assert np.mean(penalties(conditions.convex(), lambda x: -hinge(x), X) > 1e-4) > 0.3
    np.testing.assert_allclose(penalties(conditions.convex(sign="-"), lambda x: -hinge(x), X), 0, atol=1e-12)


def test_the_violation_of_a_concave_parabola_is_known():
    pairs, _ = conditions.convex().prepare(X)
    expected = (np.sum((pairs[:, 0] - pairs[:, 1]) ** 2, axis=1) / 4) ** 2
    values = penalties(conditions.convex(), lambda x: -jnp.sum(x**2, axis=1, keepdims=True), X)
    np.testing.assert_allclose(values, expected, rtol=1e-3, atol=1e-5)


def test_every_input_has_another_for_its_partner():
    pairs, _ = conditions.convex().prepare(X)
    assert pairs.shape == (50, 2, 2)
    np.testing.assert_array_equal(pairs[:, 0], X)
    assert np.all(np.any(pairs[:, 0] != pairs[:, 1], axis=1))
    np.testing.assert_array_equal(np.unique(pairs[:, 1], axis=0), np.unique(X, axis=0))
    np.testing.assert_array_equal(conditions.convex().prepare(X)[0], pairs)
    assert np.any(conditions.convex(seed=1).prepare(X)[0] != pairs)


def test_along_one_column_the_others_are_held():
    condition = conditions.convex(["age"]).resolved(("size", "age"))
    pairs, _ = condition.prepare(X)
    np.testing.assert_array_equal(pairs[:, 0, 0], pairs[:, 1, 0])
    saddle = penalties(condition, lambda x: x[:, 1:] ** 2 - x[:, :1] ** 2, X)
    np.testing.assert_allclose(saddle, 0, atol=1e-10)
    assert np.max(penalties(conditions.convex([0]), lambda x: x[:, 1:] ** 2 - x[:, :1] ** 2, X)) > 0.1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: conditions.convex("age"), "columns must be a list"),
        (lambda: conditions.convex([]), "columns must be a list"),
        (lambda: conditions.convex(sign=0), "got 0"),
        (lambda: conditions.convex([2]).prepare(X), "no column 2; there are 2"),
        (lambda: conditions.convex().prepare(X[:1]), "pairs"),
        (lambda: conditions.convex([0]).prepare(np.zeros((4, 2, 2))), "columns of a table"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(ValueError, match=message):
        make()
