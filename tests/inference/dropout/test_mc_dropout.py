"""MC-dropout against exact enumeration of its masks: predictions, and the objective as the ELBO."""

from dataclasses import replace
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from flax import nnx

import credo
import credo.predictive
from credo import random
from credo.inference.dropout.mc_dropout import MCDropout, Phi, entropy
from credo.models import priors
from credo.models.places import places_of, with_masks
from credo.networks import MLP, functional
from credo.posterior import Provenance
from credo.posterior.dropout import Dropout
from credo.typing import Batch
from tests.networks.test_functional import snapshot
from tests.networks.test_masks import NETS
from tests.statistical.moments import sigmas

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 3)).astype(np.float32)
Y = (np.sin(X[:, 0]) + 0.1 * RNG.normal(size=12)).astype(np.float32)
LABELS = (X[:, 0] > 0).astype(np.int32) + (X[:, 1] > 0)
FULL = Batch(jnp.asarray(X), jnp.asarray(Y), 12)
X_NEW = RNG.normal(size=(7, 3)).astype(np.float32)
RATE = 0.3


def bound(net, *, labels: bool = False, **options):
    if labels:
        return credo.models.classification(net, **options).bind((X, LABELS))
    return credo.models.regression(net, noise=0.5, **options).bind((X, Y))


def theta_of(model, seed=0):
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=leaf.shape).astype(np.float32) for name, leaf in model.template.items()}


def posterior_of(model, rate=RATE, kind="bernoulli", seed=0):
    rates = {place.name: np.float32(rate) for place in places_of(model)}
    return Dropout(model, theta_of(model), rates, Provenance({"name": "MCDropout"}, seed, 0.0, 12), kind=kind)


def enumerated(model, mean, rate=RATE):
    """theta under every mask, with the probability of each."""
    places = places_of(model)
    draws, weights = [], []
    for kept in product([0, 1], repeat=sum(place.num_units for place in places)):
        parts = np.split(np.array(kept, np.float32), np.cumsum([place.num_units for place in places])[:-1])
        masks = {place.name: part / (1 - rate) for place, part in zip(places, parts, strict=True)}
        draws.append({name: np.asarray(leaf) for name, leaf in with_masks(mean, places, masks).items()})
        weights.append(rate ** (len(kept) - sum(kept)) * (1 - rate) ** sum(kept))
    return {name: np.stack([draw[name] for draw in draws]) for name in draws[0]}, np.array(weights)


TINY = {
    "without layers": lambda out: MLP([3, 2], out, inputs=3),
    "nnx layers": lambda out: nnx.Sequential(
        nnx.Linear(3, 4, rngs=nnx.Rngs(0)), jnp.tanh, nnx.Dropout(RATE), nnx.Linear(4, out, rngs=nnx.Rngs(1))
    ),
}


# -- predictions -------------------------------------------------------------------------------------------


@pytest.mark.quick
@pytest.mark.parametrize("net", TINY)
def test_regression_is_the_mixture_over_all_masks(net, seed):
    model = bound(TINY[net](1))
    posterior = posterior_of(model, seed=seed)
    draws, weights = enumerated(model, posterior.mean)
    exact = credo.predictive.predictive(model, draws, X_NEW, weights=weights)
    num = 4000
    found = posterior.predict(X_NEW, num_draws=num)
    functions = exact.functions.astype(np.float64)
    # Of all functions there are; `exact.epistemic` takes them for a sample, and corrects for that.
    variance = weights @ (functions - weights @ functions) ** 2
    sd = np.sqrt(variance)
    assert np.all(sd > 0.05)
    # Means, variances and covariances of 7 inputs: 7 + 28 comparisons.
    assert np.all(np.abs(found.mean - exact.mean) < sigmas(35) * sd / np.sqrt(num))
    fourth = weights @ (functions - weights @ functions) ** 4
    error = sigmas(35) * np.sqrt(fourth / num)
    assert np.all(np.abs(found.epistemic - variance) < error)
    np.testing.assert_allclose(found.aleatoric, 0.25, rtol=1e-5)
    # Between inputs too: a mask is one function.
    between = np.cov(found.functions.T, bias=True)
    centred = functions - weights @ functions
    assert np.max(np.abs(between - (weights[:, None] * centred).T @ centred)) < np.max(error)


