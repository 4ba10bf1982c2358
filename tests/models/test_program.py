"""The log densities of a program by hand, the N/n scaling, and the contract that a program must keep."""

import doctest

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from scipy import stats
from scipy.special import expit

from credo import random
from credo.models import Model, program
from credo.typing import Batch
from tests.statistical.moments import assert_mean, sigmas

pytestmark = pytest.mark.quick

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(12, 2)).astype(np.float32), RNG.normal(size=12).astype(np.float32)
FULL = Batch(jnp.asarray(X), jnp.asarray(Y), 12)
THETA = {"w": jnp.array([0.5, -1.0]), "noise": jnp.array(0.3), "share": jnp.array(-0.4)}


def tempered(x, y=None):
    """A positive site, a bounded one, factors on both sides of the plate, and a weighted prior."""
    with handlers.scale(scale=0.5):
        w = numpyro.sample("w", dist.Normal(0.0, 2.0).expand([2]).to_event(1))
    noise = numpyro.sample("noise", dist.Gamma(3.0, 2.0))
    share = numpyro.sample("share", dist.Uniform(0.0, 1.0))
    numpyro.factor("outside", -0.7 * w[0])
    numpyro.deterministic("slope", w[0])
    with numpyro.plate("data", x.shape[0]):
        numpyro.factor("inside", -0.1 * x[:, 0])
        numpyro.sample("y", dist.Normal(share * (x @ w), noise), obs=y)


@pytest.fixture(scope="module")
def model():
    return Model(tempered).bind((X, Y))


def by_hand():
    w, noise, share = np.array([0.5, -1.0]), np.exp(0.3), expit(-0.4)
    prior = 0.5 * stats.norm.logpdf(w, scale=2.0).sum() + stats.gamma.logpdf(noise, 3.0, scale=0.5) - 0.7 * w[0]
    jacobian = 0.3 + np.log(share * (1 - share))
    rows = stats.norm.logpdf(Y, share * (X @ w), noise) - 0.1 * X[:, 0]
    return prior + jacobian, rows


def test_densities_are_those_computed_by_hand(model):
    prior, rows = by_hand()
    np.testing.assert_allclose(model.log_prior(THETA), prior, rtol=1e-5)
    np.testing.assert_allclose(model.log_likelihood(THETA, FULL), rows.sum(), rtol=1e-5)
    np.testing.assert_allclose(model.log_joint(THETA, FULL), prior + rows.sum(), rtol=1e-5)


def test_minibatch_log_joint_is_unbiased_and_its_prior_counts_once(model):
    prior, rows = by_hand()
    batches = [Batch(FULL.x[i : i + 4], FULL.y[i : i + 4], 12) for i in (0, 4, 8)]
    parts = np.array([model.log_parts(THETA, batch) for batch in batches])
    np.testing.assert_allclose(parts[:, 0], prior, rtol=1e-5)
    np.testing.assert_allclose(parts[:, 1], 3 * rows.reshape(3, 4).sum(1), rtol=1e-5)
    joint = np.mean([model.log_joint(THETA, batch) for batch in batches])
    np.testing.assert_allclose(joint, model.log_joint(THETA, FULL), rtol=1e-5)
    unscaled = np.mean([model.log_prior(THETA) + model.log_likelihood(THETA, batch) for batch in batches])
    assert abs(unscaled - model.log_joint(THETA, FULL)) > 1


def test_constrain_gives_values_in_the_units_of_the_program(model):
    values = model.constrain(THETA)
    np.testing.assert_allclose(values["noise"], np.exp(0.3), rtol=1e-6)
    np.testing.assert_allclose(values["share"], expit(-0.4), rtol=1e-6)
    np.testing.assert_array_equal(values["w"], THETA["w"])


def test_template_and_description(model):
    assert {name: leaf.shape for name, leaf in model.template.items()} == {"w": (2,), "noise": (), "share": ()}
    assert list(model.template) == ["w", "noise", "share"]
    assert model.num_parameters == model.describe().num_parameters == 4
    text = str(model.describe()).splitlines()
    assert [line.split() for line in text[:1] + text[-1:]] == [["site", "shape", "numbers", "prior"], ["total", "4"]]
    assert text[1].split(maxsplit=3) == ["w", "(2,)", "2", "Normal(loc=0, scale=2)"]
    assert "Gamma(concentration=3, rate=2)" in text[2]


def test_sample_prior_has_the_moments_of_the_prior(model, seed):
    draws = jax.jit(model.sample_prior, static_argnums=1)(random.key(seed), 4000)
    assert {name: leaf.shape for name, leaf in draws.items()} == {"w": (4000, 2), "noise": (4000,), "share": (4000,)}
    values = jax.jit(jax.vmap(model.constrain))(draws)
    assert_mean(np.column_stack([values["w"], values["noise"], values["share"]]), [0, 0, 1.5, 0.5])
    # E[x²] = Var + mean²: 4, 3/2² + 1.5² and 1/3.
    assert_mean(np.column_stack([values["w"], values["noise"], values["share"]]) ** 2, [4, 4, 3, 1 / 3])


def test_without_a_network_the_start_is_a_draw_from_the_prior(model):
    start = jax.jit(model.initial_theta)
    first, again, other = (start(random.key(seed)) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first["w"], again["w"])
    assert not np.array_equal(first["w"], other["w"])


def test_predictive_is_the_distribution_at_site_y(model):
    distribution = model.predictive(THETA, FULL.x)
    np.testing.assert_allclose(distribution.mean, expit(-0.4) * (X @ [0.5, -1.0]), rtol=1e-5)
    np.testing.assert_allclose(distribution.variance, np.exp(0.6), rtol=1e-5)


