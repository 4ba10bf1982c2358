"""The networks of the zoo: their sizes and layers, late building, configs, and refusals."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from credo.networks import CNN, MLP, Fourier, ResNet, from_config, functional
from credo.networks.resnet import FilterResponseNorm, ThresholdedLinear
from credo.networks.zoo import ACTIVATIONS

RNG = np.random.default_rng(0)


def normal(*shape: int) -> jax.Array:
    return jnp.asarray(RNG.normal(size=shape), jnp.float32)


def num_weights(net) -> int:
    return sum(value.size for value in functional(net).params.values())


# --- MLP


def test_mlp_is_the_formula():
    net = MLP([4, 5], 2, activation="sin", inputs=3)
    p, x = functional(net).params, normal(6, 3)
    h = jnp.sin(x @ p["hidden.0.kernel"] + p["hidden.0.bias"])
    h = jnp.sin(h @ p["hidden.1.kernel"] + p["hidden.1.bias"])
    np.testing.assert_allclose(net(x), h @ p["head.kernel"] + p["head.bias"], rtol=1e-5, atol=1e-6)
    assert len(p) == 6


def test_mlp_without_features_is_linear():
    network = functional(MLP([], 1), normal(6, 3))
    assert {path: value.shape for path, value in network.params.items()} == {
        "head.bias": (1,),
        "head.kernel": (3, 1),
    }
    assert network.fan_in == {"head.bias": 3, "head.kernel": 3}


def test_mlp_flattens_rows():
    x = normal(6, 4, 5, 2)
    network = functional(MLP([3], 1), x)
    flat = network.apply(network.params, x.reshape(6, 40))
    np.testing.assert_array_equal(network.apply(network.params, x), flat)
    assert network.apply(network.params, x[:0]).shape == (0, 1)


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_every_activation_is_usable(activation):
    assert np.isfinite(MLP([4], 1, activation=activation, inputs=2)(normal(3, 2))).all()


def test_initial_values_have_variance_one_over_fan_in(seed):
    params = functional(MLP([400], 300, inputs=200, seed=seed)).params
    # The relative error of an sd of 80,000 normal numbers is 0.25%: 2% is 8 of them.
    np.testing.assert_allclose(params["hidden.0.kernel"].std(), 200**-0.5, rtol=0.02)
    np.testing.assert_allclose(params["head.kernel"].std(), 400**-0.5, rtol=0.02)
    assert not params["hidden.0.bias"].any()
    assert all(value.dtype == jnp.float32 for value in params.values())


def test_seed_decides_the_initial_values():
    first, again, other = (functional(MLP([4], 1, inputs=3, seed=seed)).params for seed in (0, 0, 1))
    np.testing.assert_array_equal(first["head.kernel"], again["head.kernel"])
    assert (first["head.kernel"] != other["head.kernel"]).all()


def test_built_mlp_trains_as_any_nnx_module():
    net, x = MLP([4], 1, inputs=3), normal(6, 3)

    @nnx.jit
    def gradient(net, x):
        return nnx.grad(lambda net: jnp.sum(net(x) ** 2))(net)

    assert np.asarray(gradient(net, x)["head"]["kernel"][...]).any()


# --- CNN


def test_cnn_is_the_paper_network():
    net = CNN(10, inputs=(28, 28, 1))
    shapes = {path: value.shape for path, value in functional(net).params.items()}
    kernels = {path: shape for path, shape in shapes.items() if path.endswith("kernel")}
    assert kernels == {
        "conv.0.kernel": (5, 5, 1, 16),
        "conv.1.kernel": (5, 5, 16, 32),
        "hidden.0.kernel": (512, 128),
        "head.kernel": (128, 10),
    }
    assert num_weights(net) == 80_202


def test_cnn_order_of_operations():
    net = CNN(2, channels=(3,), kernel_size=3, features=(), inputs=(6, 6, 1), activation="sin")
    p, x = functional(net).params, normal(4, 6, 6)
    layout = ("NHWC", "HWIO", "NHWC")
    z = jax.lax.conv_general_dilated(x[..., None], p["conv.0.kernel"], (1, 1), "VALID", dimension_numbers=layout)
    z = (z + p["conv.0.bias"]).reshape(4, 2, 2, 2, 2, 3).max(axis=(2, 4))  # sin is not monotone: pool first
    expected = jnp.sin(z).reshape(4, -1) @ p["head.kernel"] + p["head.bias"]
    np.testing.assert_allclose(net(x), expected, rtol=1e-4, atol=1e-5)


def test_cnn_takes_images_without_a_channel_axis():
    x = normal(3, 14, 14)
    network = functional(CNN(10, channels=(4,), features=(8,)), x)
    np.testing.assert_array_equal(network.apply(network.params, x), network.apply(network.params, x[..., None]))
    assert network.config["inputs"] == [14, 14, 1]


def test_cnn_refuses_images_that_vanish():
    with pytest.raises(ValueError, match=r"inputs=\(8, 8, 1\) is too small .*smaller kernel_size"):
        CNN(10, inputs=(8, 8))
    with pytest.raises(ValueError, match="height, width"):
        functional(CNN(10), normal(3, 784))


# --- ResNet


def test_resnet20_has_the_known_size():
    # He et al. 2016 with projections: 272,474 with the scale and the shift of each normalisation.
    assert num_weights(ResNet(10, normalisation="group", inputs=(32, 32, 3))) == 272_474
    # One threshold per channel more for each of the 19 activations: 7 of 16, 6 of 32 and 6 of 64 channels.
    assert num_weights(ResNet(10, inputs=(32, 32, 3))) == 272_474 + 7 * 16 + 6 * 32 + 6 * 64


@pytest.mark.parametrize("options", [{}, {"activation": "relu"}, {"normalisation": "group"}])
def test_resnet_treats_rows_alone(options):
    x = normal(4, 8, 8, 3)
    network = functional(ResNet(5, depth=8, width=4, **options), x)
    apply = jax.jit(network.apply)
    together = apply(network.params, x)
    assert together.shape == (4, 5)
    np.testing.assert_allclose(apply(network.params, x.at[1:].set(0.0))[0], together[0], rtol=1e-4, atol=1e-5)
    assert {"head.kernel", "head.bias", "stem.kernel"} < set(network.params)


def test_filter_response_normalisation_and_threshold():
    norm, x = FilterResponseNorm(3), normal(2, 4, 5, 3)
    norm.scale[...], norm.bias[...] = jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0, 2.0])
    raw = (norm(x) - norm.bias[...]) / norm.scale[...]
    np.testing.assert_allclose((raw**2).mean(axis=(1, 2)), np.ones((2, 3)), rtol=1e-4)
    unit = ThresholdedLinear(3)
    unit.threshold[...] = jnp.array([-1.0, 0.0, 1.0])
    np.testing.assert_array_equal(unit(x), np.maximum(x, [-1.0, 0.0, 1.0]))


@pytest.mark.parametrize("depth", [2, 18, 21])
def test_resnet_depth(depth):
    with pytest.raises(ValueError, match=rf"depth must be 6 m \+ 2 .* got {depth}"):
        ResNet(10, depth=depth)


def test_resnet_refusals():
    with pytest.raises(ValueError, match="did you mean 'group'"):
        ResNet(10, normalisation="groups")
    with pytest.raises(ValueError, match="at least 8 × 8"):
        ResNet(10, inputs=(4, 4, 3))


# --- shared


UNBUILT = [
    (MLP([4], 2, activation="gelu", seed=3), (5, 3)),
    (CNN(2, channels=(3,), features=(4,)), (5, 8, 8)),
    (ResNet(2, depth=8, width=2), (5, 8, 8, 3)),
    (Fourier(8, 2, length=0.5, seed=3), (5, 3)),
]


@pytest.mark.parametrize(("net", "shape"), UNBUILT, ids=["MLP", "CNN", "ResNet", "Fourier"])
def test_unbuilt_networks_stay_unbuilt(net, shape):
    assert not net.is_built
    assert not jax.tree.leaves(nnx.state(net))
    assert functional(net, jax.ShapeDtypeStruct(shape, jnp.float32)).params
    assert not net.is_built
    assert not jax.tree.leaves(nnx.state(net))
    with pytest.raises(ValueError, match=r"has no layers yet: give it inputs=.*functional\(net, x\)"):
        net(jnp.ones(shape))


@pytest.mark.parametrize(("net", "shape"), UNBUILT, ids=["MLP", "CNN", "ResNet", "Fourier"])
def test_config_survives_json(net, shape):
    network = functional(net, jnp.ones(shape))
    again = functional(from_config(json.loads(json.dumps(network.config))))
    assert again.config == network.config
    assert from_config(net.config).config == net.config
    jax.tree.map(np.testing.assert_array_equal, again.params, network.params)


def test_shape_errors_name_both_shapes():
    network = functional(MLP([4], 1, inputs=3))
    with pytest.raises(ValueError, match=r"built for inputs=3, but x of shape \(6, 4\) has inputs=4"):
        network.apply(network.params, normal(6, 4))
    with pytest.raises(ValueError, match=r"x has shape \(6,\).*x\[:, None\]"):
        functional(MLP([4], 1), normal(6))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MLP([4, 0], 1), r"features\[1\] must be a whole number of at least 1, got 0"),
        (lambda: MLP(4, 1), "features must be a sequence"),
        (lambda: MLP([4.0], 1), r"features\[0\] must be a whole number of at least 1, got 4.0"),
        (lambda: MLP([4], True), "out must be a whole number of at least 1, got True"),
        (lambda: MLP([4], 1, inputs=-3), "inputs must be a whole number of at least 1, got -3"),
        (lambda: MLP([4], 1, activation="tahn"), "activation must be one of .*, got 'tahn'; did you mean 'tanh'"),
        (lambda: MLP([4], 1, activation=jnp.tanh), "activation must be one of .*, got <"),
        (lambda: CNN(10, kernel_size=0), "kernel_size must be a whole number of at least 1"),
        (lambda: CNN(10, inputs=(28,)), "inputs must be .height, width."),
        (lambda: from_config({"name": "MPL", "features": [4], "out": 1}), "got 'MPL'; did you mean 'MLP'"),
        (
            lambda: from_config({"features": [4]}),
            "network must be one of CNN, Exported, Fourier, MLP, ResNet, ShortcutMLP, got None",
        ),
        (lambda: from_config({"name": "MLP", "depth": 3}), "config does not fit the arguments of MLP"),
    ],
)
def test_refusals_name_the_argument(make, message):
    with pytest.raises(ValueError, match=message):
        make()
