"""Real targets: how much the law that is found gains beside Gaussian noise."""

import pytest
from benchmarks.targets import absent, densities, strikes

import credo
from credo.models.found import found


@pytest.mark.full
@pytest.mark.parametrize(("rows", "margin"), [(absent(), 0.25), (strikes(), 0.2)], ids=["absent", "strikes"])
def test_what_is_found_beats_gaussian_noise(rows, margin):
    """In nats a row of log-likelihood, each row left out in turn; no lower bound of an interval is negative."""
    x, y = rows
    data = credo.Data(x, y.astype(float), standardise=True)
    likelihood = found(data).likelihood
    assert likelihood in ("counts", "positive")  # days are whole numbers above zero
    (own, lower), (gaussian, below) = densities(data, likelihood=likelihood), densities(data, noise="learned")
    gain = (own - gaussian).mean()
    print(f"{likelihood}: gain {gain:.2f} nats a row")
    assert gain > margin
    assert lower >= 0 > below
