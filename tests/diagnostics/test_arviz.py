"""One door to ArviZ 0.23 and 1.x: the same answers through both, whichever of them is installed.

The other generation is stood in for by functions with its signatures, that compute by the installed one.
"""

import importlib.util
import sys
import warnings
from types import ModuleType, SimpleNamespace
from typing import Any

import arviz
import numpy as np
import pytest
import xarray

import credo
from credo.diagnostics import _arviz
from tests.evaluation import exact

NUM_CHAINS, NUM_DRAWS, NUM_ROWS = 3, 200, 7


def from_one() -> dict[str, ModuleType]:
    """Modules with the signatures of ArviZ 1.3."""

    def from_dict(
        data, *, name=None, sample_dims=None, save_warmup=None, index_origin=None, coords=None, dims=None,
        pred_dims=None, pred_coords=None, check_conventions=True, attrs=None,
    ):  # fmt: skip
        groups = {group: arviz.convert_to_dataset(values) for group, values in data.items()}
        return xarray.DataTree.from_dict(groups, name=name)

    def ess(
        data, sample_dims=None, group="posterior", var_names=None, filter_vars=None, coords=None, method="bulk",
        relative=False, prob=None, chain_axis=0, draw_axis=1,
    ):  # fmt: skip
        return arviz.ess(data, method=method)

    def rhat(
        data, sample_dims=None, group="posterior", var_names=None, filter_vars=None, coords=None, method="rank",
        chain_axis=0, draw_axis=1,
    ):  # fmt: skip
        return arviz.rhat(data, method=method)

    def mcse(
        data, sample_dims=None, group="posterior", var_names=None, filter_vars=None, coords=None, method="mean",
        prob=None, circular=False, chain_axis=0, draw_axis=1,
    ):  # fmt: skip
        return arviz.mcse(data, method=method)

    def loo(
        data, pointwise=None, var_name=None, reff=None, log_lik_fn=None, log_weights=None, pareto_k=None,
        log_jacobian=None, mixture=False, moment_match=False, model=None,
    ):  # fmt: skip
        densities = data.log_likelihood["y"].values
        elpd_i, k_hat = _arviz.leave_one_out(densities, reff)
        return SimpleNamespace(
            elpd=elpd_i.sum(), elpd_i=xarray.DataArray(elpd_i), pareto_k=xarray.DataArray(k_hat), kind="loo"
        )

    def psislw(ary, r_eff=1, axis=-1):
        return _arviz.smoothed_weights(-ary, r_eff)

    whole, base = ModuleType("arviz"), ModuleType("arviz_stats.base")
    vars(whole).update(
        __version__="1.3.0", from_dict=from_dict, ess=ess, rhat=rhat, mcse=mcse, loo=loo,
        convert_to_dataset=arviz.convert_to_dataset,
    )  # fmt: skip
    vars(base).update(array_stats=SimpleNamespace(psislw=psislw))
    return {"arviz": whole, "arviz_stats": ModuleType("arviz_stats"), "arviz_stats.base": base}


def before_one() -> dict[str, ModuleType]:
    """A module with the signatures of ArviZ 0.23."""

    def from_dict(
        posterior=None, *, posterior_predictive=None, predictions=None, sample_stats=None, log_likelihood=None,
        prior=None, prior_predictive=None, sample_stats_prior=None, observed_data=None, constant_data=None,
        coords=None, dims=None, attrs=None, **kwargs,
    ):  # fmt: skip
        named = {"posterior": posterior, "sample_stats": sample_stats, "log_likelihood": log_likelihood}
        return SimpleNamespace(
            **{group: arviz.convert_to_dataset(values) for group, values in named.items() if values is not None}
        )

    def ess(data, *, var_names=None, method="bulk", relative=False, prob=None, dask_kwargs=None):
        return arviz.ess(data, method=method)

    def rhat(data, *, var_names=None, method="rank", dask_kwargs=None):
        return arviz.rhat(data, method=method)

    def mcse(data, *, var_names=None, method="mean", prob=None, dask_kwargs=None):
        return arviz.mcse(data, method=method)

    def loo(data, pointwise=None, var_name=None, reff=None, scale=None):
        elpd_i, k_hat = _arviz.leave_one_out(data.log_likelihood["y"].values, reff)
        return SimpleNamespace(elpd_loo=elpd_i.sum(), loo_i=xarray.DataArray(elpd_i), pareto_k=xarray.DataArray(k_hat))

    def psislw(log_weights, reff=1.0, normalize=True):
        return _arviz.smoothed_weights(log_weights, reff)

    whole = ModuleType("arviz")
    vars(whole).update(
        __version__="0.23.4", from_dict=from_dict, ess=ess, rhat=rhat, mcse=mcse, loo=loo, psislw=psislw,
        convert_to_dataset=arviz.convert_to_dataset,
    )  # fmt: skip
    return {"arviz": whole}


