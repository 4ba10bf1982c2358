"""Microcanonical Langevin Monte Carlo: integrator, tuning, the predicted bias, and broken versions that must fail."""

from dataclasses import dataclass, replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import credo
from credo import random
from credo.inference.engine import driver as engine
from credo.inference.mcmc.mclmc import MCLMC, isokinetic, kick
from credo.inference.mcmc.trajectory import Point
from tests.statistical.moments import assert_mean, assert_moments, passes, sigmas
from tests.statistical.targets import Target, _latent, correlated_normal, linear_regression

# What the docstring of MCLMC promises: sds are too small by this times energy_variance^(1/3).
BIAS = 0.15


@cache
def skewed() -> Target:
    """Two gamma variables of shape 2: one alone leaves no direction to turn."""
    return _latent(dist.Gamma(2.0, 1.0).expand([2]).to_event(1), np.full(2, 2.0), np.full(2, np.sqrt(2.0)), 6.0)


@cache
def normal(num: int) -> Target:
    return _latent(dist.Normal(0.0, 1.0).expand([num]).to_event(1), np.zeros(num), np.ones(num))


def bias_of(method: MCLMC) -> float:
    """Of sds, as a share of them. A skewed variable whose spread is off has a mean that is off by about as much."""
    return BIAS * method.energy_variance ** (1 / 3)


# -- the integrator ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def start() -> tuple[Point, jax.Array, object]:
    def log_density(q: jax.Array) -> jax.Array:
        return -0.5 * jnp.sum(q**2) - 0.1 * jnp.sum(q**4)

    value_and_grad = jax.value_and_grad(log_density)
    position = jnp.array([0.3, -1.2, 0.7, 0.1])
    direction = jnp.array([0.5, 0.5, -0.5, 0.5])
    return Point(position, *value_and_grad(position)), direction, value_and_grad


@pytest.mark.quick
def test_integrator_is_reversible_and_keeps_the_speed(start) -> None:
    point, direction, value_and_grad = start
    scale, step_size = jnp.array([1.0, 2.0, 0.5, 1.0]), jnp.array(0.4)
    end, turned, error = isokinetic(point, direction, value_and_grad, step_size, scale)
    assert float(jnp.linalg.norm(turned)) == pytest.approx(1, abs=1e-6)
    back, original, error_back = isokinetic(end, -turned, value_and_grad, step_size, scale)
    np.testing.assert_allclose(back.position, point.position, atol=1e-6)
    np.testing.assert_allclose(-original, direction, atol=1e-6)
    assert float(error) == pytest.approx(-float(error_back), abs=1e-5)


@pytest.mark.quick
def test_energy_error_is_of_third_order(start) -> None:
    point, direction, value_and_grad = start
    errors = [
        float(isokinetic(point, direction, value_and_grad, jnp.array(step), jnp.ones(4))[2]) for step in (0.8, 0.4)
    ]
    assert 6 < errors[0] / errors[1] < 11


def test_kick_solves_its_equation() -> None:
    direction, gradient, time = jnp.array([0.6, 0.8, 0.0]), jnp.array([-2.0, 1.0, 3.0]), 0.5
    num, u, kinetic = 20_000, np.array(direction, np.float64), 0.0
    for _ in range(num):
        slope = np.asarray(gradient) / 2
        kinetic += 2 * (u @ slope) * time / num
        u = u + (slope - u * (u @ slope)) * time / num
    turned, gained = kick(direction, gradient, jnp.array(time))
    np.testing.assert_allclose(turned, u, atol=1e-3)
    assert float(gained) == pytest.approx(kinetic, abs=1e-3)


def test_kick_survives_huge_gradients_and_none() -> None:
    direction = jnp.array([1.0, 0.0])
    for gradient in (jnp.array([-1e15, 0.0]), jnp.array([0.0, 1e15]), jnp.zeros(2)):
        turned, gained = kick(direction, gradient, jnp.array(1.0))
        assert np.isfinite(turned).all()
        assert np.isfinite(gained)


# -- known posteriors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "thin"),
    [(linear_regression(), 10), (correlated_normal(), 50), (skewed(), 10)],
    ids=["linear", "correlated", "skewed"],
)
def test_known_posteriors_up_to_the_predicted_bias(target: Target, thin: int, seed: int) -> None:
    method = MCLMC(num_samples=3000, thin=thin, num_warmup=3000)
    draws = target.draws(credo.fit(target.model, target.data, method, seed=seed))
    assert_moments(draws, target.mean, target.sd, kurtosis=target.kurtosis, bias=bias_of(method))


