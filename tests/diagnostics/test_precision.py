"""The Monte Carlo error of predictions: that of independent draws is known, and sticky draws have more."""

import numpy as np
import pytest

from credo.diagnostics.precision import Precision, precision_of
from tests.evaluation import exact

NUM_DRAWS = 400


@pytest.fixture(scope="module")
def data():
    return exact.linear_data(20)


def test_of_independent_draws_it_is_their_sd_by_the_root_of_their_number(data, seed) -> None:
    """ESS of 800 independent draws is off by a tenth or so, its root by half of that, and five rows share it."""
    posterior = exact.posterior(data, NUM_DRAWS, seed)
    found = precision_of(posterior.predict(data.x[:5]), posterior.num_chains)
    _, covariance = exact.normal_posterior(data.x, data.y)
    epistemic = np.einsum("ni,ij,nj->n", data.x[:5], covariance, data.x[:5])
    shares = np.sqrt(epistemic / (2 * NUM_DRAWS) / (epistemic + exact.NOISE**2))
    assert found.mean == pytest.approx(np.sqrt(np.mean(shares**2)), rel=0.25)
    # An end moves with the mean and with the width.
    assert found.mean < found.ends < 2 * found.mean
    # Two chains' means differ by √2 times their own errors, which are √2 times that of both together.
    assert found.disagreement < 6 * found.mean


def test_draws_that_are_repeated_count_once(data, seed) -> None:
    """Each draw four times in a row: a quarter of the effective draws, twice the error."""
    posterior = exact.posterior(data, NUM_DRAWS, seed)
    sticky = exact.posterior(data, NUM_DRAWS // 4, seed)
    repeated = type(posterior)(
        sticky.model, {"w": np.repeat(sticky.theta["w"], 4, axis=1)}, sticky.provenance, probes=sticky.probes
    )
    fresh, stuck = (precision_of(one.predict(data.x[:5]), 2) for one in (posterior, repeated))
    assert stuck.mean / fresh.mean == pytest.approx(2, rel=0.35)


def test_the_larger_error_counts() -> None:
    assert Precision(mean=0.1, ends=0.2, disagreement=None).share == 0.2
    assert Precision(mean=0.1, ends=None, disagreement=None).share == 0.1
