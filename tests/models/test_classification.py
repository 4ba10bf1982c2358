"""Categorical and binary likelihoods against a direct computation; labels that do not fit."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats
from scipy.special import expit, log_softmax

from credo import random
from credo.data import Data
from credo.models import classification, from_config, priors
from credo.networks import MLP, functional

pytestmark = pytest.mark.quick

X = np.random.default_rng(0).normal(size=(6, 2)).astype(np.float32)
LABELS = np.array([0, 2, 1, 1, 0, 2])
BINARY = np.array([0, 1, 1, 0, 1, 1])
NETS = {out: MLP(features=[3], out=out) for out in (1, 3)}


def logits_of(net, theta):
    return np.asarray(functional(net, jnp.asarray(X)).apply(theta, jnp.asarray(X)), np.float64)


def drawn(model):
    rng = np.random.default_rng(1)
    return {name: jnp.asarray(rng.normal(size=leaf.shape), jnp.float32) for name, leaf in model.template.items()}


@pytest.mark.parametrize("labels", [LABELS, BINARY], ids=["categorical", "binary"])
def test_log_joint_is_that_computed_by_hand_and_the_model_survives_json(labels):
    net = NETS[3 if labels is LABELS else 1]
    model = classification(net, prior=priors.normal(2.0)).bind((X, labels))
    theta, batch = drawn(model), Data(X, labels).batch()
    logits = logits_of(net, theta)
    if labels is LABELS:
        rows = log_softmax(logits, axis=1)[np.arange(6), labels]
    else:
        rows = stats.bernoulli.logpmf(labels, expit(logits[:, 0]))
    prior = sum(stats.norm.logpdf(np.asarray(leaf), scale=2.0).sum() for leaf in theta.values())
    np.testing.assert_allclose(jax.jit(model.log_parts)(theta, batch), [prior, rows.sum()], rtol=1e-5)
    again = from_config(json.loads(json.dumps(model.config)), net).bind((X, labels))
    np.testing.assert_allclose(jax.jit(again.log_joint)(theta, batch), prior + rows.sum(), rtol=1e-5)


def test_predictive_is_a_distribution_over_the_classes():
    model = classification(NETS[3]).bind((X, LABELS))
    theta = drawn(model)
    distribution = model.predictive(theta, jnp.asarray(X))
    assert isinstance(distribution, dist.CategoricalLogits)
    np.testing.assert_allclose(np.log(distribution.probs), log_softmax(logits_of(NETS[3], theta), axis=1), rtol=1e-4)


def test_prior_predict_is_about_classes_without_data():
    marginal = classification(NETS[3]).prior_predict(X, num_draws=5)
    assert (marginal.num_draws, marginal.probs.shape) == (5, (6, 3))


def test_the_start_is_the_networks_own_values():
    theta = jax.jit(classification(NETS[3]).bind((X, LABELS)).initial_theta)(random.key(0))
    for name, value in functional(NETS[3], jnp.asarray(X)).params.items():
        np.testing.assert_array_equal(theta[name], value)


def test_booleans_are_labels():
    batch = Data(X, BINARY.astype(bool)).batch()
    model = classification(NETS[1]).bind((X, BINARY.astype(bool)))
    theta = drawn(model)
    log_likelihood = jax.jit(model.log_likelihood)
    np.testing.assert_allclose(log_likelihood(theta, batch), log_likelihood(theta, Data(X, BINARY).batch()))


@pytest.mark.parametrize(
    ("outputs", "labels", "message"),
    [
        (
            3,
            LABELS + 1,
            "labels from 1 to 3, but a network with 3 classes needs labels from 0 to 2.*give the network 4",
        ),
        (3, LABELS - 1, "labels from -1 to 1, but a network with 3 classes"),
        (1, LABELS, "labels from 0 to 2, but a network with 2 classes.*give the network 3 outputs"),
        (3, LABELS.astype(float), "integer class labels.*got float32"),
        (3, np.eye(3, dtype=int)[LABELS], r"integer class labels of shape \(rows,\).*\(6, 3\)"),
    ],
)
def test_labels_that_do_not_fit_are_refused(outputs, labels, message):
    with pytest.raises(ValueError, match=message):
        classification(NETS[outputs]).bind((X, labels))
