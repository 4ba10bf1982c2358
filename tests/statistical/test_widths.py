"""The widths of a network's functions: MCLMC, which no step corrects, beside NUTS, which is exact."""

import numpy as np
import pytest

import credo
from credo.inference.mcmc import mclmc
from tests.statistical.moments import sigmas

DATA = credo.datasets.gap()
MODEL = credo.models.regression(credo.networks.MLP([20], out=1, activation="tanh"))
PROBES = np.linspace(DATA.x.min(), DATA.x.max(), 20)[:, None]
NUTS = credo.NUTS(num_samples=1000, num_warmup=500, max_depth=8)
MCLMC = credo.MCLMC(num_samples=1000, num_warmup=3000, thin=20)
# The logarithm of an sd of n effective draws is off by 1/√(2n): n is some 50 at the worst of the probes, and several
# hundred at most of them; the largest of twenty errors of sds known to 3% each, 2% for the bias.
ALLOWED = sigmas(20) * 0.03 + 0.02


@pytest.fixture(scope="module")
def exact(seed: int) -> np.ndarray:
    return np.log(credo.fit(MODEL, DATA, NUTS, seed=seed).predict(PROBES).functions.std(0))


def excess(exact: np.ndarray, seed: int) -> float:
    """How much wider the functions are at the worst of the probes, as a logarithm."""
    drawn = credo.fit(MODEL, DATA, MCLMC, seed=seed).predict(PROBES).functions
    return float(np.max(np.log(drawn.std(0)) - exact))


@pytest.mark.full
def test_functions_are_as_wide_as_they_should_be(exact: np.ndarray, seed: int) -> None:
    assert excess(exact, seed) < ALLOWED


@pytest.mark.full
def test_a_direction_that_lasts_too_long_widens_them(exact: np.ndarray, seed: int, monkeypatch) -> None:
    """More effective draws by every diagnostic, of another density: only the widths tell."""
    monkeypatch.setattr(mclmc, "PERSISTENCE", 16.0)
    # Another method than the one whose programs are compiled: settings are the key, and this is none.
    monkeypatch.setattr("tests.statistical.test_widths.MCLMC", credo.MCLMC(**vars(MCLMC) | {"thin": 21}))
    assert excess(exact, seed) > ALLOWED
