"""The widths of a network's functions: MCLMC, which no step corrects, beside NUTS, which is exact."""

from dataclasses import replace

import numpy as np
import pytest

import credo
from tests.statistical.moments import sigmas

DATA = credo.datasets.gap()
MODEL = credo.models.regression(credo.networks.MLP([20], out=1, activation="tanh"))
PROBES = np.linspace(DATA.x.min(), DATA.x.max(), 20)[:, None]
# From trained networks: of chains that start from the prior, one in a hundred does not arrive.
START = credo.MAP(num_steps=500)
NUTS = credo.NUTS(num_samples=1000, num_warmup=500, max_depth=8, start=START)
MCLMC = credo.MCLMC(num_samples=1000, num_warmup=3000, thin=20, start=START)
# The logarithm of an sd of n effective draws is off by 1/√(2n), 6% for the 140 that there are at the worst of the
# probes; the largest of twenty such errors, and 2% for the bias of the step size.
ALLOWED = sigmas(20) * 0.06 + 0.02


@pytest.fixture(scope="module")
def exact(seed: int) -> np.ndarray:
    return np.log(credo.fit(MODEL, DATA, NUTS, seed=seed).predict(PROBES).functions.std(0))


def excess(exact: np.ndarray, method: credo.MCLMC, seed: int) -> float:
    """How much wider the functions are at the worst of the probes, as a logarithm."""
    drawn = credo.fit(MODEL, DATA, method, seed=seed).predict(PROBES).functions
    return float(np.max(np.log(drawn.std(0)) - exact))


@pytest.mark.full
def test_functions_are_as_wide_as_they_should_be(exact: np.ndarray, seed: int) -> None:
    assert excess(exact, MCLMC, seed) < ALLOWED


@pytest.mark.full
def test_a_direction_that_lasts_too_long_widens_them(exact: np.ndarray, seed: int) -> None:
    """More effective draws by every diagnostic, of another density: only the widths tell."""
    assert excess(exact, replace(MCLMC, persistence=16.0), seed) > ALLOWED
