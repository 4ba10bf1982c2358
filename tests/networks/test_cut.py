"""A network in two parts is the network, whichever layers vary; and its layers are in the order of the data flow."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

from credo.networks import CNN, MLP, ResNet, functional
from credo.networks.cut import cut
from credo.networks.layers import layers_in_order

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(5, 4)).astype(np.float32)
IMAGES = RNG.normal(size=(5, 12, 12, 1)).astype(np.float32)


class Misnamed(linen.Module):
    """Names in the order against the flow, a skip, and a normalisation between dense layers."""

    @linen.compact
    def __call__(self, x):
        h = linen.relu(linen.Dense(7, name="zeta")(x))
        h = linen.LayerNorm(name="norm")(h)
        h = h + linen.tanh(linen.Dense(7, name="middle")(h))
        return linen.Dense(3, name="alpha")(h)


class TwoHeads(nnx.Module):
    """A mean and a scale side by side, the latter with a layer of its own; everything inside one compiled call."""

    def __init__(self):
        rngs = nnx.Rngs(0)
        self.trunk, self.inner = nnx.Linear(4, 6, rngs=rngs), nnx.Linear(6, 5, rngs=rngs)
        self.mean, self.scale = nnx.Linear(6, 1, rngs=rngs), nnx.Linear(5, 1, rngs=rngs)

    def __call__(self, x):
        h = jax.nn.gelu(self.trunk(x))
        return jnp.concatenate([self.mean(h), jax.nn.softplus(self.scale(jnp.tanh(self.inner(h))))], axis=-1)


def plain(params, x):
    h = jax.jit(lambda params, x: jnp.tanh(x @ params["w1"] + params["b1"]))(params, x)
    return jax.jit(lambda params, h: h @ params["w2"] + params["b2"])(params, h)


PAIR = (
    plain,
    {"w1": RNG.normal(size=(4, 6)), "b1": np.zeros(6), "w2": RNG.normal(size=(6, 2)), "b2": np.zeros(2)},
)
NETWORKS = {
    "mlp": (MLP([6, 5], 2), ROWS),
    "cnn": (CNN(3, channels=(4,), kernel_size=3, features=(6,)), IMAGES),
    "resnet": (ResNet(3, depth=8, width=4), IMAGES),
    "linen": (Misnamed(), ROWS),
    "nnx": (TwoHeads(), ROWS),
    "equinox": (eqx.nn.MLP(4, 3, 8, 2, key=jax.random.key(0)), ROWS),
    "pair": (PAIR, ROWS),
}


def parts_of(name, place):
    """The network, the arrays of the layers at one place, and those of all others."""
    net, x = NETWORKS[name]
    network = functional(net, x)
    chosen = {path for paths in layers_in_order(network, x)[place].values() for path in paths}
    varying = {path: value for path, value in network.params.items() if path in chosen}
    return network, x, varying, {path: value for path, value in network.params.items() if path not in chosen}


# The last layer of each kind of network, and one in the middle of some; the others wait for the long run.
PLACES = [
    pytest.param(
        name, place, marks=[pytest.mark.full] * (place != -1 and (name, place) not in {("mlp", 0), ("nnx", -2)})
    )
    for name in NETWORKS
    for place in (-1, -2, 0)
]


@pytest.mark.parametrize(("name", "place"), PLACES)
def test_the_parts_are_the_network(name, place):
    network, x, varying, fixed = parts_of(name, place)
    found = cut(network, fixed, x)
    assert found.head.params.keys() == found.head.fan_in.keys() == varying.keys()
    features = jax.jit(found.features)(x)
    assert features.shape == (len(x), found.num_features)

    @jax.jit
    def both(theta, x, features):
        def whole(theta):
            outputs = network.apply({**fixed, **theta}, x)
            return jnp.sum(jnp.sin(outputs)), outputs

        def head(theta):
            outputs = found.head.apply(theta, features)
            return jnp.sum(jnp.sin(outputs)), outputs

        return [jax.value_and_grad(one, has_aux=True)(theta) for one in (whole, head)]

    moved = {path: value + 0.1 for path, value in varying.items()}
    (value, gradient), ours = both(moved, x, features)
    # Both are sums of the same float32 products, in another order at most.
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves((value, gradient)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5 * np.abs(other).max())
    # Features of some rows are not those of others.
    (_, wrong), _ = both(moved, x, features[::-1])[1]
    assert np.abs(wrong - value[1]).max() > 1e-3


def test_features_are_what_enters_the_last_layer():
    network, x, _, fixed = parts_of("cnn", -1)
    assert cut(network, fixed, x).num_features == 6
    network, x, _, fixed = parts_of("pair", -1)
    np.testing.assert_allclose(
        cut(network, fixed, x).features(x), np.tanh(x @ PAIR[1]["w1"] + PAIR[1]["b1"]), rtol=1e-5, atol=1e-6
    )


def test_a_network_that_does_not_depend_on_what_varies_is_not_cut():
    network = functional((lambda params, x: x @ params["w"], {"w": np.ones((4, 1)), "unused": np.ones(3)}))
    assert cut(network, {"w": np.ones((4, 1), np.float32)}, ROWS) is None


def test_numbers_that_a_float_cannot_hold_do_not_cross():
    table = {"table": np.arange(10.0, dtype=np.float32).reshape(5, 2)}
    network = functional((lambda params, x: params["table"][x[:, 0].astype(jnp.int32)], table))
    assert cut(network, {}, ROWS) is None


# -- order ---------------------------------------------------------------------------------------------------


def order(name):
    net, x = NETWORKS[name]
    return [set(place) for place in layers_in_order(functional(net, x), x)]


def test_layers_are_in_the_order_of_the_data_not_of_their_names():
    assert order("linen") == [{"zeta"}, {"norm"}, {"middle"}, {"alpha"}]
    assert order("mlp") == [{"hidden.0"}, {"hidden.1"}, {"head"}]


def test_layers_side_by_side_share_a_place():
    assert order("nnx") == [{"trunk"}, {"inner"}, {"mean", "scale"}]


def test_a_layer_of_names_without_dots_is_a_kernel_and_what_is_added_to_it():
    net, x = NETWORKS["pair"]
    assert layers_in_order(functional(net, x), x) == [{"w1": ("b1", "w1")}, {"w2": ("b2", "w2")}]


def test_a_layer_that_is_used_twice_stands_beside_those_between():
    def recurrent(params, x):
        h = x
        for _ in range(2):
            h = jnp.tanh(jnp.tanh(h @ params["a"]) @ params["b"])
        return h @ params["out"]

    network = functional((recurrent, {name: np.eye(4, dtype=np.float32) for name in ("b", "a", "out", "idle")}))
    assert [set(place) for place in layers_in_order(network, ROWS)] == [{"a", "b"}, {"out"}]
