"""Graphs of neighbours against dense Laplacians, the Fisher–Snedecor form against scipy's density, memory at 50,000."""

import os
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import cdist

from credo import conditions
from credo.models.conditions import Plain
from credo.models.conditions.neighbours import f_penalty
from tests.models.conditions.evaluated import penalties

X = (np.random.default_rng(0).normal(size=(40, 3)) * [1.0, 10.0, 0.1]).astype(np.float32)


def two(x):
    return jnp.stack([jnp.sin(x[:, 0] + x[:, 2]), x[:, 1] ** 2 / 10], axis=1)


def dense_graph(points, k):
    """Symmetric 0/1 weights between each point and its k nearest, and squared distances."""
    distances = cdist(points, points)
    np.fill_diagonal(distances, np.inf)
    nearest = np.argsort(distances, axis=1)[:, :k]
    joined = np.zeros_like(distances, bool)
    np.put_along_axis(joined, nearest, True, axis=1)
    return joined | joined.T, distances**2


# Few columns are searched with a tree, many without.
@pytest.mark.parametrize(("length", "num_columns"), [(None, 3), (0.7, 3), (None, 20)])
def test_the_sum_over_edges_is_the_quadratic_form_of_the_laplacian(length, num_columns):
    x = np.concatenate([X, np.random.default_rng(1).normal(size=(40, num_columns - 3)).astype(np.float32)], axis=1)
    joined, squared = dense_graph(x / x.std(axis=0), k=4)
    w = joined * (1.0 if length is None else np.exp(-squared / (2 * length**2)))
    laplacian = np.diag(w.sum(axis=1)) - w
    f = np.asarray(two(x), np.float64)
    values = penalties(conditions.neighbours(4, length=length), two, x)
    assert values.shape == (joined.sum() // 2,)
    np.testing.assert_allclose(values.sum(), np.trace(f.T @ laplacian @ f), rtol=1e-4)


def test_a_few_edges_have_the_same_penalties_alone():
    condition = conditions.neighbours(4)
    rows, constants = condition.prepare(X)
    asked = []

    def f(x):
        asked.append(len(x))
        return two(x)

    some = rows[[3, 50, 7]]
    alone = condition(Plain(f), some, **constants)
    np.testing.assert_allclose(alone, condition(Plain(two), rows, **constants)[some], rtol=1e-5)
    assert max(asked) == 6
    asked.clear()
    condition(Plain(f), rows, **constants)
    assert max(asked) == len(X)


def test_distances_do_not_depend_on_the_units_of_a_column():
    edges = conditions.neighbours(3).prepare(X)[1]["edges"]
    again = conditions.neighbours(3).prepare(X * np.array([100.0, 1.0, 1.0]))[1]["edges"]
    np.testing.assert_array_equal(edges, again)


def test_images_and_columns_that_do_not_vary():
    images = np.concatenate([X.reshape(40, 3, 1), np.ones((40, 3, 1), np.float32)], axis=2)
    values = penalties(conditions.neighbours(2), lambda x: jnp.sum(x, axis=(1, 2))[:, None], images)
    assert np.isfinite(values).all()
    constant = np.concatenate([X, np.ones((40, 1), np.float32)], axis=1)
    edges = conditions.neighbours(3).prepare(constant)[1]["edges"]
    np.testing.assert_array_equal(edges, conditions.neighbours(3).prepare(X)[1]["edges"])


@pytest.mark.parametrize(("n", "m"), [(9, 9), (2, 5), (6, 3), (3, 1)])
def test_the_heavy_tailed_form_is_the_density_of_f(n, m):
    ratio = np.geomspace(1e-2, 1e4, 50)
    # The ratio of squared norms is n/m times the ratio of mean squares, which is what F(n, m) is about.
    log_density = stats.f(n, m).logpdf(ratio * m / n)
    values = np.asarray(f_penalty(jnp.asarray(ratio), n, m), np.float64)
    difference = values + log_density
    np.testing.assert_allclose(difference, difference.mean(), rtol=1e-4, atol=1e-3)
    mode = (n / 2 - 1) / (m / 2 + 1)
    np.testing.assert_allclose(f_penalty(jnp.array(mode), n, m), 0, atol=1e-4)


def test_the_heavy_tailed_form_as_printed_is_not_that_density():
    ratio = np.geomspace(1e-2, 1e4, 50)
    printed = (9 + 9) / 2 * np.log1p(ratio) - np.log1p(ratio) - (9 / 2 - 1) * np.log(ratio)
    difference = printed + stats.f(9, 9).logpdf(ratio)
    assert np.ptp(difference) > 5


def test_the_form_as_printed_is_that_of_two_inputs_fewer():
    ratio = np.geomspace(1e-2, 1e4, 50)
    printed = ((9 + 9) / 2 - 1) * np.log1p(ratio) - (9 / 2 - 1) * np.log(ratio)
    difference = np.asarray(f_penalty(jnp.asarray(ratio), 9, 9 - 2), np.float64) - printed
    np.testing.assert_allclose(difference, difference.mean(), rtol=1e-4, atol=1e-3)


def test_pairs_may_be_of_any_points():
    condition = conditions.fisher_snedecor(None, dims=(2, 3))
    rows, constants = condition.prepare(X)
    i, j = constants["edges"].T
    assert sorted(i) == sorted(j) == list(range(len(X)))
    assert np.all(i != j)
    f = np.asarray(two(X), np.float64)
    ratio = np.sum((f[i] - f[j]) ** 2, axis=1) / np.sum((X[i] - X[j]) ** 2, axis=1)
    expected = f_penalty(jnp.asarray(ratio), 2, 3)
    np.testing.assert_allclose(condition(Plain(two), rows, **constants), expected, rtol=1e-3, atol=1e-3)
    # Those of neighbours are other pairs, and closer ones.
    assert np.mean(constants["squared"]) > 2 * np.mean(conditions.fisher_snedecor(3).prepare(X)[1]["squared"])
    with pytest.raises(ValueError, match="a pair needs two inputs, got 1"):
        condition.prepare(X[:1])


def test_slopes_between_neighbours_in_the_users_units():
    condition = conditions.fisher_snedecor(3, scale=2.0, dims=(9, 4))
    rows, constants = condition.prepare(X)
    i, j = constants["edges"].T
    f = np.asarray(two(X), np.float64)
    ratio = 2.0 * np.sum((f[i] - f[j]) ** 2, axis=1) / np.sum((X[i] - X[j]) ** 2, axis=1)
    expected = f_penalty(jnp.asarray(ratio), 9, 4)
    np.testing.assert_allclose(condition(Plain(two), rows, **constants), expected, rtol=1e-3, atol=1e-3)
    joined, _ = dense_graph(X, k=3)
    assert joined.sum() == 2 * len(rows)


def test_dimensions_are_those_of_the_model_by_default():
    def default_and(dims, f):
        return penalties(conditions.fisher_snedecor(3), f, X), penalties(conditions.fisher_snedecor(3, dims=dims), f, X)

    np.testing.assert_array_equal(*default_and((3, 3), lambda x: x))
    np.testing.assert_array_equal(*default_and((2, 3), lambda x: x[:, :1]))


def test_equal_points_have_no_slope_and_no_weight_on_it():
    doubled = np.repeat(X[:10], 2, axis=0)
    values = penalties(conditions.fisher_snedecor(3), two, doubled)
    assert np.isfinite(values).all()
    with pytest.raises(ValueError, match="no slopes"):
        conditions.fisher_snedecor(1).prepare(doubled)
    np.testing.assert_array_equal(penalties(conditions.neighbours(1), two, doubled), 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: conditions.neighbours(0), "k must be a whole number"),
        (lambda: conditions.neighbours(2, length=0.0), "length must be a positive"),
        (lambda: conditions.neighbours(5).prepare(X[:5]), "5 neighbours need at least 6 inputs, got 5"),
        (lambda: conditions.fisher_snedecor(scale=-1.0), "scale must be a positive"),
        (lambda: conditions.fisher_snedecor(dims=(1, 3)), "n must be a whole number of at least 2, got 1"),
        (lambda: conditions.fisher_snedecor(dims=(2, 0)), "m must be a whole number"),
        (lambda: conditions.fisher_snedecor(dims=9), "dims must be two numbers"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# All pairs of 50,000 points are 10 GB in single precision; 185,000 edges between hidden layers of 50 units are 37 MB.
SCRIPT = """
import resource
import jax, jax.numpy as jnp, numpy as np
from credo import conditions
from credo.models.conditions import Plain

x = np.random.default_rng(0).normal(size=(50_000, 10)).astype(np.float32)
condition = conditions.neighbours(5)
rows, constants = condition.prepare(x)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

def loss(w, rows, constants):
    f = Plain(lambda x: jnp.tanh(x @ w[0]) @ w[1])
    return jnp.mean(condition(f, rows, **constants))

w = (jnp.ones((10, 50)) * 0.1, jnp.ones((50, 3)))
step = jax.jit(jax.value_and_grad(loss))
for some in (rows, rows[:1000]):
    value, slopes = step(w, some, constants)
    assert np.isfinite(value) and all(np.isfinite(s).all() for s in slopes)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(len(rows), before, after - before)
"""


@pytest.mark.full
def test_fifty_thousand_points_in_bounded_memory():
    env = {**os.environ, "JAX_PLATFORMS": "cpu"}
    result = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, env=env)
    assert result.returncode == 0, result.stderr
    num_edges, before, step = map(int, result.stdout.split())
    assert 125_000 <= num_edges <= 250_000
    assert before < 1.5 * 2**20
    assert step < 0.5 * 2**20
