"""Data that grow: padding counts for nothing, and what is compiled for few rows serves more."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import monitoring

import credo
from credo import models, networks, testing
from credo.data import Data
from credo.inference.engine.minibatch import minibatch, permute
from credo.inference.registry import METHODS
from credo.models.row_blocks import sum_by_block
from credo.typing import Batch
from tests.contract.test_double_precision import mostly_full
from tests.contract.test_methods import TINY

CAPACITY, NUM = 20, 12
X = np.linspace(-1, 1, 5)


@contextmanager
def compilations() -> Iterator[list[str]]:
    """The programs that are compiled, or found in the cache on disk, in the meantime."""
    names: list[str] = []

    def note(event: str, _: float, fun_name: str = "", **rest: object) -> None:
        if event.endswith("backend_compile_duration"):
            names.append(fun_name)

    monitoring.register_event_duration_secs_listener(note)
    try:
        yield names
    finally:
        monitoring.unregister_event_duration_listener(note)


def regression(name: str) -> credo.Model:
    # The closed form of a network with points holds what they have learned as constants.
    return models.regression(networks.MLP([] if name == "closed_form" else [4], out=1, inputs=1))


def predicted(model, data, method):
    found = credo.fit(model, data, method, seed=testing.SEED).predict(X)
    return found.mean, found.std


@pytest.mark.parametrize("name", mostly_full(sorted(METHODS), "laplace", "nuts", "bayes_by_backprop", "closed_form"))
def test_padding_counts_for_nothing_and_growing_compiles_nothing(name):
    model, method = regression(name), METHODS[name](**TINY[name])
    data = testing.Case(method).data
    some = data.select(np.arange(NUM))
    found = predicted(model, some.padded(CAPACITY), method)
    # Sums in another order are other roundings, which a few steps of a sampler do not blow up.
    np.testing.assert_allclose(found, predicted(model, some, method), rtol=1e-4)
    with compilations() as names:
        fewer = predicted(model, data.select(np.arange(5)).padded(CAPACITY), method)
        predicted(model, data.select([0]).padded(CAPACITY), method)
        predicted(model, data.padded(CAPACITY), method)
    assert names == []
    assert not np.allclose(fewer, found, rtol=1e-3)


@pytest.mark.full
@pytest.mark.parametrize("rows", ["resampled", "numbered"])
def test_ensembles_whose_members_see_rows_of_their_own(rows):
    inner = credo.MAP(num_steps=10)
    method = credo.DeepEnsemble(inner, members=2, bagging=rows == "resampled", anchored=rows == "numbered")
    some, model = testing.Case(inner).data.select(np.arange(NUM)), regression("map")
    np.testing.assert_allclose(
        predicted(model, some.padded(CAPACITY), method), predicted(model, some, method), rtol=1e-4
    )


@pytest.mark.parametrize("kind", ["classes", "noisy labels", "augmented"])
def test_likelihoods_count_real_rows_only(kind):
    net = networks.MLP([3], out=2, inputs=1)
    model = {
        "classes": lambda: models.classification(net),
        "noisy labels": lambda: models.noisy_labels(net),
        "augmented": lambda: models.augmented(models.classification(net), credo.augmentations.noise(0.1), num_draws=2),
    }[kind]()
    data = Data(np.linspace(-1, 1, 5), np.array([0, 1, 1, 0, 1]))
    bound = model.bind(data)
    theta = bound.initial_theta(credo.random.key(0))
    parts = [bound.log_parts(theta, batch) for batch in (data.batch(), data.padded(9).batch())]
    np.testing.assert_allclose(*parts, rtol=1e-6)


def test_blocks_of_padded_rows():
    model = models.regression(networks.MLP([4], out=1, inputs=1), noise=1.0)
    data = Data(np.linspace(-1, 1, 5), np.linspace(0, 1, 5))
    bound, batch = model.bind(data), data.padded(9).batch()
    theta = bound.initial_theta(credo.random.key(0))
    whole = sum_by_block(lambda theta, rows, own: bound.log_likelihood(theta, rows), theta, batch, 4)
    np.testing.assert_allclose(whole, bound.log_likelihood(theta, data.batch()), rtol=1e-5)


@pytest.mark.parametrize("num", [1, 2, 5, 16, 17, 100])
def test_permutation_of_a_traced_number_is_that_of_the_number(num):
    key = credo.random.key(num)
    traced = jax.jit(permute)(key, jnp.arange(num), num)
    np.testing.assert_array_equal(traced, permute(key, jnp.arange(num), num))


@pytest.mark.parametrize("num", [3, 4, 10])
def test_minibatches_hold_real_rows(num):
    values = jnp.where(jnp.arange(12) < num, jnp.arange(12), -1)
    data = Batch(values[:, None], values, num, num=num)
    batches = [jax.jit(minibatch, static_argnums=3)(credo.random.key(0), step, data, 4) for step in range(2 * num)]
    assert all(int(batch.num_rows) == min(num, 4) for batch in batches)
    seen = np.concatenate([np.asarray(batch.y)[: min(num, 4)] for batch in batches])
    assert set(seen.tolist()) == set(range(num))


def test_capacity_must_hold_the_rows():
    data = Data(np.zeros(3), np.zeros(3))
    with pytest.raises(ValueError, match="capacity is 2, and 3 rows have a target"):
        data.padded(2)
