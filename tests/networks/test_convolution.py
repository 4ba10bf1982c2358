"""Convolutions that stay fast in loops: the numbers and derivatives of XLA's own, for every kind; and poolings."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

from credo._dataflow import CONVOLUTION, OWN_CONVOLUTION
from credo.networks import CNN, ResNet, functional
from credo.networks.convolution import with_fast_convolutions
from tests.networks.test_patches import LAYOUTS, PAIRS, operands, random_array


@pytest.mark.parametrize(("case", "layout"), PAIRS)
def test_values_and_gradients_are_those_of_the_convolution(case: str, layout: tuple[str, str, str]) -> None:
    convolve, data, kernel = operands(case, layout)
    own = with_fast_convolutions(convolve)

    def loss(function):
        return lambda *arguments: jnp.sum(jnp.sin(function(*arguments)))

    # Sums of some dozens of numbers of size one, in another order.
    np.testing.assert_allclose(jax.jit(own)(data, kernel), convolve(data, kernel), rtol=1e-4, atol=1e-4)
    ours = jax.jit(jax.grad(loss(own), argnums=(0, 1)))(data, kernel)
    theirs = jax.grad(loss(convolve), argnums=(0, 1))(data, kernel)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("axes", [(None, 0), (0, None), (1, 0)])
def test_many_kernels_or_images_at_once_inside_of_a_loop(axes: tuple[int | None, int | None]) -> None:
    convolve, data, kernel = operands("same", LAYOUTS[0])
    many = [
        one if axis is None else jnp.stack([one, 2 * one], axis) for one, axis in zip((data, kernel), axes, strict=True)
    ]

    def gradients(function):
        def loss(data, kernel):
            return jnp.sum(jnp.sin(function(data, kernel)))

        both = jax.vmap(jax.grad(loss, argnums=(0, 1)), in_axes=axes)
        start = jax.tree.map(jnp.zeros_like, jax.eval_shape(both, *many))
        return jax.jit(lambda: jax.lax.fori_loop(0, 2, lambda _, before: both(*many), start))()

    for own, other in zip(gradients(with_fast_convolutions(convolve)), gradients(convolve), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-3, atol=1e-3)


def test_forward_mode_and_second_derivatives() -> None:
    convolve, data, kernel = operands("strides", LAYOUTS[0])

    def along(function):
        def curve(t):
            return jnp.sum(jnp.sin(function(data * t, kernel * jnp.cos(t))))

        return jax.jit(lambda t: (jax.jvp(curve, (t,), (1.0,))[1], jax.jvp(jax.grad(curve), (t,), (1.0,))[1]))(0.5)

    np.testing.assert_allclose(along(with_fast_convolutions(convolve)), along(convolve), rtol=1e-3)


def test_a_window_larger_than_the_image() -> None:
    def convolve(data, kernel):
        return jax.lax.conv(data, kernel, (1, 1), "SAME")

    data, kernel = random_array(3, 2, 2, 2), random_array(4, 2, 3, 3)
    own = jax.jit(with_fast_convolutions(convolve))(data, kernel)
    np.testing.assert_allclose(own, convolve(data, kernel), rtol=1e-4, atol=1e-5)


def test_poolings_by_tiles() -> None:
    x = random_array(2, 7, 6, 3)

    def pool(x):
        return nnx.max_pool(x, (2, 3), strides=(2, 3))

    own = with_fast_convolutions(pool)
    assert "reduce_window" not in str(jax.make_jaxpr(own)(x))
    np.testing.assert_array_equal(own(x), pool(x))
    weights = random_array(2, 3, 2, 3)
    ours, theirs = (jax.grad(lambda x, f=f: jnp.sum(f(x) * weights))(x) for f in (own, pool))
    np.testing.assert_array_equal(ours, theirs)
    # Equal numbers share the gradient.
    np.testing.assert_allclose(jax.grad(lambda x: own(x).sum())(jnp.ones((1, 2, 3, 1))), jnp.full((1, 2, 3, 1), 1 / 6))
    # Windows that overlap stay as they are.
    overlapping = with_fast_convolutions(lambda x: nnx.max_pool(x, (3, 3), strides=(2, 2)))
    assert "reduce_window" in str(jax.make_jaxpr(overlapping)(x))


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
def test_networks_have_our_convolutions_and_the_same_output(name: str) -> None:
    net, shape = NETWORKS[name]
    x = random_array(*shape)
    network = functional(net, x)
    traced = str(jax.make_jaxpr(network.apply)(network.params, x))
    assert OWN_CONVOLUTION in traced
    assert CONVOLUTION not in traced
    if isinstance(net, nnx.Module):
        np.testing.assert_allclose(network.apply(network.params, x), net(x), rtol=1e-4, atol=1e-4)
    if name == "equinox":
        np.testing.assert_allclose(network.apply(network.params, x), jax.vmap(net)(x), rtol=1e-4, atol=1e-4)


def test_other_functions_are_left_alone() -> None:
    def plain(x):
        return {"twice": 2 * x}

    assert str(jax.make_jaxpr(with_fast_convolutions(plain))(1.0)) == str(jax.make_jaxpr(plain)(1.0))
