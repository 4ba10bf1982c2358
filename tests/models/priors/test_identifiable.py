"""Ordered biases and fixed norms: Jacobians by quadrature, uniform directions, and rejection sampling."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from scipy import stats

import credo
from credo import random
from credo.models import Model, priors
from credo.models.priors import GivensAngles, Parameter
from credo.models.priors.spheres import angles_of, rotated
from tests.statistical.moments import assert_mean, assert_moments

NOISE = 0.6


def drawn(prior, shape, keys):
    """Draws (num, …) of one parameter."""

    def one(key):
        with handlers.seed(rng_seed=key):
            return priors.draw(prior, Parameter("layer.kernel", shape, math.prod(shape[:-1])), {})

    return np.asarray(jax.jit(jax.vmap(one))(keys))


def linear_model(prior, shape):
    """y = Σ x w + noise, with w drawn from the prior."""

    def program(x, y=None):
        w = priors.draw(prior, Parameter("w", shape), {})
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal(x @ w.ravel(), NOISE), obs=y)

    return Model(program)


# -- ordered ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num", [2, 3])
def test_the_mass_of_ordered_biases_over_the_unconstrained_theta_is_one(num):
    scale = 1.5
    model = linear_model(priors.ordered(scale), (num,)).bind((np.zeros((3, num)), np.zeros(3)))
    # The first bias, and the logarithms of the gaps: the density falls like exp(gap) on their left.
    axes = [np.linspace(-9.0, 9.0, 73), *(np.linspace(-15.0, 3.0, 73) for _ in range(num - 1))]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, num).astype(np.float32)
    density = np.exp(np.asarray(jax.jit(jax.vmap(lambda w: model.log_prior({"w": w})))(grid), np.float64))
    cell = math.prod(axis[1] - axis[0] for axis in axes)
    np.testing.assert_allclose(density.sum() * cell, 1.0, rtol=1e-4)
    # By hand: the unordered density on the cone, with the Jacobian Π gaps, has the mass 1/n!.
    biases = np.cumsum(np.concatenate([grid[:, :1], np.exp(grid[:, 1:].astype(np.float64))], 1), 1)
    free = stats.norm(scale=scale).pdf(biases).prod(1) * np.exp(grid[:, 1:].sum(1, dtype=np.float64))
    np.testing.assert_allclose(free.sum() * cell * math.factorial(num), 1.0, rtol=1e-4)
    np.testing.assert_allclose(density, math.factorial(num) * free, rtol=1e-3, atol=1e-12)


def test_draws_of_ordered_biases_are_order_statistics(seed):
    draws = drawn(priors.ordered(2.0), (3,), jax.random.split(random.key(seed), 20_000))
    assert np.all(np.diff(draws, axis=1) > 0)
    # The largest of three standard normals has the mean 3/(2√π).
    largest = 2.0 * 1.5 / np.sqrt(np.pi)
    assert_mean(draws, np.array([-largest, 0.0, largest]))


def test_an_ordered_layer_is_inferred_and_stays_ordered():
    x = np.linspace(-1, 1, 20, dtype=np.float32)[:, None]
    prior = {"hidden.*.bias": priors.ordered(2.0)}
    model = credo.models.regression(credo.networks.MLP([3], 1), prior=prior, noise=0.1)
    posterior = credo.fit(model, (x, np.abs(x[:, 0])), credo.NUTS(num_samples=20, num_warmup=50, num_chains=1))
    theta = {name: leaf[0] for name, leaf in posterior.theta.items()}
    biases = jax.vmap(lambda theta: posterior.model.constrain(theta)["hidden.0.bias"])(theta)
    assert np.all(np.diff(np.asarray(biases), axis=1) > 0)


# -- fixed norms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [priors.unit_norm(), priors.givens()])
def test_the_posterior_on_the_circle_is_that_of_rejection_sampling(prior, seed):
    rng = np.random.default_rng(seed)
    x = np.random.default_rng(1).normal(size=(8, 2)).astype(np.float32)
    y = (x @ [0.8, 0.6] + NOISE * np.random.default_rng(2).normal(size=8)).astype(np.float32)
    # Draws of N(0, I) that are nearly on the circle, weighted by the likelihood.
    free = rng.normal(size=(6_000_000, 2))
    kept = free[np.abs(np.linalg.norm(free, axis=1) - 1) < 0.01]
    log_weight = stats.norm.logpdf(y, kept @ x.T, NOISE).sum(1)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    mean = weight @ kept
    sd = np.sqrt(weight @ (kept - mean) ** 2)
    kurtosis = float(np.max(weight @ ((kept - mean) / sd) ** 4))
    posterior = credo.fit(
        linear_model(prior, (2, 1)), (x, y), credo.NUTS(num_samples=6000, num_warmup=500, num_chains=4), seed=seed
    )
    # f(e₁) and f(e₂) are the weights.
    flat = {name: leaf.reshape(-1, *leaf.shape[2:]) for name, leaf in posterior.theta.items()}
    draws = np.asarray(jax.jit(jax.vmap(lambda theta: posterior.model.predictive(theta, jnp.eye(2)).mean))(flat))
    # What the few kept draws leave open, as a share of an sd: 5 of their own standard errors.
    bias = 5 * float(np.sqrt(np.sum(weight**2)))
    assert_moments(draws.reshape(4, -1, 2), mean, sd, kurtosis=kurtosis, bias=bias)


@pytest.mark.parametrize("prior", [priors.unit_norm(2.0), priors.givens(2.0)])
def test_directions_are_uniform_and_norms_fixed_for_every_channel(prior, seed):
    draws = drawn(prior, (2, 1, 2, 3), jax.random.split(random.key(seed), 20_000))
    columns = draws.reshape(-1, 4, 3) / 2.0
    np.testing.assert_allclose(np.sum(columns**2, axis=1), 1.0, rtol=1e-4)
    # On the sphere of d dimensions E[w] = 0, E[w²] = 1/d, E[w⁴] = 3/(d(d+2)), E[v²w²] = 1/(d(d+2)).
    assert_mean(columns, 0.0)
    assert_mean(columns**2, 1 / 4)
    assert_mean(columns**4, 3 / 24)
    assert_mean(columns[:, 1:] ** 2 * columns[:, :-1] ** 2, 1 / 24)


def test_the_density_of_the_angles_is_one_and_makes_the_direction_uniform():
    law = GivensAngles(4, 1)
    around, first, second = ((np.arange(60) + 0.5) / 60 * width - width / 2 for width in (2 * np.pi, np.pi, np.pi))
    grid = np.stack(np.meshgrid(around, first, second, indexing="ij"), -1).reshape(-1, 3, 1)
    density = np.exp(np.asarray(law.log_prob(jnp.asarray(grid)), np.float64)) * 2 * np.pi**3 / 60**3
    np.testing.assert_allclose(density.sum(), 1.0, rtol=2e-3)
    vectors = np.asarray(rotated(jnp.asarray(grid)), np.float64)[..., 0]
    np.testing.assert_allclose(vectors.T @ (density[:, None] * vectors), np.eye(4) / 4, atol=1e-3)


def test_angles_and_vectors_are_inverse():
    vectors = np.random.default_rng(0).normal(size=(50, 5, 2)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(rotated(angles_of(jnp.asarray(vectors))), vectors, atol=1e-5)


def test_a_relu_layer_of_fixed_norms_is_inferred(seed):
    x = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
    net = credo.networks.MLP([3], 1, activation="relu")
    model = credo.models.regression(net, prior={"hidden.0.kernel": priors.givens(3.0)}, noise=0.5)
    posterior = credo.fit(model, (x, x[:, 0]), credo.BayesByBackprop(num_steps=300), seed=seed)
    assert "hidden.0.kernel.angle" in posterior.model.template
    assert np.sqrt(np.mean((np.ravel(posterior.predict(x).mean) - x[:, 0]) ** 2)) < 0.5


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (priors.ordered(), r"ordered is for vectors, and 'head.kernel' has shape \(4, 1\)"),
        ({"*.bias": priors.unit_norm()}, r"unit_norm is for kernels, and 'head.bias' has shape \(1,\)"),
        ({"*.bias": priors.givens()}, r"givens is for kernels, and 'head.bias' has shape \(1,\)"),
        ({"hidden.0.kernel": priors.givens()}, r"units of 'hidden.0.kernel', .* one incoming weight"),
        ({"hidden.0.kernel": priors.unit_norm()}, r"units of 'hidden.0.kernel', .* one incoming weight"),
    ],
)
def test_arrays_of_another_kind_are_refused_by_their_path(prior, message):
    model = credo.models.regression(credo.networks.MLP([4], 1), prior=prior)
    with pytest.raises(ValueError, match=message):
        model.bind((np.zeros((3, 1)), np.zeros(3)))


@pytest.mark.parametrize("make", [priors.ordered, priors.unit_norm, priors.givens])
def test_scales_are_positive(make):
    with pytest.raises(ValueError, match="scale must be a positive number, got -1"):
        make(-1.0)
