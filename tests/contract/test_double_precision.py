"""Where JAX is set to double precision every method computes in it: what precision can break, for each of them."""

import warnings

import jax
import numpy as np
import pytest

import credo
from credo import random, testing
from credo._precision import for_threads, working_precision
from credo.data import Scaling
from credo.inference.engine.fit_folder import FitFolder, identity_of
from credo.inference.registry import METHODS
from credo.models.sites import Xi
from credo.posterior.saving import pack
from tests.contract.test_methods import PRIORS, TINY
from tests.kills import fit_through_kills, write_at_every_chunk

X = np.linspace(-2, 2, 5)
# One method for each way in which a posterior predicts.
KINDS = ("closed_form", "deep_ensemble", "laplace", "mc_dropout", "mle", "nuts")


@pytest.fixture
def double():
    """As users do for a part of a program: threads that work for this one have to be told."""
    with jax.enable_x64(True):
        yield


def case_of(name: str) -> testing.Case:
    return testing.Case(METHODS[name](**TINY[name]), PRIORS.get(name))


def single_leaves(arrays):
    return {name: leaf.dtype for name, leaf in arrays.items() if leaf.dtype == np.float32}


def mostly_full(names, *chosen):
    """All names, those that are not chosen only in the long run."""
    return [name if name in chosen else pytest.param(name, marks=pytest.mark.full) for name in names]


@pytest.mark.parametrize("name", sorted(METHODS))
def test_contract(name, double, tmp_path):
    """All that is kept, drawn and predicted has double precision, and is the same on its way through files."""
    case = case_of(name)
    posterior = case.posterior
    assert not single_leaves(pack(posterior)[1])
    draws = posterior.sample(random.key(0), 2)
    assert not single_leaves(draws)
    assert all(np.all(np.isfinite(leaf)) for leaf in draws.values())
    testing.check_memory(case)
    posterior.save(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = credo.load(tmp_path)
    assert testing.same_bits(loaded, posterior)
    mean = posterior.predict(X).mean
    assert mean.dtype == np.float64
    assert mean.tobytes() == loaded.predict(X).mean.tobytes()
    if name in KINDS:
        assert_rounded_where_jax_is_set_to_single(tmp_path, mean)


def assert_rounded_where_jax_is_set_to_single(folder, mean):
    with jax.enable_x64(False):
        with pytest.warns(UserWarning, match="was fitted in double precision, and JAX is set to single"):
            loaded = credo.load(folder)
        found = loaded.predict(X).mean
    np.testing.assert_allclose(found, mean, rtol=1e-4)
    assert not np.array_equal(found, mean)


@pytest.mark.parametrize("name", mostly_full(KINDS, "laplace", "nuts"))
def test_a_posterior_of_single_precision_predicts_in_double(name):
    posterior = case_of(name).posterior
    before, y = posterior.predict(X), np.full(5, 10.0)
    mean = before.mean
    with jax.enable_x64(True):
        found = posterior.predict(X)
        assert not single_leaves({"mean": found.mean, "variance": found.variance})
        np.testing.assert_allclose(found.mean, mean, rtol=1e-4)
        # What is asked of a prediction that was made before is answered too.
        assert np.all(np.isfinite(before.log_prob(y)))


def test_killed_run_goes_on_to_the_same_bits(double, tmp_path, monkeypatch):
    case = case_of("nuts")
    write_at_every_chunk(monkeypatch)
    found, num_kills = fit_through_kills(monkeypatch, tmp_path, case.fit, every=3)
    assert num_kills >= 1
    assert testing.same_bits(found, case.posterior)


def test_a_run_goes_on_in_its_own_precision_only(tmp_path):
    identities = []
    for precise in (False, True):
        with jax.enable_x64(precise):
            case = case_of("map")
            model = case.model.bind(case.data)
            identities.append(identity_of(case.method, [model], [], 0))
    with FitFolder(tmp_path, identities[0], resume=False):
        pass
    with pytest.raises(ValueError, match="its precision differ"), FitFolder(tmp_path, identities[1], resume=True):
        pass


# -- the pieces, without a compiler ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_data_have_the_working_precision_whatever_they_came_in(dtype):
    x = np.array([[0.1], [0.7]], dtype)
    data = credo.Data(x, x[:, 0])
    before = data.batch()
    assert before.x.dtype == before.y.dtype == np.float32
    with jax.enable_x64(True):
        assert data.batch().x.dtype == data.batch().y.dtype == np.float64
        np.testing.assert_array_equal(data.batch().x, x.astype(np.float64))
        assert Scaling(y_mean=np.asarray(1.0)).targets(x).dtype == np.float64
    assert data.batch() is before


def test_theta_has_the_working_precision_whenever_the_model_was_bound():
    model = credo.models.regression(credo.networks.MLP([2], out=1)).bind((np.zeros((3, 1)), np.zeros(3)))
    assert {leaf.dtype for leaf in model.template.values()} == {np.dtype(np.float32)}
    with jax.enable_x64(True):
        assert {leaf.dtype for leaf in model.template.values()} == {np.dtype(np.float64)}
        assert model.example().x.dtype == np.float64
        again = credo.models.regression(credo.networks.MLP([2], out=1)).bind((np.zeros((3, 1)), np.zeros(3)))
        assert again.rows == model.rows


def test_a_network_meets_one_precision(double):
    """Products of mixed precision are refused by JAX's own primitives, of which convolutions are made."""
    net = (lambda params, x: jax.lax.dot(x, params["w"]), {"w": np.ones((3, 1), np.float32)})
    network = credo.networks.functional(net)
    assert network.params["w"].dtype == np.float64
    for dtype in (np.float32, np.float64):
        assert network.apply({"w": np.ones((3, 1), dtype)}, np.ones((2, 3), np.float32)).dtype == np.float64


def test_constants_are_rounded_and_widened():
    single = Xi.of({"scale": 1 / 3})
    with jax.enable_x64(True):
        double = Xi.of({"scale": 1 / 3})
        assert double.arrays()["scale"] == 1 / 3
        assert single.arrays()["scale"].dtype == np.float64
    assert double.arrays()["scale"].dtype == np.float32
    assert double != single


def test_noise_is_the_same_in_both_precisions():
    single = random.normal(random.key(0), (1000,))
    with jax.enable_x64(True):
        double = random.normal(random.key(0), (1000,))
        assert double.dtype == np.float64
        assert random.mix(jax.random.bits(random.key(0))).dtype == np.uint32
        # A row that differs in its last digits only is another row.
        assert random.content(np.array([0.1])) != random.content(np.array([0.1 + 1e-15]))
    np.testing.assert_allclose(double, single, rtol=1e-5, atol=1e-6)


def test_threads_compute_in_the_precision_of_the_thread_they_work_for():
    found = []
    with jax.enable_x64(True):
        task = for_threads(lambda: found.append(working_precision()))
    task()
    assert found == [np.float64]
    assert working_precision() == np.float32
