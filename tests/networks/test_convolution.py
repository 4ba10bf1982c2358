"""Convolutions as products of patches: the same numbers and gradients as XLA's own, for every kind."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

from credo._dataflow import CONVOLUTION
from credo.networks import CNN, ResNet, functional
from credo.networks.convolution import with_patches

RNG = np.random.default_rng(0)


def random_array(*shape: int) -> jax.Array:
    return jnp.asarray(RNG.normal(size=shape), jnp.float32)


CASES = {
    "valid": {"window_strides": (1, 1), "padding": "VALID"},
    "same": {"window_strides": (1, 1), "padding": "SAME"},
    "strides": {"window_strides": (2, 3), "padding": [(1, 2), (0, 1)]},
    "dilated": {"window_strides": (1, 2), "padding": "SAME", "rhs_dilation": (2, 1)},
    "groups": {"window_strides": (1, 1), "padding": "SAME", "feature_group_count": 2},
    "transposed": {"window_strides": (1, 1), "padding": [(1, 1), (1, 1)], "lhs_dilation": (2, 2)},
}
LAYOUTS = [("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW"), ("HWNC", "IOWH", "NWHC")]


# Every case in the layout of flax, and every layout in one case; the others wait for the long run.
PAIRS = [
    pytest.param(
        case, layout, id=f"{case}-{layout[0]}", marks=[pytest.mark.full] * (layout != LAYOUTS[0] and case != "same")
    )
    for case in CASES
    for layout in LAYOUTS
]


@pytest.mark.parametrize(("case", "layout"), PAIRS)
def test_values_and_gradients_are_those_of_the_convolution(case: str, layout: tuple[str, str, str]) -> None:
    settings = CASES[case]
    sizes = {"N": 3, "H": 9, "W": 8, "C": 4, "O": 6, "I": 4 // settings.get("feature_group_count", 1)}
    data = random_array(*(sizes[axis] for axis in layout[0]))
    kernel = random_array(*({**sizes, "H": 3, "W": 2}[axis] for axis in layout[1]))

    def convolve(data, kernel):
        return jax.lax.conv_general_dilated(data, kernel, dimension_numbers=layout, **settings)

    def loss(function):
        return lambda *arguments: jnp.sum(jnp.sin(function(*arguments)))

    np.testing.assert_allclose(with_patches(convolve)(data, kernel), convolve(data, kernel), rtol=1e-4, atol=1e-4)
    ours = jax.jit(jax.grad(loss(with_patches(convolve)), argnums=(0, 1)))(data, kernel)
    theirs = jax.grad(loss(convolve), argnums=(0, 1))(data, kernel)
    for own, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-3, atol=1e-3)


def test_one_and_three_axes() -> None:
    for spec, shape, window in (("NWC", (2, 9, 3), (3, 3, 5)), ("NDHWC", (2, 5, 6, 7, 3), (2, 3, 2, 3, 5))):
        layout = (spec, spec.strip("NC") + "IO", spec)

        def convolve(data, kernel, layout=layout):
            return jax.lax.conv_general_dilated(data, kernel, (1,) * (data.ndim - 2), "SAME", dimension_numbers=layout)

        data, kernel = random_array(*shape), random_array(*window)
        np.testing.assert_allclose(with_patches(convolve)(data, kernel), convolve(data, kernel), rtol=1e-4, atol=1e-4)


class LinenNet(linen.Module):
    @linen.compact
    def __call__(self, x):
        return linen.Dense(2)(linen.relu(linen.Conv(4, (3, 3))(x)).reshape(x.shape[0], -1))


class EquinoxNet(eqx.Module):
    conv: eqx.nn.Conv2d

    def __call__(self, x):
        return jnp.mean(jax.nn.relu(self.conv(x)), axis=(1, 2))


NETWORKS = {
    "CNN": (CNN(3, channels=(4, 5), kernel_size=3, features=(7,), inputs=(12, 12, 1)), (2, 12, 12, 1)),
    "ResNet": (ResNet(3, inputs=(8, 8, 3)), (2, 8, 8, 3)),
    "nnx": (nnx.Conv(1, 3, (3, 3), rngs=nnx.Rngs(0)), (2, 6, 6, 1)),
    "linen": (LinenNet(), (2, 6, 6, 1)),
    "equinox": (EquinoxNet(eqx.nn.Conv2d(1, 3, 3, key=jax.random.key(0))), (2, 1, 6, 6)),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.full] * (name == "ResNet")) for name in NETWORKS]
)
def test_networks_have_no_convolution_left_and_the_same_output(name: str) -> None:
    net, shape = NETWORKS[name]
    x = random_array(*shape)
    network = functional(net, x)
    assert CONVOLUTION not in str(jax.make_jaxpr(network.apply)(network.params, x))
    if isinstance(net, nnx.Module):
        np.testing.assert_allclose(network.apply(network.params, x), net(x), rtol=1e-4, atol=1e-4)
    if name == "equinox":
        np.testing.assert_allclose(network.apply(network.params, x), jax.vmap(net)(x), rtol=1e-4, atol=1e-4)


def test_other_functions_are_left_alone() -> None:
    def plain(x):
        return {"twice": 2 * x}

    assert str(jax.make_jaxpr(with_patches(plain))(1.0)) == str(jax.make_jaxpr(plain)(1.0))
