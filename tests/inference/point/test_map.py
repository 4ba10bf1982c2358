"""MLE and MAP: the closed form of linear regression, and any optax optimiser."""

import numpy as np
import optax
import pytest

import credo

NOISE, PRIOR = 0.5, 0.3


@pytest.fixture(scope="module")
def problem():
    """Linear regression with known noise: its data, and its maxima of likelihood and posterior."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3))
    y = x @ [1.0, -2.0, 0.5] + 0.7 + NOISE * rng.normal(size=40)
    design = np.column_stack([x, np.ones(40)])

    def ridge(penalty: float) -> np.ndarray:
        return np.linalg.solve(design.T @ design + penalty * np.eye(4), design.T @ y)

    return (x, y), {"mle": ridge(0.0), "map": ridge((NOISE / PRIOR) ** 2)}


@pytest.fixture(scope="module")
def model() -> credo.Model:
    return credo.models.regression(credo.networks.MLP([], out=1), prior=credo.priors.normal(PRIOR), noise=NOISE)


def estimate(model, data, method, seed=0) -> np.ndarray:
    theta = credo.fit(model, data, method, seed=seed).theta
    assert {leaf.shape[:2] for leaf in theta.values()} == {(1, 1)}
    return np.append(theta["head.kernel"].ravel(), theta["head.bias"].ravel())


@pytest.mark.quick
def test_mle_is_least_squares(model, problem):
    data, truth = problem
    np.testing.assert_allclose(estimate(model, data, credo.MLE(num_steps=2000)), truth["mle"], atol=1e-3)
    # The two maxima differ by far more than the tolerance.
    assert np.abs(truth["mle"] - truth["map"]).max() > 0.05


@pytest.mark.parametrize(
    "settings",
    [
        {"num_steps": 2000},
        {"num_steps": 600, "learning_rate": optax.cosine_decay_schedule(0.1, 600)},
        {"num_steps": 300, "optimizer": optax.chain(optax.clip_by_global_norm(10.0), optax.sgd(0.1, momentum=0.5))},
        {"num_steps": 30, "optimizer": "lbfgs", "learning_rate": 1.0},
        {"num_steps": 2000, "start": "prior"},
    ],
    ids=["adam", "schedule", "optax object", "line search", "from the prior"],
)
def test_map_is_ridge_regression(model, problem, settings):
    data, truth = problem
    np.testing.assert_allclose(estimate(model, data, credo.MAP(**settings)), truth["map"], atol=1e-3)


def test_minibatch_map_comes_close(model, problem, seed):
    data, truth = problem
    schedule = optax.cosine_decay_schedule(0.05, 3000)
    found = estimate(model, data, credo.MAP(num_steps=3000, batch_size=8, learning_rate=schedule), seed)
    # The gradient noise of a batch of 8 leaves this much at the end of the schedule.
    np.testing.assert_allclose(found, truth["map"], atol=0.02)


def test_trace_shows_the_parts_of_the_objective(model, problem):
    trace = credo.fit(model, problem[0], credo.MAP(num_steps=2000)).trace
    np.testing.assert_allclose(trace["log_joint"], trace["log_prior"] + trace["log_likelihood"], rtol=1e-5)
    assert trace["log_joint"].shape == (1, 2000)
    assert trace["log_joint"][0, -1] > trace["log_joint"][0, 0]


def test_unknown_optimizer_suggests():
    with pytest.raises(ValueError, match=r"optax has no 'adm'.*adam"):
        credo.MAP(optimizer="adm")


@pytest.mark.parametrize("name", ["num_steps", "batch_size", "patience", "check_every"])
def test_counts_must_be_positive(name):
    with pytest.raises(ValueError, match=f"{name} must be a whole number of at least 1, got 0"):
        credo.MAP(**{name: 0})
