"""Dropout as masks that all rows share: one mask is one function.

Paper, "Bayes via Dropout". A mask has one number for each unit of a dense layer, or for each channel of a convolution,
shared by all rows and by all positions of an image or a sequence. So a draw of masks is a function of x, as a draw of
weights is: it can be plotted, and compared between inputs. With rate p,

    bernoulli   z/(1 − p),  z ~ Bernoulli(1 − p)          gaussian   1 + √(p/(1 − p)) ε,  ε ~ N(0, 1)

both of mean 1 and variance p/(1 − p), so that weights need no rescaling afterwards.

`functional` opens the dropout layers of flax and equinox in its own copy of the network: there they ask for their mask
by a message, as the statements of a NumPyro program do, and `Masks` answers. Without an answer they do nothing.

Gal and Ghahramani, "Dropout as a Bayesian approximation" (2016); Srivastava et al., "Dropout" (2014).
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self, get_args

import jax
import jax.numpy as jnp
from flax import linen, nnx
from numpyro.primitives import Messenger, apply_stack

from credo import random
from credo._precision import working_precision
from credo.networks.convolution import with_patches
from credo.typing import Array, Key, Theta, Tree

MaskKind = Literal["bernoulli", "gaussian", "concrete"]
MASK_KINDS: tuple[str, ...] = get_args(MaskKind)
# The leaves of theta that hold the masks of one draw: "dropout_mask.0" for the first layer that x passes, and so on.
MASK = "dropout_mask"
# Of the relaxed Bernoulli numbers in concrete dropout, as in the paper that proposed it.
TEMPERATURE = 0.1


# -- masks ---------------------------------------------------------------------------------------------------


def draw_mask(key: Key, num_units: int, rate: Any, *, kind: MaskKind = "bernoulli", relaxed: bool = False) -> Array:
    """A mask of `num_units` numbers, each of mean 1 and variance p/(1 − p).

    Arguments:
        rate: p, the share of units that are dropped.
        kind: "concrete" is "bernoulli" with a rate that was learned.
        relaxed: make a Bernoulli mask a smooth function of p and uniform noise u, so that p can be learned:

            1 − z = sigmoid((logit p + logit u)/t),  t = 0.1        (Gal, Hron and Kendall, "Concrete dropout", 2017)

    >>> draw_mask(random.key(0), 4, 0.5).shape
    (4,)
    """
    if kind == "gaussian":
        return 1 + jnp.sqrt(rate / (1 - rate)) * random.normal(key, (num_units,))
    # In the middle of 2²³ cells, never 0 or 1: both logarithms are finite.
    uniform = (jax.random.bits(key, (num_units,), jnp.uint32) >> 9).astype(working_precision()) * 2.0**-23 + 2.0**-24
    if relaxed:
        dropped = jax.nn.sigmoid((_logit(rate) + _logit(uniform)) / TEMPERATURE)
    else:
        dropped = (uniform > 1 - rate).astype(working_precision())
    return (1 - dropped) / (1 - rate)


def draw_masks(key: Key, sizes: Mapping[str, int], rates: Theta, *, kind: MaskKind, relaxed: bool = False) -> Theta:
    """One mask by the name of each entry of `sizes`, the numbers of units."""
    keys = jax.random.split(key, len(sizes))
    return {
        name: draw_mask(own, num_units, rates[name], kind=kind, relaxed=relaxed)
        for own, (name, num_units) in zip(keys, sizes.items(), strict=True)
    }


def _logit(share: Any) -> Array:
    return jnp.log(share) - jnp.log1p(-share)


# -- asking for masks, and answering -------------------------------------------------------------------------


def is_mask(name: str) -> bool:
    """Whether a leaf of theta is the mask of a dropout layer."""
    return name.startswith(f"{MASK}.")


class DropoutLayer(NamedTuple):
    """A dropout layer that x passes: the name of its mask, the size of the mask, and the layer's own rate."""

    name: str
    num_units: int
    rate: float


class _Answers(Messenger):
    """Holds masks by name, and notes the dropout layers that ask; a mask that none asks for is refused at the end."""

    def __init__(self, masks: Theta) -> None:
        super().__init__(None)
        self.masks = masks
        self.layers: list[DropoutLayer] = []

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        super().__exit__(exc_type, exc_value, traceback)
        unused = self.masks.keys() - {layer.name for layer in self.layers}
        if unused and exc_type is None:
            raise ValueError(
                f"theta holds masks for {', '.join(sorted(unused))}, but x passed {len(self.layers)} dropout layer(s); "
                "masks cannot reach a layer inside a compiled part of the network (jit, scan): call that part directly"
            )


class Masks(_Answers):
    """Gives the networks that run inside it their masks, and notes which dropout layers they have.

    Arguments:
        theta: masks of shape (units,) by the names "dropout_mask.0", …, in the order in which x passes the layers;
            other leaves are ignored.
        look: whether to note the `layers` even without masks.

    >>> from credo.networks import functional
    >>> network = functional(nnx.Sequential(nnx.Linear(3, 4, rngs=nnx.Rngs(0)), nnx.Dropout(0.5)))
    >>> with Masks({}, look=True) as masks:
    ...     outputs = network.apply(network.params, jnp.ones((2, 3)))
    >>> masks.layers
    [DropoutLayer(name='dropout_mask.0', num_units=4, rate=0.5)]
    """

    def __init__(self, theta: Theta, *, look: bool = False) -> None:
        super().__init__({name: mask for name, mask in theta.items() if is_mask(name)})
        self.look = look

    def process_message(self, msg: dict[str, Any]) -> None:
        if msg["type"] != _NETWORK or not (self.masks or self.look):
            return
        # Layers are numbered within their network, and over all networks here.
        passed = len(self.layers)
        own = [layer._replace(name=f"{MASK}.{passed + number}") for number, layer in enumerate(msg["layers"]())]
        self.layers += own
        if self.masks:
            given = enumerate(self.masks.get(layer.name) for layer in own)
            msg["value"] = {f"{MASK}.{number}": mask for number, mask in given if mask is not None}


