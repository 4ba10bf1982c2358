"""The flow's density is its density, it starts as the Gaussian it says, and it takes shapes that no Gaussian has."""

import json
import math
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
import pytest
from scipy import special, stats

import credo
from credo import random
from credo.covariance.warp import BOUND, Warp, moves, spline
from credo.inference.variational.families import FlowFamily, as_family
from credo.inference.variational.importance import log_weights
from credo.posterior import Flow, Gaussian
from credo.posterior.saving import Stored
from tests.statistical.moments import assert_mean, sigmas
from tests.statistical.targets import NOISE, correlated_normal, linear_regression, skewed

STEPS = 3000
# Two observations of N(0, 1) at zero, whatever theta: all that a model "whose data say nothing" has for evidence.
LOG_EVIDENCE = -math.log(2 * math.pi)
TEMPLATE = {"a": jax.ShapeDtypeStruct((3,), jnp.float32), "b": jax.ShapeDtypeStruct((), jnp.float32)}


@cache
def method(family: object = "flow", steps: int = STEPS, **settings: object) -> credo.BayesByBackprop:
    rate = optax.cosine_decay_schedule(0.02, steps)
    usual = {"learning_rate": rate, "draws_per_step": 8, "initial_scale": 0.5, "start": "prior"}
    return credo.BayesByBackprop(num_steps=steps, family=family, **(usual | settings))


def gap(posterior: Flow | Gaussian, data: credo.Data, seed: int, num: int = 20_000) -> tuple[float, float]:
    """KL(q ‖ posterior) = log evidence − ELBO, with its standard error."""
    keys = jax.random.split(random.key(seed), num)
    weights = np.asarray(log_weights(posterior.model, *posterior.centre_and_root, keys, data.batch()), np.float64)
    return LOG_EVIDENCE - weights.mean(), weights.std() / math.sqrt(num)


def bent(strength: float) -> Warp:
    """A warp over four numbers that is not the identity."""
    family = FlowFamily(layers=4, hidden=5, bins=4)
    phi, rng = family.init(TEMPLATE, 0.7), np.random.default_rng(0)
    noisy = {name: leaf + strength * rng.normal(size=leaf.shape).astype(np.float32) for name, leaf in phi.items()}
    return family.root(noisy, TEMPLATE)


def flat(offset: dict[str, jax.Array]) -> jax.Array:
    return jnp.concatenate([offset[name].ravel() for name in TEMPLATE])


# -- the map and its density -------------------------------------------------------------------------------


def test_q_starts_as_the_stated_gaussian() -> None:
    family = FlowFamily()
    warp = family.root(family.init(TEMPLATE, 0.3), TEMPLATE)
    for epsilon in np.array([[0.5, -1.0, 2.0, 0.1], [4.9, -5.1, 8.0, 0.0]], np.float32):
        offset, log_q = warp.offset_and_log_q(jnp.asarray(epsilon))
        np.testing.assert_allclose(flat(offset), 0.3 * epsilon, rtol=1e-5, atol=1e-6)
        assert float(log_q) == pytest.approx(stats.norm.logpdf(0.3 * epsilon, 0, 0.3).sum(), rel=1e-5)


def test_log_q_is_the_change_of_variables() -> None:
    warp, noise = bent(0.5), np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)
    jacobians = jax.jit(jax.vmap(jax.jacobian(lambda epsilon: flat(warp.offset_and_log_q(epsilon)[0]))))(noise)
    log_dets = np.linalg.slogdet(np.asarray(jacobians, np.float64))[1]
    found = jax.jit(jax.vmap(lambda epsilon: warp.offset_and_log_q(epsilon)[1]))(noise)
    np.testing.assert_allclose(found, stats.norm.logpdf(noise).sum(1) - log_dets, atol=1e-4)
    # It is bent: the Jacobian depends on where it is taken.
    assert np.ptp(log_dets) > 0.5


