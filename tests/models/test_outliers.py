"""Outliers: mixtures against SciPy, with targets missing; what does not fit."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

from credo import BayesByBackprop, MCDropout, fit, models, priors
from credo.models import outliers
from credo.networks import MLP, functional

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 2)).astype(np.float32)
Y = RNG.normal(size=(6, 2))
Y[0, 1] = Y[3, 0] = np.nan
CASES = {
    "ncar": ("ncar", 2, Y, {}),
    "nar": ("nar", 2, Y, {"noise": [0.3, 0.5]}),
    "nnar": ("nnar", 2, Y, {}),
    "heteroscedastic": ("nnar", 2, Y[:, 0], {"noise": "heteroscedastic", "wide": 4.0}),
}


def by_hand(kind, net, values, targets, settings):
    outputs = np.asarray(functional(net, jnp.asarray(X)).apply(values, jnp.asarray(X)), np.float64)
    num = 1 if targets.ndim == 1 else 2
    mean, noise = outputs[:, :num], values.get("noise", settings.get("noise"))
    if settings.get("noise") == "heteroscedastic":
        noise = 1e-3 + np.log1p(np.exp(outputs[:, num:]))
    rate, wide = values.get("rate"), values.get("wide", settings.get("wide"))
    if kind == "nnar":
        weights = {name.removeprefix("noise_net."): value for name, value in values.items() if "noise_net." in name}
        noise_net = functional(MLP([16], num, activation="tanh"), jnp.asarray(X))
        rate = 1 / (1 + 4 * np.exp(-np.asarray(noise_net.apply(weights, jnp.asarray(X)), np.float64)))
    y = targets.reshape(len(X), num)
    good, bad = ((1 - rate) * stats.norm.pdf(y, mean, noise), rate * stats.norm.pdf(y, mean, wide))
    return np.nansum(np.log(good + bad)), (bad / (good + bad)).reshape(targets.shape)


FEW = {"ncar", "heteroscedastic"}


@pytest.mark.parametrize("case", [one if one in FEW else pytest.param(one, marks=pytest.mark.full) for one in CASES])
def test_likelihood_is_the_mixture_of_each_target_that_is_there(case):
    kind, out, targets, settings = CASES[case]
    net = MLP([3], out)
    model = outliers(net, kind, **settings).bind((X, targets))
    rng = np.random.default_rng(1)
    theta = {name: jnp.asarray(rng.normal(size=leaf.shape), jnp.float32) for name, leaf in model.template.items()}
    seen = model.suited((X, targets))
    expected = by_hand(kind, net, model.constrain(theta), targets, settings)[0]
    value, slope = jax.jit(jax.value_and_grad(model.log_likelihood))(theta, seen.batch())
    np.testing.assert_allclose(value, expected, rtol=1e-4)
    assert all(np.isfinite(leaf).all() for leaf in slope.values())
    again = models.from_config(json.loads(json.dumps(model.config)), net).bind((X, targets))
    np.testing.assert_array_equal(jax.jit(again.log_likelihood)(theta, seen.batch()), value)


def test_what_is_predicted_is_no_outlier():
    model = outliers(MLP([3], 1), noise=0.1, errors=0.3, wide=5.0).bind((X, np.zeros(6)))
    theta = {name: jnp.zeros(leaf.shape) for name, leaf in model.template.items()}
    clean, given = (model.predicting(site).predictive(theta, jnp.asarray(X)) for site in ("clean", "y"))
    np.testing.assert_allclose(clean.variance, 0.1**2, rtol=1e-5)
    np.testing.assert_allclose(given.variance, 0.7 * 0.1**2 + 0.3 * 25, rtol=1e-5)


def test_rates_that_are_points_have_the_density_of_their_log_odds():
    rates = priors.point(priors.few(1.0, strength=20.0, scale=2.0))
    model = outliers(MLP([3], 2), "nar", noise=0.3, errors=rates, wide=2.0).bind((X, Y))
    assert model.points == {"rate"}
    theta = {name: jnp.zeros(leaf.shape) for name, leaf in model.template.items()}
    log_odds = np.array([0.5, -2.0])
    rate = 1 / (1 + np.exp(-log_odds))
    given = theta | {"rate": jnp.asarray(log_odds, jnp.float32)}
    np.testing.assert_allclose(model.constrain(given)["rate"], rate, rtol=1e-5)
    expected = -np.sum(log_odds**2) / (2 * 2.0**2) - 20.0 * (rate.sum() - 1) ** 2
    np.testing.assert_allclose(model.log_factors(given), expected, rtol=1e-4)
    mixed = (1 - rate) * stats.norm.pdf(Y, 0, 0.3) + rate * stats.norm.pdf(Y, 0, 2.0)
    np.testing.assert_allclose(model.log_likelihood(given, _batch(model)), np.nansum(np.log(mixed)), rtol=1e-4)
    again = models.from_config(json.loads(json.dumps(model.config)), MLP([3], 2)).bind((X, Y))
    np.testing.assert_allclose(again.log_factors(given), expected, rtol=1e-4)
    free = outliers(MLP([3], 2), errors="point").bind((X, Y))
    assert free.points == {"rate"}
    assert not free.factors


def _batch(model):
    return model.suited((X, Y)).batch()


@pytest.mark.parametrize("method", [BayesByBackprop, MCDropout])
def test_the_broken_output_is_found_and_so_many_are_as_was_said(method, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(200, 2))
    y = x @ rng.normal(size=(2, 4)) + 0.1 * rng.normal(size=(200, 4))
    y[:, 1] += 3 * rng.normal(size=200)
    y[rng.uniform(size=y.shape) < 0.5] = np.nan
    climb = method(
        num_steps=1500, learning_rate=0.03, **({"drop_inputs": True, "rate": 0.01} if method is MCDropout else {})
    )

    def found(number):
        rates = priors.point(priors.few(number))
        model = outliers(MLP([], 4), "nar", noise=0.1, errors=rates, wide=5.0)
        fitted = fit(model, (x, y), climb, seed=seed).model
        return np.asarray(fitted.constrain(fitted.frozen_xi)["rate"])

    one, two = found(1.0), found(2.0)
    assert one[1] > 0.9
    # 3,000 · (‖p‖₁ − number)² against what the likelihood gains, some nats for each of 100 measurements.
    np.testing.assert_allclose([one.sum(), two.sum()], [1.0, 2.0], atol=0.15)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"noise": "full"}, "outliers are those of each output by itself, and 'full' correlates them"),
        ({"wide": [1.0, 2.0, 3.0]}, r"wide: it is for 3 target\(s\), but y has 2"),
        ({"wide": -1.0}, "wide: the scale of outliers is a positive number"),
        ({"wide": dist.Normal(0.0, 1.0)}, "wide: expected a scalar distribution on numbers that are positive"),
        ({"errors": 2.0}, "errors: a rate"),
        ({"kind": "nnar", "noise_net": MLP([3], 3)}, "noise_net has 3 outputs per row; it needs 2"),
        ({"noise_net": MLP([3], 2)}, "noise_net is for noise that depends on x"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        outliers(MLP([3], 2), **arguments).bind((X, Y))
