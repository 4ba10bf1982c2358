"""Inputs of a model's own: the same prior whatever the batch, saved with the model or by reference."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import credo
from credo import random
from credo.inference.engine.compiled import ROWS_PER_INPUT
from credo.inference.engine.minibatch import some_inputs
from credo.models import Model, inputs
from credo.typing import Batch
from tests.statistical.moments import assert_mean

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(12, 2)).astype(np.float32), RNG.normal(size=12).astype(np.float32)
U = RNG.normal(size=(30, 2)).astype(np.float32)
THETA = {"w": jnp.array([0.5, -1.0])}
SUM = -0.3 * np.sum((U @ np.array([0.5, -1.0]) - 1) ** 2)
PRIOR = float(dist.Normal(0, 1).log_prob(THETA["w"]).sum())


def summed(x, y=None, *, u):
    w = numpyro.sample("w", dist.Normal(0, 1).expand([2]).to_event(1))
    with numpyro.plate("u", u.shape[0]):
        numpyro.factor("c", -0.3 * (u @ w - 1) ** 2)
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(x @ w, 0.5), obs=y)


def averaged(x, y=None, *, u):
    w = numpyro.sample("w", dist.Normal(0, 1).expand([2]).to_event(1))
    numpyro.factor("c", -0.3 * jnp.mean((u @ w - 1) ** 2))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(x @ w, 0.5), obs=y)


def shifted(x, y=None, *, offset):
    w = numpyro.sample("w", dist.Normal(0, 1).expand([2]).to_event(1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(x @ w + offset, 0.5), obs=y)


@pytest.fixture(scope="module")
def model():
    return Model(summed, inputs={"u": U}).bind((X, Y))


def full(num=12):
    return Batch(jnp.asarray(X[:num]), jnp.asarray(Y[:num]), len(X))


@pytest.mark.parametrize(("program", "expected"), [(summed, SUM), (averaged, SUM / len(U))])
def test_the_prior_is_the_same_whatever_the_batch(program, expected):
    model = Model(program, inputs={"u": U}).bind((X, Y))
    np.testing.assert_allclose(model.log_prior(THETA), PRIOR + expected, rtol=1e-5)
    for batch in (full(), full(5), full(1)):
        np.testing.assert_allclose(model.log_parts(THETA, batch)[0], PRIOR + expected, rtol=1e-5)
    np.testing.assert_allclose(model.log_factors(THETA), expected, rtol=1e-5)


def test_some_rows_stand_for_all_without_bias(model, seed):
    whole = model.with_inputs(full())

    def prior(step):
        some = some_inputs(random.key(seed), step, whole.inputs, model.summed_inputs, 7)
        return model.log_parts(THETA, full()._replace(inputs=some))[0]

    # Four batches of seven of thirty rows make an epoch; epochs are independent of each other.
    values = jax.jit(jax.vmap(prior))(jnp.arange(4 * 500)).reshape(500, 4).mean(axis=1)
    assert_mean(values, PRIOR + SUM)
    assert np.std(values) > 0


def test_what_is_not_in_a_plate_of_its_own_is_always_whole():
    model = Model(averaged, inputs={"u": U}).bind((X, Y))
    assert model.summed_inputs == frozenset()
    whole = model.with_inputs(full()).inputs
    np.testing.assert_array_equal(some_inputs(random.key(0), jnp.array(0), whole, frozenset(), 3)["u"], U)


def test_minibatches_take_few_inputs_and_change_the_result_of_no_run_that_takes_all(model):
    """A batch as large as the data takes all of few inputs: the same optimum as with full batches."""
    data = (X, Y)
    few = Model(summed, inputs={"u": U[:1]})
    modes = [
        credo.fit(few, data, credo.MAP(num_steps=300, batch_size=size), seed=0).draw(0)["w"]
        for size in (None, ROWS_PER_INPUT)
    ]
    np.testing.assert_allclose(*modes, atol=0.1)


def test_the_training_inputs_are_those_of_the_data_in_the_units_of_the_model():
    data = credo.Data(X * 10 + 3, Y, standardise=True)
    model = Model(summed, inputs={"u": "training"}).bind(data)
    np.testing.assert_array_equal(model.constants["u"].value, data.batch().x)
    given = Model(summed, inputs={"u": data.x}).bind(data)
    np.testing.assert_array_equal(given.constants["u"].value, data.batch().x)
    assert model.constants["u"].by_reference
    assert not given.constants["u"].by_reference


def test_models_with_other_inputs_are_other_models(model):
    assert model == Model(summed, inputs={"u": U.copy()}).bind((X, Y))
    assert model != Model(summed, inputs={"u": U + 1}).bind((X, Y))
    assert len({model, Model(summed, inputs={"u": U.copy()}).bind((X, Y))}) == 1


# -- storage ---------------------------------------------------------------------------------------------------

METHOD = credo.MAP(num_steps=20)


def test_inputs_are_saved_with_the_model(tmp_path, model):
    posterior = credo.fit(model, (X, Y), METHOD)
    posterior.save(tmp_path / "run")
    loaded = credo.load(tmp_path / "run", model=Model(summed, inputs={"u": U}))
    assert loaded.model == posterior.model
    np.testing.assert_array_equal(loaded.predict(X).mean, posterior.predict(X).mean)
    np.testing.assert_allclose(loaded.model.log_prior(THETA), PRIOR + SUM, rtol=1e-5)


def test_training_inputs_are_saved_by_reference(tmp_path):
    declared = Model(summed, inputs={"u": "training"})
    posterior = credo.fit(declared, (X, Y), METHOD)
    posterior.save(tmp_path / "run")
    loaded = credo.load(tmp_path / "run", model=declared)
    np.testing.assert_array_equal(loaded.predict(X).mean, posterior.predict(X).mean)
    with pytest.raises(ValueError, match=r"looks at the inputs 'u', which were saved by reference.*credo.load"):
        loaded.model.log_prior(THETA)
    again = credo.load(tmp_path / "run", model=declared, inputs={"u": X})
    np.testing.assert_array_equal(again.model.log_prior(THETA), posterior.model.log_prior(THETA))
    with pytest.raises(ValueError, match="'u' is not the array that the model was fitted with"):
        credo.load(tmp_path / "run", model=declared, inputs={"u": X + 1})


def test_large_inputs_are_saved_by_reference_unless_predictions_need_them(tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "MAX_STORED_BYTES", 1)
    prior = Model(summed, inputs={"u": U}).bind((X, Y))
    needed = Model(shifted, inputs={"offset": np.float32(5.0)}).bind((X, Y))
    assert prior.constants["u"].by_reference
    assert needed.inputs_of_y == {"offset"}
    posterior = credo.fit(needed, (X, Y), METHOD)
    posterior.save(tmp_path / "run")
    unbound = Model(shifted, inputs={"offset": np.float32(7.0)})
    with pytest.raises(ValueError, match="other values"):
        credo.load(tmp_path / "run", model=unbound, inputs={"offset": np.float32(7.0)})


def test_a_run_goes_on_only_with_its_own_inputs(tmp_path, model):
    credo.fit(model, (X, Y), METHOD, checkpoint=tmp_path / "run")
    with pytest.raises(ValueError, match="holds another run: its model differ"):
        credo.fit(Model(summed, inputs={"u": U + 1}), (X, Y), METHOD, checkpoint=tmp_path / "run", resume=True)


# -- the prior predictive --------------------------------------------------------------------------------------


def test_draws_of_the_prior_know_its_factors(model, seed):
    """w ~ N(0, I) exp(−0.3 Σ (u·w − 1)²) is normal: P = I + 0.6 UᵀU, mean P⁻¹ 0.6 Uᵀ1."""
    weak = Model(summed, inputs={"u": U[:3]}).bind((X, Y))
    precision = np.eye(2) + 0.6 * U[:3].T @ U[:3]
    mean = np.linalg.solve(precision, 0.6 * U[:3].sum(0))
    draws = weak.sample_conditioned_prior(random.key(seed), 2000)["w"]
    # Candidates are fifty times as many, so that the draws are nearly independent.
    assert_mean(draws, mean, slack=0.01)
    assert_mean((draws - mean) ** 2, np.diag(np.linalg.inv(precision)), slack=0.01)


def test_too_strong_a_factor_is_said():
    def strong(x, y=None, *, u):
        w = numpyro.sample("w", dist.Normal(0, 1).expand([2]).to_event(1))
        numpyro.factor("c", -1e5 * jnp.mean((u @ w - 1) ** 2))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal(x @ w, 0.5), obs=y)

    with pytest.warns(UserWarning, match=r"factors \(c\) leave about 1 of 5,000 draws"):
        Model(strong, inputs={"u": U}).bind((X, Y)).prior_predict(X)


# -- refusals --------------------------------------------------------------------------------------------------


def of_the_batch(x, y=None):
    w = numpyro.sample("w", dist.Normal(0, 1).expand([2]).to_event(1))
    numpyro.factor("c", -100 * jnp.mean((x @ w - 1) ** 2))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(x @ w, 0.5), obs=y)


def of_the_targets(x, y=None):
    w = numpyro.sample("w", dist.Normal(0.0 if y is None else y.mean(), 1).expand([2]).to_event(1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(x @ w, 0.5), obs=y)


@pytest.mark.parametrize(("program", "site", "what"), [(of_the_batch, "c", "x"), (of_the_targets, "w", "y")])
def test_a_prior_that_depends_on_the_batch_is_refused_and_the_way_is_shown(program, site, what):
    expected = rf"site '{site}' is outside the plate 'data'.*depends on the batch \({what}\).*inputs=.*'u': 'training'"
    with pytest.raises(ValueError, match=expected):
        credo.fit(Model(program), (X, Y), METHOD)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ([U], "inputs must be a dict of arrays by name"),
        ({"y": U}, "the name 'y' is taken by the data"),
        ({"u": "trainning"}, "'u' is 'trainning'; did you mean 'training'"),
        ({"u": np.array(["a"])}, "'u' must hold numbers"),
        ({"u": np.zeros((0, 2))}, "'u' is empty"),
        ({"u": U * np.nan}, "'u' has values that are missing or infinite"),
        ({"u": U, "v": U}, "unexpected keyword argument 'v'"),
    ],
)
def test_bad_inputs_are_refused_by_name(bad, says):
    with pytest.raises((ValueError, TypeError), match=re.escape(says)):
        Model(summed, inputs=bad).bind((X, Y))


def test_a_plate_of_another_size_is_refused():
    def program(x, y=None, *, u):
        w = numpyro.sample("w", dist.Normal(0, 1).expand([2]).to_event(1))
        with numpyro.plate("u", 3):
            numpyro.factor("c", -jnp.ones(3))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal(x @ w, 0.5), obs=y)

    with pytest.raises(ValueError, match=r"plate 'u' has size 3 for .* rows of the input of that name"):
        Model(program, inputs={"u": U}).bind((X, Y))


def test_a_mean_inside_the_plate_is_refused():
    """Of n rows it would be N/n times the mean."""

    def program(x, y=None, *, u):
        w = numpyro.sample("w", dist.Normal(0, 1).expand([2]).to_event(1))
        with numpyro.plate("u", u.shape[0]):
            numpyro.factor("c", -((u @ w - 1) ** 2) / u.shape[0])
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal(x @ w, 0.5), obs=y)

    with pytest.raises(
        ValueError, match=r"the factor 'c' stands in the plate of an input, but is no sum over its rows"
    ):
        Model(program, inputs={"u": U}).bind((X, Y))


def test_a_factor_that_is_not_a_number_is_refused():
    def program(x, y=None):
        w = numpyro.sample("w", dist.Normal(0, 1).expand([2]).to_event(1))
        numpyro.factor("c", jnp.log(-1.0 - w[0] ** 2))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal(x @ w, 0.5), obs=y)

    with pytest.raises(ValueError, match="the factor 'c' is nan at a draw from the prior"):
        Model(program).bind((X, Y))
