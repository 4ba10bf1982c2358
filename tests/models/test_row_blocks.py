"""A likelihood that goes by blocks of rows is the same likelihood, and takes the memory of one block."""

from functools import partial

import jax
import numpy as np
import pytest

import credo
from credo import random
from credo.inference.variational.vi import BayesByBackprop
from credo.models.program import Model
from credo.typing import Batch

NUM_ROWS = 103


def value_and_slope(model: Model, theta, batch: Batch):
    # A function of its own each time: how many blocks there are is no part of what JAX compares.
    return jax.jit(jax.value_and_grad(lambda theta: model.log_joint(theta, batch)))(theta)


def in_blocks(monkeypatch, model: Model, num: int) -> None:
    monkeypatch.setattr("credo.models.densities.FEW_INPUTS", 0)
    monkeypatch.setattr("credo.models.densities.ACTIVATION_BYTES", NUM_ROWS * model.bytes_per_row // num + 1)


@pytest.fixture(scope="module")
def problem() -> tuple[Model, Batch, dict]:
    x = np.random.default_rng(0).normal(size=(NUM_ROWS, 3))
    data = credo.Data(x, np.sin(x[:, 0]))
    model = credo.models.regression(credo.networks.MLP([16], out=1)).bind(data)
    return model, data.batch(), {name: leaf[0] for name, leaf in model.sample_prior(random.key(1), 1).items()}


def test_blocks_add_up_to_the_same_log_joint_and_gradient(monkeypatch, problem) -> None:
    model, batch, theta = problem
    value, slope = value_and_slope(model, theta, batch)
    in_blocks(monkeypatch, model, 4)  # and a rest of three rows
    assert model.num_blocks(batch) == 4
    by_block, slope_by_block = value_and_slope(model, theta, batch)
    np.testing.assert_allclose(by_block, value, rtol=1e-5)
    for name in theta:
        np.testing.assert_allclose(slope_by_block[name], slope[name], rtol=1e-3, atol=1e-3, err_msg=name)


def test_within_the_budget_the_program_stays_the_same(problem) -> None:
    model, batch, theta = problem
    assert model.num_blocks(batch) == 1
    assert "scan" not in str(jax.make_jaxpr(partial(model.log_joint, batch=batch))(theta))


def test_a_gradient_takes_the_activations_of_one_block() -> None:
    rows = 2_000_000
    model = credo.models.regression(credo.networks.MLP([1000], out=1)).bind((np.zeros((2, 20)), np.zeros(2)))
    batch = Batch(jax.ShapeDtypeStruct((rows, 20), np.float32), jax.ShapeDtypeStruct((rows,), np.float32), rows)
    slope = jax.jit(jax.grad(lambda theta, x, y: model.log_joint(theta, Batch(x, y, rows))))
    # Nothing is computed: the compiler says what it would take.
    taken = slope.lower(model.template, batch.x, batch.y).compile().memory_analysis().temp_size_in_bytes
    assert taken < 2**29  # all rows at once: 16 GB


@pytest.mark.parametrize("estimator", ["local", "flipout"])
def test_noise_of_its_own_for_each_example_goes_by_blocks_too(monkeypatch, problem, estimator) -> None:
    model, batch, _ = problem
    in_blocks(monkeypatch, model, 2)
    method = BayesByBackprop(estimator=estimator)
    state = method.init(random.key(0), model, model.initial_theta(random.key(0)), batch, None)
    elbo, kl = jax.jit(lambda key: method.elbo_parts(key, model, state.phi, batch))(random.key(2))
    assert np.isfinite([elbo, kl]).all()