def test_prior_predict_needs_no_data_and_averages_over_the_prior(model, seed):
    without_factor = handlers.block(tempered, hide=["outside"])
    marginal = Model(without_factor).prior_predict(X, num_draws=2000, seed=seed)
    assert (marginal.num_draws, marginal.mean.shape) == (2000, (12,))
    # E[share²]·4·|x|² is the variance of the function; its kurtosis is 3 E[share⁴]/E[share²]² = 5.4.
    error = np.sqrt(4.4 / 2000)
    np.testing.assert_allclose(marginal.epistemic, 4 / 3 * np.sum(X**2, 1), rtol=sigmas(12) * error)
    with pytest.raises(ValueError, match="num_draws must be a whole number of at least 1, got 0"):
        model.prior_predict(X, num_draws=0)
    with pytest.raises(ValueError, match=r"rows of shape \(1,\)"):
        model.prior_predict(X[:, :1])


def test_counts_can_be_modelled_though_jax_draws_them_with_its_own_keys_only():
    def counts(x, y=None):
        w = numpyro.sample("w", dist.Normal(0.0, 0.5))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Poisson(jnp.exp(w * x[:, 0])), obs=y)

    marginal = Model(counts).prior_predict(X, num_draws=9)
    rate = np.exp(np.asarray(marginal.draws["w"])[:, None] * X[:, 0])
    np.testing.assert_allclose(marginal.mean, rate.mean(0), rtol=1e-5)
    np.testing.assert_allclose(marginal.aleatoric, rate.mean(0), rtol=1e-5)


@pytest.mark.parametrize("call", ["log_prior", "sample_prior", "describe", "graph"])
def test_an_unbound_model_asks_for_data(call):
    arguments = {"log_prior": (THETA,), "sample_prior": (random.key(0), 2)}.get(call, ())
    with pytest.raises(ValueError, match=r"has not seen data.*call model.bind"):
        getattr(Model(tempered), call)(*arguments)


def broken(name):
    def run(x, y=None):
        w = numpyro.sample("w", dist.Normal(0.0, 1.0)) if name not in ("nothing", "xi alone") else 0.0
        if name == "discrete":
            numpyro.sample("k", dist.Poisson(2.0))
        if name == "param":
            numpyro.param("xi")
        if name == "tree":
            numpyro.param("xi", {"a": jnp.ones(2)})
        if name == "edge":
            numpyro.param("xi", 0.0, constraint=dist.constraints.positive)
        if name == "integer":
            numpyro.param("xi", 2.0, constraint=dist.constraints.nonnegative_integer)
        if name == "same":
            numpyro.param("w", 1.0)
        if name == "xi alone":
            w = numpyro.param("xi", 1.0)
        if name == "reserved":
            numpyro.sample("local_noise", dist.Normal(0.0, 1.0))
        size = 7 if name == "size" else x.shape[0]
        with numpyro.plate("data", size, subsample_size=1 if name == "subsample" else None):
            if name == "local":
                numpyro.sample("z", dist.Poisson(2.0))
            if name == "mixture":
                components = dist.Normal(jnp.zeros(2), 1.0)
                numpyro.sample("z", dist.MixtureSameFamily(dist.Categorical(jnp.ones(2) / 2), components))
            if name == "param per row":
                numpyro.param("xi", jnp.zeros(x.shape[0]), event_dim=0)
            if name not in ("outside", "size", "subsample"):
                numpyro.sample("Y" if name == "missing" else "y", dist.Normal(w, 1.0), obs=y)
        if name in ("size", "subsample"):
            with numpyro.plate("data", size, subsample_size=1 if name == "subsample" else None):
                numpyro.sample("y", dist.Normal(w, 1.0))
        if name == "outside":
            numpyro.sample("y", dist.Normal(w, 1.0).expand([x.shape[0]]).to_event(1), obs=y)

    return run


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", r"no site 'y'.*it draws \['w', 'Y'\].*numpyro.sample\('y'"),
        ("outside", r"'y' is not inside a plate 'data'; write `with numpyro.plate"),
        ("size", r"plate 'data' has size 7 .* for 2 rows; its size must be x.shape\[0\]"),
        ("subsample", r"plate 'data' has size 2 \(subsample 1\) for 2 rows"),
        ("param", r"param 'xi' has no initial value; write numpyro.param\('xi', value\)"),
        ("tree", r"param 'xi' holds a tree of arrays \(dict\); declare each array"),
        ("edge", "param 'xi' starts outside its constraint, or on its boundary"),
        ("integer", "param 'xi' has the constraint IntegerNonnegative.*no bijector"),
        ("param per row", "param 'xi' has one value per row"),
        ("same", "the name 'w' is both a `param` and a `sample` site"),
        ("reserved", "'local_noise' has a name that credo reserves"),
        ("local", "latent site 'z' is discrete.*infinitely many values.*summed out"),
        ("mixture", "latent site 'z' inside the plate 'data'.*draws have no gradient"),
        ("discrete", "latent site 'k' is discrete.*summed out"),
        ("nothing", "draws no latent variable"),
        ("xi alone", "draws no latent variable"),
    ],
)
def test_programs_that_break_the_contract_are_refused(name, message):
    with pytest.raises(ValueError, match=message):
        Model(broken(name)).bind((X, Y))


def test_examples_in_docstrings_run():
    assert doctest.testmod(program).failed == 0
