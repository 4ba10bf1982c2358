"""Canonical draws: the same functions, by weights that are the same whatever image of itself a draw came in."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import credo
from credo.networks import MLP, symmetries
from credo.posterior import Draws, Provenance

X = np.random.default_rng(0).uniform(-1, 1, (20, 2))
CHAINS, DRAWS = 3, 40


def draws(model, *, spread=0.1, seed=0, **fields) -> Draws:
    """Draws around one theta, so that in each of them every unit can be told from every other."""
    rng = np.random.default_rng(seed)
    model = model.bind((X, fields.pop("y", X[:, 0])))
    theta = {
        name: (rng.normal(size=leaf.shape) + spread * rng.normal(size=(CHAINS, DRAWS, *leaf.shape))).astype(np.float32)
        for name, leaf in model.template.items()
    }
    return Draws(model, theta, Provenance({"name": "NUTS"}, 0, 1.0, len(X)), probes=X, **fields)


def scrambled(posterior, groups, seed) -> Draws:
    """Each draw as another image of itself."""
    rng, theta = np.random.default_rng(seed), posterior.theta
    for group in groups:
        shape = (CHAINS, DRAWS, group.size)
        theta = group.permuted(theta, rng.permuted(np.broadcast_to(np.arange(group.size), shape), axis=-1))
        if group.rescalable:
            theta = group.scaled(theta, rng.uniform(0.3, 3, shape).astype(np.float32))
        if group.signed:
            theta = group.scaled(theta, rng.choice([-1, 1], shape))
    return replace(posterior, theta=theta)


def regression(*features, activation="tanh"):
    net = MLP(list(features), 1, activation=activation)
    return credo.models.regression(net), symmetries(net, X.astype(np.float32)).groups


@pytest.mark.parametrize(
    ("features", "activation"), [((5,), "tanh"), ((4, 6), "tanh"), ((4, 3), "relu"), ((4,), "gelu")]
)
def test_all_images_of_a_draw_have_one_canonical_form(features, activation, seed):
    model, groups = regression(*features, activation=activation)
    posterior = draws(model, seed=seed)
    other = scrambled(posterior, groups, seed)
    assert not np.allclose(other.theta["head.kernel"], posterior.theta["head.kernel"], atol=0.1)
    one, same = posterior.canonical(), other.canonical()
    for name in posterior.theta:
        np.testing.assert_allclose(same.theta[name], one.theta[name], rtol=1e-4, atol=1e-5, err_msg=name)
    # What belongs to no unit is the same to the last bit; so are the functions, to rounding.
    np.testing.assert_array_equal(same.theta["noise"], other.theta["noise"])
    np.testing.assert_allclose(same.predict(X).functions, other.predict(X).functions, rtol=1e-5, atol=1e-5)


def test_scales_are_balanced_and_units_sorted():
    model, groups = regression(4, 3, activation="relu")
    theta = draws(model).canonical().theta
    for group in groups:
        entering, leaving = (np.linalg.norm(group.weights(theta, role), axis=-1) for role in ("out", "in"))
        np.testing.assert_allclose(entering, leaving, rtol=1e-4)
    # Later layers are sorted after the first, and their order does not change the norm of its units.
    for group in groups:
        sizes = np.linalg.norm(group.weights(theta).mean(axis=(0, 1)), axis=-1)
        assert np.all(np.diff(sizes) <= 1e-6)


def test_signs_are_chosen():
    model, (group,) = regression(5)
    mean = group.weights(draws(model).canonical().theta).mean(axis=(0, 1))
    assert np.all(np.take_along_axis(mean, np.abs(mean).argmax(-1)[:, None], -1) > 0)


def test_draws_that_have_little_in_common_keep_their_functions():
    model, _ = regression(6, 5, activation="leaky_relu")
    log_joint = np.random.default_rng(1).normal(size=(CHAINS, DRAWS))
    posterior = draws(model, spread=2.0, infos={"log_joint": log_joint})
    before, after = (one.predict(X).functions for one in (posterior, posterior.canonical()))
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-5 * np.max(np.abs(before)))


def test_a_unit_that_nothing_leaves_keeps_its_scale():
    model, (group,) = regression(4, activation="relu")
    posterior = draws(model)
    theta = {
        **posterior.theta,
        "head.kernel": posterior.theta["head.kernel"] * np.array([[1], [1], [0], [1]], np.float32),
    }
    canonical = replace(posterior, theta=theta).canonical()
    assert all(np.all(np.isfinite(leaf)) for leaf in canonical.theta.values())
    entering = [np.sort(np.linalg.norm(group.weights(one, "out"), axis=-1)) for one in (theta, canonical.theta)]
    assert np.any(np.isclose(entering[0][..., None], entering[1][..., None, :], rtol=1e-6), axis=(-1, -2)).all()


def test_other_fields_stay_and_it_is_saved_as_usual(tmp_path):
    model, _ = regression(3)
    weights = np.full((CHAINS, DRAWS), 1 / (CHAINS * DRAWS))
    posterior = draws(model, weights=weights)
    canonical = posterior.canonical()
    for name in ("model", "provenance", "weights", "infos", "scaling", "probes"):
        assert getattr(canonical, name) is getattr(posterior, name)
    canonical.save(tmp_path / "saved")
    loaded = credo.load(tmp_path / "saved")
    for name, leaf in canonical.theta.items():
        np.testing.assert_array_equal(loaded.theta[name], leaf)


def test_canonical_draws_stay_as_they_are():
    model, _ = regression(4, 3, activation="relu")
    once = draws(model).canonical()
    twice = once.canonical()
    for name in once.theta:
        np.testing.assert_allclose(twice.theta[name], once.theta[name], rtol=1e-5, atol=1e-6)


def test_classes():
    net = MLP([4], 3)
    posterior = draws(credo.models.classification(net), y=np.arange(20) % 3)
    other = scrambled(posterior, symmetries(net, X.astype(np.float32)).groups, 1).canonical()
    np.testing.assert_allclose(other.predict(X).probs, posterior.predict(X).probs, atol=1e-5)
    np.testing.assert_allclose(
        other.theta["head.kernel"], posterior.canonical().theta["head.kernel"], rtol=1e-4, atol=1e-5
    )


# --- where there is nothing to choose


def test_a_linear_model_stays_as_it_is():
    posterior = draws(regression()[0])
    for name, leaf in posterior.canonical().theta.items():
        np.testing.assert_array_equal(leaf, posterior.theta[name])


def program_with(prior):
    """A hidden layer whose first kernel has the given prior."""

    def program(x, y=None):
        first = numpyro.sample("first", prior)
        last = numpyro.sample("last", dist.Normal(0, 1).expand([4]).to_event(1))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal(jnp.tanh(x @ first) @ last, 0.1), obs=y)

    return credo.Model(program)


def test_units_that_the_prior_tells_apart_stay_as_they_are():
    scales = np.array([1.0, 2.0, 3.0, 4.0])
    posterior = draws(program_with(dist.Normal(0, scales).expand([2, 4]).to_event(2)))
    for name, leaf in posterior.canonical().theta.items():
        np.testing.assert_array_equal(leaf, posterior.theta[name])


def test_signs_that_the_prior_tells_apart_stay_as_they_are():
    posterior = draws(program_with(dist.Normal(3.0, 1.0).expand([2, 4]).to_event(2)), spread=0.01)
    canonical = posterior.canonical()
    magnitudes = [np.sort(one.theta["last"], axis=-1) for one in (posterior, canonical)]
    np.testing.assert_array_equal(*magnitudes)


def test_weights_on_half_a_line_are_refused():
    posterior = draws(program_with(dist.HalfNormal(1.0).expand([2, 4]).to_event(2)))
    with pytest.raises(ValueError, match=r"canonical: the prior of 'first' has another support"):
        posterior.canonical()


# --- chains of a sampler


@pytest.mark.full
def test_weights_of_chains_agree_once_they_are_canonical(seed):
    """Three tanh units: 48 images of one mode, in which chains disagree about the weights and agree on the function."""
    model = credo.models.regression(MLP([3], 1))
    method = credo.NUTS(num_samples=500, num_warmup=500, num_chains=6)
    posterior = credo.fit(model, credo.datasets.gap(), method, seed=seed, progress=False)
    before, after = posterior.diagnostics.weights, posterior.canonical().diagnostics.weights
    assert before.rhat > 1.5
    # R-hat of independent chains of 500 draws is 1.00 ± 0.01; what is asked of the functions is asked of the weights.
    assert after.rhat < 1.05