@pytest.fixture(params=[before_one, from_one])
def door(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The adapter, read anew beside a stand-in of one generation; what is installed has its names back afterwards."""
    spec = importlib.util.spec_from_file_location("door", _arviz.__file__)
    door = importlib.util.module_from_spec(spec)
    with monkeypatch.context() as standing_in:
        for name, module in request.param().items():
            standing_in.setitem(sys.modules, name, module)
        spec.loader.exec_module(door)
    assert (door.FROM_ONE, door.arviz is arviz) == (request.param is from_one, False)
    return door


@pytest.fixture(scope="module")
def draws() -> np.ndarray:
    steps = np.random.default_rng(0).normal(size=(NUM_CHAINS, NUM_DRAWS, NUM_ROWS))
    return 0.3 * np.cumsum(steps, axis=1) + steps


def test_figures_of_chains_are_the_same(door: Any, draws: np.ndarray) -> None:
    np.testing.assert_array_equal(door.rhat(draws), _arviz.rhat(draws))
    for method in ("bulk", "tail", "mean"):
        np.testing.assert_array_equal(door.ess(draws, method), _arviz.ess(draws, method))
    for method in ("mean", "sd"):
        np.testing.assert_array_equal(door.mcse(draws, method), _arviz.mcse(draws, method))


def test_weights_and_leave_one_out_are_the_same(door: Any, draws: np.ndarray) -> None:
    densities = -0.5 * draws**2
    for theirs, ours in zip(door.leave_one_out(densities, 0.5), _arviz.leave_one_out(densities, 0.5), strict=True):
        np.testing.assert_array_equal(theirs, ours)
    ratios = -densities.reshape(-1, NUM_ROWS).T
    for theirs, ours in zip(door.smoothed_weights(ratios, 0.5), _arviz.smoothed_weights(ratios, 0.5), strict=True):
        np.testing.assert_array_equal(theirs, ours)


def test_groups_are_the_same(door: Any, draws: np.ndarray) -> None:
    found = door.inference_data(posterior={"w": draws}, sample_stats={"lp": draws[..., 0]})
    np.testing.assert_array_equal(found.posterior["w"].values, draws)
    assert found.posterior["w"].dims[:2] == ("chain", "draw")
    assert found.sample_stats["lp"].shape == (NUM_CHAINS, NUM_DRAWS)


def test_a_large_ratio_is_a_large_weight() -> None:
    """1.x takes log likelihoods where 0.23 takes log ratios: the sign must not be lost."""
    ratios = np.linspace(0.0, 3.0, 100)[None]
    logs, k_hat = _arviz.smoothed_weights(ratios)
    assert logs[0, -1] == logs.max() > logs[0, 0] == logs.min()
    assert np.exp(logs).sum() == pytest.approx(1.0)
    assert k_hat.shape == (1,)


def test_leave_one_out_is_that_of_its_weights(draws: np.ndarray) -> None:
    """log p(yₙ | D without n) = log Σᵢ wᵢₙ p(yₙ | thetaᵢ), with the weights wᵢₙ ∝ 1 / p(yₙ | thetaᵢ), smoothed."""
    densities = -0.5 * draws**2
    rows = densities.reshape(-1, NUM_ROWS).T
    logs, k_hat = _arviz.smoothed_weights(-rows, 0.5)
    found, found_k_hat = _arviz.leave_one_out(densities, 0.5)
    np.testing.assert_allclose(found, np.log(np.sum(np.exp(logs + rows), axis=-1)), rtol=1e-8)
    np.testing.assert_allclose(found_k_hat, k_hat, rtol=1e-8)


def test_who_asks_hears_no_warning() -> None:
    """A row that decides the fit alone has a large k̂, of which ArviZ warns and credo gives advice."""
    densities = 3.0 * np.random.default_rng(0).normal(size=(2, 100, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, k_hat = _arviz.leave_one_out(densities, 1.0)
    assert np.max(k_hat) > 0.7


def test_what_to_arviz_gives_is_what_arviz_takes() -> None:
    posterior = exact.posterior(exact.linear_data(10))
    assert isinstance(posterior, credo.Draws)
    assert set(arviz.summary(posterior.to_arviz()).index) == {"w[0]", "w[1]", "w[2]"}
