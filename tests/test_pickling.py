"""Posteriors, models and predictions in other processes: what arrives answers with the same bits."""

import copy
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from flax import nnx

import credo

SAVED = Path(__file__).parent / "posterior" / "saved"
KINDS = sorted(folder.name for folder in SAVED.iterdir() if folder.is_dir())
X = np.linspace(-2, 2, 5)


def again(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def program(x: Any, y: Any = None) -> None:
    weight = numpyro.sample("weight", dist.Normal(0, 1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(weight * x[:, 0], 0.1), obs=y)


def fitted(model: credo.Model) -> Any:
    data = X[:, None], np.sin(X)
    return credo.fit(model, data, credo.MAP(num_steps=2), progress=False)


@pytest.fixture(scope="module")
def of_own_program() -> Any:
    return fitted(credo.Model(program))


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_posterior_pickles_and_copies(name: str) -> None:
    posterior = credo.load(SAVED / name)
    expected = posterior.predict(X).mean
    for other in (again(posterior), copy.copy(posterior), copy.deepcopy(posterior)):
        assert type(other) is type(posterior)
        np.testing.assert_array_equal(other.predict(X).mean, expected)
        assert other.provenance == posterior.provenance
    # A deep copy has arrays of its own, and the same program, which need not be compiled again.
    assert copy.deepcopy(posterior).model is posterior.model
    np.testing.assert_array_equal(again(posterior.predict(X)).std, posterior.predict(X).std)


def test_what_arrives_twice_is_compiled_once() -> None:
    content = pickle.dumps(credo.load(SAVED / "draws"))
    first, second = pickle.loads(content), pickle.loads(content)
    assert first.model == second.model
    assert hash(first.model) == hash(second.model)


def test_a_prediction_pickles_after_it_was_asked() -> None:
    prediction = credo.load(SAVED / "draws").predict(X)
    asked = prediction.log_prob(np.zeros(5))
    np.testing.assert_array_equal(again(prediction).log_prob(np.zeros(5)), asked)


def test_a_program_of_ones_own_goes_by_its_name(of_own_program: Any) -> None:
    other = again(of_own_program)
    assert other.model.program is program
    np.testing.assert_array_equal(other.predict(X).mean, of_own_program.predict(X).mean)


def test_a_program_without_a_name_goes_by_its_code(of_own_program: Any) -> None:
    nameless = of_own_program.with_model(lambda model: copy_with(model, lambda x, y=None: program(x, y)))
    np.testing.assert_array_equal(again(nameless).predict(X).mean, of_own_program.predict(X).mean)


def test_a_program_that_cannot_travel_is_named(of_own_program: Any) -> None:
    def held(x: Any, y: Any = None, file: Any = None) -> None:
        program(x, y)

    with Path(__file__).open(encoding="utf-8") as file:
        stuck = of_own_program.with_model(lambda model: copy_with(model, partial(held, file=file.buffer.raw)))
        with pytest.raises(pickle.PicklingError, match=r"the model's program does not pickle: .*; save the posterior"):
            pickle.dumps(stuck)


def copy_with(model: credo.Model, other: Any) -> credo.Model:
    return credo.Model(other, rows=model.rows)


def test_a_network_of_ones_own_comes_along() -> None:
    """Its activation is one of JAX's functions, which pickle cannot find by name."""
    rngs = nnx.Rngs(0)
    net = nnx.Sequential(nnx.Linear(1, 3, rngs=rngs), jax.nn.relu, nnx.Linear(3, 1, rngs=rngs))
    posterior = fitted(credo.models.regression(net))
    np.testing.assert_array_equal(again(posterior).predict(X).mean, posterior.predict(X).mean)


def test_a_model_keeps_what_it_has_become() -> None:
    condition = credo.conditions.monotone({0: 1})
    prior = credo.priors.consistent(None, condition, inputs=X[:, None])
    model = credo.models.regression(credo.networks.MLP([2], out=1), prior=prior, noise="learned")
    np.testing.assert_array_equal(again(model).inputs.terms[0].points, X[:, None])
    bound = model.bind((X[:, None], X))
    frozen = again(bound.freeze(bound.initial_xi()))
    assert (frozen.rows, frozen.constants, frozen.template) == (bound.rows, bound.constants, bound.template)
    assert not frozen.xi_template


def test_data_and_methods_pickle() -> None:
    data = credo.Data(X[:, None], X, standardise=True)
    np.testing.assert_array_equal(again(data).x, data.x)
    method = credo.DeepEnsemble(credo.MAP(), members=3)
    assert again(method) == method