@pytest.mark.parametrize("net", TINY)
def test_classes_are_the_mixture_over_all_masks(net, seed):
    model = bound(TINY[net](3), labels=True)
    posterior = posterior_of(model, seed=seed)
    draws, weights = enumerated(model, posterior.mean)
    exact = credo.predictive.predictive(model, draws, X_NEW, weights=weights)
    num = 4000
    sd = np.sqrt(np.tensordot(weights, (exact.functions - exact.probs) ** 2, 1))
    probs = posterior.predict(X_NEW, num_draws=num).probs
    assert np.all(np.abs(probs - exact.probs) < sigmas(sd.size) * sd / np.sqrt(num) + 1e-6)


def test_gaussian_masks_have_the_moments_of_their_rate(seed):
    model = bound(TINY["without layers"](1))
    posterior = posterior_of(model, kind="gaussian")
    num = 20_000
    kernel = posterior.sample(random.key(seed), num)["head.kernel"].astype(np.float64)
    mean, variance = (moment["head.kernel"] for moment in posterior.moments())
    np.testing.assert_allclose(variance, posterior.mean["head.kernel"] ** 2 * RATE / (1 - RATE), rtol=1e-5)
    assert np.all(np.abs(kernel.mean(0) - mean) < sigmas(2 * mean.size) * np.sqrt(variance / num))
    np.testing.assert_allclose(kernel.var(0), variance, rtol=sigmas(2 * mean.size) * np.sqrt(2 / num))


@pytest.mark.parametrize("net", TINY)
def test_a_mask_is_the_same_function_in_any_block_of_rows(net, monkeypatch):
    posterior = posterior_of(bound(TINY[net](1)))
    whole = posterior.predict(X_NEW).functions
    monkeypatch.setattr("credo.predictive.rows.MAX_ROWS_PER_BLOCK", 2)
    np.testing.assert_allclose(posterior.predict(X_NEW).functions, whole, atol=1e-6)
    one_by_one = [posterior.predict(X_NEW[row : row + 1]).functions[:, 0] for row in range(len(X_NEW))]
    np.testing.assert_allclose(np.stack(one_by_one, axis=1), whole, atol=1e-6)
    other_seed = replace(posterior, provenance=replace(posterior.provenance, seed=1))
    assert not np.array_equal(other_seed.predict(X_NEW).functions, whole)


def test_convolutions_without_layers_lose_whole_channels():
    images = RNG.normal(size=(4, 8, 8, 2)).astype(np.float32)
    net = credo.networks.CNN(2, channels=(3, 4), kernel_size=2, features=(5,))
    model = credo.models.classification(net).bind((images, np.array([0, 1, 0, 1])))
    places = places_of(model)
    assert [(place.name, place.num_units) for place in places] == [
        ("conv.1.kernel", 3),
        ("hidden.0.kernel", 4),
        ("head.kernel", 5),
    ]
    mean = theta_of(model)
    masks = {place.name: np.ones(place.num_units, np.float32) for place in places}
    masks["conv.1.kernel"][1] = 0
    found = model.predictive(with_masks(mean, places, masks), jnp.asarray(images)).logits
    # The same as a first layer whose channel number 1 is silent everywhere: its kernel and bias are zero.
    silent = {name: leaf.copy() for name, leaf in mean.items()}
    silent["conv.0.kernel"][..., 1] = 0
    silent["conv.0.bias"][1] = 0
    np.testing.assert_allclose(found, model.predictive(silent, jnp.asarray(images)).logits, atol=1e-5)


def test_inputs_are_dropped_if_asked():
    model = bound(TINY["without layers"](1))
    names = [place.name for place in places_of(model, inputs=True)]
    assert names == ["hidden.0.kernel", "hidden.1.kernel", "head.kernel"]


class Deep(nnx.Module):
    """Dropout layers before convolutions, plain and in groups, before pooling and flattening, and before a sum."""

    def __init__(self):
        rngs = nnx.Rngs(0)
        self.first, self.second = nnx.Conv(2, 4, (3, 3), rngs=rngs), nnx.Conv(4, 6, (3, 3), rngs=rngs)
        self.third = nnx.Conv(6, 6, (3, 3), feature_group_count=3, rngs=rngs)
        self.fourth, self.fifth = nnx.Linear(96, 5, rngs=rngs), nnx.Linear(5, 2, rngs=rngs)
        self.dropout = nnx.Dropout(0.2, rngs=rngs)

    def __call__(self, x):
        x = self.second(nnx.relu(self.dropout(self.first(x))))
        x = self.third(self.dropout(x))
        x = nnx.max_pool(self.dropout(x), (2, 2), strides=(2, 2))
        x = jnp.tanh(self.fourth(x.reshape(len(x), -1)))
        return self.fifth(x + self.dropout(x))


