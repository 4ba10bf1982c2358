"""The expected log prior under a Gaussian q: closed form against Monte Carlo, site by site."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from numpyro.distributions import constraints

from credo import random
from credo.models import Model, priors, regression
from credo.networks import MLP
from credo.typing import Batch
from tests.statistical.moments import assert_mean

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(6, 2)).astype(np.float32), RNG.normal(size=6).astype(np.float32)
FULL = Batch(jnp.asarray(X), jnp.asarray(Y), 6)
NUM_DRAWS = 100_000


def gaussian(model):
    """Means and variances of independent normals over theta."""
    rng = np.random.default_rng(1)
    mean = {name: jnp.asarray(0.5 * rng.normal(size=leaf.shape), jnp.float32) for name, leaf in model.template.items()}
    variance = {name: jnp.asarray(rng.uniform(0.1, 0.6, leaf.shape), jnp.float32) for name, leaf in mean.items()}
    return mean, variance


def draws_of(mean, variance, seed, num=NUM_DRAWS):
    keys = dict(zip(mean, jax.random.split(random.key(seed), len(mean)), strict=True))
    return {
        name: mean[name] + jnp.sqrt(variance[name]) * jax.random.normal(keys[name], (num, *mean[name].shape))
        for name in mean
    }


def both(model, seed):
    """The log prior of draws of q, and what `moments` make of it at the same draws."""
    moments = gaussian(model)
    draws = draws_of(*moments, seed)
    plain = jax.jit(lambda draws: jax.lax.map(model.log_prior, draws, batch_size=1000))(draws)
    averaged = jax.jit(
        lambda draws: jax.lax.map(
            lambda theta: model.log_parts(theta, FULL, moments=moments)[0], draws, batch_size=1000
        )
    )(draws)
    return np.asarray(plain, np.float64), np.asarray(averaged, np.float64)


def assert_same_mean(plain, averaged):
    # Up to the rounding of float32.
    assert_mean(plain - averaged, 0.0, slack=1e-6 * np.abs(plain).max())


def plates(x, y=None):
    """Every way a normal gets its shape: expand, events, arrays of scales, a plate, a scale handler."""
    numpyro.sample("event", dist.Normal(jnp.array([1.0, -1.0]), 2.0).expand([3, 2]).to_event(2))
    numpyro.sample("column", dist.Normal(0.0, jnp.array([[0.5], [2.0]])).expand([2, 3]).to_event(1))
    numpyro.sample("nested", dist.Normal(0.0, jnp.array([0.5, 1.0, 2.0])).to_event(1).expand([4]).to_event(1))
    with numpyro.plate("groups", 3):
        numpyro.sample("group", dist.Normal(0.3, 0.7))
    with handlers.scale(scale=0.5):
        w = numpyro.sample("w", dist.Normal(0.0, 2.0))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(w * x[:, 0], 1.0), obs=y)


NET = MLP(features=[3], out=1)
EXACT = {
    "normal": regression(NET, noise=0.1, prior=priors.normal(0.5)),
    "fan_in": regression(NET, noise=0.1, prior=priors.fan_in(2.0, bias_scale=0.3)),
    "by_path": regression(NET, noise=0.1, prior={"*.bias": dist.Normal(0.5, 3.0), "head.*": priors.normal(0.2)}),
    "plates": Model(plates),
}


@pytest.mark.parametrize("name", EXACT)
def test_the_closed_form_is_the_mean_over_draws_and_depends_on_no_draw(name, seed):
    model = EXACT[name].bind((X, Y))
    assert model.closed_form_sites == set(model.template)
    plain, averaged = both(model, seed)
    assert_same_mean(plain, averaged)
    assert np.ptp(averaged) == 0


def test_a_scale_mixture_is_left_to_the_draws(seed):
    model = regression(NET, noise=0.1, prior=priors.scale_mixture(0.5, 1.0, 0.1)).bind((X, Y))
    assert model.closed_form_sites == frozenset()
    plain, averaged = both(model, seed)
    np.testing.assert_array_equal(plain, averaged)


def hierarchical(x, y=None):
    """A normal under a positive scale of its own, and a site that is masked."""
    tau = numpyro.sample("tau", dist.HalfNormal(1.0))
    scale = numpyro.deterministic("scale", 2 * tau)
    w = numpyro.sample("w", dist.Normal(0.0, scale).expand([2]).to_event(1))
    numpyro.sample("free", dist.Normal(0.0, 1.0))
    with handlers.mask(mask=False):
        numpyro.sample("masked", dist.Normal(0.0, 1.0))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(x @ w, 1.0), obs=y)


def test_parents_take_their_drawn_value_and_other_sites_their_log_density(seed):
    model = Model(hierarchical).bind((X, Y))
    assert model.closed_form_sites == {"w", "free"}
    assert model.hierarchical_sites == {"w"}
    plain, averaged = both(model, seed)
    assert_same_mean(plain, averaged)
    # The variance that is left comes from tau alone.
    assert 0 < averaged.std() < plain.std()


def test_sites_that_the_moments_do_not_name_are_not_averaged():
    model = Model(hierarchical).bind((X, Y))
    mean, variance = gaussian(model)
    theta = {name: leaf[0] for name, leaf in draws_of(mean, variance, seed=0, num=1).items()}
    some = model.log_parts(theta, FULL, moments=({"free": mean["free"]}, {"free": variance["free"]}))[0]
    change = 0.5 * (theta["free"] ** 2 - mean["free"] ** 2 - variance["free"])
    np.testing.assert_allclose(some - model.log_prior(theta), change, atol=1e-5)


def test_the_gradient_reaches_the_moments_and_a_learned_scale():
    def program(x, y=None):
        tau = numpyro.param("tau", 2.0, constraint=constraints.positive)
        w = numpyro.sample("w", dist.Normal(0.0, tau).expand([2]).to_event(1))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal(x @ w, 1.0), obs=y)

    model = Model(program).bind((X, Y))
    mean, variance = {"w": jnp.array([0.5, -1.0])}, {"w": jnp.array([0.2, 0.3])}

    def expected(mean, variance, xi):
        return model.log_parts({"w": jnp.zeros(2), **xi}, FULL, moments=(mean, variance))[0]

    by_mean, by_variance, by_xi = jax.grad(expected, argnums=(0, 1, 2))(mean, variance, {"tau": jnp.log(2.0)})
    np.testing.assert_allclose(by_mean["w"], [-0.125, 0.25], rtol=1e-5)
    np.testing.assert_allclose(by_variance["w"], [-0.125, -0.125], rtol=1e-5)
    # d/d log tau of −2 log tau − (|mean|² + Σ variance)/2tau² is −2 + 1.75/4.
    np.testing.assert_allclose(by_xi["tau"], -2 + 1.75 / 4, rtol=1e-5)
