"""Batch statistics are those of the rows, layer by layer, whatever the framework, and nothing else has changed."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

import credo
from credo.networks import MLP, functional, with_statistics
from tests.networks.test_functional import snapshot

X = np.random.default_rng(0).normal(3.0, 2.0, size=(40, 3)).astype(np.float32)
EPSILON = 1e-5


class NnxNet(nnx.Module):
    """Two layers of batch normalisation, the first of which gets its flag from the call, and dropout."""

    def __init__(self):
        rngs = nnx.Rngs(0)
        self.first, self.second = nnx.Linear(3, 4, rngs=rngs), nnx.Linear(4, 2, rngs=rngs)
        self.norms = nnx.List([nnx.BatchNorm(4, momentum=0.9, rngs=rngs), nnx.BatchNorm(2, rngs=rngs)])
        self.dropout = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x, train: bool = True):
        x = self.norms[0](self.first(x), use_running_average=not train)
        return self.norms[1](self.second(self.dropout(jnp.tanh(x), deterministic=not train)))


class LinenNet(linen.Module):
    @linen.compact
    def __call__(self, x, train: bool = True):
        x = linen.BatchNorm(use_running_average=not train, momentum=0.9)(linen.Dense(4)(x))
        x = linen.Dropout(0.5, deterministic=not train)(jnp.tanh(x))
        return linen.BatchNorm(use_running_average=not train)(linen.Dense(2)(x))


class EquinoxNet(eqx.Module):
    first: eqx.nn.Linear
    second: eqx.nn.Linear
    norms: list
    dropout: eqx.nn.Dropout

    def __init__(self, mode, key):
        self.first, self.second = eqx.nn.Linear(3, 4, key=key), eqx.nn.Linear(4, 2, key=key)
        self.norms = [eqx.nn.BatchNorm(4, "rows", momentum=0.9, mode=mode), eqx.nn.BatchNorm(2, "rows", mode=mode)]
        self.dropout = eqx.nn.Dropout(0.5)

    def __call__(self, x, state, key):
        x, state = self.norms[0](self.first(x), state)
        x, state = self.norms[1](self.second(self.dropout(jnp.tanh(x), key=key)), state)
        return x, state


def equinox(mode: str):
    return eqx.nn.make_with_state(EquinoxNet)(mode, jax.random.key(0))


KINDS = {
    "nnx": NnxNet,
    "linen": LinenNet,
    "linen pair": lambda: (LinenNet(), LinenNet().init(jax.random.key(1), X, train=False)),
    "equinox, batch": lambda: equinox("batch"),
    "equinox, ema": lambda: equinox("ema"),
}
# Paths of the two dense layers.
LAYERS = {
    "nnx": ("first.{}", "second.{}"),
    "linen": ("Dense_0.{}", "Dense_1.{}"),
    "equinox": ("first.{}", "second.{}"),
}


def by_hand(kind: str, params: dict) -> np.ndarray:
    """Both layers on the rows, each normalised by the mean and the variance of its input over all of them."""
    is_equinox = kind.startswith("equinox")
    values = X.astype(np.float64)
    for index, layer in enumerate(LAYERS[kind.split(",")[0].split()[0]]):
        weight = params[layer.format("weight")].T if is_equinox else params[layer.format("kernel")]
        values = values @ weight + params[layer.format("bias")]
        values = (values - values.mean(0)) / np.sqrt(values.var(0) + EPSILON)
        values = np.tanh(values) if index == 0 else values
    return values


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_are_exactly_those_of_the_rows(kind: str) -> None:
    """Scales are one and biases zero, so that the output is normalised twice by what the rows give."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        network = functional(with_statistics(KINDS[kind](), X))
    found = network.apply(network.params, X)
    np.testing.assert_allclose(found, by_hand(kind, network.params), rtol=1e-4, atol=1e-4)
    # Rows apart from each other: in evaluation mode none depends on the others.
    np.testing.assert_allclose(network.apply(network.params, X[:1]), found[:1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_can_be_given_and_come_with_the_network(kind: str) -> None:
    with pytest.warns(UserWarning, match="initial"):
        own = functional(KINDS[kind](), X).params
    given = {name: leaf if "norm" in name.lower() else 2 * leaf for name, leaf in own.items()}
    network = functional(with_statistics(KINDS[kind](), X, given | {"noise": np.zeros(())}))
    for name, leaf in given.items():
        np.testing.assert_array_equal(network.params[name], leaf)
    np.testing.assert_allclose(network.apply(network.params, X), by_hand(kind, network.params), rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match=r"params: .* is missing, and the network has one of shape"):
        with_statistics(KINDS[kind](), X, {})


def test_what_was_passed_is_untouched() -> None:
    net = NnxNet()
    before = snapshot(net)
    result = with_statistics(net, X)
    assert snapshot(net) == before
    assert [norm.momentum for norm in result.norms] == [0.9, 0.99]
    assert result.dropout.rate == 0.5
    assert not result.norms[1].use_running_average
    module, state = equinox("batch")
    with_statistics((module, state), X)
    np.testing.assert_array_equal(state.get(module.norms[0].batch_state_index)[1], np.ones(4))  # old, and in use
    variables = LinenNet().init(jax.random.key(1), X, train=False)
    with_statistics((LinenNet(), variables), X)
    np.testing.assert_array_equal(variables["batch_stats"]["BatchNorm_0"]["var"], np.ones(4))


def test_equinox_goes_on_averaging_from_there() -> None:
    """As after many batches: one more moves the statistics by 1 − momentum of the difference."""
    module, state = with_statistics(equinox("batch"), X)
    mean = state.get(module.norms[0].batch_state_index)[0]
    train = jax.vmap(eqx.nn.inference_mode(module, False), (0, None, None), (0, None), axis_name="rows")
    fresh = jax.tree.map(lambda leaf: leaf, state)
    moved = train(X + 1.0, fresh, jax.random.key(0))[1].get(module.norms[0].batch_state_index)[0]
    expected = mean + 0.1 * np.asarray(module.first.weight).sum(axis=1)
    np.testing.assert_allclose(moved, expected, rtol=1e-4, atol=1e-5)


def test_convolutions_average_over_places_too() -> None:
    images = np.random.default_rng(1).normal(1.0, 3.0, size=(7, 5, 5, 2)).astype(np.float32)
    net = with_statistics(nnx.Sequential(nnx.BatchNorm(2, rngs=nnx.Rngs(0))), images)
    np.testing.assert_allclose(net.layers[0].mean[...], images.mean((0, 1, 2)), rtol=1e-5)
    np.testing.assert_allclose(net.layers[0].var[...], images.var((0, 1, 2)), rtol=1e-5)


@pytest.mark.parametrize(
    "net",
    [MLP([4], 1), (lambda p, x: x, {"w": jnp.ones(2)}), linen.Dense(2), 3, eqx.nn.make_with_state(eqx.nn.Identity)()],
)
def test_networks_without_batch_statistics(net) -> None:
    with pytest.raises(ValueError, match="has no batch statistics that can be set"):
        with_statistics(net, X)


def test_a_fit_warns_of_initial_statistics_and_takes_those_that_are_set() -> None:
    y, method = X.sum(axis=1), credo.MAP(num_steps=20)
    net = nnx.Sequential(nnx.BatchNorm(3, rngs=nnx.Rngs(0)), nnx.Linear(3, 1, rngs=nnx.Rngs(0)))
    with pytest.warns(UserWarning, match=r"batch normalisation does nothing; .*with_statistics\(net, x\)"):
        credo.fit(credo.models.regression(net), (X, y), method)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posterior = credo.fit(credo.models.regression(with_statistics(net, X)), (X, y), method)
    assert np.isfinite(posterior.predict(X).mean).all()