def test_masks_of_layers_are_followed_to_the_weights_they_act_on():
    images = np.zeros((3, 8, 8, 2), np.float32)
    places = places_of(credo.models.classification(Deep()).bind((images, np.array([0, 1, 1]))))
    assert [(place.num_units, sorted(place.units)) for place in places] == [
        (4, ["second.kernel"]),
        (6, ["third.kernel"]),
        (6, ["fourth.kernel"]),
        (5, []),
    ]
    np.testing.assert_array_equal(places[0].units["second.kernel"].ravel(), np.arange(4))
    # Two inputs for each of three groups of two outputs.
    np.testing.assert_array_equal(places[1].units["third.kernel"][0, 0], [[0, 0, 2, 2, 4, 4], [1, 1, 3, 3, 5, 5]])
    np.testing.assert_array_equal(places[2].units["fourth.kernel"].ravel(), np.tile(np.arange(6), 16))


# -- the objective -----------------------------------------------------------------------------------------


def parts_of(method, model, mean, num, seed):
    phi = Phi({name: jnp.asarray(leaf) for name, leaf in mean.items()}, {}, {})
    keys = jax.random.split(random.key(seed), num)
    parts = jax.jit(jax.vmap(lambda key: method.objective(key, model, phi, FULL)[1]))(keys)
    return [np.asarray(part, np.float64) for part in parts]


@pytest.mark.parametrize("net", TINY)
def test_the_objective_is_the_elbo_up_to_a_constant(net, seed):
    model = bound(TINY[net](1), prior=priors.normal(0.7))
    method = MCDropout(rate=RATE)
    places = places_of(model)
    for place in range(3):
        mean = theta_of(model, place)
        draws, weights = enumerated(model, mean)
        log_likelihood = np.asarray(jax.vmap(lambda theta: model.log_likelihood(theta, FULL))(draws), np.float64)
        num = 4000
        found, log_prior, masks_entropy = parts_of(method, model, mean, num, seed)
        exact = weights @ log_likelihood
        sd = np.sqrt(weights @ (log_likelihood - exact) ** 2)
        assert abs(found.mean() - exact) < sigmas(3) * sd / np.sqrt(num)
        # E_q[log p(theta)] by enumeration: of the weights that masks act on, all values with their probability.
        by_mask = np.asarray(jax.vmap(lambda draw: model.log_prior(draw))(weights_of(draws, model, places)), np.float64)
        np.testing.assert_allclose(log_prior, weights @ by_mask, rtol=1e-5)
        # Fixed rates: the same for all theta.
        units = sum(place.num_units for place in places)
        np.testing.assert_allclose(masks_entropy, -units * (RATE * np.log(RATE) + (1 - RATE) * np.log(1 - RATE)), 1e-5)


def weights_of(draws, model, places):
    """Draws with the masks of layers as factors of the weights that they act on."""
    draws = dict(draws)
    for place in places:
        if place.is_layer:
            mask = draws.pop(place.name)
            for kernel, units in place.units.items():
                draws[kernel] = draws[kernel] * mask[:, units]
    return draws


@pytest.mark.full
@pytest.mark.parametrize("net", TINY)
def test_other_priors_are_averaged_over_the_masks(net, seed):
    model = bound(TINY[net](1), prior=priors.scale_mixture(0.5, 1.0, 0.1))
    mean = theta_of(model)
    draws, weights = enumerated(model, mean)
    by_mask = np.asarray(jax.vmap(model.log_prior)(weights_of(draws, model, places_of(model))), np.float64)
    num = 4000
    _, log_prior, _ = parts_of(MCDropout(rate=RATE), model, mean, num, seed)
    exact = weights @ by_mask
    sd = np.sqrt(weights @ (by_mask - exact) ** 2)
    assert sd > 0
    assert abs(log_prior.mean() - exact) < sigmas() * sd / np.sqrt(num)