def test_draws_have_that_density(seed: int) -> None:
    """E_q[p/q] = 1 for a normalised p inside q, and E_q[p/q · theta] is the mean of p."""
    offset, log_q = jax.jit(jax.vmap(bent(0.15).draw_and_log_q))(jax.random.split(random.key(seed), 100_000))
    theta = np.concatenate([np.asarray(offset[name]).reshape(100_000, -1) for name in TEMPLATE], axis=1)
    centre, scale = np.median(theta, axis=0), 0.5 * theta.std(axis=0)
    weights = np.exp(stats.norm.logpdf(theta, centre, scale).sum(1) - np.asarray(log_q, np.float64))
    assert weights.std() / math.sqrt(100_000) < 0.03
    assert_mean(np.column_stack([weights, weights[:, None] * (theta - centre)]), [1, 0, 0, 0, 0])


def test_the_spline_rises_and_is_the_identity_beyond() -> None:
    raw = jnp.asarray(np.random.default_rng(0).normal(size=(1, 23)) * 2, jnp.float32)
    x = np.linspace(-1.2 * BOUND, 1.2 * BOUND, 2001, dtype=np.float32)
    y, log_slope = jax.vmap(lambda one: spline(one[None], raw))(x)
    y, log_slope = np.asarray(y)[:, 0], np.asarray(log_slope)[:, 0]
    assert np.all(np.diff(y) > 0)
    np.testing.assert_array_equal(y[np.abs(x) > BOUND], x[np.abs(x) > BOUND])
    # Slopes against differences, away from bins so narrow that 2,001 points do not resolve them.
    secant = np.diff(y.astype(np.float64)) / np.diff(x.astype(np.float64))
    middle = 0.5 * (np.exp(log_slope[1:]) + np.exp(log_slope[:-1]))
    assert np.median(np.abs(secant / middle - 1)) < 5e-3


def test_every_pair_of_coordinates_meets_both_ways() -> None:
    moved = np.stack([moves(layer, 6) for layer in range(6)])
    meets = (moved[:, :, None] & ~moved[:, None, :]).any(0)
    assert meets[~np.eye(6, dtype=bool)].all()
    assert moves(0, 1).shape == (1,)


# -- known posteriors --------------------------------------------------------------------------------------


@pytest.mark.full
def test_a_skewed_posterior(seed: int) -> None:
    """The logarithm of a gamma variable: moments by polygamma functions; its flow bends where a Gaussian cannot."""
    target = skewed()
    settings = {"draws_per_step": 64, "learning_rate": optax.cosine_decay_schedule(0.05, STEPS)}
    flow = credo.fit(target.model, target.data, method(**settings), seed=seed)
    gaussian = credo.fit(target.model, target.data, method("full"), seed=seed)
    best_gaussian, _ = gap(gaussian, target.data, seed)
    found, error = gap(flow, target.data, seed)
    assert -sigmas(4) * error < found < 0.1 * best_gaussian
    # The standard errors of 20,000 draws, and 2% for what q leaves out.
    draws = flow.sample(random.key(seed), 20_000)["w"][:, 0].astype(np.float64)
    sd = math.sqrt(special.polygamma(1, 2))
    assert draws.mean() == pytest.approx(special.digamma(2), abs=sigmas(4) * sd / math.sqrt(20_000) + 0.02 * sd)
    # The kurtosis of log gamma is 4.19, so the relative error of an sd is √(3.19/4n).
    assert draws.std() == pytest.approx(sd, rel=sigmas(4) * math.sqrt(3.19 / 80_000) + 0.02)
    # −0.78; a Gaussian's is zero. Its standard error, by repetition, is about 0.03.
    assert stats.skew(draws) == pytest.approx(special.polygamma(2, 2) / sd**3, abs=sigmas(4) * 0.03)


def banana(x: np.ndarray, y: np.ndarray | None = None) -> None:
    across = numpyro.sample("across", dist.Normal(0, 1))
    numpyro.sample("along", dist.Normal(across**2, 0.3))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(0.0, 1.0), obs=y)


