"""Every kind of network splits into a pure function and named parameters, and is left as it was."""

import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

from credo.networks import CNN, MLP, Network, functional, network_config
from credo.networks.zoo import initial_values

X = jnp.asarray(np.random.default_rng(1).normal(size=(6, 3)), jnp.float32)


class NnxNet(nnx.Module):
    """Dropout, batch normalisation, a tied layer, a random stream and an integer parameter."""

    def __init__(self):
        rngs = nnx.Rngs(0)
        self.first = nnx.Linear(3, 4, kernel_init=initial_values(0), rngs=rngs)
        self.middle = nnx.Linear(4, 4, kernel_init=initial_values(1), rngs=rngs)
        self.tied = self.middle
        self.norm = nnx.BatchNorm(4, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)
        self.permutation = nnx.Param(jnp.array([2, 0, 1, 3]))
        self.rngs = rngs

    def __call__(self, x):
        x = self.dropout(self.norm(self.first(x)))
        return self.tied(jnp.tanh(self.middle(x[:, self.permutation[...]])))


class LinenNet(linen.Module):
    @linen.compact
    def __call__(self, x, train: bool = True):
        x = linen.Dense(4)(x)
        x = linen.BatchNorm(use_running_average=not train)(x)
        x = linen.Dropout(0.5, deterministic=not train)(x)
        return linen.Dense(2)(x)


class EquinoxNet(eqx.Module):
    norm: eqx.nn.BatchNorm
    dropout: eqx.nn.Dropout
    linear: eqx.nn.Linear

    def __init__(self, key):
        self.norm = eqx.nn.BatchNorm(3, "batch", mode="batch")
        self.dropout = eqx.nn.Dropout(0.5)
        self.linear = eqx.nn.Linear(3, 2, key=key)

    def __call__(self, x, state, key):
        x, state = self.norm(x, state)
        return self.linear(self.dropout(x, key=key)), state


def trained_nnx() -> NnxNet:
    """A network in training mode, with batch statistics and random counters that have moved."""
    net = NnxNet()
    net.train()
    net(3.0 * X + 1.0)
    return net


def linen_pair():
    module = LinenNet()
    variables = module.init(jax.random.key(3), X, train=False)
    _, state = module.apply(variables, 3.0 * X + 1.0, mutable="batch_stats", rngs={"dropout": jax.random.key(1)})
    return module, {**variables, **state}


def equinox_pair():
    module, state = eqx.nn.make_with_state(EquinoxNet)(jax.random.key(0))
    train = jax.vmap(module, axis_name="batch", in_axes=(0, None, None), out_axes=(0, None))
    _, state = train(3.0 * X + 1.0, state, jax.random.key(1))
    return module, state


def plain_apply(params, x):
    (w, b), (v,) = params["layers"]
    return jnp.tanh(x @ w + b) @ v * params["scale"] + params["shift"][0]


PLAIN = {
    "layers": [(np.ones((3, 4), np.float32), np.zeros(4, np.float32)), (np.ones((4, 2), np.float32),)],
    "scale": 2.0,
    "shift": np.array([1, 2]),
}


def snapshot(net) -> list:
    """All leaves of an nnx network as bits, random state too, and its structure with the mode flags."""
    structure, state = nnx.split(net)
    leaves = jax.tree.leaves(nnx.to_pure_dict(state))
    as_data = [jax.random.key_data(v) if jnp.issubdtype(v.dtype, jax.dtypes.prng_key) else v for v in leaves]
    return [structure, *[np.asarray(value).tobytes() for value in as_data]]


# --- agreement with the network's own evaluation-mode output


def test_nnx_agrees_in_evaluation_mode():
    net = trained_nnx()
    network = functional(net)
    reference = nnx.clone(net)
    reference.eval()
    np.testing.assert_allclose(network.apply(network.params, X), reference(X), rtol=1e-6)


def test_nnx_parameters_are_trainable_floats_once():
    network = functional(NnxNet())
    layers = ("first.bias", "first.kernel", "middle.bias", "middle.kernel", "norm.bias", "norm.scale")
    assert sorted(network.params) == list(layers)  # tied layer once; no permutation, statistics or random state


def test_linen_pair_agrees_in_evaluation_mode():
    module, variables = linen_pair()
    network = functional((module, variables))
    expected = module.apply(variables, X, train=False)
    np.testing.assert_allclose(network.apply(network.params, X), expected, rtol=1e-6)
    layers = {"BatchNorm_0": "scale", "Dense_0": "kernel", "Dense_1": "kernel"}
    assert set(network.params) == {f"{layer}.{name}" for layer, own in layers.items() for name in (own, "bias")}


