"""Known posteriors in double precision: to ten digits where a method is exact, by the same law where it draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import credo
from credo import random
from credo.covariance import Blocks
from credo.covariance.layout import Layout
from credo.inference.mcmc.trajectory import leapfrog, point_at
from credo.inference.variational.importance import log_weights
from tests.covariance.dense import dense
from tests.statistical.moments import assert_moments
from tests.statistical.targets import NOISE, linear_predictive, linear_regression

EXACT = {"rtol": 1e-10, "atol": 1e-12}
TARGET = linear_regression()
DESIGN = np.column_stack([TARGET.data.x, np.ones(TARGET.data.size)])
COVARIANCE = np.linalg.inv(np.eye(4) + DESIGN.T @ DESIGN / NOISE**2)
MARGINAL = stats.multivariate_normal(np.zeros(30), DESIGN @ DESIGN.T + NOISE**2 * np.eye(30))
LOG_EVIDENCE = float(MARGINAL.logpdf(TARGET.data.y))
ORDER = ("head.kernel", "head.bias")
MEAN = {"head.kernel": TARGET.mean[:3, None], "head.bias": TARGET.mean[3:]}


@pytest.fixture(scope="module", autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def assert_exact(posterior: credo.Gaussian, log_evidence: float) -> None:
    for name in ORDER:
        np.testing.assert_allclose(posterior.mean[name], MEAN[name], **EXACT)
    np.testing.assert_allclose(dense(posterior.root, ORDER), COVARIANCE, **EXACT)
    assert log_evidence == pytest.approx(LOG_EVIDENCE, rel=1e-10)
    x = TARGET.data.x[:4] + 1
    mean, variance = linear_predictive(TARGET, x)
    prediction = posterior.predict(x)
    np.testing.assert_allclose(prediction.mean, mean, **EXACT)
    np.testing.assert_allclose(prediction.variance, variance, **EXACT)
    np.testing.assert_allclose(prediction.quantile(0.9), stats.norm.ppf(0.9, mean, np.sqrt(variance)), rtol=1e-9)


def test_a_closed_form_is_exact():
    posterior = credo.fit(TARGET.model, TARGET.data, credo.ClosedForm())
    assert_exact(posterior, posterior.diagnostics.log_evidence)


@pytest.mark.parametrize("structure", ["full", pytest.param("kronecker", marks=pytest.mark.full)])
def test_laplace_is_exact_where_the_posterior_is_normal(structure):
    posterior = credo.Laplace(structure).from_trained(TARGET.model, TARGET.data, MEAN)
    assert_exact(posterior, posterior.evidence.log_evidence)


def test_every_draw_of_the_exact_posterior_has_the_evidence_for_its_elbo():
    model = TARGET.model.bind(TARGET.data)
    layout = Layout.together({name: model.template[name] for name in ORDER})
    root = Blocks({"all": np.linalg.cholesky(COVARIANCE)[None]}, layout)
    weights = log_weights(model, MEAN, root, jax.random.split(random.key(0), 20), TARGET.data.batch())
    np.testing.assert_allclose(weights, LOG_EVIDENCE, rtol=1e-10)


def test_leapfrog_comes_back_to_where_it_started():
    def quartic(position):
        return -jnp.sum(position**4) / 4 - 0.5 * position[0] * position[1]

    value_and_grad = jax.value_and_grad(quartic)
    start, start_momentum = point_at(quartic, jnp.array([0.3, -0.7, 1.1])), jnp.array([1.0, 0.5, -0.2])
    point, momentum = start, start_momentum
    for direction in [1, -1]:
        for _ in range(20):
            point, momentum = leapfrog(point, momentum, value_and_grad, direction * jnp.array([0.1, 0.05, 0.2]))
    np.testing.assert_allclose(point.position, start.position, rtol=1e-12)
    np.testing.assert_allclose(momentum, start_momentum, rtol=1e-12)


SAMPLERS = {
    "nuts": credo.NUTS(num_samples=1500, num_warmup=500),
    "hmc": credo.HMC(num_samples=1500, num_warmup=500),
    "metropolis": credo.Metropolis(num_samples=2000, thin=50, num_warmup=2000),
}


@pytest.mark.parametrize(
    "name", [name if name == "nuts" else pytest.param(name, marks=pytest.mark.full) for name in SAMPLERS]
)
def test_draws_have_the_moments_of_linear_regression(name, seed):
    posterior = credo.fit(TARGET.model, TARGET.data, SAMPLERS[name], seed=seed)
    assert_moments(TARGET.draws(posterior), TARGET.mean, TARGET.sd)