def test_bias_is_as_predicted_and_shrinks_with_the_energy_variance(seed: int) -> None:
    """Chain by chain, because each tunes a step of its own: the spread over 32 chains is the Monte Carlo error."""
    target = normal(50)

    def bias(energy_variance: float) -> np.ndarray:
        method = MCLMC(
            num_samples=2000, thin=10, num_warmup=20_000, num_chains=32, energy_variance=energy_variance
        )  # fmt: skip
        posterior = credo.fit(target.model, target.data, method, seed=seed)
        # Tuning weighs down the errors that are far from the wanted one, which leaves their mean some 5% below it.
        sizes = (posterior.infos["energy_change"].astype(float) ** 2).mean(axis=1) / 50
        assert_mean(np.log(sizes / energy_variance), 0.0, slack=0.1)
        # "About" is to a quarter.
        lost = 1 - np.sqrt((target.draws(posterior).astype(float) ** 2).mean(axis=(1, 2)))
        assert_mean(lost / bias_of(method), 1.0, slack=0.25)
        return lost

    coarse, fine = bias(5e-4), bias(5e-4 / 8)
    assert_mean(fine - coarse / 2, 0.0, slack=0.1 * coarse.mean())
    # Long enough to see it shrink.
    shrinks = coarse - fine
    assert shrinks.mean() > sigmas(1, 31) * shrinks.std(ddof=1) / np.sqrt(32)


@pytest.mark.quick
def test_scales_far_apart_are_learned(seed: int) -> None:
    sd = np.array([1e-2, 1.0, 30.0])
    target = _latent(dist.Normal(0.0, sd).to_event(1), np.zeros(3), sd)
    method = MCLMC(num_samples=3000, thin=5, num_warmup=6000)
    posterior = credo.fit(target.model, target.data, method, seed=seed)
    assert_moments(target.draws(posterior), target.mean, target.sd, bias=bias_of(method))


# -- negative controls ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Noiseless(MCLMC):
    """The direction is never refreshed: each chain stays on the orbit it began on."""

    def turn(self, key: jax.Array, direction: jax.Array, share: jax.Array) -> jax.Array:
        return direction


@dataclass(frozen=True)
class Lopsided(MCLMC):
    """The noise is not isotropic: it has a mean."""

    def turn(self, key: jax.Array, direction: jax.Array, share: jax.Array) -> jax.Array:
        noise = jnp.abs(random.normal(key, direction.shape))
        turned = direction + jnp.sqrt(jnp.expm1(2 * share) / direction.size) * noise
        return turned / jnp.linalg.norm(turned)


@pytest.mark.parametrize(("kind", "is_right"), [(MCLMC, True), (Noiseless, False), (Lopsided, False)])
def test_broken_noise_fails(kind: type[MCLMC], is_right: bool, seed: int) -> None:
    """Chain by chain on a round normal, where without noise an orbit stays between two circles."""
    target = normal(2)
    method = kind(num_samples=4000, thin=10, num_warmup=3000, energy_variance=1e-4, preconditioned=False)
    draws = target.draws(credo.fit(target.model, target.data, method, seed=seed))
    found = [passes(chain[None], target.mean, target.sd, bias=bias_of(method)) for chain in draws]
    assert all(found) is is_right


# -- tuning and starts ---------------------------------------------------------------------------------------


def test_a_step_that_would_throw_the_chain_out_of_its_mode_is_not_made() -> None:
    target, method = normal(50), MCLMC(num_warmup=100)
    model, batch = target.model.bind(target.data), target.data.batch()
    state = method.init(random.key(0), model, {"w": jnp.full(50, 0.1)}, batch, None)
    far = state._replace(tuning=state.tuning._replace(step_size=jnp.array(1e2)))
    after, info = method.step(random.key(1), model, far, batch)
    assert bool(info.diverged)
    assert bool(jnp.isfinite(info.log_joint))
    np.testing.assert_array_equal(after.point.position, state.point.position)
    assert float(after.tuning.step_size) < 1e2


