"""What the networks of the zoo share: choices by name, checked arguments, late building, a config."""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, Self, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from credo._checks import require_at_least, require_one_of
from credo._concurrency import require_own_jax
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

# Layers ask for a key for each array, but here the values are constants or come from NumPy: see `initial_values`.
NO_KEYS: Any = SimpleNamespace(params=lambda: None)

# Whether the shapes of initial values are asked for, and nothing must be drawn: see `num_numbers`.
ONLY_SHAPES: ContextVar[bool] = ContextVar("ONLY_SHAPES", default=False)

REGISTRY: dict[str, type["ZooNetwork"]] = {}


class ZooNetwork(nnx.Module):
    """A network that keeps its constructor arguments as attributes, and is built once it knows `inputs`.

    A subclass keeps every constructor argument as a plain attribute of the same name, makes its layers if `inputs` is
    given, and says what `inputs` is for rows of a given shape.
    """

    inputs: Any

    @staticmethod
    def inputs_of(shape: Sequence[int]) -> Any:
        """The constructor argument `inputs` for rows of this shape (without the axis of the rows)."""
        raise NotImplementedError

    @property
    def is_built(self) -> bool:
        """Whether the network knows its inputs, and so has layers."""
        return self.inputs is not None

    @property
    def config(self) -> dict[str, Any]:
        """The name and the constructor arguments, JSON-able: `from_config(net.config)` makes the network again."""
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in self._arguments().items()}
        return {"name": type(self).__name__, **plain}

    def build(self, shape: Sequence[int]) -> Self:
        """A new network with the same arguments, built for a batch of shape (n, ...)."""
        return type(self)(**{**self._arguments(), "inputs": self.inputs_of(_row_shape(shape))})

    def _arguments(self) -> dict[str, Any]:
        _, *names = inspect.signature(type(self).__init__).parameters  # without self
        return {name: getattr(self, name) for name in names}

    def rows(self, x: Array) -> Array:
        """x as rows of the shape the network was built for; refuses rows of another size."""
        name, got = type(self).__name__, self.inputs_of(_row_shape(x.shape))
        if not self.is_built:
            raise ValueError(
                f"{name} has no layers yet: give it inputs={got}, or split it with functional(net, x), which builds it."
            )
        if got != self.inputs:
            raise ValueError(f"{name} was built for inputs={self.inputs}, but x of shape {x.shape} has inputs={got}.")
        return x.reshape(x.shape[0], *np.atleast_1d(got))


class DenseNetwork(ZooNetwork):
    """A network that ends in dense layers: `features` with an activation, then `out` outputs without."""

    features: tuple[int, ...]
    out: int
    activation: str

    def _make_dense(self, num_inputs: int, **options: Any) -> None:
        sizes = (num_inputs, *self.features)
        self.hidden = nnx.List([nnx.Linear(*pair, **options) for pair in pairwise(sizes)])
        self.head = nnx.Linear(sizes[-1], self.out, **options)

    def _dense(self, x: Array) -> Array:
        for layer in self.hidden:
            x = ACTIVATIONS[self.activation](layer(x))
        return self.head(x)


class ImageNetwork(ZooNetwork):
    """A network whose `inputs` are (height, width, channels)."""

    @staticmethod
    def inputs_of(shape: Sequence[int]) -> tuple[int, ...]:
        return image_shape(shape)


def register(cls: type[T]) -> type[T]:
    """Make a network known to `from_config`."""
    REGISTRY[cls.__name__] = cls  # type: ignore[assignment]
    return cls


def from_config(config: Mapping[str, Any]) -> ZooNetwork:
    """The network of the zoo with this config.

    Arguments:
        config: {"name": "MLP", ...constructor arguments}, as in `Network.config`.

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


def num_numbers(config: Mapping[str, Any], shape: Sequence[int]) -> int:
    """How many numbers the network with this config has, for a batch of this shape; nothing is allocated.

    >>> num_numbers({"name": "MLP", "features": [50], "out": 1}, (2, 3))
    251
    """
    if "shapes" in config:  # of an imported network: they are written down
        return sum(map(math.prod, config["shapes"].values()))

    def made() -> Any:
        net = from_config(config)
        return nnx.state(net if net.is_built else net.build(shape), nnx.Param)

    token = ONLY_SHAPES.set(True)
    try:
        return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(jax.eval_shape(made)))
    finally:
        ONLY_SHAPES.reset(token)


def lookup(kind: str, name: Any, table: Mapping[str, T]) -> T:
    """The entry of that name; an unknown name is refused, and the nearest one suggested."""
    require_one_of(sorted(table), **{kind: name})
    return table[name]


def initial_values(seed: int | np.random.Generator, *, gain: float = 1.0) -> Callable[[Key, Sequence[int], Any], Array]:
    """Normal initial values of variance gain / fan-in: gain 1 is LeCun's rule, 2 is He's for rectifiers.

    Drawn by NumPy, because JAX compiles its generator for every new shape: measured, 19 s against 0.5 s for
    the nine shapes of a small residual network.

    Arguments:
        seed: of the stream from which the layers draw, in the order in which they are made; or that stream itself.
        gain: the variance of an output whose inputs have variance one.

    >>> from credo.networks.zoo import initial_values
    >>> initial_values(0)(None, (3, 50), "float32").shape
    (3, 50)
    """
    require_own_jax()
    generator = np.random.default_rng(seed)

    def draw(key: Key, shape: Sequence[int], dtype: Any) -> Array:
        if ONLY_SHAPES.get():
            return jnp.zeros(shape, dtype)
        scale = math.sqrt(gain / math.prod(shape[:-1]))
        return jnp.asarray(scale * generator.standard_normal(shape), dtype)

    return draw


def positive(name: str, value: Any) -> int:
    """A positive int, or a ValueError that names the argument."""
    require_at_least(1, **{name: value})
    return int(value)


def positives(name: str, values: Any) -> tuple[int, ...]:
    """A tuple of positive ints, or a ValueError that names the argument."""
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise ValueError(f"{name} must be a sequence of positive ints such as (50, 50), got {values!r}.")
    return tuple(positive(f"{name}[{i}]", value) for i, value in enumerate(values))


def image_shape(shape: Any) -> tuple[int, ...]:
    """(height, width, channels) of an image; (height, width) has one channel."""
    sizes = positives("inputs", shape)
    if len(sizes) == 2:
        sizes = (*sizes, 1)
    if len(sizes) != 3:
        raise ValueError(
            f"inputs must be (height, width) or (height, width, channels), got {sizes}; "
            "pass images as x of shape (n, height, width, channels)."
        )
    return sizes


def _row_shape(shape: Sequence[int]) -> tuple[int, ...]:
    if len(shape) < 2:
        raise ValueError(
            f"x has shape {tuple(shape)}, but a batch has rows: (n, inputs); "
            "pass x[:, None] for rows of one number, or x[None] for a single row."
        )
    return tuple(shape[1:])
