"""Tasks: shrinkage as in the textbooks, heads integrated out as scipy does it, new tasks in closed form; refusals."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import credo
from credo.models.population import unflat
from credo.posterior import Provenance

RNG = np.random.default_rng(0)
NOISE, SPREAD = 0.5, 1.5
SETS = {name: (np.zeros((num, 1)), RNG.normal(size=num) + 2) for name, num in (("a", 1), ("b", 4), ("c", 20))}
LINE = credo.networks.MLP([], out=1)
PROVENANCE = Provenance({"name": "test"}, 0, 0.0, 0)


def linear(**settings) -> credo.Model:
    return credo.models.tasks(LINE, varying="head.bias", **settings)


def exact_moments(model, data):
    """Mean and covariance of theta where the log joint density is a parabola."""
    slope = jax.grad(lambda vector: model.log_joint(unflat(vector, model.template), data.batch()))
    slopes = np.asarray(jax.jit(jax.vmap(slope))(jnp.eye(1 + model.num_parameters)[:, 1:]), np.float64)
    covariance = np.linalg.inv(slopes[0] - slopes[1:])
    return covariance @ slopes[0], covariance


def test_means_of_tasks_shrink_towards_each_other_as_known():
    # y ~ N(μ_t, σ²), μ_t ~ N(m, s²), m ~ N(0, 1): all normal, so that regression on the joint covariance is exact.
    data = credo.tasks_data(SETS)
    model = linear(spread=SPREAD, likelihood=NOISE).bind(data)
    mean, covariance = exact_moments(model, data)
    names = [f"{name}[{n}]" for name, leaf in model.template.items() for n in range(leaf.size)]
    to_tasks = np.zeros((4, len(names)))
    to_tasks[:, names.index("head.bias.mean[0]")] = 1.0
    for task in range(4):
        to_tasks[task, names.index(f"head.bias.z[{task}]")] = SPREAD
    prior = 1.0 + SPREAD**2 * np.eye(4)  # of μ of the three tasks, and of a new one
    rows = np.eye(4)[data.x[:, -1].astype(int)]
    gain = prior @ rows.T @ np.linalg.inv(rows @ prior @ rows.T + NOISE**2 * np.eye(len(rows)))
    np.testing.assert_allclose(to_tasks @ mean, gain @ data.y, atol=1e-3)
    np.testing.assert_allclose(to_tasks @ covariance @ to_tasks.T, prior - gain @ rows @ prior, atol=1e-3)
    averages = np.array([y.mean() for _, y in SETS.values()])
    pulled = np.abs(to_tasks @ mean - to_tasks[3] @ mean)[:3] / np.abs(averages - to_tasks[3] @ mean)
    assert pulled[0] < pulled[1] < pulled[2] < 1  # few rows, much shrinkage


def test_an_unknown_task_is_predicted_from_the_population_and_groups_add_up():
    data = credo.tasks_data(SETS)
    model = linear(spread=SPREAD, likelihood=NOISE, groups=[[0, 0, 1], [0, 0]], xi="point").bind(data)
    assert {name: leaf.shape for name, leaf in model.template.items() if name.endswith(".z")} == {
        "head.bias.group2.z": (2, 1),
        "head.bias.group.z": (3, 1),
        "head.bias.z": (4, 1),
    }
    graph = model.graph()
    assert graph.parents("head.bias") == ("head.bias.group", "head.bias.z")
    assert set(graph.plates) == {"tasks", "groups", "groups 2", "data"}
    theta = {name: RNG.normal(size=(1, 1, *leaf.shape)).astype(np.float32) for name, leaf in model.template.items()}
    posterior = credo.Draws(model, theta, PROVENANCE)
    one = {name: leaf[0, 0] for name, leaf in theta.items()}
    z = {name: one[f"head.bias{name}.z"][:, 0] for name in (".group2", ".group", "")}
    groups = SPREAD * (z[".group2"][[0, 0, 1]] + z[".group"])  # the last of each level is the new one
    expected = groups[[0, 0, 1, 2]] + SPREAD * z[""]
    means = posterior.predict([[0.0, task] for task in (0, 1, 2, -1, 7)]).mean
    np.testing.assert_allclose(means, expected[[0, 1, 2, 3, 3]], rtol=1e-5)
    # As a prior for other data, it is a new task's.
    prior = credo.priors.from_posterior(posterior, "head.bias", scale=0.1)
    np.testing.assert_allclose(prior.arrays["prior.head.bias.mean"], expected[3:], rtol=1e-5)


@pytest.mark.parametrize("likelihood", ["regression", "classification"])
def test_rows_see_the_weights_of_their_task_and_the_model_is_saved(likelihood, tmp_path):
    x = RNG.normal(size=(6, 2))
    y = RNG.normal(size=6) if likelihood == "regression" else np.array([0, 1, 0, 1, 0, 1])
    data = credo.tasks_data((x, y), ["b", "a", "a", "b", "c", "c"])
    net = credo.networks.MLP([3], out=1)
    model = credo.models.tasks(net, varying="head.*", groups=[0, 1, 0], likelihood=likelihood).bind(data)
    theta = {name: RNG.normal(size=(1, 2, *leaf.shape)).astype(np.float32) for name, leaf in model.template.items()}
    posterior = credo.Draws(model, theta, PROVENANCE)
    for draw in range(2):
        one = {name: leaf[0, draw] for name, leaf in theta.items()}
        sites = model.trace_at(one)
        weights = {path: np.asarray(sites[path]["value"]) for path in model.weight_names}
        hidden = np.tanh(x @ weights["hidden.0.kernel"] + weights["hidden.0.bias"])
        numbers = data.x[:, -1].astype(int)
        expected = np.einsum("nk,nk->n", hidden, weights["head.kernel"][numbers, :, 0])
        expected += weights["head.bias"][numbers, 0]
        law = model.predictive(one, jnp.asarray(data.x, jnp.float32))
        found = law.mean if likelihood == "regression" else law.logits
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    posterior.save(tmp_path / "run")
    again = credo.load(tmp_path / "run")
    np.testing.assert_array_equal(again.predict(data.x).log_prob(y), posterior.predict(data.x).log_prob(y))
    assert float(again.model.log_prior(one)) == float(model.log_prior(one))


# -- heads that are integrated out, and new tasks ----------------------------------------------------------------

RAGGED = [(RNG.normal(size=(num, 2)), RNG.normal(size=num)) for num in (3, 1, 2)]
NEW = RNG.normal(size=(4, 2)), RNG.normal(size=4)


@pytest.fixture(scope="module")
def heads():
    """Two draws of a trunk and of ξ."""
    model = credo.models.task_heads(credo.networks.MLP([3], out=1)).bind(credo.packed_tasks(RAGGED))
    theta = {name: RNG.normal(size=(1, 2, *leaf.shape)).astype(np.float32) for name, leaf in model.template.items()}
    return credo.Draws(model, theta, PROVENANCE)


def features(one, x):
    """The columns of the head, bias first, as in the order of the network."""
    return np.column_stack([np.ones(len(x)), np.tanh(x @ one["hidden.0.kernel"] + one["hidden.0.bias"])])


def law_of(one, x):
    """Mean and covariance of y at x, without its noise, and the variance of the noise."""
    mean = np.concatenate([one["head.bias.mean"], one["head.kernel.mean"].ravel()])
    columns = features(one, x) @ one["heads.root"]
    return features(one, x) @ mean, columns @ columns.T, np.exp(2 * one["noise"]) + 3e-5


def test_the_likelihood_of_a_task_is_that_of_its_rows_with_the_head_integrated_out(heads):
    data = credo.packed_tasks(RAGGED)
    assert np.isnan(data.y).sum() == 3
    one = {name: leaf[0, 0].astype(float) for name, leaf in heads.theta.items()}
    expected = 0.0
    for x, y in RAGGED:
        mean, covariance, noise = law_of(one, x)
        expected += stats.multivariate_normal(mean, covariance + noise * np.eye(len(x))).logpdf(y)
    found = heads.model.log_likelihood({name: leaf[0, 0] for name, leaf in heads.theta.items()}, data.batch())
    np.testing.assert_allclose(float(found), expected, rtol=1e-3)


def test_a_new_task_is_conditioned_on_in_closed_form(heads, tmp_path):
    x = RNG.normal(size=(5, 2))
    moments, log_evidences = [], []
    for draw in range(2):
        one = {name: leaf[0, draw].astype(float) for name, leaf in heads.theta.items()}
        mean, covariance, noise = law_of(one, np.concatenate([NEW[0], x]))
        seen = covariance[:4, :4] + noise * np.eye(4)
        gain = covariance[4:, :4] @ np.linalg.inv(seen)
        variance = np.diag(covariance[4:, 4:] - gain @ covariance[:4, 4:]) + noise
        moments.append((mean[4:] + gain @ (NEW[1] - mean[:4]), variance))
        log_evidences.append(stats.multivariate_normal(mean[:4], seen).logpdf(NEW[1]))
    single = replace(heads, theta={name: leaf[:, :1] for name, leaf in heads.theta.items()})
    answer = credo.adapt(single, NEW).predict(x)
    np.testing.assert_allclose(answer.mean, moments[0][0], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(answer.variance, moments[0][1], rtol=1e-2)
    both = credo.adapt(heads, NEW)
    weights = np.exp(np.array(log_evidences) - max(log_evidences))
    np.testing.assert_allclose(both.weights, weights / weights.sum(), rtol=1e-2)
    mean = np.tensordot(both.weights, [one for one, _ in moments], 1)
    np.testing.assert_allclose(both.predict(x).mean, mean, rtol=1e-3, atol=1e-3)
    both.save(tmp_path / "run")
    np.testing.assert_array_equal(credo.load(tmp_path / "run").predict(x).mean, both.predict(x).mean)


def test_a_new_task_of_drawn_heads_is_the_same_and_any_method_learns_it_too():
    data = credo.tasks_data(RAGGED, standardise=True)
    model = linear(likelihood=NOISE).bind(data)
    theta = {name: RNG.normal(size=(1, 1, *leaf.shape)).astype(np.float32) for name, leaf in model.template.items()}
    posterior = credo.Draws(model, theta, PROVENANCE, scaling=data.scaling)
    closed = credo.adapt(posterior, NEW)
    # The bias alone varies: precision 1/s² + n/σ², in standardised units.
    spread = np.exp(theta["head.bias.spread"].item())
    np.testing.assert_allclose(closed.root.variance()["head.bias"], 1 / (spread**-2 + 4 / NOISE**2), rtol=1e-4)
    training = credo.MAP(num_steps=60, optimizer="lbfgs")
    fitted = credo.adapt(posterior, NEW, credo.Laplace(structure="full", training=training))
    # A climb in single precision ends within a hundredth of an sd of the mode.
    within = 0.01 * closed.predict(NEW[0]).std.min()
    np.testing.assert_allclose(fitted.predict(NEW[0]).mean, closed.predict(NEW[0]).mean, atol=within)
    np.testing.assert_allclose(fitted.predict(NEW[0]).std, closed.predict(NEW[0]).std, rtol=1e-3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: credo.tasks_data([RAGGED[0], (np.ones((0, 2)), np.ones(0))]), "task '1' has no rows"),
        (lambda: credo.tasks_data(RAGGED[0], [0, 2, 2]), "no row of task 1"),
        (lambda: credo.tasks_data(RAGGED[0], [-1, 0, 0]), "the number -1"),
        (lambda: credo.tasks_data(RAGGED[0], [0.5, 0.0, 1.0]), "whole numbers or names"),
        (lambda: credo.tasks_data(RAGGED[0], [0, 1]), "for 3 rows"),
        (lambda: credo.tasks_data([RAGGED[0], (np.ones((2, 1)), np.ones(2))]), "pass rows alike"),
        (lambda: linear(groups=[0, 1]).bind(credo.tasks_data(SETS)), r"\[0, 1\] for 3 tasks"),
        (lambda: linear().bind(([[0.0, 0.5]], [0.0])), "0.5 in its last column"),
        (lambda: linear().bind(([[0.0, -1.0]], [0.0])), "-1 in its last column"),
        (lambda: linear().bind(([[0.0, 0.0], [0.0, 2.0]], [0.0, 1.0])), "no rows of task 1"),
        (lambda: linear().bind(([[0.0]], [0.0])), "credo.tasks_data"),
        (lambda: linear(spread=dist.Normal(0.0, 1.0)), "on positive numbers"),
        (lambda: credo.models.tasks(LINE, varying="tail.*").bind(credo.tasks_data(SETS)), "matches no parameter"),
        (lambda: credo.models.task_heads(credo.networks.MLP([3], 1)).bind(RAGGED[0]), "credo.packed_tasks"),
        (
            lambda: credo.models.task_heads(credo.networks.MLP([3], 1), varying="*").bind(credo.packed_tasks(RAGGED)),
            "not linear",
        ),
    ],
)
def test_refusals(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_a_split_keeps_names_of_tasks_and_never_scales_their_numbers():
    data = credo.tasks_data(SETS, standardise=True)
    train, test = data.split(0.3)
    assert train.tasks == test.tasks == ("a", "b", "c")
    np.testing.assert_array_equal(np.asarray(test.batch().x)[:, -1], test.x[:, -1])


@pytest.mark.full
def test_samplers_find_the_shrinkage_too(seed):
    data = credo.tasks_data(SETS)
    posterior = credo.fit(linear(spread=SPREAD, likelihood=NOISE), data, credo.NUTS(num_samples=1000), seed=seed)
    prior, rows = 1.0 + SPREAD**2 * np.eye(4), np.eye(4)[data.x[:, -1].astype(int)]
    gain = prior @ rows.T @ np.linalg.inv(rows @ prior @ rows.T + NOISE**2 * np.eye(len(rows)))
    sd = np.sqrt(np.diag(prior - gain @ rows @ prior))
    found = posterior.predict([[0.0, task] for task in (0, 1, 2, -1)])
    # 4,000 draws of an effective size of 1,000 or more: five standard errors of a mean, and of a variance.
    np.testing.assert_array_less(np.abs(found.mean - gain @ data.y), 5 * sd / np.sqrt(1000))
    np.testing.assert_allclose(found.epistemic, sd**2, rtol=5 * np.sqrt(2 / 1000))