def test_linen_flags_are_found_by_name():
    class Flagged(linen.Module):
        @linen.compact
        def __call__(self, x, train, training, is_training, deterministic, use_running_average, scale=2.0):
            assert (train, training, is_training) == (False, False, False)
            assert (deterministic, use_running_average) == (True, True)
            return scale * linen.Dense(1)(x)

    network = functional(Flagged(), X)
    expected = 2.0 * (X @ network.params["Dense_0.kernel"] + network.params["Dense_0.bias"])
    np.testing.assert_allclose(network.apply(network.params, X), expected, rtol=1e-5)


def test_bare_linen_needs_only_the_shape_of_x():
    module = LinenNet()
    network = functional(module, jax.ShapeDtypeStruct((9, 3), jnp.float32))
    expected = module.init(jax.random.key(0), X[:1], train=False)["params"]["Dense_0"]["kernel"]
    np.testing.assert_array_equal(network.params["Dense_0.kernel"], expected)


def test_equinox_is_mapped_over_rows():
    module = eqx.nn.MLP(3, 2, 5, 1, key=jax.random.key(0))
    network = functional(module)
    np.testing.assert_allclose(network.apply(network.params, X), jax.vmap(module)(X), rtol=1e-6)
    first, second = {"layers.0.weight": 3, "layers.0.bias": 3}, {"layers.1.weight": 5, "layers.1.bias": 5}
    assert network.fan_in == first | second


def test_equinox_with_state_agrees_in_inference_mode():
    module, state = equinox_pair()
    network = functional((module, state))
    reference = eqx.nn.inference_mode(module)
    expected = jax.vmap(lambda row: reference(row, state, None)[0])(X)
    np.testing.assert_allclose(network.apply(network.params, X), expected, rtol=1e-6)
    assert set(network.params) == {"norm.weight", "norm.bias", "linear.weight", "linear.bias"}


def test_plain_pair():
    network = functional((plain_apply, PLAIN))
    np.testing.assert_allclose(network.apply(network.params, X), plain_apply(PLAIN, X), rtol=1e-6)
    assert set(network.params) == {
        "layers.0.0",
        "layers.0.1",
        "layers.1.0",
        "scale",
    }  # the integers are frozen
    assert network.fan_in == {"layers.0.0": 3, "layers.0.1": 3, "layers.1.0": 4, "scale": 1}


def test_single_array_is_named_params():
    network = functional((lambda w, x: x @ w, jnp.ones((3, 1))))
    assert network.apply({"params": jnp.zeros((3, 1))}, X).tolist() == [[0.0]] * 6


def test_network_passes_through():
    network = functional(MLP([4], 1, inputs=3))
    assert functional(network) is network


# --- the user's object is untouched


def test_nnx_is_bit_identical_afterwards():
    net = trained_nnx()
    before = snapshot(net)
    network = functional(net)
    jax.jit(network.apply)(jax.tree.map(lambda v: v + 1.0, network.params), X)
    network.apply(network.params, X)
    assert snapshot(net) == before
    assert not net.dropout.deterministic
    assert not net.norm.use_running_average


