"""Densities that posteriors are handed on as: exact ones, and those that are fitted to draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo import models, networks, random
from credo.covariance import Blocks, Diagonal
from credo.covariance.layout import Layout
from credo.covariance.warp import Warp
from credo.inference.laplace.nearest_product import nearest_product
from credo.inference.variational.families import FlowFamily
from credo.learning.beliefs import belief_of
from credo.learning.held_back import k_center
from credo.posterior.belief import Belief
from credo.posterior.believed import Believed

MODEL = models.regression(networks.MLP([], out=1), noise=0.1).bind((np.zeros((5, 2)), np.zeros(5)))


def draws_of(values: np.ndarray) -> credo.Draws:
    """A posterior of these draws, (draws, 3): two weights and a bias."""
    theta = {"head.bias": values[None, :, :1], "head.kernel": values[None, :, 1:, None]}
    return credo.Draws(MODEL, theta, credo.posterior.Provenance({"name": "test"}, 0, 0.0, 5))


def test_draws_go_on_by_their_moments():
    values = np.random.default_rng(0).normal(size=(200, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0.3], [0, 0, 2]])
    belief = belief_of(draws_of(values))
    np.testing.assert_allclose(
        belief.spread.roots["all"][0] @ belief.spread.roots["all"][0].T, np.cov(values.T), rtol=1e-4
    )
    few = belief_of(draws_of(values[:20]))
    assert isinstance(few.spread, Diagonal)
    np.testing.assert_allclose(few.spread.scale["head.bias"], values[:20, 0].std(ddof=1), rtol=1e-4)


def test_a_flow_fits_skewed_draws_better_than_a_gaussian():
    values = np.random.default_rng(0).normal(size=(400, 3))
    values[:, 0] = np.exp(0.7 * values[:, 0])
    fresh = np.random.default_rng(1).normal(size=(400, 3))
    fresh[:, 0] = np.exp(0.7 * fresh[:, 0])
    theta = {"head.bias": jnp.asarray(fresh[:, :1]), "head.kernel": jnp.asarray(fresh[:, 1:, None])}
    scores = {
        density: float(jnp.mean(jax.vmap(belief_of(draws_of(values), density).log_density)(theta)))
        for density in ("gaussian", "flow")
    }
    # The entropy of the log-normal is 0.28 nats below that of the normal of its variance, e^0.98 − e^0.49.
    assert scores["flow"] > scores["gaussian"] + 0.05


def test_the_density_of_a_flow_is_that_of_its_draws():
    template = {"a": jnp.zeros(3), "b": jnp.zeros((2, 2))}
    family, rng = FlowFamily(layers=3, hidden=5, bins=4), np.random.default_rng(0)
    phi = {name: leaf + 0.3 * rng.normal(size=leaf.shape) for name, leaf in family.init(template, 0.5).items()}
    warp = family.root(jax.tree.map(jnp.asarray, phi), template)
    assert isinstance(warp, Warp)
    offsets, log_q = jax.vmap(warp.draw_and_log_q)(jax.random.split(random.key(0), 50))
    np.testing.assert_allclose(jax.vmap(warp.log_density)(offsets), log_q, rtol=1e-3, atol=1e-2)


def test_the_expectation_of_a_diagonal_belief_is_in_closed_form():
    """E[log q] over N(m, s²) is log q(m) − ½ Σ s²/scale²: here by the average over m ± s, which has these moments."""
    belief = Belief({"w": jnp.array([0.5, -1.0])}, Diagonal({"w": jnp.array([0.3, 2.0])}))
    mean, scale = jnp.array([0.1, 0.4]), jnp.array([0.2, 0.7])
    signs = jnp.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    expected = jnp.mean(jax.vmap(lambda sign: belief.log_density({"w": mean + sign * scale}))(signs))
    found = belief.expected_log_density({"w": mean}, {"w": scale**2})
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_believed_model_has_the_belief_for_its_prior():
    template = MODEL.template
    root = Blocks({"all": jnp.eye(3)[None] * 0.5}, Layout.together(template))
    belief = Belief({name: jnp.ones(leaf.shape) for name, leaf in template.items()}, root)
    theta = {name: jnp.zeros(leaf.shape) for name, leaf in template.items()}
    for kept in (1.0, 0.25):
        model = Believed.of(MODEL, belief, kept)
        expected = kept * belief.log_density(theta) + (1 - kept) * MODEL.log_prior(theta)
        np.testing.assert_allclose(model.log_prior(theta), expected, rtol=1e-5)
    for draw in jax.tree.leaves(Believed.of(MODEL, belief).sample_prior(random.key(0), 4)):
        assert draw.shape[0] == 4


def test_a_belief_of_another_theta_is_refused():
    belief = Belief({"w": jnp.zeros(3)}, Diagonal({"w": jnp.ones(3)}))
    with pytest.raises(ValueError, match="another theta"):
        Believed.of(MODEL, belief)


def product(a, g) -> np.ndarray:
    """A ⊗ G, its entries as vec(A) vec(G)ᵀ."""
    return np.outer(np.ravel(a), np.ravel(g))


def test_the_nearest_product_is_that_of_the_singular_vectors():
    rng = np.random.default_rng(0)
    a1, a2, g1, g2 = (matrix @ matrix.T for matrix in (rng.normal(size=(n, n)) for n in (4, 4, 3, 3)))
    whole = product(a1, g1) + product(a2, 1e-3 * g2)
    left, values, right = np.linalg.svd(whole)
    a, g = nearest_product((jnp.asarray(a1), jnp.asarray(g1)), (jnp.asarray(a2), jnp.asarray(1e-3 * g2)))
    expected = values[0] * np.outer(left[:, 0], right[0])
    np.testing.assert_allclose(
        np.outer(np.ravel(a), np.ravel(g)), expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max()
    )
    # Equal factors add up, and nothing beside nothing is nothing.
    a, g = nearest_product((jnp.asarray(a1), jnp.asarray(g1)), (jnp.asarray(a1), jnp.asarray(2 * g1)))
    np.testing.assert_allclose(product(a, g), 3 * product(a1, g1), rtol=1e-3)
    a, g = nearest_product((jnp.zeros((2, 2)), jnp.zeros((2, 2))), (jnp.eye(2), jnp.eye(2)))
    np.testing.assert_allclose(
        np.outer(np.ravel(a), np.ravel(g)), np.outer(np.eye(2).ravel(), np.eye(2).ravel()), atol=1e-6
    )


def test_k_center_covers_what_there_is():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(centre, 0.1, size=(30, 2)) for centre in (0, 5, 10)])
    assert set(k_center(points, 3) // 30) == {0, 1, 2}
