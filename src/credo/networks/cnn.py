"""The small convolutional network of the LeNet kind."""

from collections.abc import Sequence
from itertools import pairwise

from flax import nnx

from credo.networks.zoo import (
    ACTIVATIONS,
    NO_KEYS,
    DenseNetwork,
    ImageNetwork,
    image_shape,
    initial_values,
    lookup,
    positive,
    positives,
    register,
)
from credo.typing import Array

_POOL = 2


@register
class CNN(DenseNetwork, ImageNetwork):
    """A convolutional network: blocks of convolution, max-pooling and activation, then dense layers.

    With the defaults, images of 28 × 28 × 1 and out=10 this is the network of the paper's practical example
    I: convolutions 1→16 and 16→32 of 5 × 5, each with max-pooling 2 and ReLU, dense 512→128 with ReLU, dense
    128→10; 80,202 weights in all. The layers are `conv.0`, ..., `hidden.0`, ... and `head`. Weights start
    from LeCun's normal distribution of variance 1 / fan-in, biases from zero.

    Arguments:
        out: the number of outputs.
        channels: the number of channels of each convolution.
        kernel_size: the side of every convolution's window; there is no padding.
        features: the number of units of each dense hidden layer.
        activation: a name, one of `credo.networks.zoo.ACTIVATIONS`.
        inputs: (height, width, channels) or (height, width); without it the network is built when it meets
            its data. x has shape (n, height, width, channels), or (n, height, width) for one channel.
        seed: of the initial values.

    >>> import jax.numpy as jnp
    >>> from credo.networks import CNN
    >>> CNN(10, inputs=(28, 28))(jnp.ones((7, 28, 28))).shape
    (7, 10)
    """

    def __init__(
        self,
        out: int,
        *,
        channels: Sequence[int] = (16, 32),
        kernel_size: int = 5,
        features: Sequence[int] = (128,),
        activation: str = "relu",
        inputs: Sequence[int] | None = None,
        seed: int = 0,
    ) -> None:
        self.out = positive("out", out)
        self.channels = positives("channels", channels)
        self.kernel_size = positive("kernel_size", kernel_size)
        self.features = positives("features", features)
        self.activation = activation
        self.inputs = None if inputs is None else image_shape(inputs)
        self.seed = seed
        lookup("activation", activation, ACTIVATIONS)
        if self.inputs is None:
            return
        options = {"kernel_init": initial_values(seed), "rngs": NO_KEYS}
        window = (self.kernel_size, self.kernel_size)
        depths = (self.inputs[-1], *self.channels)
        num_flat = self._num_flat()
        self.conv = nnx.List([nnx.Conv(*pair, window, padding="VALID", **options) for pair in pairwise(depths)])
        self._make_dense(num_flat, **options)

    def _num_flat(self) -> int:
        """The number of values that leave the convolutions."""
        height, width, _ = self.inputs
        for _ in self.channels:
            height, width = ((side - self.kernel_size + 1) // _POOL for side in (height, width))
            if min(height, width) < 1:
                raise ValueError(
                    f"inputs={self.inputs} is too small for {len(self.channels)} convolutions with "
                    f"kernel_size={self.kernel_size} and pooling by {_POOL}: nothing is left of the image. "
                    "Take fewer channels or a smaller kernel_size."
                )
        return height * width * (self.inputs[-1], *self.channels)[-1]

    def __call__(self, x: Array) -> Array:
        x = self.rows(x)
        for layer in self.conv:
            x = ACTIVATIONS[self.activation](_pooled(layer(x)))
        return self._dense(x.reshape(x.shape[0], -1))


def _pooled(x: Array) -> Array:
    """The largest value of each square; by reshaping, whose gradient is cheaper than that of a window."""
    num, height, width, depth = x.shape
    rows, columns = height // _POOL, width // _POOL
    squares = x[:, : rows * _POOL, : columns * _POOL].reshape(num, rows, _POOL, columns, _POOL, depth)
    return squares.max(axis=(2, 4))