def test_random_layers_repeat_themselves_and_advance_nothing():
    class Noisy(nnx.Module):
        def __init__(self):
            self.rngs = nnx.Rngs(0)
            self.scale = nnx.Param(jnp.ones(3))

        def __call__(self, x):
            return self.scale[...] * (x + jax.random.normal(self.rngs(), x.shape))

    net = Noisy()
    before = snapshot(net)
    network = functional(net)
    first, second = (network.apply(network.params, X) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert snapshot(net) == before


def test_equinox_and_pairs_are_untouched():
    module, state = equinox_pair()
    weights = PLAIN["layers"][0][0]
    functional((module, state))
    functional((plain_apply, PLAIN))
    assert not module.dropout.inference
    assert PLAIN["layers"][0][0] is weights


def test_params_do_not_follow_a_numpy_array():
    weights = np.ones((3, 1), np.float32)
    network = functional((lambda w, x: x @ w, weights))
    weights[:] = 7.0
    assert network.params["params"].tolist() == [[1.0]] * 3


# --- transformations


KINDS = {
    "zoo": lambda: MLP([4], 2),
    "nnx": trained_nnx,
    "linen": LinenNet,
    "linen pair": linen_pair,
    "equinox pair": equinox_pair,
    "plain pair": lambda: (plain_apply, PLAIN),
}


@pytest.mark.parametrize("kind", KINDS)
def test_jit_and_an_axis_of_draws(kind):
    network = functional(KINDS[kind](), X)
    draws = jax.tree.map(lambda v: jnp.stack([v, 0.5 * v, -v]), network.params)
    together = jax.jit(jax.vmap(network.apply, in_axes=(0, None)))(draws, X)
    one = jax.tree.map(lambda v: v[1], draws)
    np.testing.assert_allclose(together[1], network.apply(one, X), rtol=2e-5, atol=1e-6)
    gradient = jax.grad(lambda params: jnp.sum(network.apply(params, X) ** 2))(network.params)
    assert all(np.isfinite(value).all() for value in gradient.values())


@pytest.mark.parametrize("kind", KINDS)
def test_split_inside_jit_gives_constants(kind):
    net, seen = KINDS[kind](), []

    @jax.jit
    def run(x):
        network = functional(net, x)
        seen.append(network.params)
        return network.apply(network.params, x)

    outside = functional(net, X)
    np.testing.assert_allclose(run(X), outside.apply(outside.params, X), rtol=1e-5, atol=1e-6)
    for name, value in seen[0].items():
        np.testing.assert_array_equal(value, outside.params[name])  # a leaked tracer would raise here


# --- fan-in


def test_fan_in_of_convolutions_and_their_biases():
    fan_in = functional(CNN(10, inputs=(28, 28, 1))).fan_in
    assert fan_in["conv.1.kernel"] == fan_in["conv.1.bias"] == 5 * 5 * 16
    assert fan_in["hidden.0.bias"] == 512
    equinox = functional(eqx.nn.Conv2d(3, 8, 5, use_bias=False, key=jax.random.key(0))).fan_in
    assert equinox == {"weight": 75}


def test_fan_in_of_norms_attention_and_embeddings():
    class Net(nnx.Module):
        def __init__(self):
            rngs, zeros = nnx.Rngs(0), nnx.initializers.zeros
            self.embed = nnx.Embed(11, 6, embedding_init=zeros, rngs=rngs)
            self.norm = nnx.LayerNorm(6, rngs=rngs)
            self.attention = nnx.MultiHeadAttention(2, 6, kernel_init=zeros, decode=False, rngs=rngs)

        def __call__(self, x):
            return self.attention(self.norm(self.embed(x)))

    fan_in = functional(Net()).fan_in
    assert fan_in["embed.embedding"] == fan_in["norm.scale"] == fan_in["norm.bias"] == 1
    assert fan_in["attention.query.kernel"] == fan_in["attention.query.bias"] == 6
    assert fan_in["attention.out.kernel"] == 6


def test_fan_in_of_layers_on_one_level():
    shapes = {"w1": (3, 50), "b1": (50,), "w2": (50, 50), "b2": (50,)}
    fan_in = functional((lambda p, x: x, {name: jnp.ones(shape) for name, shape in shapes.items()})).fan_in
    assert fan_in == {"w1": 3, "b1": 3, "w2": 50, "b2": 50}


# --- errors


def test_networks_without_shapes_ask_for_x():
    with pytest.raises(ValueError, match=r"LinenNet does not know the shape of its input.*functional\(net, x\)"):
        functional(LinenNet())
    with pytest.raises(ValueError, match="MLP does not know the shape"):
        functional(MLP([4], 1))


@pytest.mark.parametrize("net", [3, "MLP", [plain_apply, PLAIN], (1, 2, 3), nnx.Module(), (MLP([4], 1), {})])
def test_unsupported_objects(net):
    with pytest.raises(TypeError, match=r"net is of type .*pass a flax.nnx module.*\(apply, params\)"):
        functional(net)


def test_a_class_is_not_a_network():
    with pytest.raises(TypeError, match="make an instance"):
        functional(MLP)


@pytest.mark.parametrize("net", [nnx.Dropout(0.5), (lambda p, x: x, {"n": jnp.arange(3)}), eqx.nn.Identity()])
def test_no_trainable_parameters(net):
    with pytest.raises(ValueError, match="no trainable parameters"):
        functional(net, X)


def test_linen_without_parameters():
    with pytest.raises(ValueError, match="Dropout has no trainable parameters"):
        functional(linen.Dropout(0.5), X)
    with pytest.raises(ValueError, match=r"no collection 'params'.*module.init"):
        functional((LinenNet(), {"kernel": X}))


def test_equinox_state_must_be_given():
    module, _ = equinox_pair()
    with pytest.raises(ValueError, match=r"EquinoxNet has layers with state.*make_with_state"):
        functional(module)


def test_paths_must_be_distinct():
    with pytest.raises(ValueError, match="the same path: take the dots out"):
        functional((lambda p, x: x, {"a.b": jnp.ones(2), "a": {"b": jnp.ones(2)}}))


def test_equinox_is_not_imported_for_others(monkeypatch):
    monkeypatch.setitem(sys.modules, "equinox", None)  # any import of it fails
    assert functional(MLP([4], 1, inputs=3)).params
    assert functional((plain_apply, PLAIN)).params
    with pytest.raises(TypeError, match="equinox module"):
        functional(object())


def test_config_is_known_for_the_zoo_only():
    class Mine(MLP):
        pass

    assert network_config(MLP([4], 1))["inputs"] is None
    assert functional(MLP([4], 1), X).config["inputs"] == 3
    assert network_config(functional(MLP([4], 1), X))["inputs"] == 3
    assert network_config(NnxNet()) is network_config(Mine([4], 1)) is None
    assert isinstance(functional(Mine([4], 1), X), Network)