class _OfOneNetwork(_Answers):
    """Gives the dropout layers of one network their masks; nobody further out hears of them."""

    def process_message(self, msg: dict[str, Any]) -> None:
        if msg["type"] == _LAYER:
            layer = DropoutLayer(f"{MASK}.{len(self.layers)}", msg["num_units"], msg["rate"])
            self.layers.append(layer)
            msg["value"], msg["stop"] = self.masks.get(layer.name), True
        elif msg["type"] == _NETWORK:  # inside another: what it would be given could outlive its trace
            msg["value"], msg["stop"] = {}, True


def with_masks(apply: Callable[[Theta, Array], Array]) -> Callable[[Theta, Array], Array]:
    """The same network, whose dropout layers take the masks that a `Masks` around it holds.

    The masks enter as an argument, so that a trace of the network that is kept for later holds none of them.
    """

    def run(theta: Theta, x: Array, masks: Theta) -> Array:
        with _OfOneNetwork(masks):
            return apply(theta, x)

    def layers(theta: Theta, x: Array) -> list[DropoutLayer]:
        with _OfOneNetwork({}) as found:
            jax.eval_shape(lambda theta, x: apply(theta, x), theta, x)
        return found.layers

    patched = with_patches(run)

    def asking(theta: Theta, x: Array) -> Array:
        return patched(theta, x, _asked({"type": _NETWORK, "fn": dict, "layers": lambda: layers(theta, x)}))

    return asking


def masked(x: Array, rate: float, *, axis: int = -1, shared: bool = False) -> Array:
    """x times the mask that is given here; x itself where there is none.

    Arguments:
        axis: of the units or channels, which have a number each.
        shared: whether they all share one number.
    """
    num_units = 1 if shared else x.shape[axis]
    mask = _asked({"type": _LAYER, "fn": lambda: None, "num_units": num_units, "rate": float(rate)})
    if mask is None:
        return x
    shape = [1] * x.ndim
    shape[axis] = num_units
    return x * jnp.reshape(mask, shape).astype(x.dtype)


# Messages: a network asks for all of its masks before it runs, a layer inside it for its own.
_NETWORK, _LAYER = "dropout_network", "dropout_layer"


def _asked(message: dict[str, Any]) -> Any:
    return apply_stack({"args": (), "kwargs": {}, "value": None, **message})["value"]


# -- the layers of the frameworks ----------------------------------------------------------------------------


class _OpenNnx(nnx.Dropout):
    def __call__(self, inputs: Array, **_: Any) -> Array:
        return masked(inputs, self.rate, shared=_shares_channels(self, inputs))


def open_nnx(net: Any) -> None:
    """Let the dropout layers of a network, a copy of our own, ask for masks."""
    for _, layer in nnx.iter_modules(net):
        if isinstance(layer, nnx.Dropout) and layer.rate > 0:
            layer.__class__ = _OpenNnx


def opened_linen() -> AbstractContextManager[Any]:
    """While it lasts, the dropout layers of linen modules ask for masks."""

    def open_layer(run: Callable[..., Any], args: Any, kwargs: Any, context: Any) -> Any:
        layer = context.module
        if not isinstance(layer, linen.Dropout) or context.method_name != "__call__" or not layer.rate > 0:
            return run(*args, **kwargs)
        inputs = args[0] if args else kwargs["inputs"]
        return masked(inputs, layer.rate, shared=_shares_channels(layer, inputs))

    return linen.intercept_methods(open_layer)


def _shares_channels(layer: Any, inputs: Array) -> bool:
    """Whether a layer of flax drops all channels of a row together (stochastic depth)."""
    return inputs.ndim - 1 in [axis % inputs.ndim for axis in layer.broadcast_dims]


@dataclass(frozen=True)
class _OpenEquinox:
    """Stands in for a layer that sees one row: (units,), (channels, height, width), and so on.

    An array of two axes is a sequence (steps, units), or (channels, positions) if the network convolves sequences.
    """

    rate: float
    convolves_sequences: bool

    def __call__(self, x: Array, **_: Any) -> Array:
        is_sequence = x.ndim == 2 and not self.convolves_sequences
        return masked(x, self.rate, axis=-1 if is_sequence else 0)


def opened_equinox(module: Tree) -> Tree:
    """The module with dropout layers that ask for masks."""
    import equinox as eqx

    def is_layer(node: Any) -> bool:
        return isinstance(node, eqx.nn.Dropout | eqx.nn.Conv)

    layers = [node for node in jax.tree.leaves(module, is_leaf=is_layer) if is_layer(node)]
    convolves = any(isinstance(layer, eqx.nn.Conv) and layer.num_spatial_dims == 1 for layer in layers)

    def opened(node: Any) -> Any:
        is_dropout = isinstance(node, eqx.nn.Dropout) and float(node.p) > 0
        return _OpenEquinox(float(node.p), convolves) if is_dropout else node

    return jax.tree.map(opened, module, is_leaf=is_layer)
