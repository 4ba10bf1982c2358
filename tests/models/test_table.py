"""The default model for tables: its parts, what its prior says of functions, and noise that cannot collapse."""

import sys

import jax.numpy as jnp
import numpy as np
import pytest
from numpyro import handlers
from scipy import stats

import credo
from credo.models import likelihoods, priors
from credo.models.scales import SCALE_OF_ATOMS, least_scales
from credo.models.table import table
from credo.networks import ShortcutMLP, functional

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
LINE = X @ [1.0, -2.0, 0.0] + 0.3 * RNG.normal(size=60)
TWO = np.stack([LINE, X[:, 0] ** 2], axis=1)
KINDS = RNG.integers(3, size=60)
QUICK = credo.MAP(num_steps=20)


def test_the_network_is_the_formula():
    net = ShortcutMLP([4, 5], 2, inputs=3)
    x = jnp.asarray(X[:6], jnp.float32)
    p = {path: RNG.normal(size=value.shape) for path, value in functional(net).params.items()}
    one = np.tanh(x @ p["hidden.0.kernel"] + p["hidden.0.bias"])
    two = np.tanh(one @ p["hidden.1.kernel"] + p["hidden.1.bias"])
    expected = x @ p["shortcuts.0.kernel"] + one @ p["shortcuts.1.kernel"] + two @ p["head.kernel"] + p["head.bias"]
    np.testing.assert_allclose(functional(net).apply(p, x), expected, rtol=1e-4, atol=1e-5)
    assert len(p) == 8


def test_a_network_without_layers_is_a_line():
    network = functional(ShortcutMLP([], 1, inputs=3))
    assert set(network.params) == {"head.kernel", "head.bias"}


@pytest.mark.parametrize(
    ("y", "num_outputs", "law"),
    [(LINE, 2, "StudentT"), (TWO, 4, "Independent"), (KINDS, 3, "Categorical"), (KINDS % 2, 1, "Bernoulli")],
)
def test_the_model_suits_the_targets(y, num_outputs, law):
    data = credo.Data(X, y, standardise=True)
    model = table(data, "table:4").bind(data)
    assert model.template["head.kernel.z"].shape == (4, num_outputs)
    with handlers.seed(rng_seed=0):
        trace = handlers.trace(model.program).get_trace(jnp.asarray(X[:2], jnp.float32))
    assert law in type(trace["y"]["fn"]).__name__


def test_classes_that_no_row_has_count_too():
    data = credo.Data(X, KINDS, classes=["a", "b", "c", "d"])
    assert table(data).bind(data).template["head.kernel.z"].shape[1] == 4


def test_it_is_saved_and_predicts_the_same(tmp_path):
    data = credo.Data(X, TWO, standardise=True)
    posterior = credo.fit(table(data, "table:4"), data, QUICK)
    posterior.save(tmp_path / "run")
    again = credo.load(tmp_path / "run")
    np.testing.assert_array_equal(again.predict(X).mean, posterior.predict(X).mean)
    assert again.model.config == posterior.model.config


def test_the_layers_suit_the_rows_where_they_are_left_open(monkeypatch):
    monkeypatch.setattr(sys.modules[table.__module__], "MANY_ROWS", 60)
    layers = {"hidden.0.kernel": (3, 30), "hidden.1.kernel": (30, 30)}
    wide = {"hidden.0.kernel": (3, 100)}
    more = credo.Data(np.vstack([X, X[:1]]), np.append(LINE, LINE[0]), standardise=True)
    for data, network, expected in [
        ((X, LINE), "table", layers),
        (more, " Table ", wide),
        (more, "table:30,30", layers),
    ]:
        model = table(data, network).bind(data)
        shapes = {
            name: model.template[f"{name}.z"].shape
            for name in ("hidden.0.kernel", "hidden.1.kernel")
            if f"{name}.z" in model.template
        }
        assert shapes == expected


