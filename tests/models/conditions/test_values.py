"""Bounded, sparse, sure and in a subspace."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from credo import conditions
from tests.models.conditions.evaluated import Binary, penalties

X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)


def same(x):
    return x


def test_bounds_cost_the_square_of_what_is_beyond_them():
    beyond = np.maximum(-0.5 - X, 0) + np.maximum(X - [0.5, 1.0, 1.5], 0)
    values = penalties(conditions.bounded(-0.5, [0.5, 1.0, 1.5]), same, X)
    np.testing.assert_allclose(values, np.sum(beyond**2, axis=1), rtol=1e-5)
    np.testing.assert_allclose(penalties(conditions.bounded(low=5.0), same, [[2.0, 6.0]]), [9.0])


def test_bounds_are_in_the_users_units():
    np.testing.assert_allclose(penalties(conditions.bounded(0.2, 0.6), Binary(lambda x: x), [[0.0]]), 0)
    np.testing.assert_allclose(
        penalties(conditions.bounded(0.2, 0.6), Binary(lambda x: x), [[100.0]]), 0.2**2 + 0.4**2, rtol=1e-5
    )


def test_sparse_is_the_sum_of_absolute_values():
    np.testing.assert_allclose(penalties(conditions.sparse(), same, X), np.abs(X).sum(axis=1), rtol=1e-6)


def test_low_density_is_the_entropy_of_the_classes():
    np.testing.assert_allclose(
        penalties(conditions.low_density(), same, X), stats.entropy(jax.nn.softmax(X), axis=1), rtol=1e-4
    )
    logits = np.array([[0.0], [2.0], [-300.0]])
    p = 1 / (1 + np.exp(-logits))
    expected = stats.entropy(np.concatenate([p, 1 - p], axis=1), axis=1)
    np.testing.assert_allclose(
        penalties(conditions.low_density(), Binary(same), logits), expected, rtol=1e-5, atol=1e-7
    )


def test_the_entropy_of_a_sure_prediction_has_a_gradient():
    slope = jax.grad(lambda x: jnp.sum(conditions.low_density()(Binary(same), x)))(jnp.array([[300.0], [-300.0]]))
    np.testing.assert_allclose(slope, 0, atol=1e-6)


def test_the_distance_from_a_subspace_is_numpys():
    basis = np.random.default_rng(1).normal(size=(3, 2))
    nearest = X @ basis @ np.linalg.solve(basis.T @ basis, basis.T)
    values = penalties(conditions.subspace(basis), same, X)
    np.testing.assert_allclose(values, np.sum((X - nearest) ** 2, axis=1), rtol=1e-3, atol=1e-6)
    within = penalties(conditions.subspace(basis), lambda x: x[:, :2] @ jnp.asarray(basis.T, jnp.float32), X)
    np.testing.assert_allclose(within, 0, atol=1e-10)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: conditions.bounded(), "pass low, high or both"),
        (lambda: conditions.bounded(1.0, 0.0), "low must be below high"),
        (lambda: conditions.bounded([0.0, 2.0], 1.0), "low must be below high"),
        (lambda: conditions.bounded([0.0, 0.0], [1.0, 1.0, 1.0]), "different numbers of outputs"),
        (lambda: conditions.bounded(np.nan), "low must be a finite number"),
        (lambda: conditions.bounded(high="1"), "high must be a finite number"),
        (lambda: penalties(conditions.bounded([0.0, 0.0]), same, X), "2 numbers for 3 output"),
        (lambda: penalties(conditions.low_density(), lambda x: x[:, :1], X), "about classes"),
        (lambda: conditions.subspace([1.0, 2.0]), r"got shape \(2,\)"),
        (lambda: conditions.subspace(np.eye(2)), "no proper subspace"),
        (lambda: conditions.subspace(np.ones((3, 2))), "depend on each other"),
        (lambda: conditions.subspace([[np.inf], [0.0]]), "finite"),
        (lambda: penalties(conditions.subspace(np.ones((2, 1))), same, X), "basis has 2 rows, but the model has 3"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(ValueError, match=message):
        make()
