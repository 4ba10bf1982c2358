"""The residual network for small images, with a normalisation that does not mix the rows of a batch."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from credo.networks.normalisation import group_normalised
from credo.networks.zoo import (
    ACTIVATIONS,
    NO_KEYS,
    ImageNetwork,
    image_shape,
    initial_values,
    lookup,
    positive,
    register,
)
from credo.typing import Array

_NUM_STAGES = 3
# Halved twice, the image still has 2 × 2 values to normalise over; a single value would become its sign.
_SMALLEST_SIDE = 8
_FRN_EPSILON = 1e-6  # Singh & Krishnan 2020


class FilterResponseNorm(nnx.Module):
    """Filter response normalisation: gamma · x / sqrt(mean(x²) + eps) + beta, the mean over height and width.

    It uses no statistics of the batch, so the likelihood stays a product over rows. Singh & Krishnan 2020,
    "Filter Response Normalization Layer".

    Arguments:
        channels: the size of the last axis of x, which has shape (n, height, width, channels).

    >>> import jax.numpy as jnp
    >>> from credo.networks.resnet import FilterResponseNorm
    >>> float(FilterResponseNorm(1)(jnp.full((1, 4, 4, 1), 3.0))[0, 0, 0, 0].round(3))
    1.0
    """

    def __init__(self, channels: int) -> None:
        self.scale = nnx.Param(jnp.ones(channels))
        self.bias = nnx.Param(jnp.zeros(channels))

    def __call__(self, x: Array) -> Array:
        power = jnp.mean(jnp.square(x), axis=(-3, -2), keepdims=True)
        # One scale and shift for each channel of a row: the gradient sums over the places once for each.
        return x * (self.scale[...] * jax.lax.rsqrt(power + _FRN_EPSILON)) + self.bias[...]


class ThresholdedLinear(nnx.Module):
    """The thresholded linear unit max(x, tau), with one learned tau per channel that starts at zero, as a ReLU.

    Singh & Krishnan 2020: normalisation without centring may move all values below zero.

    Arguments:
        channels: the size of the last axis of x.

    >>> import jax.numpy as jnp
    >>> from credo.networks.resnet import ThresholdedLinear
    >>> ThresholdedLinear(2)(jnp.array([[-1.0, 2.0]])).tolist()
    [[0.0, 2.0]]
    """

    def __init__(self, channels: int) -> None:
        self.threshold = nnx.Param(jnp.zeros(channels))

    def __call__(self, x: Array) -> Array:
        return jnp.maximum(x, self.threshold[...])


class _GroupNorm(nnx.GroupNorm):
    """The layer of flax, computed in fewer passes."""

    def __call__(self, x: Array, **_: Any) -> Array:
        scale, bias = self.scale[...], self.bias[...]
        return group_normalised(x, scale, bias, num_groups=self.num_groups, eps=self.epsilon, axis=-1)


def _group_norm(channels: int) -> _GroupNorm:
    # Eight groups where they divide the channels: two channels each in the narrowest stage of width 16.
    return _GroupNorm(channels, num_groups=math.gcd(8, channels), rngs=NO_KEYS)


_NORMALISATIONS: dict[str, Callable[[int], Any]] = {
    "filter_response": FilterResponseNorm,
    "group": _group_norm,
}


def _conv(channels: int, out: int, size: int, stride: int, **options: Any) -> nnx.Conv:
    # Without bias: the normalisation that follows has its own.
    return nnx.Conv(channels, out, (size, size), strides=stride, use_bias=False, **options)


class _Block(nnx.Module):
    """The basic block: s(x + norm(conv(s(norm(conv(x)))))), with x projected where the shape changes."""

    def __init__(
        self, channels: int, out: int, stride: int, norm: Callable, activation: Callable, **options: Any
    ) -> None:
        self.conv1 = _conv(channels, out, 3, stride, **options)
        self.norm1 = norm(out)
        self.activation1 = activation(out)
        self.conv2 = _conv(out, out, 3, 1, **options)
        self.norm2 = norm(out)
        self.activation2 = activation(out)
        self.has_projection = stride > 1
        if self.has_projection:
            self.projection = _conv(channels, out, 1, stride, **options)
            self.projection_norm = norm(out)

    def __call__(self, x: Array) -> Array:
        shortcut = self.projection_norm(self.projection(x)) if self.has_projection else x
        x = self.activation1(self.norm1(self.conv1(x)))
        return self.activation2(shortcut + self.norm2(self.conv2(x)))


@register
class ResNet(ImageNetwork):
    """A residual network of the CIFAR kind: a convolution, three stages of blocks, average pooling, `head`.

    Each stage has (depth - 2) / 6 basic blocks; the second and the third halve the image, double the channels
    and project their shortcut by a 1 × 1 convolution (He et al. 2016, "Deep Residual Learning for Image
    Recognition"). Batch normalisation would tie the rows of a batch together, and the likelihood would no longer
    be a product: the normalisation here acts on each row alone. Convolutions start from He's normal distribution
    of variance 2 / fan-in, the head from LeCun's.

    Arguments:
        out: the number of outputs.
        depth: the number of layers, 6 m + 2: 8, 14, 20, 32, 44, 56, ...
        width: the number of channels of the first stage.
        normalisation: "filter_response" (Singh & Krishnan 2020) or "group" (Wu & He 2018).
        activation: a name, one of `credo.networks.zoo.ACTIVATIONS`; None takes what goes with the normalisation:
            Singh & Krishnan's learned threshold with "filter_response", silu with "group".
        inputs: (height, width, channels) or (height, width), at least 8 × 8; without it the network is built
            when it meets its data. x has shape (n, height, width, channels), or (n, height, width).
        seed: of the initial values.

    >>> import jax.numpy as jnp
    >>> from credo.networks import ResNet
    >>> ResNet(10, depth=8, width=4, inputs=(8, 8, 3))(jnp.ones((7, 8, 8, 3))).shape
    (7, 10)
    """

    def __init__(
        self,
        out: int,
        *,
        depth: int = 20,
        width: int = 16,
        normalisation: str = "filter_response",
        activation: str | None = None,
        inputs: Sequence[int] | None = None,
        seed: int = 0,
    ) -> None:
        self.out = positive("out", out)
        self.depth = positive("depth", depth)
        self.width = positive("width", width)
        self.normalisation = normalisation
        self.activation = activation
        self.inputs = None if inputs is None else image_shape(inputs)
        self.seed = seed
        norm = lookup("normalisation", normalisation, _NORMALISATIONS)
        make_activation = self._activation()
        if self.depth < 8 or (self.depth - 2) % (2 * _NUM_STAGES):
            raise ValueError(f"depth must be 6 m + 2 (8, 14, 20, 32, 44, 56, ...), got {depth}.")
        if self.inputs is None:
            return
        if min(self.inputs[:2]) < _SMALLEST_SIDE:
            raise ValueError(f"inputs must be images of at least 8 × 8, got {self.inputs}.")
        stream = np.random.default_rng(seed)
        options = {"kernel_init": initial_values(stream, gain=2.0), "rngs": NO_KEYS}
        self.stem = _conv(self.inputs[-1], self.width, 3, 1, **options)
        self.stem_norm = norm(self.width)
        self.stem_activation = make_activation(self.width)
        self.blocks = nnx.List([_Block(*shape, norm, make_activation, **options) for shape in self._block_shapes()])
        options["kernel_init"] = initial_values(stream)
        self.head = nnx.Linear(self.width * 2 ** (_NUM_STAGES - 1), self.out, **options)

    def _activation(self) -> Callable[[int], Callable[[Array], Array]]:
        """What makes the activation for a number of channels."""
        if self.activation is None and self.normalisation == "filter_response":
            return ThresholdedLinear
        name = "silu" if self.activation is None else self.activation
        function = lookup("activation", name, ACTIVATIONS)
        return lambda channels: function

    def _block_shapes(self) -> list[tuple[int, int, int]]:
        """Channels in, channels out and stride of each block."""
        blocks_per_stage = (self.depth - 2) // (2 * _NUM_STAGES)
        widths = [self.width * 2**stage for stage in range(_NUM_STAGES) for _ in range(blocks_per_stage)]
        before = [self.width, *widths[:-1]]
        return [(i, o, 1 if i == o else 2) for i, o in zip(before, widths, strict=True)]

    def __call__(self, x: Array) -> Array:
        x = self.rows(x)
        x = self.stem_activation(self.stem_norm(self.stem(x)))
        for block in self.blocks:
            x = block(x)
        return self.head(jnp.mean(x, axis=(1, 2)))
