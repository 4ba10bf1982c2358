"""Networks with stochastic activations: their densities by hand, their config, and what is refused."""

import doctest
import json
from importlib import import_module

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats
from scipy.special import log_softmax

from credo import networks, random
from credo.models import activations, from_config
from credo.networks import MLP, functional
from credo.typing import Batch

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 2)).astype(np.float32)
Y = RNG.normal(size=(6, 2)).astype(np.float32)
LABELS = np.array([0, 2, 1, 1, 0, 2])
# With next to no noise the layers are those of the deterministic network.
TINY = 1e-6


def outputs_of(features, out, **options):
    net = functional(MLP(features, out, **options), jnp.asarray(X))
    return np.asarray(net.apply(net.params, jnp.asarray(X)), np.float64)


def batch(y):
    return Batch(jnp.asarray(X), jnp.asarray(y), 6)


def test_without_noise_it_is_the_deterministic_network():
    model = activations([4, 3], 2, scale=TINY, noise=0.3, activation="relu").bind((X, Y))
    said = outputs_of([4, 3], 2, activation="relu")
    found = model.log_likelihood({}, batch(Y), key=random.key(0))
    np.testing.assert_allclose(found, stats.norm.logpdf(Y, said, 0.3).sum(), rtol=1e-4)
    np.testing.assert_allclose(model.predictive({}, jnp.asarray(X)).mean, said, atol=1e-4)
    assert (model.template, model.num_parameters, model.has_local_latents) == ({}, 0, True)


@pytest.mark.parametrize("out", [pytest.param(1, marks=pytest.mark.full), 3])
def test_classes(out):
    labels = LABELS if out == 3 else LABELS % 2
    model = activations([4], out, scale=TINY, likelihood="classification").bind((X, labels))
    logits = outputs_of([4], out)
    logits = np.concatenate([np.zeros((6, 1)), logits], axis=1) if out == 1 else logits
    expected = log_softmax(logits, axis=1)[np.arange(6), labels].sum()
    np.testing.assert_allclose(model.log_likelihood({}, batch(labels), key=random.key(0)), expected, rtol=1e-4)
    assert model.prior_predict(X, num_draws=4).probs.shape == (6, max(out, 2))


def test_the_noise_of_a_layer_goes_through_its_activation():
    model = activations([1], 1, scale=0.5, noise=0.1).bind((np.zeros((1, 1)), np.zeros(1)))
    xi = {"hidden.0.kernel": jnp.zeros((1, 1)), "hidden.0.bias": jnp.array([0.3])}
    xi |= {"head.kernel": jnp.ones((1, 1)), "head.bias": jnp.zeros(1)}

    def mean(seed):
        return model.predictive(xi | {"local_noise": seed}, jnp.zeros((1, 1))).mean[0]

    draws = np.asarray(jax.jit(jax.vmap(mean))(jnp.arange(4000)))
    p_value = stats.kstest(np.arctanh(draws), stats.norm(0.3, 0.5).cdf).pvalue
    assert p_value > 1e-6


def test_learned_scales_are_positive_params():
    model = activations([4, 3], 2, scale="learned").bind((X, Y))
    scales = {"hidden.0.scale": (), "hidden.1.scale": (), "noise": (2,)}
    assert {name: model.xi_template[name].shape for name in scales} == scales
    assert len(model.xi_template) == 6 + 3
    values = model.constrain(model.initial_xi())
    np.testing.assert_allclose(values["hidden.1.scale"], 0.1, rtol=1e-6)
    np.testing.assert_allclose(values["noise"], [1.0, 1.0], rtol=1e-6)
    gradient = jax.jit(jax.grad(lambda xi: model.log_parts(xi, batch(Y), key=random.key(0))[1]))(model.initial_xi())
    assert all(np.any(np.asarray(leaf) != 0) for leaf in gradient.values())


def test_images_are_flattened():
    images = RNG.normal(size=(4, 3, 3, 1)).astype(np.float32)
    model = activations([5], 2, likelihood="classification").bind((images, np.array([0, 1, 1, 0])))
    assert model.xi_template["hidden.0.kernel"].shape == (9, 5)


CONFIGS = {
    "fixed": (activations([4], 2, scale=0.2, noise=[0.1, 0.3], activation="relu"), Y),
    "covariance": (activations([4], 2, scale=0.2, noise=[[0.5, 0.2], [0.2, 0.3]]), Y),
    "learned": (activations([4, 3], 2, scale="learned"), Y),
    "classes": (activations([4], 3, likelihood="classification"), LABELS),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_it_survives_json(name):
    model, y = CONFIGS[name]
    config = json.loads(json.dumps(model.config))
    # As `credo.load` does: the network from its own part of the config.
    again = from_config(config, networks.from_config(config["network"])).bind((X, y))
    bound = model.bind((X, y))
    xi = {name: leaf + 0.1 for name, leaf in bound.initial_xi().items()}
    arguments = {"theta": xi, "batch": batch(y), "key": random.key(1)}
    np.testing.assert_array_equal(again.log_likelihood(**arguments), bound.log_likelihood(**arguments))
    assert again.config == model.config
    assert hash(again.config) == hash(model.config)
    assert from_config(config).config == model.config


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: activations([], 1), "features is empty"),
        (lambda: activations([3], 1, scale=0.0), "scale must be a positive number or 'learned', got 0.0"),
        (lambda: activations([3], 1, scale="lerned"), "scale must be a positive number or 'learned', got 'lerned'"),
        (lambda: activations([3], 1, scale=None), "scale must be a positive number or 'learned', got None"),
        (lambda: activations([3], 1, noise=-1.0), "scales must be positive numbers"),
        (lambda: activations([3], 1, noise="full"), "noise: pass a number.*got 'full'"),
        (lambda: activations([3], 1, noise=dist.HalfNormal(1.0)), "noise: pass a number"),
        (lambda: activations([3], 1, activation="tnah"), "did you mean 'tanh'"),
        (lambda: activations([3], 1, likelihood="clasification"), "did you mean 'classification'"),
        (lambda: activations([3], 2, noise=0.1, likelihood="classification"), "noise is for a regression"),
        (lambda: activations([3], 1).bind((X, Y)), r"gives 1 outputs per row, but 2 target\(s\)"),
        (lambda: activations([3], 2, noise=[0.1, 0.2, 0.3]).bind((X, Y)), r"it is for 3 target\(s\), but y has 2"),
        (lambda: activations([3], 2, likelihood="classification").bind((X, LABELS)), "labels from 0 to 2"),
        (lambda: activations([3], 2, likelihood="classification").bind((X, Y)), "integer class labels"),
    ],
)
def test_what_does_not_fit_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_examples_in_docstrings_run():
    # The package's attribute of that name is the function.
    assert doctest.testmod(import_module("credo.models.activations")).failed == 0
