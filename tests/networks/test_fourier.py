"""Random waves: a Gaussian process in the limit, and what is refused."""

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from sklearn.gaussian_process.kernels import Matern

import credo
from credo.networks import Fourier, num_numbers


def features(net: Fourier, x: np.ndarray) -> np.ndarray:
    """The hidden layer: the last one with a unit matrix for weights."""
    wide = nnx.clone(net)
    wide.head.kernel.set_value(jnp.eye(net.features))
    wide.head.bias.set_value(jnp.zeros(net.features))
    return np.asarray(wide(jnp.asarray(x)))


@pytest.mark.parametrize("smoothness", [1.5, 2.5])
def test_products_of_features_are_the_matern_kernel(smoothness):
    """The error of random waves is 1/√m; those of a Sobol sequence keep well within it."""
    x = np.random.default_rng(0).uniform(-1, 1, (30, 3))
    found = features(Fourier(2048, 1, smoothness=smoothness, length=0.7, inputs=3), x)
    expected = Matern(0.7, nu=smoothness)(x)
    np.testing.assert_allclose(found @ found.T, expected, atol=3 / np.sqrt(2048))
    np.testing.assert_allclose(np.sum(found**2, axis=1), 1, rtol=1e-5)


def test_directions_are_no_parameters():
    net = Fourier(64, 1)
    assert num_numbers(net.config, (5, 3)) == 3 + 64 + 1
    model = credo.models.regression(net).bind((np.zeros((5, 3)), np.zeros(5)))
    assert set(model.template) == {"log_length", "head.kernel", "head.bias", "noise"}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [({"features": 7}, "even number"), ({"length": 0.0}, "length must be"), ({"smoothness": -1}, "smoothness must be")],
)
def test_refusals(arguments, complaint):
    with pytest.raises(ValueError, match=complaint):
        Fourier(**{"features": 8, "out": 1, **arguments})
