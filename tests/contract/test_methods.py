"""The contract that every registered method keeps. A new method adds one row to `TINY`."""

import json
from functools import partial

import jax
import numpy as np
import pytest
from flax import nnx

import credo
from credo import random
from credo.inference.engine import driver as engine
from credo.inference.registry import METHODS
from tests.kills import fit_through_kills, write_at_every_chunk

# Settings that finish at once. Point estimates start at the prior or use minibatches, so that the seed matters to
# them; samplers thin, so that a chunk's records and steps differ.
TINY = {
    "mle": {"num_steps": 20, "start": "prior"},
    "map": {"num_steps": 20, "batch_size": 7},
    "metropolis": {"num_samples": 8, "num_warmup": 10, "num_chains": 2, "thin": 3},
    "hmc": {"num_samples": 6, "num_warmup": 8, "num_chains": 2, "thin": 2, "max_leapfrogs": 8},
    "nuts": {"num_samples": 6, "num_warmup": 8, "num_chains": 2, "thin": 2, "max_depth": 3},
    "mclmc": {"num_samples": 6, "num_warmup": 8, "num_chains": 2, "thin": 2},
    "parallel_tempering": {"num_samples": 6, "num_warmup": 8, "num_chains": 2, "num_temperatures": 3},
    "sgld": {"num_samples": 6, "num_warmup": 8, "num_chains": 2, "thin": 2, "batch_size": 7},
    "sghmc": {"num_samples": 6, "num_warmup": 4, "num_chains": 2, "thin": 2, "num_cycles": 2, "restart": "prior"},
    "swag": {"num_steps": 20, "num_warmup": 5, "collect_every": 2, "rank": 3, "batch_size": 7},
    "mc_dropout": {"num_steps": 20, "batch_size": 7},
    "laplace": {"training": credo.MAP(num_steps=20, batch_size=7)},
    "bayes_by_backprop": {"num_steps": 20, "batch_size": 7},
    "ivon": {"num_steps": 20, "batch_size": 7},
    "deep_ensemble": {"method": credo.BayesByBackprop(num_steps=20, batch_size=7), "members": 3},
}
X_NEW = np.linspace(-2, 2, 5)


@pytest.fixture(scope="module")
def data() -> credo.Data:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 20)
    return credo.Data(x, 10 + 3 * np.sin(2 * x) + 0.1 * rng.normal(size=20), standardise=True)


@pytest.fixture(scope="module")
def net() -> credo.networks.MLP:
    return credo.networks.MLP([4], out=1, inputs=1)


@pytest.fixture(scope="module")
def model(net) -> credo.Model:
    return credo.models.regression(net)


@pytest.fixture(scope="module", params=sorted(METHODS))
def name(request) -> str:
    if request.param not in TINY:
        pytest.fail(f"the method {request.param!r} is registered and has no row in TINY")
    return request.param


@pytest.fixture(scope="module")
def method(name) -> object:
    return METHODS[name](**TINY[name])


@pytest.fixture(scope="module")
def before(net) -> list[np.ndarray]:
    return values_of(net)


@pytest.fixture(scope="module")
def posterior(before, model, data, method):
    return credo.fit(model, data, method, seed=3)


def values_of(net) -> list[np.ndarray]:
    return [np.array(leaf) for leaf in jax.tree.leaves(nnx.state(net))]


def arrays_of(posterior) -> dict[str, np.ndarray]:
    """What a posterior consists of, by name."""
    if isinstance(posterior, credo.Mixture):
        parts = [arrays_of(member) for member in posterior.members]
        return {f"{index}/{name}": leaf for index, part in enumerate(parts) for name, leaf in part.items()}
    if isinstance(posterior, credo.Dropout):
        return posterior.mean | posterior.rates
    if isinstance(posterior, credo.Gaussian):
        return posterior.mean | posterior.root.to_arrays()
    return posterior.theta | (posterior.infos or {})


def same_bits(one: dict, other: dict) -> bool:
    return one.keys() == other.keys() and all(one[name].tobytes() == other[name].tobytes() for name in one)


def test_every_row_is_a_registered_method():
    assert TINY.keys() == METHODS.keys()


def test_draws_are_finite(posterior):
    draws = posterior.sample(random.key(0), 3)
    assert draws.keys() == posterior.model.template.keys()
    for name, leaf in draws.items():
        assert leaf.shape == (3, *posterior.model.template[name].shape)
        assert np.isfinite(leaf).all()