def test_the_density_is_that_of_scipy():
    """One target: StudentT(3 + tail, mean, s) with s² = least² + exp(2 log s), in the units of y."""
    data = credo.Data(X, LINE, standardise=True)
    posterior = credo.fit(table(data, "table:4"), data, QUICK)
    values = posterior.model.constrain({name: leaf[0, 0] for name, leaf in posterior.theta.items()})
    x = jnp.asarray(data.scaling.inputs(X), jnp.float32)
    with handlers.seed(rng_seed=0):
        trace = handlers.trace(handlers.substitute(posterior.model.program, values)).get_trace(x)
    network = functional(ShortcutMLP([4], 2, inputs=3))
    theta = {path: trace[path]["value"] for path in network.params}
    mean, log_scale = np.asarray(network.apply(theta, x), float).T
    (least,), unit = least_scales(data), data.scaling.y_scale
    law = stats.t(
        3 + float(values["tail"]), data.scaling.y_mean + unit * mean, unit * np.hypot(least, np.exp(log_scale))
    )
    np.testing.assert_allclose(posterior.predict(X).log_prob(LINE), law.logpdf(LINE), rtol=1e-4, atol=1e-4)


def prior_sd(num_inputs, num_units):
    """Of functions that the prior draws, at points of the size of standardised inputs; the median over draws."""
    x = np.random.default_rng(1).normal(size=(40, num_inputs))
    data = credo.Data(x, x[:, 0])
    drawn = table(data, f"table:{num_units}").prior_predict(x, num_draws=400, seed=1).functions
    return float(np.median(np.std(drawn, axis=1)))


def test_functions_do_not_depend_on_how_many_inputs_and_units_there_are():
    """Up to the factor e = 2.7 of few inputs to many: one relevance has a median of 1, and the root of the mean square
    of many is e. Medians of 400 draws have errors of 6 %."""
    few = prior_sd(2, 20)
    many_inputs, many_units = prior_sd(100, 20), prior_sd(2, 200)
    assert 1 < many_inputs / few < np.e
    np.testing.assert_allclose(many_units, few, rtol=0.35)
    wide = credo.models.regression(credo.networks.MLP([200, 200], 1)).prior_predict(X, num_draws=100).functions
    assert np.median(np.std(wide, axis=1)) > 3 * few  # N(0, 1) on every weight, for comparison


@pytest.mark.parametrize(
    ("y", "least"),
    [
        (np.linspace(0, 1, 1000), 1e-3),
        (np.arange(1000) % 50 / 1.0, 1 / (np.sqrt((50**2 - 1) / 12) * np.sqrt(12))),
        (np.r_[np.zeros(830), np.random.default_rng(0).normal(size=170)], 0.83 * SCALE_OF_ATOMS),
        (np.arange(1000) % 2 / 1.0, SCALE_OF_ATOMS),
    ],
    ids=["continuous", "steps", "an atom", "two values"],
)
def test_how_small_the_noise_may_be(y, least):
    np.testing.assert_allclose(least_scales(credo.Data(y[:, None], y, standardise=True)), least, rtol=1e-2)


def test_a_target_of_which_most_values_are_equal_has_a_bounded_density():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 2))
    y = np.where(rng.random(150) < 0.83, 0.0, rng.lognormal(size=150))
    data = credo.Data(x, y, standardise=True)
    posterior = credo.fit(table(data, "table:5"), data, credo.MAP(num_steps=500))
    share = np.mean(y == 0)
    highest = -np.log(SCALE_OF_ATOMS * share * np.sqrt(2 * np.pi) * data.scaling.y_scale)
    assert posterior.predict(x).log_prob(y).max() <= highest + 1e-3


def test_a_prior_may_be_made_of_its_own():
    rising = credo.conditions.monotone({0: "+"})
    data = credo.Data(X, LINE, standardise=True)
    model = table(data, prior=lambda own: priors.consistent(own, rising)).bind(data)
    assert model.factors
    assert isinstance(model.recipe.prior.base, priors.Table)


def test_noise_and_prior_of_ones_own():
    data = credo.Data(X, LINE, standardise=True)
    model = table(data, noise="learned", prior=priors.fan_in()).bind(data)
    assert model.template["head.kernel"].shape == (30, 1)


def test_least_scales_as_json_has_them():
    noise = likelihoods.HeavyTailed((0.1, 0.2))
    assert likelihoods.from_config(noise.to_config() | {"minimum": [0.1, 0.2]}) == noise
