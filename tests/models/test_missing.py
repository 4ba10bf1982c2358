"""Missing targets: the posterior is that of the targets that are there, row by row and output by output."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import credo
from credo import random
from credo.models import classification, regression
from credo.networks import MLP
from credo.predictive.missing import observed_log_prob
from credo.predictive.mixed import Mixed
from credo.typing import Batch

RNG = np.random.default_rng(0)
NUM = 30
X = RNG.normal(size=(NUM, 2))
COVARIANCE = np.array([[0.09, 0.1], [0.1, 0.25]])
Y = X @ RNG.normal(size=(2, 2)) + 0.1 + RNG.multivariate_normal(np.zeros(2), COVARIANCE, NUM)
GAPS = RNG.random((NUM, 2)) < 0.35
PARTLY = np.where(GAPS, np.nan, Y)
LINEAR = MLP([], out=2)


def exact(covariance):
    """Mean and covariance of the weights of the linear model, (inputs and bias, outputs) raveled, prior N(0, 1)."""
    precision, shift = np.eye(6), np.zeros(6)
    for row, target in zip(np.column_stack([X, np.ones(NUM)]), PARTLY, strict=True):
        there = ~np.isnan(target)
        jacobian = np.kron(row, np.eye(2))[there]
        weighted = jacobian.T @ np.linalg.pinv(covariance[np.ix_(there, there)])
        precision += weighted @ jacobian
        shift += weighted @ target[there]
    return np.linalg.solve(precision, shift), np.linalg.inv(precision)


# -- rows ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method",
    [
        credo.MAP(num_steps=20, batch_size=5),
        credo.NUTS(num_samples=4, num_warmup=4, num_chains=1),
    ],
    ids=lambda method: type(method).__name__,
)
def test_rows_without_a_target_change_no_bit_of_the_posterior(method):
    model = regression(MLP([3], out=1), noise=0.3)
    there = ~GAPS[:, 0]
    whole = credo.fit(model, (X, PARTLY[:, 0]), method)
    alone = credo.fit(model, (X[there], Y[there, 0]), method)
    assert whole.provenance.num_data == alone.provenance.num_data == there.sum()
    drawn, expected = (posterior.sample(random.key(0), 3) for posterior in (whole, alone))
    for name, leaf in expected.items():
        np.testing.assert_array_equal(drawn[name], leaf)


def test_labels_may_be_missing_in_every_form():
    labels = (X[:, 0] > 0).astype(int)
    model, method = classification(MLP([3], out=1)), credo.MAP(num_steps=20)
    there = ~GAPS[:, 0]
    alone = credo.fit(model, (X[there], labels[there]), method).theta
    listed = [int(label) if one else None for label, one in zip(labels, there, strict=True)]
    for y in (np.where(there, labels, np.nan), listed):
        found = credo.fit(model, (X, y), method).theta
        np.testing.assert_array_equal(found["head.kernel"], alone["head.kernel"])


# -- outputs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["independent", "correlated"])
def test_the_posterior_of_a_linear_model_is_that_of_the_outputs_that_are_there(kind):
    """To single precision; without the rows that miss an output, the means would be off by hundredths."""
    noise, covariance, options = {
        "independent": ((0.3, 0.5), np.diag([0.09, 0.25]), {}),
        "correlated": (COVARIANCE, COVARIANCE, {"curvature": "hessian", "prediction": "draws"}),
    }[kind]
    method = credo.Laplace("full", training=credo.MAP(num_steps=400, learning_rate=0.1), **options)
    posterior = credo.fit(regression(LINEAR, noise=noise), (X, PARTLY), method)
    mean, expected = exact(covariance)
    found = np.concatenate([posterior.mean["head.kernel"].ravel(), posterior.mean["head.bias"]])
    np.testing.assert_allclose(found, mean, atol=1e-5)
    _, variances = posterior.moments()
    variance = np.concatenate([np.ravel(variances["head.kernel"]), variances["head.bias"]])
    np.testing.assert_allclose(variance, np.diag(expected), rtol=1e-5)
    assert posterior.provenance.num_data == np.sum(~GAPS.all(axis=1))


def test_laplace_refuses_the_curvature_that_it_does_not_have():
    with pytest.raises(ValueError, match="curvature='hessian'"):
        credo.fit(regression(LINEAR, noise=COVARIANCE), (X, PARTLY), credo.Laplace(training=credo.MAP(num_steps=2)))


def by_hand(mean, covariance):
    """log N of the outputs that are there, row by row."""
    rows = [(one, y, ~np.isnan(y)) for one, y in zip(mean, PARTLY, strict=True) if not np.isnan(y).all()]
    density = stats.multivariate_normal.logpdf
    return np.array([density(y[there], one[there], covariance[np.ix_(there, there)]) for one, y, there in rows])


def laws(weights, covariance):
    mean = jnp.asarray(X, jnp.float32) @ weights
    return {
        "independent": dist.Normal(mean, jnp.sqrt(jnp.diag(covariance))).to_event(1),
        "expanded": dist.Normal(mean, jnp.sqrt(jnp.diag(covariance))).expand([NUM, 2]).to_event(1),
        "correlated": dist.MultivariateNormal(mean, covariance),
    }


@pytest.mark.parametrize("kind", ["independent", "expanded", "correlated"])
def test_the_density_is_the_marginal_and_its_gradient_is_finite(kind):
    covariance = COVARIANCE if kind == "correlated" else np.diag(np.diag(COVARIANCE))
    weights = jnp.array([[0.3, -0.2], [0.1, 0.5]])
    there = ~GAPS.all(axis=1)
    y = jnp.asarray(PARTLY, jnp.float32)

    def total(weights):
        return jnp.sum(observed_log_prob(laws(weights, jnp.asarray(covariance, jnp.float32))[kind], y)[there])

    value, gradient = jax.jit(jax.value_and_grad(total))(weights)
    np.testing.assert_allclose(value, by_hand(X @ np.asarray(weights), covariance).sum(), rtol=1e-5)
    step = 1e-3 * np.eye(4).reshape(4, 2, 2)
    numeric = [
        (by_hand(X @ (weights + h), covariance) - by_hand(X @ (weights - h), covariance)).sum() / 2e-3 for h in step
    ]
    np.testing.assert_allclose(np.ravel(gradient), numeric, rtol=1e-3)


def test_a_mixture_leaves_out_what_is_missing_in_each_part():
    covariance = jnp.diag(jnp.diag(jnp.asarray(COVARIANCE, jnp.float32)))
    parts = [laws(jnp.full((2, 2), value), covariance)["independent"] for value in (0.2, -0.1)]
    mixture = Mixed(jax.tree.map(lambda *leaves: jnp.stack(leaves), *parts), jnp.log(jnp.array([[0.3], [0.7]])))
    y = jnp.asarray(PARTLY, jnp.float32)
    each = [np.asarray(observed_log_prob(part, y)) for part in parts]
    np.testing.assert_allclose(
        observed_log_prob(mixture, y), np.logaddexp(np.log(0.3) + each[0], np.log(0.7) + each[1]), rtol=1e-5, atol=1e-6
    )


def test_outputs_that_cannot_be_told_apart_are_refused():
    dirichlet = dist.Dirichlet(jnp.ones((2, 2)))
    with pytest.raises(ValueError, match=r"Dirichlet.*independent \(.to_event\) or normal"):
        observed_log_prob(dirichlet, jnp.array([[0.5, jnp.nan], [0.5, 0.5]]))


def test_a_minibatch_counts_the_rows_with_a_target():
    model = regression(LINEAR, noise=0.5).bind((X, PARTLY))
    batch = credo.Data(X, PARTLY).batch()
    theta = {"head.kernel": jnp.array([[0.3, -0.2], [0.1, 0.5]]), "head.bias": jnp.zeros(2)}
    log_joint = jax.jit(model.log_joint)
    num = int(batch.total)
    halves = [Batch(batch.x[rows], batch.y[rows], num) for rows in np.arange(num // 2 * 2).reshape(2, -1)]
    assert num % 2 == 0
    np.testing.assert_allclose(np.mean([log_joint(theta, half) for half in halves]), log_joint(theta, batch), rtol=1e-5)


def test_what_is_saved_knows_that_targets_were_missing(tmp_path):
    posterior = credo.fit(regression(LINEAR, noise=0.5), (X, PARTLY), credo.MAP(num_steps=5))
    posterior.save(tmp_path)
    again = credo.load(tmp_path)
    assert again.model.rows.gaps
    np.testing.assert_array_equal(again.predict(X).log_prob(Y), posterior.predict(X).log_prob(Y))