def test_draws_are_in_chains(posterior, method):
    if not isinstance(posterior, credo.Draws):
        pytest.skip("not a posterior of draws")
    plan = method.plan()
    point_estimate = isinstance(method, credo.MAP)
    axes = (1, 1) if point_estimate else (plan.num_chains, plan.num_draws)
    assert posterior.theta.keys() == posterior.model.template.keys()
    for name, leaf in posterior.theta.items():
        assert leaf.shape == axes + posterior.model.template[name].shape
        assert np.isfinite(leaf).all()
    figures, steps = (posterior.trace, plan.num_kept) if point_estimate else (posterior.infos, plan.num_draws)
    assert all(figure.shape == (axes[0], steps) for figure in figures.values())
    assert np.isfinite(figures["log_joint"]).all()


def test_predicts_in_the_users_units(posterior):
    prediction = posterior.predict(X_NEW)
    assert prediction.mean.shape == (5,)
    assert np.isfinite(prediction.mean).all()
    assert (prediction.aleatoric > 0).all()
    # A hundred steps towards targets near 10 say little, but standardised units would be near 0.
    assert np.abs(prediction.mean - 10).max() < 10


def test_same_seed_same_bits_other_seed_other_draws(model, data, method, posterior):
    again, other = credo.fit(model, data, method, seed=3), credo.fit(model, data, method, seed=4)
    assert same_bits(arrays_of(again), arrays_of(posterior))
    assert same_bits(again.trace, posterior.trace)
    ours, others = (one.sample(random.key(0), 2) for one in (posterior, other))
    assert not any(np.array_equal(others[name], leaf) for name, leaf in ours.items())


def test_killed_run_goes_on_to_the_same_bits(model, data, method, posterior, tmp_path, monkeypatch):
    write_at_every_chunk(monkeypatch)
    fit = partial(credo.fit, model, data, method, seed=3)
    found, num_kills = fit_through_kills(monkeypatch, tmp_path, fit, every=3)
    assert num_kills >= 1
    assert same_bits(arrays_of(found), arrays_of(posterior))
    assert same_bits(found.trace, posterior.trace)
    assert same_bits(arrays_of(credo.load(tmp_path)), arrays_of(posterior))


def test_chains_differ(posterior):
    if not isinstance(posterior, credo.Draws) or posterior.num_chains == 1:
        pytest.skip("a single chain")
    assert not any(np.array_equal(leaf[0], leaf[1]) for leaf in posterior.theta.values())


@pytest.mark.full
def test_result_does_not_depend_on_the_chunk_size(model, data, method, posterior):
    bound = model.bind(data)
    run = engine.run(method, bound, data.batch(), seed=3, records_per_chunk=1)
    one_by_one = method.judged(method.posterior(bound, run), data.batch())
    assert same_bits(arrays_of(one_by_one), arrays_of(posterior))
    assert same_bits(one_by_one.trace, posterior.trace)


def test_network_is_untouched(net, before, posterior):
    after = values_of(net)
    assert len(before) == len(after) == 4
    assert all(old.tobytes() == new.tobytes() for old, new in zip(before, after, strict=True))


def test_saved_and_loaded_predicts_the_same_bits(posterior, tmp_path):
    posterior.save(tmp_path / "run")
    loaded = credo.load(tmp_path / "run")
    assert loaded.provenance == posterior.provenance
    assert same_bits(arrays_of(loaded), arrays_of(posterior))
    assert str(loaded.diagnostics) == str(posterior.diagnostics)
    ours, theirs = posterior.predict(X_NEW), loaded.predict(X_NEW)
    assert ours.mean.tobytes() == theirs.mean.tobytes()
    assert ours.variance.tobytes() == theirs.variance.tobytes()


def test_settings_are_values(method, name):
    twin = type(method)(**TINY[name])
    assert twin == method
    assert hash(twin) == hash(method)
    assert repr(method).startswith(f"{type(method).__name__}(")
    config = method.to_config()
    assert json.loads(json.dumps(config)) == config
    assert config["name"] == type(method).__name__


def test_tells_what_it_will_hold_in_memory(method, model, data, posterior):
    needs = method.describe(model, data)
    assert needs.num_parameters == posterior.model.num_parameters == 14
    assert needs.num_bytes >= posterior.num_bytes
    if isinstance(posterior, credo.Draws):
        assert needs.num_bytes == posterior.num_bytes + method.extra_bytes(14)
    assert "14 parameters" in str(needs)
    assert "bytes" in str(needs) or "kB" in str(needs)


def test_diagnostics_print(posterior):
    assert posterior.diagnostics.verdict in str(posterior.diagnostics)
