"""A prior that looks at points is the same prior for every method, minibatches included.

Linear regression with a factor exp(−Σ (uᵢ·w − 2)²/2s²) over points u of the model's own is conjugate: the factor is a
second set of observations. What each method can reach of that posterior is known in closed form.
"""

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import credo
from credo import random
from credo.inference.registry import METHODS, name_of
from credo.inference.sgmcmc.schedules import Constant
from tests.statistical.moments import assert_mean, assert_moments

NOISE, SCALE, PULL = 0.5, 0.5, 2.0
RNG = np.random.default_rng(3)
X, U = RNG.normal(size=(40, 3)), RNG.normal(size=(24, 3)) + 0.5
Y = X @ [1.0, -0.5, 0.25] + NOISE * RNG.normal(size=40)
PRECISION = np.eye(3) + X.T @ X / NOISE**2 + U.T @ U / SCALE**2
COVARIANCE = np.linalg.inv(PRECISION)
MEAN = COVARIANCE @ (X.T @ Y / NOISE**2 + PULL * U.sum(0) / SCALE**2)
SD = np.sqrt(np.diag(COVARIANCE))
# The sds of the best independent normals: what a diagonal q can reach.
INDEPENDENT = 1 / np.sqrt(np.diag(PRECISION))
# The mean of the posterior without the factor.
ELSEWHERE = np.linalg.solve(np.eye(3) + X.T @ X / NOISE**2, X.T @ Y / NOISE**2)


def program(x, y=None, *, u):
    w = numpyro.sample("w", dist.Normal(0, 1).expand([3]).to_event(1))
    with numpyro.plate("u", u.shape[0]):
        numpyro.factor("condition", dist.Normal(PULL, SCALE).log_prob(u @ w))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(x @ w, NOISE), obs=y)


MODEL, DATA = credo.Model(program, inputs={"u": U}), credo.Data(X, Y)


def fitted(method, seed):
    return credo.fit(MODEL, DATA, method, seed=seed)


def test_the_factor_matters():
    assert np.all(np.abs(MEAN - ELSEWHERE) > SD)


# A step of SGLD at stiffness ελ widens the stiffest direction by ελ/4, and the noise of minibatches by about as much,
# in shares of an sd.
STEP = 0.02 * len(X) / np.linalg.eigvalsh(PRECISION)[-1]
ON_BATCHES = {"batch_size": 20, "num_samples": 2000, "num_warmup": 1000, "thin": 30}

SAMPLERS = {
    "metropolis": (credo.Metropolis(num_samples=2000, thin=30, num_warmup=2000), 0.0),
    "hmc": (credo.HMC(num_samples=1500, num_warmup=500), 0.0),
    "nuts": (credo.NUTS(num_samples=1500, num_warmup=500), 0.0),
    "mclmc": (credo.MCLMC(num_samples=2000, num_warmup=1000, thin=5), 0.05),
    "parallel_tempering": (credo.ParallelTempering(num_samples=2000, num_warmup=500, num_temperatures=4), 0.0),
    "sgld": (credo.SGLD(step_size=Constant(STEP), **ON_BATCHES), 0.15),
    # Friction of a tenth leaves the noise of gradients ten times the weight: a quarter of the step.
    "sghmc": (credo.SGHMC(step_size=Constant(STEP / 4), **ON_BATCHES | {"thin": 60}), 0.15),
    "sgnht": (credo.SGNHT(step_size=Constant(STEP), **ON_BATCHES), 0.15),
}
VI = {"num_steps": 4000, "learning_rate": credo.schedules.Cosine(0.05, 4000)}
GAUSSIANS = {
    "bayes_by_backprop": (credo.BayesByBackprop(family="full", estimator="landing", **VI), SD),
    "bayes_by_backprop, diagonal": (credo.BayesByBackprop(**VI, draws_per_step=8), INDEPENDENT),
    "bayes_by_backprop on minibatches": (credo.BayesByBackprop(**VI, batch_size=20, draws_per_step=8), INDEPENDENT),
    "ivon": (credo.IVON(num_steps=6000, learning_rate=credo.schedules.Cosine(0.1, 6000)), INDEPENDENT),
    **{
        f"laplace, {structure}": (credo.Laplace(structure=structure), sd)
        for structure, sd in [
            ("full", SD),
            ("block", SD),
            ("kronecker", SD),
            ("low_rank", SD),
            ("diagonal", INDEPENDENT),
        ]
    },
}
POINTS = {
    "map": credo.MAP(num_steps=2000),
    "map on minibatches": credo.MAP(num_steps=4000, learning_rate=credo.schedules.Cosine(0.05, 4000), batch_size=20),
    "swag": credo.SWAG(num_steps=4000, num_warmup=2000, batch_size=20),
    "deep_ensemble": credo.DeepEnsemble(credo.MAP(num_steps=2000), members=2),
}
# Those that do not look at the prior, have no units to drop in a model without hidden units, or refuse conditions.
ELSEWHERE_TESTED = {"mle", "mc_dropout", "closed_form"}


