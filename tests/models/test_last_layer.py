"""A distribution over the last layers alone: which they are, where the others come from, and features in place of x."""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from flax import nnx

import credo
from credo import augmentations, conditions, random
from credo.inference import fit as fitting
from credo.models import last_layer, on_features, priors
from credo.models.places import places_of
from credo.testing import same_bits
from tests.kills import fit_through_kills, write_at_every_chunk
from tests.statistical.moments import assert_moments

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)).astype(np.float32)
Y = (np.sin(2 * X[:, 0]) + 0.3 * RNG.normal(size=40)).astype(np.float32)
LABELS = (X[:, 0] > X[:, 1]).astype(int) + (X[:, 2] > 1)
NET = credo.networks.MLP([6, 4], out=1)
CLASSIFIER = credo.networks.MLP([6, 4], out=3)
REGRESSION = credo.models.regression(NET, noise=0.3)
HEAD = {"head.kernel", "head.bias"}
# A network that was trained: here, one with other values.
TRAINED = {path: value + 0.2 for path, value in credo.networks.functional(NET, X).params.items()}
TRUNK = {path: value for path, value in TRAINED.items() if path not in HEAD}
NUTS = credo.NUTS(num_samples=3000, num_warmup=300, num_chains=2)


class Foreign(nnx.Module):
    def __init__(self):
        rngs = nnx.Rngs(0)
        self.into, self.out = nnx.Linear(3, 5, rngs=rngs), nnx.Linear(5, 1, rngs=rngs)

    def __call__(self, x):
        return self.out(jnp.tanh(self.into(x)))


# -- which layers, and where the others come from ------------------------------------------------------------


@pytest.mark.parametrize(
    ("choice", "drawn"),
    [
        ({}, HEAD),
        ({"num_layers": 2}, HEAD | {"hidden.1.kernel", "hidden.1.bias"}),
        ({"bayesian": "hidden.0.*"}, {"hidden.0.kernel", "hidden.0.bias"}),
        ({"bayesian": ["head.kernel", "hidden.1.bias"]}, {"head.kernel", "hidden.1.bias"}),
    ],
)
def test_chosen_layers_are_drawn_and_the_others_are_points(choice, drawn):
    bound = last_layer(REGRESSION, **choice).bind((X, Y))
    assert set(bound.template) == drawn
    assert bound.points == bound.xi_template.keys() == TRAINED.keys() - drawn


def test_the_head_keeps_the_prior_and_points_are_regularised_by_it():
    prior = {"*.bias": priors.normal(3.0), "*": priors.normal(0.5)}
    bound = last_layer(credo.models.regression(NET, prior=prior, noise=0.3)).bind((X, Y))
    sites = {site.name: site.prior for site in bound.describe().sites}
    assert sites == {"head.bias": "Normal(loc=0, scale=3)", "head.kernel": "Normal(loc=0, scale=0.5)"}
    theta = {**TRAINED}
    expected = sum(
        dist.Normal(0, 3.0 if path.endswith("bias") else 0.5).log_prob(value).sum() for path, value in theta.items()
    )
    np.testing.assert_allclose(bound.log_prior(theta), expected, rtol=1e-5)


def test_a_prior_without_a_density_of_its_own_leaves_points_alone():
    bound = last_layer(credo.models.regression(NET, prior=priors.horseshoe(), noise=0.3)).bind((X, Y))
    assert not bound.factors
    assert bound.points == TRUNK.keys()


def module():
    net = credo.networks.MLP([6, 4], out=1, inputs=3)
    for layer in (*net.hidden, net.head):
        layer.kernel[...] += 0.2
        layer.bias[...] += 0.2
    return net


SOURCES = {
    "params": lambda: TRAINED,
    "another framework": lambda: {
        f"net/{path.replace('kernel', 'weight').replace('.', '/')}": value.T for path, value in TRAINED.items()
    },
    "module": module,
    "another head": lambda: TRAINED | {"head.kernel": np.zeros((4, 7)), "head.bias": np.zeros(7)},
    "without a head": lambda: TRUNK,
    "posterior": lambda: credo.fit(
        replace(REGRESSION, initial=lambda _: TRAINED), (X, Y), credo.MAP(num_steps=1, learning_rate=1e-9)
    ),
}


