"""Likelihoods of noisy labels against sums over the true label by hand; what does not fit; graphs; configurations."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from credo import models
from credo.data import is_observed
from credo.models import noisy_labels, priors
from credo.networks import MLP, functional

RNG = np.random.default_rng(0)
X = RNG.normal(size=(7, 2)).astype(np.float32)
LABELS = np.array([0, 2, 1, 1, 0, 2, 1])
BINARY = LABELS % 2
NAN = np.nan
SEVERAL = np.array([[0, 1], [2, NAN], [NAN, 1], [1, 1], [0, 2], [2, 2], [1, 0]])


def probs_by_hand(net, values):
    logits = functional(net, jnp.asarray(X)).apply(values, jnp.asarray(X))
    logits = jnp.concatenate([jnp.zeros_like(logits), logits], axis=1) if logits.shape[1] == 1 else logits
    return jnp.exp(logits) / jnp.exp(logits).sum(1, keepdims=True)


def confusion_by_hand(kind, values, classes, num):
    """p(y | clean) of each row and annotator, (rows, annotators, true, given)."""
    eye = jnp.eye(classes)
    if kind == "ncar":
        rate = jnp.reshape(values["rate"], (-1, 1, 1))
        return jnp.broadcast_to(eye * (1 - rate) + (1 - eye) * rate / (classes - 1), (len(X), num, classes, classes))
    if kind == "nar":
        return jnp.broadcast_to(values["confusion"], (len(X), num, classes, classes))
    weights = {name.removeprefix("noise_net."): value for name, value in values.items() if "noise_net." in name}
    noise_net = MLP([16], num * classes, activation="tanh")
    outputs = functional(noise_net, jnp.asarray(X)).apply(weights, jnp.asarray(X)).reshape(len(X), num, classes, 1)
    rates = 1 / (1 + 4 * jnp.exp(-outputs))
    mistakes = jnp.reshape(values.get("mistakes", jnp.ones((num, classes, 1))), (num, classes, classes - 1))
    rows = [jnp.insert(mistakes[:, true], true, 0.0, axis=-1) for true in range(classes)]
    return eye * (1 - rates) + rates * jnp.stack(rows, axis=1)


def by_hand(kind, net, values, labels):
    """log Σ_k p(clean = k) Π_a p(y_a | clean = k), summed over the rows."""
    clean = probs_by_hand(net, values)
    given = labels.reshape(len(X), -1)
    confusion = confusion_by_hand(kind, values, clean.shape[1], given.shape[1])
    total = 0.0
    for row, own in enumerate(given):
        terms = clean[row]
        for annotator, label in enumerate(own):
            if not np.isnan(label):
                terms = terms * confusion[row, annotator, :, int(label)]
        total += jnp.log(terms.sum())
    return total


CASES = {
    "ncar": ("ncar", 3, LABELS, {}),
    "nar": ("nar", 3, LABELS, {}),
    "nnar": ("nnar", 3, LABELS, {}),
    "binary nar": ("nar", 1, BINARY, {}),
    "binary nnar": ("nnar", 1, BINARY, {}),
    "annotators ncar": ("ncar", 3, SEVERAL, {"annotators": 2}),
    "annotators nar": ("nar", 3, SEVERAL, {"annotators": 2}),
    "annotators nnar": ("nnar", 3, SEVERAL, {"annotators": 2}),
}


def made(case):
    kind, out, labels, settings = CASES[case]
    net = MLP([3], out)
    model = noisy_labels(net, kind, prior=priors.normal(2.0), **settings).bind((X, labels))
    rng = np.random.default_rng(1)
    theta = {name: jnp.asarray(rng.normal(size=leaf.shape), jnp.float32) for name, leaf in model.template.items()}
    return model, theta, net


# The others differ in how two of these go together.
FEW = {"ncar", "nnar", "binary nar", "annotators nar"}


@pytest.mark.parametrize("case", [one if one in FEW else pytest.param(one, marks=pytest.mark.full) for one in CASES])
def test_likelihood_and_gradient_are_those_of_the_sum_over_true_labels(case):
    kind, _, labels, _ = CASES[case]
    model, theta, net = made(case)
    batch = model.suited((X, labels)).batch()

    def hand(theta):
        return by_hand(kind, net, model.constrain(theta), np.asarray(labels, float))

    value, slope = jax.jit(jax.value_and_grad(model.log_likelihood))(theta, batch)
    expected, expected_slope = jax.jit(jax.value_and_grad(hand))(theta)
    # Sums of a few dozen float32 terms of order one.
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    for name in theta:
        np.testing.assert_allclose(slope[name], expected_slope[name], atol=2e-5, rtol=1e-4, err_msg=name)
    again = models.from_config(json.loads(json.dumps(model.config)), net).bind((X, labels))
    np.testing.assert_array_equal(
        jax.jit(again.log_likelihood)(theta, batch), jax.jit(model.log_likelihood)(theta, batch)
    )


def test_what_is_known_is_no_part_of_theta_and_the_given_label_is_predicted_through_it():
    confusion = np.array([[0.7, 0.2, 0.1], [0.0, 1.0, 0.0], [0.1, 0.1, 0.8]])
    net = MLP([3], 3)
    model = noisy_labels(net, "nar", errors=confusion).bind((X, LABELS))
    assert "confusion" not in model.template
    theta = {name: jnp.ones(leaf.shape) for name, leaf in model.template.items()}
    clean, given = (model.predicting(site).predictive(theta, jnp.asarray(X)).probs for site in ("clean", "y"))
    np.testing.assert_allclose(clean, probs_by_hand(net, theta), rtol=1e-5)
    np.testing.assert_allclose(given, clean @ confusion, atol=1e-6)
    assert "rate" not in noisy_labels(net, "ncar", errors=0.2).bind((X, LABELS)).template


def test_the_start_favours_the_given_labels_and_leaves_room_for_errors():
    start = noisy_labels(MLP([3], 3), "nar").bind((X, LABELS)).initial(jnp.asarray(X))["confusion"]
    np.testing.assert_allclose(start.sum(1), 1.0, rtol=1e-6)
    assert (np.diag(start) > start[0, 1]).all()


@pytest.mark.parametrize(
    ("kind", "edges"),
    [
        ("ncar", {("clean", "y"), ("rate", "y")}),
        ("nar", {("clean", "sigma"), ("confusion", "sigma"), ("sigma", "y")}),
        ("nnar", {("clean", "sigma"), ("x", "sigma"), ("sigma", "y"), ("clean", "y"), ("mistakes", "y")}),
    ],
)
def test_the_graph_is_that_of_the_paper(kind, edges):
    graph = noisy_labels(MLP([3], 3), kind).bind((X, LABELS)).graph()
    found = {edge for edge in graph.edges if edge[1] in ("sigma", "y") and "noise_net" not in edge[0]}
    assert found == edges
    assert {"x", "clean", "y"} <= set(graph.plates["data"])
    assert ("x", "clean") in graph.edges


@pytest.mark.parametrize(
    ("arguments", "labels", "message"),
    [
        ({"kind": "nra"}, LABELS, r"kind must be one of ncar, nar, nnar.*'nar'"),
        ({"task": "ranking"}, LABELS, "task must be 'classification' or 'regression'"),
        ({"errors": np.eye(4)}, LABELS, r"confusion matrix has shape \(4, 4\), and there are 3 classes.*\(3, 3\)"),
        ({"errors": dist.Dirichlet(jnp.ones((4, 4)))}, LABELS, r"concentration has shape \(4, 4\).*\(3, 3\)"),
        ({"errors": np.ones((3, 3))}, LABELS, r"add up to one. Got rows that add up to \[3.0.*Dirichlet"),
        ({"errors": 0.2}, LABELS, "errors: pass a confusion matrix"),
        ({"kind": "ncar", "errors": 1.5}, LABELS, "errors: a rate of wrong labels is a number from 0 to 1"),
        ({"kind": "ncar", "errors": dist.Normal(0.0, 1.0)}, LABELS, r"errors: expected a scalar distribution.*0 to 1"),
        ({"noise_net": MLP([3], 3)}, LABELS, "noise_net is for noise that depends on x, and kind is 'nar'"),
        ({"kind": "nnar", "noise_net": MLP([3], 4)}, LABELS, "noise_net has 4 outputs per row; it needs 1 or 3"),
        ({}, SEVERAL, r"shape \(rows,\), got int32 of shape \(7, 2\); pass annotators=2"),
        ({"annotators": 3}, SEVERAL, r"shape \(rows, 3\).*pass annotators=2"),
        ({"annotators": 1}, SEVERAL, "annotators must be a whole number of at least 2, got 1"),
        ({}, LABELS + 1, r"labels from 1 to 3.*give the network 4 outputs"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, labels, message):
    with pytest.raises(ValueError, match=message):
        noisy_labels(MLP([3], 3), **arguments).bind((X, labels))


def test_missing_labels_of_annotators_are_gaps():
    model = noisy_labels(MLP([3], 3), annotators=2)
    data = model.suited((X, SEVERAL))
    assert data.y.dtype == np.int32
    assert data.has_gaps
    np.testing.assert_array_equal(is_observed(data.y), ~np.isnan(SEVERAL))
