"""Keyed permutations and minibatches: every row once per epoch, in an order that looks random."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from credo import random
from credo.inference.engine.minibatch import minibatch, permute
from credo.typing import Batch
from tests.statistical.moments import assert_plausible


def permutations(num: int, num_keys: int, seed: int = 7) -> np.ndarray:
    keys = jax.vmap(lambda index: jax.random.fold_in(random.key(seed), index))(jnp.arange(num_keys))
    return np.asarray(jax.jit(jax.vmap(lambda key: permute(key, jnp.arange(num), num)))(keys))


@pytest.mark.parametrize("num", [1, 2, 3, 4, 5, 16, 17, 64, 65, 1000])
def test_permute_is_a_permutation(num):
    orders = permutations(num, 8)
    np.testing.assert_array_equal(np.sort(orders, axis=1), np.tile(np.arange(num), (8, 1)))
    if num >= 16:
        assert len(np.unique(orders, axis=0)) == 8


def test_permute_at_some_positions_is_part_of_the_whole():
    whole = permute(random.key(1), jnp.arange(100), 100)
    np.testing.assert_array_equal(permute(random.key(1), jnp.array([7, 3, 99]), 100), whole[jnp.array([7, 3, 99])])


@pytest.mark.parametrize("num", [3, 5, 17, 64])
def test_each_row_is_equally_likely_at_each_position(num, seed):
    orders = permutations(num, 4000, seed)
    counts = [np.bincount(orders[:, position], minlength=num) for position in (0, num // 2, num - 1)]
    assert_plausible(*(stats.chisquare(count).pvalue for count in counts))


def test_all_orders_of_four_rows_are_equally_likely(seed):
    orders = permutations(4, 6000, seed)
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(counts) == 24
    assert_plausible(stats.chisquare(counts).pvalue)


def test_neighbours_are_independent(seed):
    orders = permutations(8, 6000, seed)
    counts = np.zeros((8, 8))
    np.add.at(counts, (orders[:, 0], orders[:, 1]), 1)
    assert np.diag(counts).sum() == 0
    assert_plausible(stats.chisquare(counts[~np.eye(8, dtype=bool)]).pvalue)


def batches(num_rows: int, size: int, num_steps: int, seed: int = 5) -> np.ndarray:
    data = Batch(jnp.arange(num_rows, dtype=jnp.float32)[:, None], -jnp.arange(num_rows), num_rows)
    drawn = jax.jit(jax.vmap(lambda step: minibatch(random.key(seed), step, data, size)))(jnp.arange(num_steps))
    # x and y of a row stay together, and N is that of the whole set.
    np.testing.assert_array_equal(drawn.x[..., 0], -drawn.y)
    assert np.all(drawn.total == num_rows)
    return np.asarray(drawn.x[..., 0], int)


def test_an_epoch_visits_each_row_at_most_once_and_all_when_it_divides():
    even, uneven = batches(24, 6, 12).reshape(3, 24), batches(23, 6, 12).reshape(4, 18)
    assert all(sorted(epoch) == list(range(24)) for epoch in even)
    assert all(len(set(epoch)) == 18 for epoch in uneven)
    assert len({tuple(epoch) for epoch in even}) == 3
    # The rows left out change from epoch to epoch.
    assert len({frozenset(epoch) for epoch in uneven}) > 1


def test_rows_are_visited_equally_often_in_the_long_run(seed):
    # 5 of 23 rows are left out of each epoch: counts are those of sampling without replacement.
    num_epochs = 2000
    counts = np.bincount(batches(23, 6, 3 * num_epochs, seed).ravel(), minlength=23)
    share = 18 / 23
    # Σ (count − mean)²/variance is χ² with 22 degrees of freedom once it is scaled by 22/23: the counts add up.
    statistic = 22 / 23 * np.sum((counts - num_epochs * share) ** 2) / (num_epochs * share * (1 - share))
    assert_plausible(stats.chi2.sf(statistic, 22))


def test_a_batch_of_all_rows_is_the_data():
    data = Batch(jnp.zeros((4, 1)), jnp.zeros(4), 4)
    assert minibatch(random.key(0), jnp.array(3), data, 9) is data