def test_layers_that_are_points_have_no_masks_and_what_leaves_them_has():
    net = MLP([3, 2], 1, inputs=3)
    for layers, expected in {
        "hidden.0.*": {"hidden.1.kernel": 3, "head.kernel": 2},
        "hidden.*": {"head.kernel": 2},
    }.items():
        model = bound(net, prior={layers: "point"})
        frozen = model.freeze(model.initial_xi())
        for one in (model, frozen):
            assert {place.name: place.num_units for place in places_of(one)} == expected
    # A mask of a dropout layer acts on a point as well, but makes no random weights of it.
    (place,) = places_of(bound(TINY["nnx layers"](1), prior={"layers.3.*": "point"}))
    assert (place.num_units, place.units) == (4, {})


def test_points_are_climbed_like_the_weights_that_no_mask_acts_on():
    """With the same density, a layer that is a point and one in front of all masks are the same."""
    net = TINY["without layers"](1)
    whole, partly = bound(net), bound(net, prior={"hidden.0.*": priors.point(priors.normal())})
    theta = {name: jnp.asarray(leaf) for name, leaf in theta_of(whole).items()}
    mean, xi = ({name: theta[name] for name in part} for part in (partly.template, partly.xi_template))
    assert set(xi) == {"hidden.0.kernel", "hidden.0.bias"}

    def climbed(model, phi):
        gradient_of = jax.value_and_grad(lambda phi: MCDropout(rate=RATE).objective(random.key(0), model, phi, FULL)[0])
        value, slope = jax.jit(gradient_of)(phi)
        return value, slope.mean | slope.xi

    value, slopes = climbed(whole, Phi(theta, {}, {}))
    again, others = climbed(partly, Phi(mean, {}, xi))
    np.testing.assert_allclose(again, value, rtol=1e-5)
    for name, slope in slopes.items():
        np.testing.assert_allclose(others[name], slope, rtol=1e-4, atol=1e-6)


def test_minibatches_are_unbiased():
    model = bound(TINY["without layers"](1))
    phi = Phi({name: jnp.asarray(leaf) for name, leaf in theta_of(model).items()}, {}, {})
    method, key = MCDropout(rate=RATE), random.key(0)
    halves = [Batch(FULL.x[rows], FULL.y[rows], 12) for rows in (slice(0, 6), slice(6, 12))]
    objective = jax.jit(lambda batch: method.objective(key, model, phi, batch)[0])
    whole, *parts = (objective(batch) for batch in (FULL, *halves))
    np.testing.assert_allclose(np.mean(parts), whole, rtol=1e-5)


def test_the_entropy_of_bernoulli_masks_is_that_of_narrow_peaks():
    # q(w) of one weight behind one unit: peaks at 0 and m/(1 − p) of width s, integrated on a grid.
    model = bound(MLP([1], 1, inputs=3))
    places, s = places_of(model), 1e-3
    errors = []
    for weight, rate in [(1.0, 0.1), (-0.5, 0.4), (2.0, 0.7)]:
        grid = np.linspace(-10 * s, 10 * s, 20_001)
        density = np.exp(-0.5 * (grid / s) ** 2) / (s * np.sqrt(2 * np.pi))
        peaks = [rate * density, (1 - rate) * density]  # far apart: each alone on its own grid
        exact = -sum(np.trapezoid(peak * np.log(np.maximum(peak, 1e-300)), grid) for peak in peaks)
        mean = {"head.kernel": jnp.array([[weight]])}
        errors.append(exact - float(entropy("bernoulli", mean, places, {"head.kernel": jnp.float32(rate)})))
    np.testing.assert_allclose(errors, errors[0], atol=1e-4)


def test_the_entropy_of_gaussian_masks_is_that_of_a_narrow_ellipsoid():
    # q(w) of the weights behind each unit: N(m, s² I + p/(1 − p) m mᵀ), in the limit of a small s.
    model = bound(MLP([2], 3, inputs=3), labels=True)
    places, s = places_of(model), 1e-4
    errors = []
    for seed, rate in enumerate([0.1, 0.4, 0.7]):
        kernel = theta_of(model, seed)["head.kernel"].astype(np.float64)
        covariances = [s**2 * np.eye(3) + rate / (1 - rate) * np.outer(row, row) for row in kernel]
        exact = sum(0.5 * np.linalg.slogdet(2 * np.pi * np.e * covariance)[1] for covariance in covariances)
        mean = {"head.kernel": jnp.asarray(kernel, jnp.float32)}
        errors.append(exact - float(entropy("gaussian", mean, places, {"head.kernel": jnp.float32(rate)})))
    np.testing.assert_allclose(errors, errors[0], atol=1e-4)


