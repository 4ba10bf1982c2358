"""Learned prior parameters: densities by hand, gradients, freezing, and models that hold constants."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.distributions import constraints
from scipy import stats

from credo import random
from credo.models import Model, regression
from credo.networks import MLP
from credo.typing import Batch

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(12, 2)).astype(np.float32), RNG.normal(size=12).astype(np.float32)
FULL = Batch(jnp.asarray(X), jnp.asarray(Y), 12)
THETA = {"w": jnp.array([0.5, -1.0])}
XI = {"tau": jnp.array(0.4), "mix": jnp.array([0.3, -0.2]), "noise": jnp.array(-0.6), "shift": jnp.array([0.2])}


def program(x, y=None):
    """A prior scale, mixture weights, a noise level in the plate and a deterministic layer: all learned."""
    tau = numpyro.param("tau", 2.0, constraint=constraints.positive)
    mix = numpyro.param("mix", jnp.array([0.2, 0.3, 0.5]), constraint=constraints.simplex)
    shift = numpyro.param("shift", lambda key: jax.random.normal(key, (1,)))
    w = numpyro.sample("w", dist.Normal(0.0, tau).expand([2]).to_event(1))
    with numpyro.plate("data", x.shape[0]):
        noise = numpyro.param("noise", 0.5, constraint=constraints.interval(0.1, 2.0))
        numpyro.sample("y", dist.Normal(x @ w + shift + mix[0], noise), obs=y)


@pytest.fixture(scope="module")
def model():
    return Model(program).bind((X, Y))


def by_hand(tau, first, noise, shift):
    w = np.array([0.5, -1.0])
    return (
        stats.norm.logpdf(w, scale=tau).sum(),
        stats.norm.logpdf(Y, X @ w + shift + first, noise).sum(),
    )


def values_of(xi):
    """xi in the units of the program, by formulas: exp, stick breaking and a scaled sigmoid."""
    sigmoid = 1 / (1 + np.exp(-float(xi["noise"])))
    first = 1 / (1 + np.exp(-(float(xi["mix"][0]) - np.log(2))))
    return np.exp(float(xi["tau"])), first, 0.1 + 1.9 * sigmoid, float(xi["shift"][0])


def test_shapes_are_unconstrained_and_apart_from_theta(model):
    assert {name: leaf.shape for name, leaf in model.xi_template.items()} == {
        "tau": (),
        "mix": (2,),
        "shift": (1,),
        "noise": (),
    }
    assert list(model.template) == list(model.sample_prior(random.key(0), 2)) == ["w"]
    assert model.num_parameters == 2
    assert list(model.initial_theta(random.key(0))) == ["w"]


def test_initial_values_are_those_of_the_program(model):
    xi = model.initial_xi()
    tau, first, noise, _ = values_of(xi)
    np.testing.assert_allclose([tau, first, noise], [2.0, 0.2, 0.5], rtol=1e-5)
    np.testing.assert_array_equal(xi["shift"], model.initial_xi()["shift"])
    np.testing.assert_allclose(model.log_parts(THETA, FULL), model.log_parts(THETA | xi, FULL), rtol=1e-5)
    np.testing.assert_allclose(model.log_parts(THETA, FULL), by_hand(2.0, 0.2, 0.5, float(xi["shift"][0])), rtol=1e-5)


def test_densities_with_xi_are_those_by_hand_and_have_no_jacobian(model):
    prior, likelihood = by_hand(*values_of(XI))
    np.testing.assert_allclose(model.log_prior(THETA | XI), prior, rtol=1e-5)
    np.testing.assert_allclose(model.log_likelihood(THETA | XI, FULL), likelihood, rtol=1e-5)
    np.testing.assert_allclose(model.log_joint(THETA | XI, FULL), prior + likelihood, rtol=1e-5)


def test_predictive_and_constrain_take_xi(model):
    tau, first, noise, shift = values_of(XI)
    distribution = model.predictive(THETA | XI, FULL.x)
    np.testing.assert_allclose(distribution.mean, X @ [0.5, -1.0] + shift + first, rtol=1e-5)
    np.testing.assert_allclose(distribution.variance, noise**2, rtol=1e-5)
    values = model.constrain(THETA | XI)
    assert values.keys() == {"w", *XI}
    np.testing.assert_allclose([values["tau"], values["mix"][0], values["noise"]], [tau, first, noise], rtol=1e-5)
    np.testing.assert_allclose(jnp.sum(values["mix"]), 1.0, rtol=1e-6)


def test_gradient_with_respect_to_xi_is_that_by_hand(model):
    gradient = jax.jit(jax.grad(lambda xi: model.log_joint(THETA | xi, FULL)))(XI)
    tau, first, noise, shift = values_of(XI)
    residual = Y - (X @ [0.5, -1.0] + shift + first)
    # d log N(w; 0, tau²) / d log tau = Σ w²/tau² − 2, and d log N(y; f, noise²) / d shift = Σ residual / noise².
    np.testing.assert_allclose(gradient["tau"], 1.25 / tau**2 - 2, rtol=1e-4)
    np.testing.assert_allclose(gradient["shift"], [residual.sum() / noise**2], rtol=1e-4)


def test_a_frozen_model_holds_xi_as_constants(model):
    frozen = model.freeze(XI)
    expected = by_hand(*values_of(XI))
    np.testing.assert_allclose(frozen.log_parts(THETA, FULL), expected, rtol=1e-5)
    np.testing.assert_allclose(frozen.predictive(THETA, FULL.x).mean, model.predictive(THETA | XI, FULL.x).mean)
    for name, value in frozen.frozen_xi.items():
        np.testing.assert_array_equal(value, XI[name])
    assert frozen.frozen_xi.keys() == XI.keys()
    assert (frozen.xi_template, frozen.initial_xi(), model.frozen_xi) == ({}, {}, {})
    # Draws of the prior follow: their scale is the frozen tau.
    draws = jax.jit(frozen.sample_prior, static_argnums=1)(random.key(0), 2000)["w"]
    np.testing.assert_allclose(np.std(draws), np.exp(0.4), rtol=6 / np.sqrt(2 * 4000))
    # What theta says goes before what is frozen.
    np.testing.assert_allclose(frozen.log_parts(THETA | model.initial_xi(), FULL), model.log_parts(THETA, FULL))


def test_some_of_xi_can_be_frozen(model):
    frozen = model.freeze({"tau": 0.4})
    assert list(frozen.xi_template) == list(frozen.initial_xi()) == ["mix", "shift", "noise"]
    rest = {name: value for name, value in XI.items() if name != "tau"}
    np.testing.assert_allclose(frozen.log_parts(THETA | rest, FULL), by_hand(*values_of(XI)), rtol=1e-5)
    assert frozen.freeze(rest) == model.freeze(XI)


def test_frozen_models_are_equal_and_hash_alike_where_their_constants_are(model):
    one, same, other = model.freeze(XI), model.freeze(dict(XI)), model.freeze(XI | {"tau": jnp.array(0.5)})
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one != model
    compilations = []

    def traced(model, theta):
        compilations.append(model)
        return model.log_prior(theta)

    jitted = jax.jit(traced, static_argnums=0)
    np.testing.assert_array_equal(jitted(one, THETA), jitted(same, THETA))
    assert len(compilations) == 1
    assert jitted(other, THETA) != jitted(one, THETA)


def test_freezing_before_binding_is_checked_by_binding():
    frozen = Model(program).freeze({"tau": 0.4}).bind((X, Y))
    assert "tau" not in frozen.xi_template
    with pytest.raises(ValueError, match=r"xi: the program has no param 'tao'; did you mean 'tau'"):
        Model(program).freeze({"tao": 0.4}).bind((X, Y))


@pytest.mark.parametrize(
    ("xi", "message"),
    [
        ({"tao": 0.0}, r"no param 'tao'; did you mean 'tau'\?; it has tau, mix, shift, noise"),
        ({"mix": np.zeros(3)}, r"'mix' has shape \(3,\), but its unconstrained shape is \(2,\).*model.initial_xi"),
        ({"tau": np.nan}, "'tau' has values that are not finite"),
    ],
)
def test_xi_that_do_not_fit_are_refused(model, xi, message):
    with pytest.raises(ValueError, match=message):
        model.freeze(xi)


def test_a_model_without_params_has_none():
    model = regression(MLP([3], 1), noise=0.1).bind((X, Y))
    assert (model.xi_template, model.initial_xi(), model.frozen_xi) == ({}, {}, {})
    with pytest.raises(ValueError, match="no param 'tau'; it has none"):
        model.freeze({"tau": 0.0})


def test_the_description_counts_xi_apart(model):
    described = model.describe()
    assert (described.num_parameters, described.num_xi) == (2, 5)
    lines = {line.split()[0]: line for line in str(described).splitlines()[:-1]}
    assert "Normal(loc=0, scale=2)" in lines["w"]
    assert "learned (param), positive" in lines["tau"]
    assert lines["mix"].split(maxsplit=3) == ["mix", "(2,)", "2", "learned (param), simplex"]
    assert str(described).splitlines()[-2:][0].split() == ["total", "2"]
    assert str(described).splitlines()[-1].split() == ["total", "xi", "5"]
    assert "fixed (param), positive" in str(model.freeze({"tau": 0.4}).describe())
