"""Leave-one-out against the exact answer of linear regression, refitted without each row."""

import sys

import numpy as np
import pytest
from scipy import stats

import credo
from credo.diagnostics import _arviz
from credo.evaluation import loo, waic
from tests.evaluation import exact


@pytest.fixture(scope="module")
def data() -> credo.Data:
    return exact.linear_data(40)


def left_out(data: credo.Data) -> np.ndarray:
    """log p(yₙ | D without n) of every row."""

    def one(row: int) -> float:
        rest = np.arange(data.size) != row
        mean, covariance = exact.normal_posterior(data.x[rest], data.y[rest])
        x = data.x[row]
        return float(stats.norm.logpdf(data.y[row], x @ mean, np.sqrt(x @ covariance @ x + exact.NOISE**2)))

    return np.array([one(row) for row in range(data.size)])


@pytest.mark.parametrize("estimate", [loo, waic])
def test_equals_the_exact_leave_one_out(estimate: object, data: credo.Data, seed: int) -> None:
    found = estimate(exact.posterior(data, 2000, seed), data)
    expected = left_out(data)
    np.testing.assert_allclose(found.pointwise, expected, atol=0.05)
    assert found.elpd == pytest.approx(expected.sum(), abs=0.3)
    assert found.standard_error == pytest.approx(np.std(expected) * np.sqrt(40), rel=0.1)
    assert found.num_effective == pytest.approx(3, abs=1)
    # The density of rows that were fitted would be too good by about the number of parameters.
    assert stats.norm.logpdf(data.y, data.x @ exact.normal_posterior(data.x, data.y)[0], 0.5).sum() > found.elpd + 1
    assert str(found).startswith(f"{found.method}: elpd -")


def test_rows_without_a_target_are_left_out(data: credo.Data) -> None:
    posterior, there = exact.posterior(data), np.arange(data.size) % 4 > 0
    found = loo(posterior, (data.x, np.where(there, data.y, np.nan)))
    assert len(found.pointwise) == there.sum()
    assert found.elpd == pytest.approx(loo(posterior, data.select(there)).elpd)


def test_equals_arviz(data: credo.Data) -> None:
    posterior = exact.posterior(data)
    densities = posterior.predict(data.x).log_prob_by_draw(data.y)
    by_hand = stats.norm.logpdf(data.y, posterior.theta["w"].reshape(-1, 3) @ data.x.T, exact.NOISE)
    np.testing.assert_allclose(densities, by_hand, rtol=1e-4, atol=1e-4)
    theirs, _ = _arviz.leave_one_out(by_hand.reshape(2, 500, -1), 1.0)
    assert loo(posterior, data).elpd == pytest.approx(theirs.sum(), abs=0.02)


def test_a_row_that_decides_the_fit_is_named() -> None:
    data = exact.linear_data(40)
    outlier = credo.Data(np.vstack([data.x, [[60.0, 0, 0]]]), np.append(data.y, -60.0))
    found = loo(exact.posterior(outlier), outlier)
    assert found.k_hat[-1] > 0.7
    assert "have k̂ above 0.7" in found.advice
    assert "can be trusted" in loo(exact.posterior(data), data).advice
    assert "prefer PSIS-LOO" in waic(exact.posterior(outlier), outlier).advice


def test_a_row_without_k_hat_is_not_trusted(data: credo.Data, monkeypatch: pytest.MonkeyPatch) -> None:
    """ArviZ 1.x gives no number where the weights have no tail that could be fitted."""
    without = (np.zeros(data.size), np.where(np.arange(data.size) == 3, np.nan, 0.1))
    monkeypatch.setattr(sys.modules[loo.__module__], "leave_one_out", lambda *_: without)
    assert loo(exact.posterior(data), data).advice.startswith("1 rows have k̂ above 0.7")


def test_a_point_estimate_is_refused(data: credo.Data) -> None:
    with pytest.raises(ValueError, match="only one"):
        loo(exact.posterior(data, 1), data)