def two_modes(x: np.ndarray, y: np.ndarray | None = None) -> None:
    halves = dist.Categorical(probs=np.array([0.5, 0.5]))
    mode = numpyro.sample("mode", dist.MixtureSameFamily(halves, dist.Normal(np.array([-1.5, 1.5]), 0.6)))
    numpyro.sample("beside", dist.Normal(mode, 0.5))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(0.0, 1.0), obs=y)


@pytest.mark.full
@pytest.mark.parametrize("program", [banana, two_modes])
def test_shapes_that_no_gaussian_has(program: object, seed: int) -> None:
    data = credo.Data(np.zeros((2, 1)), np.zeros(2))
    # With fewer draws per step the noise decides in which of several shapes the flow ends.
    flow, gaussian = (
        credo.fit(credo.Model(program), data, method(family, draws_per_step=32), seed=seed)
        for family in ("flow", "full")
    )
    best_gaussian, _ = gap(gaussian, data, seed)
    found, error = gap(flow, data, seed)
    assert best_gaussian > 0.5
    assert -sigmas(2) * error < found < 0.25 * best_gaussian
    assert flow.evidence.elbo == pytest.approx(
        LOG_EVIDENCE - found, abs=sigmas(2) * np.hypot(error, flow.evidence.elbo_error)
    )
    assert flow.evidence.k_hat < 0.7
    if program is two_modes:
        draws = flow.sample(random.key(seed), 20_000)["mode"]
        assert 0.4 < np.mean(draws > 0) < 0.6
        # Between the modes the density is 0.13 of that at a mode.
        assert np.mean(np.abs(draws) < 0.3) < 0.4 * np.mean(np.abs(draws - 1.5) < 0.3) * 2


@pytest.mark.full
def test_a_correlated_normal(seed: int) -> None:
    target = correlated_normal()
    posterior = credo.fit(target.model, target.data, method(), seed=seed)
    found, _ = gap(posterior, target.data, seed)
    assert found < 0.05
    draws = posterior.sample(random.key(seed), 20_000)["w"]
    np.testing.assert_allclose(draws.mean(0), target.mean, atol=0.1)
    np.testing.assert_allclose(draws.std(0), target.sd, rtol=0.1)
    # cos 30° sin 30° (1 − 0.001) over the sds.
    expected = 0.999 * math.cos(math.pi / 6) * 0.5 / np.prod(target.sd)
    assert np.corrcoef(draws.T)[0, 1] == pytest.approx(expected, abs=2e-3)


# -- use ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def posterior(seed: int) -> Flow:
    target = linear_regression()
    return credo.fit(target.model, target.data, method(FlowFamily(2, 8, 4), steps=1500, batch_size=15), seed=seed)


def test_linear_regression_has_its_evidence(posterior: Flow) -> None:
    target = linear_regression()
    design = np.column_stack([target.data.x, np.ones(30)])
    marginal = stats.multivariate_normal(np.zeros(30), design @ design.T + NOISE**2 * np.eye(30))
    expected = float(marginal.logpdf(target.data.y))
    assert expected - 0.5 < posterior.evidence.elbo < expected + sigmas() * posterior.evidence.elbo_error
    mean, variance = posterior.moments()
    order = sorted(mean, key=lambda name: "bias" in name)
    np.testing.assert_allclose(np.concatenate([np.ravel(mean[name]) for name in order]), target.mean, atol=0.05)
    sds = np.sqrt(np.concatenate([np.ravel(variance[name]) for name in order]))
    np.testing.assert_allclose(sds, target.sd, rtol=0.2)


