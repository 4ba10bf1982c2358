"""Local latents: drawn afresh inside the plate, a bound on the exact marginal, one function per seed."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

from credo import random
from credo.models import Model
from credo.typing import Batch
from tests.statistical.moments import assert_covariance, assert_mean, sigmas

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(5, 2)).astype(np.float32), RNG.normal(size=5).astype(np.float32)
FULL = Batch(jnp.asarray(X), jnp.asarray(Y), 5)
V = np.array([[0.8, -0.3, 0.5], [0.2, 0.6, -0.7]])
SCALE, NOISE = 0.6, 0.7
THETA = {"w": jnp.array([0.5, -1.0, 0.4])}
NUM_KEYS = 40_000


def program(x, y=None):
    """A linear-Gaussian layer: the marginal of y is known."""
    kernel = numpyro.param("kernel", jnp.asarray(V, jnp.float32))
    w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
    with numpyro.plate("data", x.shape[0]):
        layer = numpyro.sample("l", dist.Normal(x @ kernel, SCALE).to_event(1))
        numpyro.sample("y", dist.Normal(layer @ w, NOISE), obs=y)


def exact_rows(y=Y):
    w = np.asarray(THETA["w"])
    return stats.norm.logpdf(y, X @ V @ w, np.sqrt(NOISE**2 + SCALE**2 * w @ w))


@pytest.fixture(scope="module")
def model():
    return Model(program).bind((X, Y))


@pytest.fixture(scope="module")
def log_likelihoods(model, seed):
    keys = jax.random.split(random.key(seed), NUM_KEYS)
    values = jax.jit(jax.vmap(lambda key: model.log_parts(THETA, FULL, key=key)[1]))(keys)
    return np.asarray(values, np.float64)


def test_they_are_no_part_of_theta(model):
    assert model.has_local_latents
    assert list(model.template) == list(model.sample_prior(random.key(0), 3)) == ["w"]
    described = str(model.describe())
    line = next(line for line in described.splitlines() if line.startswith("l "))
    assert line.split()[:4] == ["l", "(3,)", "per", "row"]
    assert line.endswith(", aleatoric")


def test_the_average_of_the_likelihood_over_keys_is_the_exact_marginal(log_likelihoods):
    assert_mean(np.exp(log_likelihoods - exact_rows().sum()), 1.0)


def test_the_average_of_its_logarithm_is_below_by_as_much_as_it_should(log_likelihoods):
    w = np.asarray(THETA["w"])
    # E[(y − l·w)²] = (y − mean)² + scale²|w|².
    residual = (Y - X @ V @ w) ** 2 + SCALE**2 * w @ w
    expected = np.sum(-0.5 * residual / NOISE**2 - 0.5 * np.log(2 * np.pi * NOISE**2))
    assert_mean(log_likelihoods, expected)
    assert expected < exact_rows().sum() - 0.5


def test_the_prior_does_not_see_them_and_minibatches_are_scaled(model):
    prior = stats.norm.logpdf(np.asarray(THETA["w"])).sum()
    np.testing.assert_allclose(model.log_prior(THETA), prior, rtol=1e-5)
    key = random.key(3)
    log_prior, scaled = model.log_parts(THETA, Batch(FULL.x[:2], FULL.y[:2], 5), key=key)
    plain = model.log_likelihood(THETA, Batch(FULL.x[:2], FULL.y[:2], 5), key=key)
    np.testing.assert_allclose([log_prior, scaled], [prior, 2.5 * plain], rtol=1e-5)
    joint = model.log_joint(THETA, FULL, key=key)
    np.testing.assert_allclose(joint, sum(model.log_parts(THETA, FULL, key=key)), rtol=1e-6)


@pytest.mark.parametrize("call", ["log_parts", "log_likelihood", "log_joint"])
def test_without_a_key_the_likelihood_is_refused(model, call):
    with pytest.raises(ValueError, match=r"one value per row.*needs a key.*credo.BayesByBackprop trains it; samplers"):
        jax.jit(getattr(model, call))(THETA, FULL)


def test_the_gradient_flows_through_the_draws(model, seed):
    def bound(xi, key):
        return model.log_parts(THETA | xi, FULL, key=key)[1]

    keys = jax.random.split(random.key(seed), NUM_KEYS)
    gradients = jax.jit(jax.vmap(jax.grad(bound), in_axes=(None, 0)))({"kernel": jnp.asarray(V)}, keys)["kernel"]
    w = np.asarray(THETA["w"])
    # Of the bound itself: Xᵀ (y − mean)/noise² wᵀ.
    expected = np.outer(X.T @ (Y - X @ V @ w), w) / NOISE**2
    assert_mean(gradients, expected)


def test_the_noise_does_not_depend_on_whether_xi_is_given(model):
    key = random.key(4)
    given = model.log_parts(THETA | model.initial_xi(), FULL, key=key)
    np.testing.assert_allclose(model.log_parts(THETA, FULL, key=key), given, rtol=1e-6)


def means(model, x, **leaves):
    return np.asarray(model.predictive(THETA | leaves, jnp.asarray(x)).mean)


def test_a_seed_is_a_function_of_what_a_row_holds(model):
    rows = np.concatenate([X, X[::-1]])
    one, same, other = (means(model, rows, local_noise=jnp.array(seed, jnp.int32)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.any(one == other)
    np.testing.assert_allclose(one[:5], one[5:][::-1], rtol=1e-5)
    noise = one[:5] - X @ V @ np.asarray(THETA["w"])
    assert len(set(noise.round(4).tolist())) == 5


def test_seeds_have_the_moments_of_the_layer(model, seed):
    seeds = jnp.arange(4000 * seed, 4000 * (seed + 1), dtype=jnp.int32)
    draws = jax.jit(jax.vmap(lambda seed: model.predictive(THETA | {"local_noise": seed}, FULL.x).mean))(seeds)
    w = np.asarray(THETA["w"])
    scale = SCALE * np.sqrt(w @ w)
    np.testing.assert_allclose(np.mean(draws, 0), X @ V @ w, atol=sigmas(5) * scale / np.sqrt(4000))
    # Rows are independent.
    assert_covariance(np.asarray(draws), scale**2 * np.eye(5))


def test_prior_predict_draws_them_too(seed):
    marginal = Model(program, local="epistemic").prior_predict(np.zeros((3, 2)), num_draws=3000, seed=seed)
    # At x = 0 the function is l·w with l ~ N(0, scale²), w ~ N(0, 1) in three units: its variance is 3 scale², its
    # fourth moment 3·(3 + 2)·3 scale⁴, so the error of the variance is scale² √((45 − 9)/3000). The rows are equal.
    np.testing.assert_allclose(marginal.epistemic, 3 * SCALE**2, atol=sigmas() * SCALE**2 * np.sqrt(36 / 3000))


def test_constrain_leaves_the_seed_alone(model):
    assert model.constrain(THETA | {"local_noise": jnp.array(7)})["local_noise"] == 7


def test_a_model_without_them_ignores_key_and_seed():
    def plain(x, y=None):
        w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal(x @ w, 1.0), obs=y)

    model, theta = Model(plain).bind((X, Y)), {"w": jnp.array([0.5, -1.0])}
    assert not model.has_local_latents
    np.testing.assert_array_equal(model.log_parts(theta, FULL), model.log_parts(theta, FULL, key=random.key(1)))
    np.testing.assert_allclose(model.predictive(theta | {"local_noise": 3}, FULL.x).mean, X @ [0.5, -1.0], rtol=1e-5)
