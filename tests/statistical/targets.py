"""Posteriors that are known exactly: conjugate linear regression, a correlated normal, a skewed variable.

Each is one object, so that all runs on it share their compiled programs.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import numpyro
import numpyro.distributions as dist

import credo

NOISE = 0.5


class Target(NamedTuple):
    model: credo.Model
    data: credo.Data
    mean: np.ndarray
    sd: np.ndarray
    kurtosis: float = 3.0

    def draws(self, posterior: credo.Draws) -> np.ndarray:
        """Draws in the units of the program, (chains, draws, D), in the order of `mean`."""
        constrained = posterior.constrained()
        leaves = [constrained[name] for name in sorted(constrained, key=lambda name: "bias" in name)]
        return np.concatenate([leaf.reshape(*leaf.shape[:2], -1) for leaf in leaves], axis=-1)


@cache
def linear_regression() -> Target:
    """A network of one linear layer with prior N(0, 1) and known noise: N(m, S), S⁻¹ = I + AᵀA/σ², m = SAᵀy/σ²."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0.5], [0, 0, 1]])
    y = x @ [1.0, -0.5, 0.25] + 0.3 + NOISE * rng.normal(size=30)
    design = np.column_stack([x, np.ones(30)])
    covariance = np.linalg.inv(np.eye(4) + design.T @ design / NOISE**2)
    mean = covariance @ design.T @ y / NOISE**2
    model = credo.models.regression(credo.networks.MLP([], out=1), noise=NOISE)
    return Target(model, credo.Data(x, y), mean, np.sqrt(np.diag(covariance)))


def linear_predictive(target: Target, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the exact marginal p(y | x, D) of linear regression."""
    design = np.column_stack([target.data.x, np.ones(target.data.size)])
    covariance = np.linalg.inv(np.eye(4) + design.T @ design / NOISE**2)
    rows = np.column_stack([x, np.ones(len(x))])
    return rows @ target.mean, np.einsum("ij,jk,ik->i", rows, covariance, rows) + NOISE**2


@cache
def correlated_normal() -> Target:
    """A normal in two dimensions with condition number 1,000, turned by 30 degrees."""
    angle = np.pi / 6
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    covariance = turn @ np.diag([1.0, 1e-3]) @ turn.T
    mean = np.array([1.0, -2.0])
    return _latent(dist.MultivariateNormal(mean, covariance), mean, np.sqrt(np.diag(covariance)))


@cache
def skewed() -> Target:
    """A gamma variable with shape 2: positive, skewness 1.4, kurtosis 3 + 6/2; sampled as its logarithm."""
    return _latent(dist.Gamma(2.0, 1.0).expand([1]).to_event(1), np.array([2.0]), np.array([np.sqrt(2.0)]), 6.0)


def _latent(distribution: dist.Distribution, mean: np.ndarray, sd: np.ndarray, kurtosis: float = 3.0) -> Target:
    """A model whose data say nothing, so that the posterior is the prior."""

    def program(x: np.ndarray, y: np.ndarray | None = None) -> None:
        numpyro.sample("w", distribution)
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal(0.0, 1.0), obs=y)

    return Target(credo.Model(program), credo.Data(np.zeros((2, 1)), np.zeros(2)), mean, sd, kurtosis)
