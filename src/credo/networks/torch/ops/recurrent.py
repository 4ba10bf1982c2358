"""Recurrent layers: one scan over time for each layer and direction."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from credo.networks.masks import masked
from credo.networks.torch.table import torch_op
from credo.typing import Array

State = tuple[Array, ...]


class _Weights:
    """Those of one layer in one direction; the order is PyTorch's."""

    def __init__(self, arrays: Sequence[Array], has_biases: bool) -> None:
        self.inputs, self.state = arrays[:2]
        biases: Sequence[Any] = arrays[2:4] if has_biases else (0, 0)
        self.input_bias, self.state_bias = biases
        self.projection = arrays[-1] if len(arrays) in (3, 5) else None


def _lstm(weights: _Weights, state: State, entering: Array) -> State:
    hidden, memory = state
    i, f, g, o = jnp.split(entering + hidden @ weights.state.T + weights.state_bias, 4, axis=-1)
    memory = jax.nn.sigmoid(f) * memory + jax.nn.sigmoid(i) * jnp.tanh(g)
    hidden = jax.nn.sigmoid(o) * jnp.tanh(memory)
    return hidden if weights.projection is None else hidden @ weights.projection.T, memory


def _gru(weights: _Weights, state: State, entering: Array) -> State:
    (hidden,) = state
    r, z, n = jnp.split(entering, 3, axis=-1)
    own_r, own_z, own_n = jnp.split(hidden @ weights.state.T + weights.state_bias, 3, axis=-1)
    update = jax.nn.sigmoid(z + own_z)
    new = jnp.tanh(n + jax.nn.sigmoid(r + own_r) * own_n)
    return ((1 - update) * new + update * hidden,)


def _plain(activation: Callable[[Array], Array]) -> Callable[..., State]:
    def cell(weights: _Weights, state: State, entering: Array) -> State:
        return (activation(entering + state[0] @ weights.state.T + weights.state_bias),)

    return cell


def _layers(
    cell: Callable[..., State],
    x: Array,
    states: Sequence[Array],
    arrays: Sequence[Array],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Array, ...]:
    x = jnp.swapaxes(x, 0, 1) if batch_first else x  # time first
    num_ways = 1 + bidirectional
    num_each = len(arrays) // (num_layers * num_ways)
    last = []
    for layer in range(num_layers):
        outputs = []
        for way in range(num_ways):
            at = layer * num_ways + way
            weights = _Weights(arrays[at * num_each : (at + 1) * num_each], has_biases)
            output, state = _scanned(cell, weights, tuple(one[at] for one in states), x, backwards=way == 1)
            outputs.append(output)
            last.append(state)
        x = jnp.concatenate(outputs, axis=-1)
        if dropout > 0 and layer + 1 < num_layers:
            x = masked(x, dropout)
    x = jnp.swapaxes(x, 0, 1) if batch_first else x
    return (x, *(jnp.stack(each) for each in zip(*last, strict=True)))


def _scanned(cell: Callable[..., State], weights: _Weights, state: State, x: Array, backwards: bool) -> Any:
    # The product with the inputs of all times at once: only that with the state has to wait for the time before.
    entering = jnp.tensordot(x, weights.inputs, axes=(-1, 1)) + weights.input_bias

    def step(state: State, at_time: Array) -> tuple[State, Array]:
        state = cell(weights, state, at_time)
        return state, state[0]

    last, outputs = jax.lax.scan(step, state, entering, reverse=backwards)
    return outputs, last


@torch_op("aten.lstm.input")
def lstm(x: Array, states: Sequence[Array], *settings: Any) -> tuple[Array, ...]:
    return _layers(_lstm, x, states, *settings)


def _of_one_state(cell: Callable[..., State]) -> Callable[..., tuple[Array, ...]]:
    def layers(x: Array, state: Array, *settings: Any) -> tuple[Array, ...]:
        return _layers(cell, x, [state], *settings)

    return layers


torch_op("aten.gru.input")(_of_one_state(_gru))
torch_op("aten.rnn_tanh.input")(_of_one_state(_plain(jnp.tanh)))
torch_op("aten.rnn_relu.input")(_of_one_state(_plain(jax.nn.relu)))
