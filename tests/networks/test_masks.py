"""Masks are shared by all rows and all places, whatever the framework, and the network passed in is left alone."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

from credo import random
from credo.networks import MLP, functional
from credo.networks.masks import Masks, draw_mask
from tests.networks.test_functional import snapshot
from tests.statistical.moments import assert_mean

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 3)).astype(np.float32)
IMAGES = RNG.normal(size=(4, 5, 5, 2)).astype(np.float32)
MASK = jnp.array([0.0, 2.0, 2.0, 0.0])


class NnxNet(nnx.Module):
    def __init__(self):
        rngs = nnx.Rngs(0)
        self.first, self.second = nnx.Linear(3, 4, rngs=rngs), nnx.Linear(4, 1, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x, train: bool = True):
        return self.second(self.dropout(jnp.tanh(self.first(x)), deterministic=not train))


class LinenNet(linen.Module):
    @linen.compact
    def __call__(self, x, train: bool = True):
        x = jnp.tanh(linen.Dense(4, name="first")(x))
        return linen.Dense(1, name="second")(linen.Dropout(0.5, deterministic=not train)(x))


class EquinoxNet(eqx.Module):
    first: eqx.nn.Linear
    second: eqx.nn.Linear
    dropout: eqx.nn.Dropout

    def __init__(self, key):
        self.first, self.second = eqx.nn.Linear(3, 4, key=key), eqx.nn.Linear(4, 1, key=key)
        self.dropout = eqx.nn.Dropout(0.5)

    def __call__(self, x, key):
        return self.second(self.dropout(jnp.tanh(self.first(x)), key=key))


NETS = {
    "nnx": NnxNet,
    "linen": lambda: (LinenNet(), LinenNet().init(jax.random.key(0), X, train=False)),
    "equinox": lambda: EquinoxNet(jax.random.key(0)),
}


def by_hand(params, x, mask):
    """tanh(x W₁ + b₁) ∘ mask, then the second layer."""
    kernel = {name: params[f"{name}.kernel"] for name in ("first", "second") if f"{name}.kernel" in params}
    kernel = kernel or {name: params[f"{name}.weight"].T for name in ("first", "second")}
    hidden = np.tanh(x @ kernel["first"] + params["first.bias"]) * np.asarray(mask)
    return hidden @ kernel["second"] + params["second.bias"]


def run(network, x, mask):
    with Masks({"dropout_mask.0": mask}):
        return network.apply(network.params, x)


def layers_of(network, x):
    with Masks({}, look=True) as masks:
        jax.eval_shape(network.apply, network.params, x)
    return masks.layers


@pytest.mark.parametrize("name", NETS)
def test_layers_take_one_mask_for_all_rows(name):
    net = NETS[name]()
    before = snapshot(net)
    network = functional(net, X)
    assert layers_of(network, X) == [("dropout_mask.0", 4, 0.5)]
    np.testing.assert_allclose(network.apply(network.params, X), by_hand(network.params, X, np.ones(4)), atol=1e-5)
    np.testing.assert_allclose(run(network, X, MASK), by_hand(network.params, X, MASK), atol=1e-5)
    assert snapshot(net) == before


@pytest.mark.parametrize("name", NETS)
def test_a_kept_trace_holds_no_mask(name):
    # JAX keeps traces of functions it has seen: a mask must not stay behind in one.
    network = functional(NETS[name](), X)
    results = [jax.jit(lambda mask: run(network, X, mask))(scale * MASK) for scale in (1.0, 0.5)]
    for scale, result in zip((1.0, 0.5), results, strict=True):
        np.testing.assert_allclose(result, by_hand(network.params, X, scale * MASK), atol=1e-5)
    stacked = jax.vmap(lambda mask: run(network, X, mask))(jnp.stack([MASK, jnp.ones(4)]))
    np.testing.assert_allclose(stacked[1], network.apply(network.params, X), atol=1e-5)


class NnxConvolution(nnx.Module):
    """Returns what leaves its dropout layer."""

    def __init__(self, **options):
        rngs = nnx.Rngs(0)
        self.conv, self.dropout = nnx.Conv(2, 4, (3, 3), rngs=rngs), nnx.Dropout(0.5, rngs=rngs, **options)

    def __call__(self, x):
        return self.dropout(self.conv(x))


class EquinoxConvolution(eqx.Module):
    conv: eqx.nn.Conv
    dropout: eqx.nn.Dropout

    def __init__(self, num_dims, num_channels, key):
        self.conv = eqx.nn.Conv(num_dims, num_channels, 4, 3, key=key)
        self.dropout = eqx.nn.Dropout(0.5)

    def __call__(self, x):
        return self.dropout(self.conv(x), key=None)


@pytest.mark.parametrize(
    ("net", "x", "channels"),
    [
        (NnxConvolution(), IMAGES, -1),
        (EquinoxConvolution(2, 5, jax.random.key(0)), IMAGES, 1),
        (EquinoxConvolution(1, 5, jax.random.key(0)), IMAGES[..., 0], 1),
    ],
)
def test_convolutions_lose_whole_channels(net, x, channels):
    network = functional(net)
    plain = np.moveaxis(network.apply(network.params, x), channels, -1)
    dropped = np.moveaxis(run(network, x, MASK), channels, -1)
    assert np.all(dropped[..., [0, 3]] == 0)
    np.testing.assert_allclose(dropped[..., [1, 2]], 2 * plain[..., [1, 2]], atol=1e-6)


def test_sequences_of_equinox_share_the_mask_between_steps():
    class Sequence(eqx.Module):
        layer: eqx.nn.Linear
        dropout: eqx.nn.Dropout

        def __call__(self, x):
            return self.dropout(jax.vmap(self.layer)(x), key=None)

    network = functional(Sequence(eqx.nn.Linear(2, 4, key=jax.random.key(0)), eqx.nn.Dropout(0.5)))
    assert np.all(run(network, IMAGES[:, 0], MASK)[..., 0] == 0)


def test_channels_that_share_their_number_in_the_layer_share_it_in_the_mask():
    network = functional(NnxConvolution(broadcast_dims=(1, 2, 3)))
    assert layers_of(network, IMAGES)[0].num_units == 1
    assert np.all(run(network, IMAGES, jnp.zeros(1)) == 0)


def test_layers_of_rate_zero_ask_for_nothing():
    net = NnxNet()
    net.dropout.rate = 0.0
    assert layers_of(functional(net), X) == []
    assert layers_of(functional(MLP([4], 1), X), X) == []


def test_a_mask_that_reaches_no_layer_is_refused():
    network = functional(NnxNet())
    with (
        pytest.raises(ValueError, match=r"masks for dropout_mask\.1, but x passed 1 dropout layer"),
        Masks({"dropout_mask.0": MASK, "dropout_mask.1": MASK}),
    ):
        network.apply(network.params, X)


def test_a_layer_inside_a_compiled_call_is_not_passed_over_in_silence():
    class Compiled(EquinoxNet):
        @eqx.filter_jit
        def hidden(self, x):
            return self.dropout(jnp.tanh(self.first(x)), key=None)

        def __call__(self, x, key):
            return self.second(self.hidden(x))

    network = functional(Compiled(jax.random.key(0)))
    assert len(layers_of(network, X)) == 1
    with pytest.raises(ValueError, match="masks cannot reach a layer inside a compiled part"):
        run(network, X, MASK)


@pytest.mark.parametrize("kind", ["bernoulli", "gaussian"])
@pytest.mark.parametrize("rate", [0.1, 0.6])
def test_masks_have_mean_one_and_the_variance_of_their_rate(kind, rate, seed):
    num = 200_000
    mask = np.asarray(draw_mask(random.key(seed), num, rate, kind=kind), np.float64)
    assert_mean(np.stack([mask, (mask - 1) ** 2], axis=1), [1, rate / (1 - rate)])
    if kind == "bernoulli":
        np.testing.assert_allclose(np.unique(mask), [0, 1 / (1 - rate)], rtol=1e-6)


def test_relaxed_masks_are_nearly_bernoulli_and_fall_smoothly_with_the_rate(seed):
    num, rate = 100_000, 0.3
    key = random.key(seed)
    relaxed = np.asarray(draw_mask(key, num, rate, kind="concrete", relaxed=True))
    hard = np.asarray(draw_mask(key, num, rate, kind="concrete"))
    # Those on the way from one to zero are as many as the temperature says: about 0.1 of them, known to 0.001.
    assert np.mean(np.abs(relaxed - hard) > 0.1 / (1 - rate)) < 0.12
    kept = jax.grad(lambda rate: (1 - rate) * draw_mask(key, num, rate, kind="concrete", relaxed=True).mean())
    # The share that is kept, 1 − p. The slope of one mask is beside 0 in a share t of them, and there up to 1/4pt·...
    assert kept(rate) == pytest.approx(-1, abs=0.1)
