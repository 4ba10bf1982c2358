"""Entries of arrays that a function does not tell apart, read off its program."""

import jax.numpy as jnp
import numpy as np

from credo.networks import MLP, functional
from credo.networks.exchangeable import exchangeable

X = np.arange(6.0).reshape(2, 3)


def test_hidden_units_are_exchanged_and_inputs_and_outputs_are_not() -> None:
    net = functional(MLP([4, 5], 2), X)
    found = exchangeable(lambda theta: net.apply(theta, X), net.params)
    counts = {path: len(np.unique(numbers)) for path, numbers in found.items()}
    assert counts == {
        "hidden.0.kernel": 3,
        "hidden.0.bias": 1,
        "hidden.1.kernel": 1,
        "hidden.1.bias": 1,
        "head.kernel": 2,
        "head.bias": 2,
    }
    np.testing.assert_array_equal(found["head.kernel"], [[0, 1]] * 5)


def test_what_varies_along_an_axis_tells_its_entries_apart() -> None:
    scales = jnp.arange(1.0, 4.0)
    params = {"free": np.ones(3), "scaled": np.ones(3), "unused": np.ones(3)}
    found = exchangeable(lambda p: jnp.sum(p["free"] ** 2) + jnp.sum(scales * p["scaled"]), params)
    assert [len(np.unique(found[name])) for name in params] == [1, 3, 3]