@pytest.mark.parametrize("source", SOURCES)
def test_points_come_from_a_trained_network_and_stay(source):
    bound = last_layer(REGRESSION, trained=SOURCES[source]()).bind((X, Y))
    assert not bound.xi_template
    for path, value in TRUNK.items():
        np.testing.assert_allclose(bound.frozen_xi[path], value, rtol=1e-5, atol=1e-6)
    # Optimisation of the head starts from what was trained of it, if it fits.
    start = bound.initial_theta(random.key(0))["head.kernel"]
    own = credo.networks.functional(NET, X).params["head.kernel"]
    expected = own if source in ("another head", "without a head") else TRAINED["head.kernel"]
    np.testing.assert_allclose(start, expected, rtol=1e-5, atol=1e-6)


def program(x, y=None):
    w = numpyro.sample("w", dist.Normal(0, 1).expand([3]).to_event(1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(x @ w, 0.1), obs=y)


def ensemble():
    return credo.fit(REGRESSION, (X, Y), credo.DeepEnsemble(credo.MAP(num_steps=1), members=2))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: last_layer(REGRESSION, bayesian="haed.*").bind((X, Y)),
            "matches no layer; did you mean 'head.*'.*hidden.0, hidden.1, head",
        ),
        (lambda: last_layer(REGRESSION, bayesian=["head.*", "conv.*"]).bind((X, Y)), "'conv.*' matches no layer"),
        (
            lambda: last_layer(REGRESSION, bayesian="*").bind((X, Y)),
            "'\\*' matches all layers, hidden.0, hidden.1, head",
        ),
        (lambda: last_layer(REGRESSION, num_layers=3).bind((X, Y)), "num_layers is 3, and the network has 3 layer"),
        (lambda: last_layer(credo.models.regression(credo.networks.MLP([], 1))).bind((X, Y)), "has 1 layer"),
        (lambda: last_layer(REGRESSION, num_layers=0), "num_layers must be a whole number of at least 1"),
        (lambda: last_layer(REGRESSION, bayesian=[]), "bayesian holds no pattern"),
        (lambda: last_layer(REGRESSION, bayesian="head.*", num_layers=2), "they say the same twice"),
        (lambda: last_layer(NET), "model must be a credo.Model, got MLP"),
        (lambda: last_layer(credo.Model(program)), "a program of your own.*'\\*': 'point'"),
        (lambda: last_layer(credo.models.tasks(NET)), "of the kind 'tasks'"),
        (lambda: last_layer(last_layer(REGRESSION)), "already"),
        (lambda: last_layer(REGRESSION, trained={"hidden.0.kernel": np.zeros((3, 6))}).bind((X, Y)), "3 missing"),
        (
            lambda: last_layer(REGRESSION, trained=TRAINED | {"more.kernel": np.zeros((3, 6))}).bind((X, Y)),
            "1 left over",
        ),
        (lambda: last_layer(REGRESSION, trained="nowhere.safetensors"), "no file nowhere.safetensors"),
        (lambda: last_layer(REGRESSION, trained=ensemble()), "no one network; pass a posterior of a single one"),
    ],
)
def test_what_does_not_fit_is_refused(make, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        make()


# -- features in place of x ----------------------------------------------------------------------------------

MODELS = {
    "regression": (REGRESSION, Y),
    "classification": (credo.models.classification(CLASSIFIER), LABELS),
    "noisy labels": (credo.models.noisy_labels(CLASSIFIER, "nar"), LABELS),
    "outliers": (credo.models.outliers(NET), Y),
    "points by path": (
        credo.models.regression(NET, prior={"head.*": priors.laplace(), "*": "point"}, noise="learned"),
        Y,
    ),
}


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.full] * (one == "outliers")) for one in MODELS])
def test_the_model_on_features_is_the_model(name):
    model, y = MODELS[name]
    if name == "points by path":
        bound = model.bind((X, y)).freeze(TRUNK)
    else:
        bound = last_layer(model, trained=TRUNK).bind((X, y))
    found = on_features.on_features(bound, len(X))
    assert found.num_features == 4
    assert found.constant == 0
    raw = credo.Data(X, y).batch()
    features = found.batch(raw)
    theta = bound.initial_theta(random.key(1))
    assert found.model.template == bound.template

    @jax.jit
    def both(theta, raw, features):
        whole = jax.value_and_grad(bound.log_joint)(theta, raw), bound.predictive(theta, raw.x).mean
        return whole, (
            jax.value_and_grad(found.model.log_joint)(theta, features),
            found.model.predictive(theta, features.x).mean,
        )

    whole, head = both(theta, raw, features)
    for one, other in zip(jax.tree.leaves(head), jax.tree.leaves(whole), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5 * np.abs(other).max())