def test_nothing_changes_after_warmup() -> None:
    target = linear_regression()
    posterior = credo.fit(target.model, target.data, MCLMC(num_samples=50, num_warmup=300, num_chains=2))
    for name in ("step_size", "length"):
        assert np.ptp(posterior.infos[name], axis=1).max() == 0
    assert np.ptp(posterior.trace["step_size"], axis=1).min() > 0


def test_scales_are_between_the_marginal_and_the_conditional_sds(seed: int) -> None:
    """scale⁴ = Var(x)/Var(∂ log p): Σᵢᵢ/(Σ⁻¹)ᵢᵢ for a normal; without preconditioning all stay at one."""
    covariance = np.array([[4.0, 1.9, 0.0], [1.9, 1.0, 0.0], [0.0, 0.0, 0.01]])
    target = _latent(dist.MultivariateNormal(jnp.zeros(3), covariance), np.zeros(3), np.sqrt(np.diag(covariance)))
    expected = (np.diag(covariance) / np.diag(np.linalg.inv(covariance))) ** (1 / 4)
    assert expected[0] < 0.6 * target.sd[0]
    bound, data = target.model.bind(target.data), target.data.batch()
    method = MCLMC(num_samples=1, num_warmup=60_000, num_chains=2, thin=1)
    found = engine.run(method, bound, data, seed=seed).states.tuning
    # The window holds 15,000 steps, of which a few hundred are independent. A ratio of two variances is then known to
    # √(2 · 2/300) = 12%, its fourth root to 3%, and L, a root of the sum of three such, to about as much: five sigmas.
    np.testing.assert_allclose(found.scale, np.tile(expected, (2, 1)), rtol=0.15)
    length = np.sqrt(np.sum(np.diag(covariance) / expected**2))
    np.testing.assert_allclose(found.length, np.full(2, length), rtol=0.15)
    plain = engine.run(replace(method, preconditioned=False, num_warmup=500), bound, data).states.tuning
    assert np.all(plain.scale == 1)


def test_a_parameter_that_nothing_depends_on_keeps_its_scale() -> None:
    method = MCLMC()
    tuning = method.first_tuning(2)
    seen = jnp.array([[1.0, 0.0, 2.0, 0.0], [3.0, 0.0, -2.0, 0.0]])
    for values in seen:
        mean, m2, num = tuning.moments
        moved = mean + (values - mean) / (num + 1)
        tuning = tuning._replace(moments=type(tuning.moments)(moved, m2 + (values - mean) * (values - moved), num + 1))
    new = method.with_scale(True, tuning)
    np.testing.assert_allclose(new.scale, [(2.0 / 8.0) ** (1 / 4), 1.0], rtol=1e-6)
    assert all(not np.any(leaf) for leaf in jax.tree.leaves(new.moments))
    # The step is no longer for any parameter than it was.
    assert np.all(new.step_size * new.scale <= tuning.step_size * tuning.scale * (1 + 1e-6))


@pytest.mark.full
def test_each_chain_of_an_ensemble_starts_from_its_own_optimum() -> None:
    data = credo.datasets.gap(num=40)
    model = credo.models.regression(credo.networks.MLP([10], out=1), noise=0.1)
    # Without warm-up the steps are short: the first draws are still close to where the chains start.
    ensemble = MCLMC(num_samples=5, num_warmup=0, num_chains=3, thin=1, start=credo.MAP(num_steps=500))
    posterior = credo.fit(model, data, ensemble)
    untrained = credo.fit(model, data, replace(ensemble, start="prior"))
    draws = np.concatenate([leaf[:, 0].reshape(3, -1) for leaf in posterior.theta.values()], axis=1)
    assert posterior.infos["log_joint"].min() > untrained.infos["log_joint"].max() + 100
    assert min(np.linalg.norm(draws[one] - draws[other]) for one, other in [(0, 1), (0, 2), (1, 2)]) > 1


def test_one_parameter_is_refused() -> None:
    target = _latent(dist.Gamma(2.0, 1.0).expand([1]).to_event(1), np.ones(1), np.ones(1))
    with pytest.raises(ValueError, match=r"at least two parameters.*credo\.NUTS"):
        credo.fit(target.model, target.data, MCLMC())


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="energy_variance must be a positive number"):
        MCLMC(energy_variance=0.0)
