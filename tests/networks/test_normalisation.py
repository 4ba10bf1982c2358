"""Group normalisation from the sums of channels."""

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx

from credo.networks.normalisation import group_normalised


def test_it_is_that_of_flax_in_values_and_gradients() -> None:
    rng = np.random.default_rng(0)
    x, weights = (jnp.asarray(rng.normal(size=(3, 4, 5, 6)), jnp.float32) for _ in range(2))
    scale, bias = (jnp.asarray(rng.normal(size=6), jnp.float32) for _ in range(2))

    def own(x, scale, bias):
        return group_normalised(x, scale, bias, num_groups=3, eps=1e-5, axis=-1)

    def theirs(x, scale, bias):
        layer = nnx.GroupNorm(6, num_groups=3, epsilon=1e-5, use_fast_variance=False, rngs=nnx.Rngs(0))
        layer.scale[...], layer.bias[...] = scale, bias
        return layer(x)

    np.testing.assert_allclose(own(x, scale, bias), theirs(x, scale, bias), atol=1e-5)

    def gradients(function):
        return jax.grad(lambda *arguments: jnp.sum(function(*arguments) * weights), argnums=(0, 1, 2))(x, scale, bias)

    # Sums of up to 60 numbers of size one.
    for one, other in zip(gradients(own), gradients(theirs), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


def test_a_mean_far_from_zero_costs_no_more_digits_than_x_has() -> None:
    x = 1000 + np.random.default_rng(0).normal(size=(2, 4, 9, 9)).astype(np.float32)
    ours = group_normalised(jnp.asarray(x), None, None, num_groups=2, eps=1e-5, axis=1)
    exact = torch.nn.functional.group_norm(torch.as_tensor(x, dtype=torch.float64), 2).numpy()
    # x is known to 2⁻²⁴ of 1,000, and sums to a few of these.
    np.testing.assert_allclose(ours, exact, atol=1e-3)


def test_rows_that_are_constant_have_no_negative_variance() -> None:
    ours = group_normalised(jnp.full((1, 5, 5, 2), 1e4 / 3), None, None, num_groups=1, eps=0.01, axis=-1)
    # Without variance all is what rounding leaves of the mean, some 10⁻³, over √eps.
    assert np.abs(ours).max() < 0.1
