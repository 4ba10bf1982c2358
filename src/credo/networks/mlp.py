"""The multilayer perceptron."""

import math
from collections.abc import Sequence

from credo.networks.zoo import ACTIVATIONS, NO_KEYS, DenseNetwork, initial_values, lookup, positive, positives, register
from credo.typing import Array


@register
class MLP(DenseNetwork):
    """A multilayer perceptron: l_i = s(W_i l_{i-1} + b_i), and a last layer without activation.

    The layers are `hidden.0`, `hidden.1`, ... and `head`. Weights start from LeCun's normal distribution of
    variance 1 / fan-in, biases from zero.

    Arguments:
        features: the number of units of each hidden layer; an empty list makes a linear model.
        out: the number of outputs.
        activation: the name of s, one of `credo.networks.zoo.ACTIVATIONS`.
        inputs: the number of inputs; without it the network is built when it meets its data.
        seed: of the initial values.

    Rows of more than one axis are flattened: x of shape (n, 28, 28) has 784 inputs.

    >>> import jax.numpy as jnp
    >>> from credo.networks import MLP
    >>> MLP([50, 50], 1, activation="relu", inputs=3)(jnp.ones((7, 3))).shape
    (7, 1)
    """

    def __init__(
        self,
        features: Sequence[int],
        out: int,
        *,
        activation: str = "tanh",
        inputs: int | None = None,
        seed: int = 0,
    ) -> None:
        self.features = positives("features", features)
        self.out = positive("out", out)
        self.activation = activation
        self.inputs = None if inputs is None else positive("inputs", inputs)
        self.seed = seed
        lookup("activation", activation, ACTIVATIONS)
        if self.inputs is not None:
            self._make_dense(self.inputs, kernel_init=initial_values(seed), rngs=NO_KEYS)

    @staticmethod
    def inputs_of(shape: Sequence[int]) -> int:
        return math.prod(shape)

    def __call__(self, x: Array) -> Array:
        return self._dense(self.rows(x))
