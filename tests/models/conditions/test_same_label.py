"""Graphs of labels against sums written out, term by term, over dense distances and all paths."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.distance import cdist

import credo
from credo import conditions
from credo.models.conditions import Plain
from credo.models.conditions.same_label import LEAST, paths_to_labels

RNG = np.random.default_rng(0)
X = (RNG.normal(size=(25, 3)) * [1.0, 10.0, 0.1]).astype(np.float32)
Y = [0, 2, 1, 1] + [None] * 21
NUM_CLASSES, K, RATE = 3, 4, 0.2
W = RNG.normal(size=(3, NUM_CLASSES)) / X.std(axis=0)[:, None]


def joined(x):
    """Lengths of the edges between each point and its k nearest; infinite where there is none."""
    lengths = cdist(x / x.std(axis=0), x / x.std(axis=0))
    np.fill_diagonal(lengths, np.inf)
    near = np.zeros_like(lengths, bool)
    np.put_along_axis(near, np.argsort(lengths, axis=1)[:, :K], True, axis=1)
    return np.where(near | near.T, lengths, np.inf)


def all_ways(ways):
    """The shortest way between all points, by Floyd and Warshall."""
    ways = ways.copy()
    np.fill_diagonal(ways, 0)
    for middle in range(len(ways)):
        ways = np.minimum(ways, ways[:, [middle]] + ways[[middle]])
    return ways


def test_the_sum_over_pairs_of_labels_written_out():
    lengths = joined(X)
    edges = [(i, j) for i in range(25) for j in range(i) if np.isfinite(lengths[i, j])]
    median = np.median([lengths[edge] for edge in edges])
    ways = np.maximum(RATE * (lengths / median) ** 4, LEAST)
    far = all_ways(ways)
    exps = np.exp(X @ W)
    probs = exps / exps.sum(axis=1, keepdims=True)
    probs[:4] = np.eye(NUM_CLASSES)[Y[:4]]

    def agreement(i, j, way):
        rho = np.exp(-way)
        differ = (1 - rho) / NUM_CLASSES
        psi = np.where(np.eye(NUM_CLASSES, dtype=bool), rho + differ, differ) / (rho + differ)
        return np.log(sum(probs[i, a] * probs[j, b] * psi[a, b] for a in range(3) for b in range(3)))

    expected = sum(25 / len(edges) * agreement(i, j, ways[i, j]) for i, j in edges if max(i, j) >= 4)
    for row in range(4, 25):
        nearest = int(np.argmin(far[:4, row]))
        expected += agreement(nearest, row, far[nearest, row])
    condition = conditions.same_label(K, rate=RATE)
    rows, constants = condition.prepare_data(credo.Data(X, Y))
    found = condition(Plain(lambda x: x @ W), rows, **constants)
    np.testing.assert_allclose(found.sum(), -expected, rtol=1e-4)


def test_gradients_are_finite_where_the_function_is_sure_and_wrong():
    x = np.repeat([[0.0], [1.0]], 3, axis=0)
    condition = conditions.same_label(2)
    rows, constants = condition.prepare_data(
        credo.Data(np.concatenate([x, [[0.5]]]), [0, None, None, 1, None, None, 1])
    )

    def total(scale):
        return condition(Plain(lambda x: scale * jnp.concatenate([x, 1 - x], axis=1)), rows, **constants).sum()

    value, slope = jax.value_and_grad(total)(1e4)
    assert np.isfinite(value)
    assert np.isfinite(slope)
    assert value > 1


def test_rows_that_no_path_joins_to_a_label_have_none():
    edges = np.array([[0, 1], [1, 2], [3, 4]])
    ends, ways = paths_to_labels(edges, np.array([0.5, 0.25, 1.0]), np.array([True, False, False, False, False]))
    assert ends.tolist() == [[0, 1], [0, 2]]
    assert ways.tolist() == [0.5, 0.75]


def test_values_are_close_where_inputs_are():
    y = np.full((25, 2), np.nan)
    y[:5] = RNG.normal(size=(5, 2)) * [1.0, 100.0]
    y[3, 1] = np.nan
    data = credo.Data(X, y, standardise=True)
    lengths, f = joined(X), X @ W[:, :2]
    edges = [(i, j) for i in range(25) for j in range(i) if np.isfinite(lengths[i, j])]
    shortest = 0.1 * np.median([lengths[edge] for edge in edges])
    spread = 2.0 * np.nanstd(data.scaling.targets(data.y), axis=0)
    expected = sum(np.sum((f[i] - f[j]) ** 2 / (2 * (spread * max(lengths[i, j], shortest)) ** 2)) for i, j in edges)
    condition = conditions.close_values(K, slope=2.0)
    rows, constants = condition.prepare_data(data)
    found = condition(Plain(lambda x: x @ W[:, :2]), rows, **constants)
    np.testing.assert_allclose(found.sum(), expected * 25 / len(edges), rtol=1e-4)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (credo.Data(X, Y).select(range(4)), "5 inputs"),
        (credo.Data(np.ones((9, 2)), [0, 1] + [None] * 7), "equal to their neighbours"),
    ],
)
def test_graphs_that_cannot_be(data, complaint):
    with pytest.raises(ValueError, match=complaint):
        conditions.same_label(4).prepare_data(data)


def test_close_values_need_distances_and_targets_that_differ():
    with pytest.raises(ValueError, match="equal to their neighbours"):
        conditions.close_values(2).prepare_data(credo.Data(np.ones((4, 1)), [0.5, 1.5, None, None]))
    with pytest.raises(ValueError, match="targets are all equal"):
        conditions.close_values(2).prepare_data(credo.Data(X[:4], [0.5, 0.5, None, None]))


def test_other_inputs_have_no_labels():
    prior = credo.priors.consistent(None, conditions.same_label(), inputs=X)
    with pytest.raises(ValueError, match="unlabelled=inputs"):
        credo.models.classification(credo.networks.MLP([], out=3), prior=prior).bind(credo.Data(X, Y))
