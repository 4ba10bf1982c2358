"""Floor 2: every exact sampler reproduces posteriors that are known in closed form."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from tests.statistical.moments import NUM_STANDARD_ERRORS, assert_moments, moment_errors
from tests.statistical.targets import Target, correlated_normal, linear_predictive, linear_regression, skewed

SAMPLERS = {
    "metropolis-normal": credo.Metropolis(num_samples=2000, thin=50, num_warmup=2000),
    "metropolis-uniform": credo.Metropolis("uniform", num_samples=2000, thin=50, num_warmup=2000),
    "hmc": credo.HMC(num_samples=1500, num_warmup=500),
    "nuts": credo.NUTS(num_samples=1500, num_warmup=500),
    "nuts-full": credo.NUTS(num_samples=1500, num_warmup=500, mass="full"),
}


@pytest.fixture(scope="module", params=SAMPLERS)
def linear(request: pytest.FixtureRequest) -> tuple[Target, credo.Draws]:
    target = linear_regression()
    return target, credo.fit(target.model, target.data, SAMPLERS[request.param], seed=1)


def test_posterior_of_linear_regression(linear: tuple[Target, credo.Draws]) -> None:
    target, posterior = linear
    assert_moments(target.draws(posterior), target.mean, target.sd)


def test_marginal_predictive_of_linear_regression(linear: tuple[Target, credo.Draws]) -> None:
    target, posterior = linear
    x = np.random.default_rng(1).normal(size=(20, 3)) * 3
    mean, variance = linear_predictive(target, x)
    predictive = posterior.predict(x)
    # The functions are draws of the noise-free mean: their own Monte Carlo error is that of draws.
    functions = predictive.functions.reshape(posterior.num_chains, posterior.num_draws, -1)
    assert_moments(functions, mean, np.sqrt(variance - 0.25))
    np.testing.assert_allclose(np.sqrt(predictive.variance), np.sqrt(variance), rtol=0.05)
    np.testing.assert_allclose(predictive.aleatoric, 0.25, rtol=1e-5)


@pytest.mark.parametrize(
    "method",
    [
        credo.Metropolis(num_samples=2000, thin=400, num_warmup=5000),
        credo.HMC(num_samples=1500, num_warmup=500),
        credo.NUTS(num_samples=1500, num_warmup=500),
        credo.NUTS(num_samples=1500, num_warmup=500, mass="full"),
    ],
    ids=["metropolis", "hmc", "nuts", "nuts-full"],
)
def test_correlated_normal(method: credo.NUTS) -> None:
    target = correlated_normal()
    posterior = credo.fit(target.model, target.data, method, seed=2)
    assert_moments(target.draws(posterior), target.mean, target.sd)


@pytest.mark.parametrize("name", ["metropolis-normal", "hmc", "nuts"])
def test_skewed_target(name: str) -> None:
    target = skewed()
    # Heavy tails: the variance of its variance is that of a normal two and a half times, so more draws are needed.
    method = replace(SAMPLERS[name], num_samples=10_000)
    posterior = credo.fit(target.model, target.data, method, seed=3)
    draws = target.draws(posterior)
    assert_moments(draws, target.mean, target.sd)
    # The third moment too: E[w³] = 2·3·4 = 24, sd of w³ = √(2·3·4·5·6·7 − 24²).
    assert_mean_of(draws**3, 24.0, np.sqrt(5040 - 576))


def test_asymmetric_proposal_is_corrected() -> None:
    """A random walk with a drift to the right: without the Hastings factor the draws would drift too."""
    target = skewed()
    method = credo.MetropolisHastings(DRIFTING, num_samples=2000, thin=30, num_warmup=500)
    posterior = credo.fit(target.model, target.data, method, seed=4)
    assert_moments(target.draws(posterior), target.mean, target.sd)


def _drift(key: jax.Array, theta: credo.typing.Theta) -> credo.typing.Theta:
    return {"w": theta["w"] + 0.5 + jax.random.normal(key, theta["w"].shape)}


def _log_drift(new: credo.typing.Theta, old: credo.typing.Theta) -> jax.Array:
    return -0.5 * jnp.sum((new["w"] - old["w"] - 0.5) ** 2)


DRIFTING = credo.Proposal(_drift, _log_drift)


def assert_mean_of(draws: np.ndarray, mean: float, sd: float) -> None:
    error, _ = moment_errors(draws, np.array([mean]), np.array([sd]))
    assert np.all(error < NUM_STANDARD_ERRORS)
