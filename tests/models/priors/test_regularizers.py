"""Regularisers as priors: the mode of the posterior is the regularised optimum, found by other means."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import integrate, optimize, special, stats

import credo
from credo.models import priors
from credo.models.priors import Parameter, RadialLaplace, from_regularizer
from tests.statistical.moments import assert_mean

RNG = np.random.default_rng(0)
# Two targets, and inputs of which half matter; the noise is 1, so that the loss is ½ Σ (y − xW)².
X = RNG.normal(size=(40, 6)).astype(np.float32)
Y = (X[:, :3] @ RNG.normal(size=(3, 2)) + RNG.normal(size=(40, 2))).astype(np.float32)
STRENGTH = 6.0


def mode(prior):
    """The kernel that MAP finds, without a bias."""
    net = (lambda params, x: x @ params["kernel"], {"kernel": np.full((6, 2), 0.1, np.float32)})
    model = credo.models.regression(net, prior=prior, noise=1.0)
    method = credo.MAP(num_steps=2000, learning_rate=optax.cosine_decay_schedule(0.05, 2000))
    return np.asarray(credo.fit(model, (X, Y), method).theta["kernel"])[0, -1]


def proximal(shrink):
    """argmin ½ ‖Y − XW‖² + reg(W), by proximal gradient steps."""
    step = 1 / np.linalg.eigvalsh(X.T @ X)[-1]
    kernel = np.zeros((6, 2))
    for _ in range(2000):
        kernel = shrink(kernel - step * X.T @ (X @ kernel - Y), step * STRENGTH)
    return kernel


def soft(kernel, threshold):
    return np.sign(kernel) * np.maximum(np.abs(kernel) - threshold, 0)


def soft_rows(kernel, threshold):
    norm = np.linalg.norm(kernel, axis=1, keepdims=True)
    return kernel * np.maximum(1 - threshold / np.maximum(norm, 1e-12), 0)


def test_l2_is_ridge_regression():
    expected = np.linalg.solve(X.T @ X + 2 * STRENGTH * np.eye(6), X.T @ Y)
    np.testing.assert_allclose(mode(from_regularizer("l2", STRENGTH)), expected, atol=1e-3)


def test_l1_is_the_lasso():
    expected = proximal(soft)
    assert np.any(expected == 0)
    np.testing.assert_allclose(mode(from_regularizer("l1", STRENGTH)), expected, atol=2e-3)


def test_group_lasso_switches_off_whole_inputs():
    expected = proximal(soft_rows)
    rows = np.all(expected == 0, axis=1)
    assert np.any(rows)
    assert not np.all(rows)
    np.testing.assert_allclose(mode(from_regularizer("group_lasso", STRENGTH)), expected, atol=2e-3)


def quartic(w):
    return jnp.sum(w**4)


def test_any_function_is_a_regulariser():
    def loss(flat):
        kernel = flat.reshape(6, 2)
        return 0.5 * np.sum((Y - X @ kernel) ** 2) + STRENGTH * np.sum(kernel**4)

    expected = optimize.minimize(loss, np.zeros(12), tol=1e-10).x.reshape(6, 2)
    np.testing.assert_allclose(mode(from_regularizer(quartic, STRENGTH)), expected, atol=2e-3)


def test_a_function_of_the_users_says_that_its_draws_are_places_to_start_from():
    law = from_regularizer(quartic, 2.0)(Parameter("w", (3,)))
    assert law.draws_are_starts
    values = RNG.normal(size=(4, 3)).astype(np.float32)
    np.testing.assert_allclose(law.log_prob(values), -2.0 * np.sum(values**4, 1), rtol=1e-5)
    assert law.sample(jax.random.key(0), (5,)).shape == (5, 3)
    with pytest.raises(ValueError, match="made from the regularizer quartic, a function: code, which is not stored"):
        priors.from_config(from_regularizer(quartic).to_config())


@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_radial_density_has_mass_one(size):
    law = RadialLaplace(1.7, size)
    surface = 2 * np.pi ** (size / 2) / special.gamma(size / 2)

    def shell(radius):
        return surface * radius ** (size - 1) * np.exp(float(law.log_prob(jnp.zeros(size).at[0].set(radius))))

    np.testing.assert_allclose(integrate.quad(shell, 0, 20, epsabs=1e-5)[0], 1.0, rtol=1e-3)


def test_draws_of_the_radial_density(seed):
    law = priors.group_lasso(2.0)(Parameter("kernel", (4, 3)))
    draws = np.asarray(law.sample(jax.random.key(seed), (20_000,)))
    length = np.linalg.norm(draws, axis=-1)
    # Gamma(3, 2): mean 3/2, mean square 3·4/2²; and a third of the square in each direction.
    assert_mean(length, 1.5)
    assert_mean(length**2, 3.0)
    assert_mean(draws, 0.0)
    assert_mean(draws**2, 1.0)


def test_the_gradient_at_zero_is_zero():
    law = priors.group_lasso(2.0)(Parameter("kernel", (4, 3)))
    np.testing.assert_array_equal(jax.grad(law.log_prob)(jnp.zeros((4, 3))), 0.0)


def test_names_stand_for_priors_that_are_known():
    assert from_regularizer("l1", 4.0) == priors.laplace(0.25)
    law = from_regularizer("l2", 3.0)(Parameter("w", ()))
    np.testing.assert_allclose(law.log_prob(0.7), stats.norm(scale=np.sqrt(1 / 6)).logpdf(0.7), rtol=1e-5)
    prior = from_regularizer("group_lasso", 3.0)
    assert priors.from_config(prior.to_config()) == prior
    np.testing.assert_allclose(prior(Parameter("w", ())).log_prob(0.7), stats.laplace(scale=1 / 3).logpdf(0.7))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: from_regularizer("l3"), "regularizer must be one of l1, l2, group_lasso, got 'l3'"),
        (lambda: from_regularizer("l1", -1.0), "strength must be a positive number, got -1.0"),
        (lambda: from_regularizer(jnp.abs)(Parameter("w", (3,))), r"gives an array of shape \(3,\) for 'w'"),
        (lambda: from_regularizer(lambda w: -jnp.sum(w**2))(Parameter("w", (3,))), "must give one finite number, zero"),
        (lambda: from_regularizer(lambda w: jnp.sum(w) * jnp.nan)(Parameter("w", (3,))), "gives nan for 'w'"),
    ],
)
def test_what_is_no_regulariser_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
