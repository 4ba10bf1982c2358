"""A multilayer perceptron whose inputs and layers all reach the output."""

from flax import nnx

from credo.networks.mlp import MLP
from credo.networks.zoo import ACTIVATIONS, NO_KEYS, initial_values, register
from credo.typing import Array


@register
class ShortcutMLP(MLP):
    """A line, and what each hidden layer adds to it.

        f(x) = x S₀ + Σᵢ hᵢ Sᵢ + h_L V + b,    hᵢ = s(hᵢ₋₁ Wᵢ + cᵢ),    h₀ = x

    The layers are those of `MLP`, and `shortcuts.0` from the inputs, `shortcuts.1`, … from the hidden layers but the
    last, which start from zero. So a deep network need not learn to pass on what a shallow one, or a line, has said.

    >>> import jax.numpy as jnp
    >>> ShortcutMLP([50, 20], 1, inputs=3)(jnp.ones((7, 3))).shape
    (7, 1)
    """

    def _make_dense(self, num_inputs: int, **options: object) -> None:
        super()._make_dense(num_inputs, **options)
        zeros = initial_values(self.seed, gain=0.0)
        sizes = (num_inputs, *self.features[:-1]) if self.features else ()
        self.shortcuts = nnx.List(
            [nnx.Linear(size, self.out, use_bias=False, kernel_init=zeros, rngs=NO_KEYS) for size in sizes]
        )

    def __call__(self, x: Array) -> Array:
        layer = self.rows(x)
        said = 0.0
        for shortcut, hidden in zip(self.shortcuts, self.hidden, strict=True):
            said += shortcut(layer)
            layer = ACTIVATIONS[self.activation](hidden(layer))
        return said + self.head(layer)