def test_every_method_is_here():
    named = {name.partition(",")[0].partition(" on ")[0] for name in (*SAMPLERS, *GAUSSIANS, *POINTS)}
    assert named | ELSEWHERE_TESTED == set(METHODS)
    for name, method in [*((n, m) for n, (m, _) in (SAMPLERS | GAUSSIANS).items()), *POINTS.items()]:
        assert name.startswith(name_of(method))


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.quick) if n == "nuts" else n for n in SAMPLERS])
def test_samplers_agree(name, seed):
    method, bias = SAMPLERS[name]
    assert_moments(fitted(method, seed).theta["w"], MEAN, SD, bias=bias)


@pytest.mark.parametrize("name", GAUSSIANS)
def test_gaussians_agree(name, seed):
    method, sd = GAUSSIANS[name]
    posterior = fitted(method, seed)
    mean, found = posterior.mean["w"], np.sqrt(jax.jit(lambda root: root.variance())(posterior.root)["w"])
    # Steps of stochastic gradients end up near the optimum. Over 12 seeds means spread by up to 0.04 sds, and sds by up
    # to 0.046 of themselves; five times that is allowed.
    exact = name.startswith("laplace")
    np.testing.assert_allclose(mean, MEAN, atol=(0.01 if exact else 0.2) * SD.min())
    np.testing.assert_allclose(found, sd, rtol=0.01 if exact else 0.23)


@pytest.mark.parametrize("name", POINTS)
def test_points_are_at_the_mode(name, seed):
    draws = fitted(POINTS[name], seed).sample(random.key(seed), 50)["w"]
    np.testing.assert_allclose(draws.mean(0), MEAN, atol=0.5 * SD.min() if name == "swag" else 0.2 * SD.min())


def test_anchored_members_have_the_right_mean(seed):
    """Their spread does not know the factor, which no noise disturbs: H⁻¹ (I + XᵀX/σ²) H⁻¹ in place of H⁻¹."""
    members = fitted(credo.DeepEnsemble(credo.MAP(num_steps=2000), members=100, anchored=True), seed)
    draws = np.concatenate([member.theta["w"][:, -1] for member in members.members])
    assert_mean(draws, MEAN, slack=0.02 * SD.min())
    covariance = COVARIANCE @ (np.eye(3) + X.T @ X / NOISE**2) @ COVARIANCE
    assert_mean((draws - MEAN) ** 2, np.diag(covariance), slack=0.02 * SD.min() ** 2)
    assert np.all(np.diag(covariance) < 0.9 * SD**2)


def test_mle_looks_at_the_likelihood_alone():
    found = fitted(credo.MLE(num_steps=3000), 0).draw(0)["w"]
    np.testing.assert_allclose(found, np.linalg.lstsq(X, Y)[0], atol=1e-3)


def test_dropout_trains_with_a_condition(seed):
    """Its prior is judged at masked weights; the condition pulls the function as far as it pulls others."""
    x = np.linspace(-1, 1, 40)[:, None]
    data = credo.Data(x, 0.2 * x[:, 0])
    method = credo.MCDropout(num_steps=1500, batch_size=20)
    net = credo.networks.MLP([20], out=1, activation="tanh")
    means = []
    for is_bounded in (False, True):
        base = credo.priors.normal(1.0)
        above = credo.conditions.bounded(1.0, None)
        prior = credo.priors.consistent(base, above, strength=1e5) if is_bounded else base
        posterior = credo.fit(credo.models.regression(net, prior=prior, noise=0.5), data, method, seed=seed)
        means.append(posterior.predict(x).mean.mean())
    assert abs(means[0]) < 0.3
    assert means[1] > 0.8
