"""Consistency conditions as priors: what they add to the density, in which units, and that nothing is lost."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import credo
from credo import conditions, random
from credo.inference.engine.minibatch import some_inputs
from credo.models import classification, regression
from credo.models.priors import consistent, normal
from credo.networks import MLP
from credo.typing import Batch
from tests.statistical.moments import assert_mean, assert_moments

RNG = np.random.default_rng(1)
X = RNG.normal(size=(30, 2))
Y = X @ [1.0, -2.0] + 0.1 * RNG.normal(size=30)
POINTS = RNG.normal(size=(11, 2))
LINEAR = MLP([], out=1)
THETA = {"head.kernel": jnp.array([[0.5], [-1.5]]), "head.bias": jnp.array([0.25]), "noise": jnp.array(0.0)}
RISING = conditions.monotone({1: "+"})


def gap_to_base(prior, data=(X, Y), net=LINEAR, theta=THETA):
    """What a condition adds to log p(theta)."""
    with_it, without = (regression(net, prior=one).bind(data) for one in (prior, prior.base))
    return float(with_it.log_prior(theta) - without.log_prior(theta))


def f(x):
    return np.asarray(x) @ [0.5, -1.5] + 0.25


# -- the density -----------------------------------------------------------------------------------------------


def test_in_all_is_a_mean_and_per_point_is_a_sum():
    """The main text averages over D_x, the supplement sums: the argument says which."""
    above = conditions.bounded(None, 0.0)
    excess = np.maximum(f(X), 0) ** 2
    in_all = gap_to_base(consistent(normal(), above, strength=3.0))
    per_point = gap_to_base(consistent(normal(), above, strength=3.0, per="point"))
    np.testing.assert_allclose(in_all, -3 * excess.mean(), rtol=1e-5)
    np.testing.assert_allclose(per_point, -3 * excess.sum(), rtol=1e-5)


def test_twice_the_points_say_the_same_in_all_and_twice_as_much_per_point():
    twice = np.concatenate([POINTS, POINTS])
    once_all, twice_all = (gap_to_base(consistent(normal(), RISING, inputs=u)) for u in (POINTS, twice))
    once, double = (
        gap_to_base(consistent(normal(), RISING, inputs=u, strength=9.0, per="point")) for u in (POINTS, twice)
    )
    np.testing.assert_allclose(twice_all, once_all, rtol=1e-5)
    np.testing.assert_allclose(double, 2 * once, rtol=1e-5)


def test_inputs_default_to_the_training_inputs():
    np.testing.assert_allclose(
        gap_to_base(consistent(normal(), RISING)), gap_to_base(consistent(normal(), RISING, inputs=X)), rtol=1e-6
    )


def test_conditions_see_the_users_units_when_data_are_standardised():
    data = credo.Data(100 + 10 * X, 1000 + 50 * Y, standardise=True)
    scaling = data.scaling

    def predicted(x):
        return scaling.y_mean + scaling.y_scale * f((x - scaling.x_mean) / scaling.x_scale)

    points = 100 + 10 * POINTS
    prior = consistent(normal(), conditions.bounded(990.0, 1010.0), inputs=points, strength=0.1)
    outside = np.maximum(990 - predicted(points), 0) ** 2 + np.maximum(predicted(points) - 1010, 0) ** 2
    np.testing.assert_allclose(gap_to_base(prior, data), -0.1 * outside.mean(), rtol=1e-4)


def test_conditions_compose():
    both = consistent(consistent(normal(), RISING), [conditions.smooth(), conditions.smooth(2)], strength=7.0)
    assert [term.name for term in both.terms] == ["monotone", "smooth", "smooth 2"]
    parts = [consistent(normal(), RISING), consistent(normal(), conditions.smooth(), strength=7.0)]
    np.testing.assert_allclose(gap_to_base(both), sum(map(gap_to_base, parts)), rtol=1e-5)


def test_a_condition_of_the_users_own():
    def near_two(function, x):
        return (function(x)[:, 0] - 2) ** 2

    prior = consistent(normal(), near_two, inputs=POINTS, strength=2.0)
    np.testing.assert_allclose(gap_to_base(prior), -2 * np.mean((f(POINTS) - 2) ** 2), rtol=1e-5)
    assert prior.terms[0].name == "near_two"


def test_a_condition_may_be_called_like_a_site_of_the_model():
    def noise(function, x):
        return function(x)[:, 0] ** 2

    prior = consistent(normal(), [noise, noise], strength=1.0)
    assert [term.name for term in prior.terms] == ["noise condition", "noise condition 2"]
    np.testing.assert_allclose(gap_to_base(prior), -2 * np.mean(f(X) ** 2), rtol=1e-5)


def test_classes_are_seen_as_probabilities():
    net, labels = MLP([], out=3), RNG.integers(0, 3, 30)
    theta = {"head.kernel": jnp.asarray(RNG.normal(size=(2, 3))), "head.bias": jnp.zeros(3)}
    seen = []

    def look(function, x):
        seen.append(function(x))
        return jnp.zeros(x.shape[0])

    classification(net, prior=consistent(normal(), look)).bind((X, labels)).log_prior(theta)
    np.testing.assert_allclose(seen[-1], jax.nn.softmax(X @ theta["head.kernel"]), rtol=1e-5)
    binary = classification(MLP([], out=1), prior=consistent(normal(), look)).bind((X, labels > 0))
    binary.log_prior({"head.kernel": jnp.ones((2, 1)), "head.bias": jnp.zeros(1)})
    np.testing.assert_allclose(seen[-1][:, 1], jax.nn.sigmoid(X.sum(1)), rtol=1e-5)


def test_many_points_are_seen_block_by_block():
    points = RNG.normal(size=(10_001, 2))
    prior = consistent(normal(), conditions.bounded(None, 0.0), inputs=points)
    expected = -1000 * np.mean(np.maximum(f(points), 0) ** 2)
    np.testing.assert_allclose(gap_to_base(prior), expected, rtol=1e-4)
    model = regression(LINEAR, prior=prior).bind((X, Y))
    slope = jax.jit(jax.grad(model.log_factors))(THETA)["head.bias"]
    np.testing.assert_allclose(slope, -2000 * np.mean(np.maximum(f(points), 0)), rtol=1e-4)


# -- a linear subspace condition on a linear model is conjugate ------------------------------------------------


@pytest.fixture(scope="module")
def subspace():
    """Two outputs, independent noise 0.5, ‖f − SSᵀf‖² summed over points: the exact posterior of all six weights."""
    rng = np.random.default_rng(7)
    x, points, basis = rng.normal(size=(25, 2)), rng.normal(size=(8, 2)), np.array([[2.0], [1.0]])
    y = x @ rng.normal(size=(2, 2)) + 0.5 * rng.normal(size=(25, 2))
    unit = basis / np.linalg.norm(basis)
    away, strength = np.eye(2) - unit @ unit.T, 3.0
    # theta = (bias, kernel row by row): rows of the design in the order of the flat vector.
    design, pseudo = (np.column_stack([np.ones(len(u)), u]) for u in (x, points))
    precision = (
        np.eye(6) + np.kron(design.T @ design / 0.25, np.eye(2)) + 2 * strength * np.kron(pseudo.T @ pseudo, away)
    )
    mean = np.linalg.solve(precision, (design.T @ y / 0.25).ravel())
    prior = consistent(normal(), conditions.subspace(basis.tolist()), inputs=points, strength=strength, per="point")
    return regression(MLP([], out=2), prior=prior, noise=0.5), (x, y), mean, np.linalg.inv(precision)


def test_laplace_and_map_have_it_exactly(subspace):
    model, data, mean, covariance = subspace
    posterior = credo.fit(model, data, credo.Laplace(structure="full", training=credo.MAP(num_steps=3000)))
    found = np.concatenate([np.ravel(posterior.mean[name]) for name in ("head.bias", "head.kernel")])
    np.testing.assert_allclose(found, mean, atol=2e-3)
    draws = posterior.sample(random.key(0), 20_000)
    flat = np.concatenate([np.reshape(draws[name], (20_000, -1)) for name in ("head.bias", "head.kernel")], axis=1)
    np.testing.assert_allclose(np.cov(flat.T), covariance, atol=5 * np.max(covariance) / np.sqrt(20_000 / 2))


def test_samplers_have_it(subspace, seed):
    model, data, mean, covariance = subspace
    posterior = credo.fit(model, data, credo.NUTS(num_samples=1000, num_warmup=300), seed=seed)
    leaves = [posterior.theta[name] for name in ("head.bias", "head.kernel")]
    draws = np.concatenate([leaf.reshape(*leaf.shape[:2], -1) for leaf in leaves], axis=-1)
    assert_moments(draws, mean, np.sqrt(np.diag(covariance)))


# -- nothing is lost -------------------------------------------------------------------------------------------

TINY = credo.MAP(num_steps=10)


@pytest.mark.parametrize("inputs", [None, POINTS], ids=["training", "given"])
def test_it_saves_and_loads(tmp_path, inputs):
    prior = consistent({"*.bias": normal(10.0)}, [RISING, conditions.neighbours(3)], inputs=inputs, strength=20.0)
    model = regression(MLP([4], out=1), prior=prior)
    posterior = credo.fit(model, (X, Y), TINY)
    posterior.save(tmp_path / "run")
    loaded = credo.load(tmp_path / "run")
    np.testing.assert_array_equal(loaded.predict(X).mean, posterior.predict(X).mean)
    assert str(loaded.model.describe()) == str(posterior.model.describe())
    again = loaded.model.bind((X, Y)) if inputs is None else loaded.model
    theta = posterior.draw(0)
    np.testing.assert_allclose(again.log_factors(theta), posterior.model.log_factors(theta), rtol=1e-6)


def test_a_loaded_model_with_points_of_its_own_asks_for_them_again(tmp_path):
    posterior = credo.fit(regression(LINEAR, prior=consistent(normal(), RISING, inputs=POINTS)), (X, Y), TINY)
    posterior.save(tmp_path / "run")
    with pytest.raises(ValueError, match=r"'monotone' was imposed at points that are not part of a saved model"):
        credo.load(tmp_path / "run").model.bind((X, Y))


def test_a_condition_of_the_users_own_needs_the_model_to_load(tmp_path):
    def mine(function, x):
        return function(x)[:, 0] ** 2

    model = regression(LINEAR, prior=consistent(normal(), mine))
    posterior = credo.fit(model, (X, Y), TINY)
    posterior.save(tmp_path / "run")
    with pytest.raises(ValueError, match=r"function of your own.*credo.load\(folder, model=model\)"):
        credo.load(tmp_path / "run")
    loaded = credo.load(tmp_path / "run", model=model)
    np.testing.assert_array_equal(loaded.predict(X).mean, posterior.predict(X).mean)


def test_a_run_resumes_with_the_same_bits(tmp_path):
    model = regression(MLP([4], out=1), prior=consistent(normal(), RISING))
    method = credo.SGLD(num_samples=20, num_warmup=5, num_chains=2, batch_size=8)
    whole = credo.fit(model, (X, Y), method)
    kept = credo.fit(model, (X, Y), method, checkpoint=tmp_path / "run")
    again = credo.fit(model, (X, Y), method, checkpoint=tmp_path / "run", resume=True)
    for posterior in (kept, again):
        np.testing.assert_array_equal(posterior.theta["head.kernel"], whole.theta["head.kernel"])


def test_it_says_what_it_is():
    prior = consistent(consistent(normal(), RISING), conditions.smooth(), inputs=POINTS, strength=5.0, per="point")
    model = regression(MLP([4], out=1), prior=prior).bind((X, Y))
    said = str(model.describe())
    assert "exp(−3000 · C), C a mean over its inputs of monotone(1 +)" in said
    assert "exp(−5 · C), C a sum over its inputs of smooth()" in said
    assert "(30, 2)" in said
    assert "(11, 2)" in said
    graph = model.graph()
    kinds = {node.name: node.kind for node in graph.nodes}
    assert kinds["monotone"] == kinds["smooth"] == "factor"
    assert set(graph.parents("monotone")) >= {"hidden.0.kernel", "head.kernel"}
    assert "head.bias" not in graph.parents("monotone")  # no slope depends on it


def test_the_prior_predictive_knows_it(seed):
    model = regression(MLP([], out=1), prior=consistent(normal(), RISING, strength=100.0), noise=0.1).bind((X, Y))
    slopes = [
        one.prior_predict([[0.0, 1.0]], num_draws=400, seed=seed).functions[:, 0]
        - one.prior_predict([[0.0, 0.0]], num_draws=400, seed=seed).functions[:, 0]
        for one in (model, regression(MLP([], out=1), noise=0.1).bind((X, Y)))
    ]
    assert np.mean(slopes[0] < -0.3) < 0.02 < np.mean(slopes[1] < -0.3)


def test_a_step_on_minibatches_is_unbiased(seed):
    prior = consistent(normal(), conditions.bounded(None, 0.0), strength=3.0, per="point")
    model = regression(LINEAR, prior=prior).bind((X, Y))
    batch = model.with_inputs(Batch(jnp.asarray(X[:4]), jnp.asarray(Y[:4]), 30))

    def log_prior(step):
        some = some_inputs(random.key(seed), step, batch.inputs, model.summed_inputs, 5)
        return model.log_parts(THETA, batch._replace(inputs=some))[0]

    values = jax.jit(jax.vmap(log_prior))(jnp.arange(6 * 400)).reshape(400, 6)
    # An epoch of six batches of five sees each of the thirty rows once: its average is exact.
    np.testing.assert_allclose(values.mean(axis=1), model.log_prior(THETA), rtol=1e-4)
    assert np.std(values) > 0.1
    assert_mean(values[:, 0], float(model.log_prior(THETA)))


def test_networks_with_dropout_layers_may_have_conditions():
    net = nnx.Sequential(
        nnx.Linear(2, 8, rngs=nnx.Rngs(0)), nnx.tanh, nnx.Dropout(0.2), nnx.Linear(8, 1, rngs=nnx.Rngs(1))
    )
    model = regression(net, prior=consistent(normal(), RISING), noise=0.3)
    posterior = credo.fit(model, (X, Y), credo.MCDropout(num_steps=20, batch_size=8))
    assert np.all(np.isfinite(posterior.predict(X).mean))


# -- refusals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: consistent(normal(), RISING, strength=0.0), "strength must be a positive number"),
        (lambda: consistent(normal(), RISING, per="point"), "a condition per point is as strong as you say"),
        (lambda: consistent(normal(), RISING, per="points"), "per must be 'all' or 'point'"),
        (lambda: consistent(normal(), "monoton"), "'monoton' is not a condition"),
        (lambda: consistent(normal(), RISING, inputs=X[:, :1]), "rows of shape .1,.*trained on rows of .2,"),
        (lambda: consistent(normal(), RISING, inputs=X * np.nan), "monotone.*(NaN|missing|infinite|finite)"),
        (lambda: consistent(normal(), conditions.monotone({7: "+"})), "no column 7"),
        (lambda: consistent(normal(), lambda f, x: f(x)[:, 0]), "a penalty is at least zero"),
        (lambda: consistent(normal(), lambda f, x: jnp.log(-1.0 - f(x)[:, 0] ** 2)), "must be a finite number"),
        (lambda: consistent(normal(), lambda f, x: jnp.mean(f(x) ** 2)), "one per row was expected"),
        (lambda: {"head.*": consistent(normal(), RISING)}, "about the whole network"),
        (lambda: consistent({"tail.*": normal()}, RISING), "'tail.*' matches no parameter"),
        (lambda: {"head.bias": credo.priors.ordered()}, "'head.bias' are none"),
        (lambda: {"head.kernel": credo.priors.unit_norm()}, "'head.kernel' are none"),
    ],
)
def test_bad_input_is_refused_before_anything_is_computed(make, says):
    with pytest.raises(ValueError, match=says):
        regression(LINEAR, prior=make()).bind((X, Y))
