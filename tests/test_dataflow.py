"""Following arrays of theta: their entries stay known on the way, and products and biases are met where they are."""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credo._dataflow import DataFlow, leaves, plain, trace

X = jnp.asarray(np.random.default_rng(0).normal(size=(5, 6)), jnp.float32)
THETA = {"b": jnp.arange(6.0), "w": jnp.arange(24.0).reshape(6, 4)}


@dataclass
class Notes(DataFlow):
    """Takes every product as it is; notes the weights as they enter, and the biases."""

    weights: list = field(default_factory=list)
    biases: list = field(default_factory=list)

    def product(self, product):
        self.weights.append(product.weights)
        return product.times(plain(product.data), product.weights.value)

    def bias(self, leaf, output):
        self.biases.append((leaf.name, output.kernel))


def looked_at(function, theta=THETA) -> Notes:
    notes = Notes()
    notes.look(trace(function, theta)[0], theta)
    return notes


def followed(function, theta=THETA):
    """What enters the products, as it is and by its entries; and the outputs."""
    notes = Notes()
    outputs = notes.run(trace(function, theta)[0], leaves(theta))
    return [(np.asarray(one.value), np.ravel(theta[one.name])[one.entries]) for one in notes.weights], outputs


@jax.custom_jvp
def turned(w):
    return w.T


turned.defjvp(lambda primals, tangents: (turned(*primals), tangents[0].T))

REINDEXING = {
    "as it is": lambda w: w,
    "transposed": lambda w: w.T.reshape(6, 4),
    "turned round": lambda w: w[::-1],
    "more axes": lambda w: w[:, None].squeeze(1),
    "other precision": lambda w: w.astype(jnp.bfloat16).astype(jnp.float32),
    "in a call": jax.jit(lambda w: jax.checkpoint(lambda v: v.reshape(4, 6).T)(w)),
    "with derivatives": lambda w: turned(w).T,
}


@pytest.mark.parametrize("name", REINDEXING)
def test_entries_are_known_after_every_reindexing(name):
    def function(theta):
        return X @ REINDEXING[name](theta["w"])

    ((value, by_entries),), (outputs,) = followed(function)
    np.testing.assert_array_equal(value, by_entries)
    np.testing.assert_array_equal(outputs, function(THETA))


def test_entries_are_known_where_they_are_repeated():
    ((value, by_entries),), _ = followed(lambda theta: X[:, :3] @ jnp.broadcast_to(theta["b"], (3, 6)))
    np.testing.assert_array_equal(value, by_entries)


def test_uses_are_noted_in_order():
    def function(theta):
        w, b = theta["w"], theta["b"]
        return (X + b) @ w, jnp.sin(w), b

    notes = looked_at(function)
    assert notes.uses == {"b": ["a bias", "`return`"], "w": ["a product", "`sin`"]}
    assert not notes.biases


BIASES = {
    "along the features": (lambda s, b: s + b, (6,), True),
    "after a transpose": (lambda s, b: s.T + b[:, None], (6,), True),
    "after new axes": (lambda s, b: s[:, None] + b, (6,), True),
    "turned round": (lambda s, b: s + b[::-1], (6,), False),
    "a row of a matrix": (lambda s, b: s + b, (1, 6), False),
    "along the rows": (lambda s, b: s + b[:, None], (5,), False),
    "after something else": (lambda s, b: jnp.tanh(s) + b, (6,), False),
}


@pytest.mark.parametrize("name", BIASES)
def test_a_bias_is_a_vector_by_feature(name):
    add, shape, is_bias = BIASES[name]
    theta = {"b": jnp.ones(shape), "w": jnp.ones((6, 6))}
    notes = looked_at(lambda theta: add(X @ theta["w"], theta["b"]), theta)
    assert notes.biases == [("b", "w")] * is_bias


def test_what_leaves_a_product_may_enter_the_next():
    theta = {"a": jnp.ones((6, 3)), "b": jnp.ones((3, 2))}
    notes = looked_at(lambda theta: X @ theta["a"] @ theta["b"], theta)
    assert [one.name for one in notes.weights] == ["a", "b"]