def test_concrete_dropout_drops_noise_rather_than_signal(seed):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 6)).astype(np.float32)
    y = x[:, :3] @ [1.0, -1.0, 0.5] + 0.3 * rng.normal(size=300)

    def two_layers(params, x):
        return x[:, :3] @ params["signal"] + x[:, 3:] @ params["noise_only"]

    params = {name: np.ones((3, 1), np.float32) for name in ("signal", "noise_only")}
    method = MCDropout(kind="concrete", drop_inputs=True, num_steps=30_000)
    rates = credo.fit(credo.models.regression((two_layers, params)), (x, y), method, seed=seed).rates
    # From 0.1, and slowly: one goes to zero, the other to a third.
    assert rates["signal"] < 0.02
    assert rates["noise_only"] > 0.15


# -- trained elsewhere -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NETS)
def test_a_trained_network_becomes_a_posterior(name, tmp_path):
    net = NETS[name]()
    before = snapshot(net)
    posterior = MCDropout.from_trained(credo.models.regression(net), (X, Y), seed=4)
    params = functional(net).params
    assert all(np.array_equal(posterior.mean[path], leaf) for path, leaf in params.items())
    assert posterior.rates == {"dropout_mask.0": np.float32(0.5)}
    # The noise is fitted: close to the root mean square of the residuals under the masks, prior HalfNormal(1).
    residuals = Y - posterior.predict(X, num_draws=2000).functions
    assert np.exp(posterior.mean["noise"]) == pytest.approx(np.sqrt(np.mean(residuals**2)), rel=0.15)
    assert np.all(posterior.predict(X_NEW).epistemic > 0)
    assert posterior.diagnostics.num_steps == 0
    assert "trained elsewhere" in str(posterior.diagnostics)
    posterior.save(tmp_path / "run")
    loaded = credo.load(tmp_path / "run", network=net)
    assert loaded.predict(X_NEW).mean.tobytes() == posterior.predict(X_NEW).mean.tobytes()
    assert str(loaded.diagnostics) == str(posterior.diagnostics)
    assert snapshot(net) == before


def test_weights_from_elsewhere_and_a_noise_that_is_known():
    net = NETS["nnx"]()
    params = {name: leaf + 1 for name, leaf in functional(net).params.items()}
    posterior = MCDropout.from_trained(credo.models.regression(net), (X, Y), params | {"noise": 0.3}, kind="gaussian")
    assert all(np.array_equal(posterior.mean[name], leaf) for name, leaf in params.items())
    np.testing.assert_allclose(posterior.predict(X_NEW).aleatoric, 0.09, rtol=1e-4)


def test_what_from_trained_refuses():
    data = (X, Y)
    with pytest.raises(ValueError, match=r"no dropout layers .* credo\.fit"):
        MCDropout.from_trained(credo.models.regression(MLP([4], 1)), data)
    model = credo.models.regression(NETS["nnx"](), noise=0.1)
    params = functional(NETS["nnx"]()).params
    del params["second.kernel"]
    with pytest.raises(ValueError, match=r"1 missing: second\.kernel"):
        MCDropout.from_trained(model, data, params)
    with pytest.raises(ValueError, match="learned in training"):
        MCDropout.from_trained(model, data, kind="concrete")
    positive = credo.models.regression(NETS["nnx"](), prior=dist.HalfNormal(1.0))
    with pytest.raises(ValueError, match="rules out"):
        MCDropout.from_trained(positive, data)


# -- as a method -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "noise", [None, *(pytest.param(noise, marks=pytest.mark.full) for noise in (0.1, "heteroscedastic", "full"))]
)
def test_any_noise(noise):
    out = {"heteroscedastic": 4}.get(noise, 2) if isinstance(noise, str) else 2
    model = credo.models.regression(MLP([5], out), noise=noise)
    posterior = credo.fit(model, (X, np.stack([Y, -Y], axis=1)), MCDropout(num_steps=5))
    assert np.isfinite(posterior.predict(X_NEW).std).all()


