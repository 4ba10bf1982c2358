"""What the networks of the zoo share: choices by name, checked arguments, late building, a config."""

import inspect
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, Self, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from credo._text import nearest
from credo.typing import Array, Key

T = TypeVar("T")

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "elu": jax.nn.elu,
    "gelu": jax.nn.gelu,
    "identity": jax.nn.identity,
    "leaky_relu": jax.nn.leaky_relu,
    "relu": jax.nn.relu,
    "sigmoid": jax.nn.sigmoid,
    "silu": jax.nn.silu,
    "sin": jnp.sin,
    "softplus": jax.nn.softplus,
    "tanh": jnp.tanh,
}

# Layers ask for a key for each of their arrays, but here the values come from NumPy or are constants: see
# `initial_values`.
NO_KEYS: Any = SimpleNamespace(params=lambda: None)

REGISTRY: dict[str, type["ZooNetwork"]] = {}


class ZooNetwork(nnx.Module):
    """A network that keeps its constructor arguments as attributes, and is built once it knows `inputs`.

    A subclass sets every constructor argument as a plain attribute of the same name, makes its layers where
    `inputs` is given, and says what `inputs` is for a batch of a given shape.
    """

    inputs: Any

    @staticmethod
    def inputs_of(shape: Sequence[int]) -> Any:
        """The constructor argument `inputs` for rows of this shape (without the axis of the rows)."""
        raise NotImplementedError

    @property
    def is_built(self) -> bool:
        """Whether the network knows its input shape, and so has layers."""
        return self.inputs is not None

    @property
    def config(self) -> dict[str, Any]:
        """The name and the constructor arguments, JSON-able: `from_config(net.config)` is the same."""
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in self._arguments().items()}
        return {"name": type(self).__name__, **plain}

    def build(self, shape: Sequence[int]) -> Self:
        """A new network with the same arguments, built for a batch of shape (n, ...)."""
        return type(self)(**{**self._arguments(), "inputs": self.inputs_of(_row_shape(shape))})

    def _arguments(self) -> dict[str, Any]:
        _, *names = inspect.signature(type(self).__init__).parameters  # without self
        return {name: getattr(self, name) for name in names}

    def check(self, x: Array) -> None:
        """Refuse a batch (n, ...) that is not of the shape the network was built for."""
        name = type(self).__name__
        if not self.is_built:
            raise ValueError(
                f"{name} has no layers yet: give it inputs={self.inputs_of(_row_shape(x.shape))}, "
                "or split it with functional(net, x), which builds it."
            )
        if (got := self.inputs_of(_row_shape(x.shape))) != self.inputs:
            raise ValueError(f"{name} was built for inputs={self.inputs}, but x of shape {x.shape} has inputs={got}.")


def register(cls: type[T]) -> type[T]:
    """Make a network known to `from_config`."""
    REGISTRY[cls.__name__] = cls  # type: ignore[assignment]
    return cls


def from_config(config: Mapping[str, Any]) -> ZooNetwork:
    """The network of the zoo with this config.

    Args:
        config: {"name": "MLP", ...constructor arguments}, as in `Network.config`.

    Example:
        >>> from credo.networks import from_config
        >>> from_config({"name": "MLP", "features": [50], "out": 1}).activation
        'tanh'
    """
    arguments = dict(config)
    cls = lookup("network", arguments.pop("name", None), REGISTRY)
    try:
        return cls(**arguments)
    except TypeError as error:
        raise ValueError(f"config does not fit the arguments of {cls.__name__}: {error}") from error


def lookup(kind: str, name: Any, table: Mapping[str, T]) -> T:
    """The entry of that name; an unknown name is refused with the nearest one."""
    if isinstance(name, str) and name in table:
        return table[name]
    raise ValueError(f"{kind}={name!r} is not one of {', '.join(sorted(table))}{nearest(name, table)}")


def initial_values(seed: int | np.random.Generator, *, gain: float = 1.0) -> Callable[[Key, Sequence[int], Any], Array]:
    """Normal initial values of variance gain / fan-in: gain 1 is LeCun's rule, 2 is He's for rectifiers.

    Drawn by NumPy, because JAX compiles its generator for every new shape: measured, 19 s against 0.5 s for
    the nine shapes of a small residual network.

    Args:
        seed: of the stream from which the layers draw in the order they are made, or the stream itself.
        gain: the variance that one unit gives to an output whose inputs have variance one.

    Example:
        >>> from credo.networks.zoo import initial_values
        >>> initial_values(0)(None, (3, 50), "float32").shape
        (3, 50)
    """
    generator = np.random.default_rng(seed)

    def draw(key: Key, shape: Sequence[int], dtype: Any) -> Array:
        scale = math.sqrt(gain / math.prod(shape[:-1]))
        return jnp.asarray(scale * generator.standard_normal(shape), dtype)

    return draw


def dense_layers(sizes: Sequence[int], **options: Any) -> nnx.List:
    """Dense layers from each size to the next."""
    return nnx.List([nnx.Linear(*pair, **options) for pair in pairwise(sizes)])


def positive(name: str, value: Any) -> int:
    """A positive int, or a ValueError that names the argument."""
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if isinstance(value, bool) or number < 1:
        raise ValueError(f"{name} must be a positive int, got {value!r}.")
    return number


def positives(name: str, values: Any) -> tuple[int, ...]:
    """A tuple of positive ints, or a ValueError that names the argument."""
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise ValueError(f"{name} must be a sequence of positive ints such as (50, 50), got {values!r}.")
    return tuple(positive(f"{name}[{i}]", value) for i, value in enumerate(values))


def image_shape(shape: Any) -> tuple[int, ...]:
    """(height, width, channels) of an image; a missing axis of channels is one channel."""
    sizes = positives("inputs", shape)
    if len(sizes) == 2:
        sizes = (*sizes, 1)
    if len(sizes) != 3:
        raise ValueError(
            f"inputs must be (height, width) or (height, width, channels), got {sizes}: "
            "images go into the network as x of shape (n, height, width, channels)."
        )
    return sizes


def _row_shape(shape: Sequence[int]) -> tuple[int, ...]:
    if len(shape) < 2:
        raise ValueError(
            f"x has shape {tuple(shape)}, but a batch has rows: (n, inputs). "
            "Use x[:, None] for rows of one number, x[None] for a single row."
        )
    return tuple(shape[1:])