def test_what_regularises_points_is_a_constant():
    bound = last_layer(REGRESSION).bind((X, Y)).freeze(TRUNK)
    found = on_features.on_features(bound, len(X))
    theta = bound.initial_theta(random.key(1))
    batch = credo.Data(X, Y).batch()
    on_head = jax.jit(found.model.log_joint)(theta, found.batch(batch))
    np.testing.assert_allclose(on_head + found.constant, jax.jit(bound.log_joint)(theta, batch), rtol=1e-5)
    assert found.constant < -1


WHOLE = {
    "all drawn": REGRESSION,
    "points to learn": last_layer(REGRESSION),
    "a program of the user's own": credo.Model(program),
    "label noise of x": last_layer(credo.models.noisy_labels(CLASSIFIER, "nnar"), trained=TRUNK),
    "augmented": last_layer(credo.models.augmented(REGRESSION, augmentations.group([lambda x: -x])), trained=TRAINED),
    "conditions": last_layer(
        credo.models.regression(NET, prior=priors.consistent(None, conditions.smooth())), trained=TRAINED
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_the_whole_network_is_used_where_features_would_be_wrong(name):
    y = LABELS if name == "label noise of x" else Y
    assert on_features.on_features(WHOLE[name].bind((X, y)), len(X)) is None


def test_features_that_would_take_too_much_memory_are_not_held(monkeypatch):
    bound = last_layer(REGRESSION, trained=TRAINED).bind((X, Y))
    monkeypatch.setattr(on_features, "MAX_BYTES", 100)
    assert on_features.on_features(bound, 25) is not None
    assert on_features.on_features(bound, 26) is None


# -- fits ----------------------------------------------------------------------------------------------------


def exact_head():
    """The closed form of the head, whose prior is N(0, 1) and whose noise is 0.3: mean and sd of kernel and bias."""
    hidden = np.tanh(
        np.tanh(X @ TRAINED["hidden.0.kernel"] + TRAINED["hidden.0.bias"]) @ TRAINED["hidden.1.kernel"]
        + TRAINED["hidden.1.bias"]
    )
    design = np.column_stack([np.ones(len(X)), hidden]).astype(np.float64)
    covariance = np.linalg.inv(np.eye(5) + design.T @ design / 0.3**2)
    return covariance @ design.T @ Y / 0.3**2, np.sqrt(np.diag(covariance))


@pytest.mark.parametrize("cached", [True, False], ids=["features", "network"])
def test_nuts_samples_the_posterior_of_the_head(cached, seed, monkeypatch):
    if not cached:
        monkeypatch.setattr(fitting, "on_features", lambda *_: None)
    posterior = credo.fit(last_layer(REGRESSION, trained=TRAINED), (X, Y), NUTS, seed=seed)
    draws = np.concatenate([posterior.theta["head.bias"], posterior.theta["head.kernel"][..., 0]], axis=-1)
    assert_moments(draws, *exact_head())


def test_features_of_another_network_give_another_posterior(seed):
    """The negative control: the head of a trunk that was not trained is far from the exact one."""
    posterior = credo.fit(
        last_layer(REGRESSION, trained=credo.networks.functional(NET, X).params), (X, Y), NUTS, seed=seed
    )
    draws = np.concatenate([posterior.theta["head.bias"], posterior.theta["head.kernel"][..., 0]], axis=-1)
    with pytest.raises(AssertionError, match="off by"):
        assert_moments(draws, *exact_head())


@pytest.mark.parametrize(
    ("net", "method"),
    [
        (NET, credo.DeepEnsemble(credo.BayesByBackprop(num_steps=5), members=2)),
        (NET, credo.Laplace(training=credo.MAP(num_steps=20))),
        (NET, credo.MCDropout(num_steps=5)),
        (Foreign(), credo.MAP(num_steps=5)),
    ],
    ids=["ensemble", "laplace", "dropout", "foreign"],
)
def test_a_fit_on_features_predicts_from_raw_inputs_and_is_saved_with_its_trunk(net, method, tmp_path):
    trained = credo.networks.functional(net, X).params
    model = last_layer(credo.models.regression(net, noise="learned"), trained=trained)
    data = credo.Data(X, Y, standardise=True)
    posterior = credo.fit(model, data, method)
    mean = posterior.predict(X[:7]).mean
    assert mean.shape == (7,)
    posterior.save(tmp_path / "run")
    again = credo.load(tmp_path / "run", network=None if net is NET else net)
    np.testing.assert_array_equal(again.predict(X[:7]).mean, mean)
    # The trunk is as it was, and matters: without what it was trained to, predictions are others.
    frozen = again.models[0].bind(data).points
    assert frozen == {path for path in trained if not path.startswith(("head", "out"))}


def test_auto_has_a_formula_samples_a_small_head_and_takes_no_ensemble_of_a_large_one():
    formula = credo.choose(last_layer(REGRESSION, trained=TRAINED), credo.Data(X, Y))
    assert isinstance(formula.method, credo.ClosedForm)
    params = credo.networks.functional(CLASSIFIER, X).params
    small = last_layer(credo.models.classification(CLASSIFIER), trained=params)
    assert isinstance(credo.choose(small, credo.Data(X, LABELS)).method, credo.NUTS)
    net = credo.networks.MLP([6, 2000], out=3)
    wide, params = credo.models.classification(net), credo.networks.functional(net, X).params
    many = credo.Data(np.tile(X, (200, 1)), np.tile(LABELS, 200))
    assert isinstance(credo.choose(wide, many).method, credo.DeepEnsemble)
    chosen = credo.choose(last_layer(wide, trained=params), many)
    assert isinstance(chosen.method, credo.BayesByBackprop)
    assert "too many to sample" in chosen.why


def test_dropout_masks_act_on_the_features_that_points_make():
    bound = last_layer(REGRESSION, trained=TRAINED).bind((X, Y))
    assert [(place.name, place.num_units) for place in places_of(bound)] == [("head.kernel", 4)]


def test_points_that_are_found_first_are_features_for_the_method(monkeypatch):
    seen = []
    found = fitting.on_features
    monkeypatch.setattr(fitting, "on_features", lambda *given: seen.append(found(*given)) or seen[-1])
    method = credo.NUTS(num_samples=4, num_warmup=4, num_chains=1)
    monkeypatch.setattr(fitting, "BayesByBackprop", lambda: credo.BayesByBackprop(num_steps=20))
    with pytest.warns(UserWarning, match="point layers"):
        posterior = credo.fit(last_layer(REGRESSION), (X, Y), method)
    assert seen[-1].num_features == 4
    own = credo.networks.functional(NET, X).params["hidden.0.kernel"]
    assert np.abs(posterior.model.frozen_xi["hidden.0.kernel"] - own).max() > 1e-3


def test_a_fit_on_features_that_is_killed_ends_with_the_same_bits(tmp_path, monkeypatch):
    write_at_every_chunk(monkeypatch)
    model, method = last_layer(REGRESSION, trained=TRAINED), credo.SGLD(num_samples=6, num_warmup=4, num_chains=1)

    def fit(**where):
        return credo.fit(model, (X, Y), method, **where)

    found, num_kills = fit_through_kills(monkeypatch, tmp_path / "run", fit, every=2)
    assert num_kills >= 2
    assert same_bits(found, fit())


def test_another_trunk_is_another_fit(tmp_path):
    method = credo.MAP(num_steps=2)
    credo.fit(last_layer(REGRESSION, trained=TRAINED), (X, Y), method, checkpoint=tmp_path / "run")
    other = last_layer(REGRESSION, trained=credo.networks.functional(NET, X).params)
    with pytest.raises(ValueError, match="holds another run: its model differ"):
        credo.fit(other, (X, Y), method, checkpoint=tmp_path / "run", resume=True)


def test_early_stopping_looks_at_the_features_of_held_out_rows(monkeypatch):
    model = last_layer(REGRESSION, trained=TRAINED)
    method = credo.MAP(num_steps=200, learning_rate=0.05, patience=1, check_every=2)

    def fit():
        return credo.fit(model, (X[:20], Y[:20]), method, validation=(X[20:], Y[20:]))

    short = fit()
    monkeypatch.setattr(fitting, "on_features", lambda *_: None)
    whole = fit()
    for name, value in whole.theta.items():
        np.testing.assert_allclose(short.theta[name], value, rtol=1e-3, atol=1e-4)
    # It did stop: the best theta is not where the climb ends.
    ended = credo.fit(model, (X[:20], Y[:20]), method)
    assert np.abs(ended.theta["head.kernel"] - whole.theta["head.kernel"]).max() > 0.01


@pytest.mark.parametrize("choice", [{}, {"bayesian": ["head.*"]}, {"num_layers": 2}])
def test_the_configuration_survives_json(choice):
    model = last_layer(credo.models.regression(NET, prior={"*.bias": priors.normal(2.0)}), **choice)
    config = json.loads(json.dumps(model.config))
    again = credo.models.from_config(config, NET)
    assert again.config == model.config
    assert again.bind((X, Y)).template == model.bind((X, Y)).template