@pytest.mark.parametrize("kind", ["bernoulli", "gaussian", "concrete"])
def test_training_climbs_and_saves(kind, tmp_path, seed):
    model = credo.models.classification(MLP([8], 3))
    posterior = credo.fit(model, (X, LABELS), MCDropout(kind=kind, num_steps=300, draws_per_step=2), seed=seed)
    elbo = posterior.trace["elbo"][0]
    assert elbo[-50:].mean() > elbo[:50].mean()
    parts = sum(posterior.trace[name] for name in ("log_likelihood", "log_prior", "entropy"))
    np.testing.assert_allclose(parts, posterior.trace["elbo"], rtol=1e-4)
    posterior.save(tmp_path / "run")
    loaded = credo.load(tmp_path / "run")
    assert isinstance(loaded, Dropout)
    assert loaded.kind == kind
    assert repr(loaded) == repr(posterior)
    assert loaded.predict(X_NEW).probs.tobytes() == posterior.predict(X_NEW).probs.tobytes()


def test_an_ensemble_is_a_mixture(tmp_path):
    method = credo.DeepEnsemble(MCDropout(num_steps=50), members=2)
    mixture = credo.fit(credo.models.regression(NETS["nnx"]()), (X, Y), method)
    assert isinstance(mixture, credo.Mixture)
    mixture.save(tmp_path / "run")
    loaded = credo.load(tmp_path / "run", network=NETS["nnx"]())
    assert loaded.predict(X_NEW).mean.tobytes() == mixture.predict(X_NEW).mean.tobytes()
    assert mixture.sample(random.key(0), 3)["dropout_mask.0"].shape == (3, 4)


def test_members_of_different_architectures_keep_their_masks():
    models = [bound(TINY[name](1)) for name in TINY]
    members = tuple(replace(posterior_of(model), probes=X) for model in models)
    mixture = credo.Mixture(members, members[0].provenance)
    functions = mixture.predict(X_NEW, num_draws=40).functions
    assert np.all(functions[:20].std(axis=0) > 0)
    assert np.all(functions[20:].std(axis=0) > 0)


def test_a_posterior_that_does_not_fit_the_network_is_refused(tmp_path):
    MCDropout.from_trained(credo.models.regression(NETS["nnx"](), noise=0.1), (X, Y)).save(tmp_path / "run")
    without = NETS["nnx"]()
    without.dropout.rate = 0.0
    with pytest.raises(ValueError, match=r"masks for dropout_mask\.0"):
        credo.load(tmp_path / "run", network=without)


def test_diagnostics_tell_of_masks_that_do_nothing_and_of_rates_at_the_edge():
    model = bound(MLP([6, 6], 1))
    posterior = replace(posterior_of(model), probes=X)
    assert "Handle with care" not in posterior.diagnostics.verdict
    assert posterior.diagnostics.to_dict()["rates"] == pytest.approx({"hidden.1.kernel": RATE, "head.kernel": RATE})
    collapsed = replace(posterior, mean={name: 1e-4 * leaf for name, leaf in posterior.mean.items()})
    assert "the spread has collapsed" in collapsed.diagnostics.verdict
    at_the_edge = {"hidden.1.kernel": np.float32(1e-4), "head.kernel": np.float32(0.95)}
    verdict = replace(posterior, rates=at_the_edge).diagnostics.verdict
    assert "the rate of hidden.1.kernel went to zero" in verdict
    assert "the rate of head.kernel went to one" in verdict
    climbing = {name: np.arange(200.0)[None] for name in ("elbo", "log_likelihood")}
    assert "still climbing" in replace(posterior, trace=climbing).diagnostics.verdict


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1, 1.5, float("nan")])
def test_rates_lie_between_zero_and_one(rate):
    with pytest.raises(ValueError, match="rate must lie between 0 and 1"):
        MCDropout(rate=rate)


def test_other_bad_settings():
    with pytest.raises(ValueError, match="did you mean 'gaussian'"):
        MCDropout(kind="gausian")
    with pytest.raises(ValueError, match="num_steps"):
        MCDropout(num_steps=0)
    with pytest.raises(ValueError, match="batch_size"):
        MCDropout(batch_size=0)
    with pytest.raises(ValueError, match="num must be at least 1"):
        posterior_of(bound(TINY["without layers"](1))).sample(random.key(0), 0)
    with pytest.raises(ValueError, match="no units to drop"):
        credo.fit(credo.models.regression(MLP([], 1)), (X, Y), MCDropout())
