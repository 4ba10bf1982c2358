"""A posterior that is known: Bayesian linear regression, as draws from its exact normal."""

import numpy as np
import numpyro
import numpyro.distributions as dist

import credo
from credo.posterior import Draws, Provenance

NOISE = 0.5


def program(x: np.ndarray, y: np.ndarray | None = None) -> None:
    w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(x @ w, NOISE), obs=y)


def linear_data(num: int, seed: int = 0) -> credo.Data:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(num, 3))
    return credo.Data(x, x @ [1.0, -0.5, 0.25] + NOISE * rng.normal(size=num), target="length", unit="cm")


def normal_posterior(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """S⁻¹ = I + XᵀX/σ², m = SXᵀy/σ²."""
    covariance = np.linalg.inv(np.eye(3) + x.T @ x / NOISE**2)
    return covariance @ x.T @ y / NOISE**2, covariance


def posterior(data: credo.Data, num_draws: int = 500, seed: int = 0) -> Draws:
    """Two chains of independent draws; one draw is the mode."""
    mean, covariance = normal_posterior(data.x, data.y)
    chains = 2 if num_draws > 1 else 1
    noise = np.random.default_rng(seed).normal(size=(chains, num_draws, 3)) if num_draws > 1 else np.zeros((1, 1, 3))
    theta = {"w": (mean + noise @ np.linalg.cholesky(covariance).T).astype(np.float32)}
    provenance = Provenance({"name": "exact"}, seed, 1.5 if num_draws > 1 else 0.5, data.size)
    return Draws(credo.Model(program).bind(data), theta, provenance, probes=data.x[:5])