@pytest.mark.full
def test_the_same_seed_gives_the_same_bits(posterior: Flow) -> None:
    target = linear_regression()
    short = method(FlowFamily(2, 8, 4), steps=20)
    first, second = (credo.fit(target.model, target.data, short, seed=3) for _ in range(2))
    for one, other in zip(jax.tree.leaves(first.warp), jax.tree.leaves(second.warp), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(posterior.predict(target.data.x).mean, posterior.predict(target.data.x).mean)


def test_it_is_used_like_any_posterior(posterior: Flow) -> None:
    target = linear_regression()
    predictive = posterior.predict(target.data.x)
    assert predictive.mean.shape[0] == 30
    assert np.all(np.isfinite(predictive.mean))
    assert np.all(predictive.std >= NOISE * 0.99)
    assert posterior.provenance.num_data == 30
    assert posterior.probes is not None
    theta, log_q = posterior.sample_and_log_q(random.key(0), 7)
    assert {leaf.shape[0] for leaf in theta.values()} == {7}
    assert log_q.shape == (7,)
    assert posterior.num_bytes > 4 * posterior.model.num_parameters
    assert repr(posterior).startswith("Flow(4 numbers, 2 layers, by BayesByBackprop")
    assert "Flow over 4 numbers" in str(posterior.diagnostics)
    assert 0.01 < posterior.diagnostics.relative_scale < 1
    json.dumps(posterior.diagnostics.to_dict())


def test_parts_round_trip(posterior: Flow) -> None:
    config, arrays = posterior.to_parts()
    stored = Stored(Path(), json.loads(json.dumps(config)), arrays, (posterior.model,))
    again = Flow.from_parts(stored, model=posterior.model, provenance=posterior.provenance, scaling=posterior.scaling)
    first, second = (one.sample_and_log_q(random.key(1), 5) for one in (posterior, again))
    for one, other in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_array_equal(one, other)
    assert again.evidence == posterior.evidence
    assert again.num_bytes == posterior.num_bytes


@pytest.mark.full
def test_learned_prior_parameters_are_frozen() -> None:
    def program(x: np.ndarray, y: np.ndarray | None = None) -> None:
        scale = numpyro.param("scale", 1.0, constraint=dist.constraints.positive)
        w = numpyro.sample("w", dist.Normal(0.0, scale).expand([x.shape[1]]).to_event(1))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal(x @ w, NOISE), obs=y)

    found = credo.fit(credo.Model(program), linear_regression().data, method(FlowFamily(1, 4, 3), steps=50))
    assert found.model.frozen_xi["scale"] != 0


def test_bad_input() -> None:
    for estimator in ("landing", "local", "flipout"):
        with pytest.raises(ValueError, match=f"{estimator}' needs a Gaussian q; with family='flow' take 'weights'"):
            credo.BayesByBackprop(family="flow", estimator=estimator)
    for bad in ({"layers": 0}, {"hidden": 0}, {"bins": 1}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            FlowFamily(**bad)
    wide = credo.models.regression(credo.networks.MLP([50, 50], out=1))
    data = (np.zeros((4, 3)), np.zeros(4))
    with pytest.raises(ValueError, match=r"up to 2,000 numbers.*2,80.*low_rank.*diagonal.*DeepEnsemble"):
        # Refused before the method it would start from has run.
        credo.fit(wide, data, credo.BayesByBackprop(family="flow", start=credo.MAP(num_steps=10**9)))


def test_its_size_is_known_before() -> None:
    family = FlowFamily(layers=2, hidden=3, bins=4)
    phi = family.init(TEMPLATE, 1.0)
    # Of the root's matrix the upper triangle is not learned.
    assert family.num_parameters(TEMPLATE) == sum(leaf.size for leaf in phi.values()) - 6
    target = linear_regression()
    needs = credo.BayesByBackprop(family=family).describe(target.model, target.data)
    assert "a flow of" in str(needs)
    # phi, its gradient, two moments of Adam and two halves of a tail, of four bytes each.
    assert needs.num_bytes == 24 * (4 + family.num_parameters(TEMPLATE))
    assert as_family("flow") == FlowFamily()


def test_saved_and_loaded_predicts_the_same_bits(posterior: Flow, tmp_path) -> None:
    posterior.save(tmp_path / "run")
    again = credo.load(tmp_path / "run")
    assert type(again) is credo.Flow
    assert again.evidence == posterior.evidence
    ours, theirs = (one.predict(np.ones((2, 3))) for one in (posterior, again))
    assert ours.mean.tobytes() == theirs.mean.tobytes()
    assert ours.variance.tobytes() == theirs.variance.tobytes()
