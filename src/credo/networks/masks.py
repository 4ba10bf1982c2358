"""Dropout as masks that all rows share: one mask is one function.

Paper, "Bayes via Dropout". A mask has one number for each unit of a dense layer, or for each channel of a convolution;
it is the same for all rows, and at all places of an image or a sequence. So a draw of masks is a function of x, as a
draw of weights is, and functions can be drawn, plotted and compared between inputs. With rate p,

    bernoulli   z/(1 − p),  z ~ Bernoulli(1 − p)          gaussian   1 + √(p/(1 − p)) ε,  ε ~ N(0, 1)

both of mean 1 and variance p/(1 − p), so that weights need no rescaling afterwards.

The dropout layers of flax and equinox are *places* for masks. `functional` opens them in its own copy of the network:
there they ask for their mask by a message, as the statements of a NumPyro program do, and `Masks` answers. Without an
answer they do nothing.

Gal and Ghahramani, "Dropout as a Bayesian approximation" (2016); Srivastava et al., "Dropout" (2014).
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
from flax import linen, nnx
from numpyro.primitives import Messenger, apply_stack

from credo import random
from credo.networks.convolution import with_patches
from credo.typing import Array, Key, Theta, Tree

Kind = Literal["bernoulli", "gaussian", "concrete"]
KINDS: tuple[str, ...] = get_args(Kind)
# The leaves of theta that hold the masks of one draw: "dropout_mask.0" for the first place that x passes, and so on.
MASK = "dropout_mask"
# Of the relaxed Bernoulli numbers of concrete dropout, as in the paper that proposed it.
TEMPERATURE = 0.1


# -- masks ---------------------------------------------------------------------------------------------------


def draw_mask(key: Key, num_units: int, rate: Any, *, kind: Kind = "bernoulli", relaxed: bool = False) -> Array:
    """A mask for so many units, each of mean 1 and variance p/(1 − p).

    Arguments:
        rate: p, the share of units that are dropped.
        kind: "concrete" is "bernoulli" with a rate that was learned.
        relaxed: for Bernoulli masks a smooth function of p and uniform noise u, to learn p by,

            1 − z = sigmoid((logit p + logit u)/t),  t = 0.1        (Gal, Hron and Kendall, "Concrete dropout", 2017)

    >>> draw_mask(random.key(0), 4, 0.5).shape
    (4,)
    """
    if kind == "gaussian":
        return 1 + jnp.sqrt(rate / (1 - rate)) * random.normal(key, (num_units,))
    # In the middle of 2²³ cells, never 0 or 1: both logarithms are finite.
    uniform = (jax.random.bits(key, (num_units,), jnp.uint32) >> 9).astype(jnp.float32) * 2.0**-23 + 2.0**-24
    if relaxed:
        dropped = jax.nn.sigmoid((_logit(rate) + _logit(uniform)) / TEMPERATURE)
    else:
        dropped = (uniform > 1 - rate).astype(jnp.float32)
    return (1 - dropped) / (1 - rate)


def draw_masks(key: Key, sizes: Mapping[str, int], rates: Theta, *, kind: Kind, relaxed: bool = False) -> Theta:
    """One mask for each place, by its name.

    Arguments:
        sizes: numbers of units by the names of the places.
    """
    keys = jax.random.split(key, len(sizes))
    return {
        name: draw_mask(own, num_units, rates[name], kind=kind, relaxed=relaxed)
        for own, (name, num_units) in zip(keys, sizes.items(), strict=True)
    }


def _logit(share: Any) -> Array:
    return jnp.log(share) - jnp.log1p(-share)


# -- places --------------------------------------------------------------------------------------------------


def is_mask(name: str) -> bool:
    """Whether a leaf of theta is the mask of a dropout layer."""
    return name.startswith(f"{MASK}.")


class Site(NamedTuple):
    """A place in a network where a mask may act."""

    name: str
    num_units: int
    rate: float


class Masks(Messenger):
    """Gives the networks that run inside it their masks, and takes down which places there are.

    Arguments:
        theta: masks by the names "dropout_mask.0", …, in the order in which x passes the places, of shape (units,);
            other leaves are passed over.
        look: whether to take down the `sites` where there are no masks.

    >>> from credo.networks import functional
    >>> network = functional(nnx.Sequential(nnx.Linear(3, 4, rngs=nnx.Rngs(0)), nnx.Dropout(0.5)))
    >>> with Masks({}, look=True) as masks:
    ...     outputs = network.apply(network.params, jnp.ones((2, 3)))
    >>> masks.sites
    [Site(name='dropout_mask.0', num_units=4, rate=0.5)]
    """

    def __init__(self, theta: Theta, *, look: bool = False) -> None:
        super().__init__(None)
        self.masks = {name: mask for name, mask in theta.items() if is_mask(name)}
        self.look = look
        self.sites: list[Site] = []

    def __enter__(self) -> "Masks":
        super().__enter__()
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        super().__exit__(exc_type, exc_value, traceback)
        if exc_type is None:
            _refuse_unused(self.masks, self.sites)

    def process_message(self, msg: dict[str, Any]) -> None:
        if msg["type"] != _NETWORK or not (self.masks or self.look):
            return
        passed = len(self.sites)
        own = [site._replace(name=f"{MASK}.{passed + place}") for place, site in enumerate(msg["sites"]())]
        self.sites += own
        if self.masks:
            given = enumerate(self.masks.get(site.name) for site in own)
            msg["value"] = {f"{MASK}.{place}": mask for place, mask in given if mask is not None}


def with_masks(apply: Callable[[Theta, Array], Array]) -> Callable[[Theta, Array], Array]:
    """The same network, whose places take the masks that `Masks` around it holds.

    The masks enter as an argument, so that a trace of the network that is kept for another time holds none of them.
    """

    def run(theta: Theta, x: Array, masks: Theta) -> Array:
        with _Given(masks):
            return apply(theta, x)

    def sites(theta: Theta, x: Array) -> list[Site]:
        with _Given({}) as given:
            jax.eval_shape(lambda theta, x: apply(theta, x), theta, x)
        return given.sites

    patched = with_patches(run)

    def asking(theta: Theta, x: Array) -> Array:
        return patched(theta, x, _asked({"type": _NETWORK, "fn": dict, "sites": lambda: sites(theta, x)}))

    return asking


def masked(x: Array, rate: float, *, axis: int = -1, shared: bool = False) -> Array:
    """x times the mask that is given for this place; x itself where there is none.

    Arguments:
        axis: of the units or channels, which have a number each.
        shared: whether all of them have the same.
    """
    num_units = 1 if shared else x.shape[axis]
    mask = _asked({"type": _PLACE, "fn": lambda: None, "num_units": num_units, "rate": float(rate)})
    if mask is None:
        return x
    shape = [1] * x.ndim
    shape[axis] = num_units
    return x * jnp.reshape(mask, shape).astype(x.dtype)


# Messages: a network asks for all of its masks before it runs, a place inside it for its own.
_NETWORK, _PLACE = "dropout_network", "dropout_place"


def _asked(message: dict[str, Any]) -> Any:
    return apply_stack({"args": (), "kwargs": {}, "value": None, **message})["value"]


class _Given(Messenger):
    """Gives the places of one network their masks, and takes them down; nobody further out hears of them."""

    def __init__(self, masks: Theta) -> None:
        super().__init__(None)
        self.masks = masks
        self.sites: list[Site] = []

    def __enter__(self) -> "_Given":
        super().__enter__()
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        super().__exit__(exc_type, exc_value, traceback)
        if exc_type is None:
            _refuse_unused(self.masks, self.sites)

    def process_message(self, msg: dict[str, Any]) -> None:
        if msg["type"] == _PLACE:
            site = Site(f"{MASK}.{len(self.sites)}", msg["num_units"], msg["rate"])
            self.sites.append(site)
            msg["value"], msg["stop"] = self.masks.get(site.name), True
        elif msg["type"] == _NETWORK:  # inside another: what it would be given could outlive its trace
            msg["value"], msg["stop"] = {}, True


def _refuse_unused(masks: Theta, sites: list[Site]) -> None:
    unused = masks.keys() - {site.name for site in sites}
    if unused:
        raise ValueError(
            f"theta holds masks for {', '.join(sorted(unused))}, but the network passed {len(sites)} dropout layer(s) "
            "on its way; a layer inside a compiled call of the network (jit, scan) is out of reach: take the call away"
        )


# -- the layers of the frameworks as places ------------------------------------------------------------------


class _NnxPlace(nnx.Dropout):
    def __call__(self, inputs: Array, **_: Any) -> Array:
        return masked(inputs, self.rate, shared=_shares_channels(self, inputs))


def open_nnx(net: Any) -> None:
    """Make places of the dropout layers of a network that is our own copy."""
    for _, layer in nnx.iter_modules(net):
        if isinstance(layer, nnx.Dropout) and layer.rate > 0:
            layer.__class__ = _NnxPlace


def opened_linen() -> AbstractContextManager[Any]:
    """While it lasts, dropout layers of linen modules are places."""

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
class _EquinoxPlace:
    """Stands for a layer that sees one row: (units,), (channels, height, width), and so on.

    An array of two axes is a sequence (steps, units), unless the network has convolutions of one axis; then it is
    (channels, places).
    """

    rate: float
    convolves_sequences: bool

    def __call__(self, x: Array, **_: Any) -> Array:
        is_sequence = x.ndim == 2 and not self.convolves_sequences
        return masked(x, self.rate, axis=-1 if is_sequence else 0)


def opened_equinox(module: Tree) -> Tree:
    """The module with places for its dropout layers."""
    import equinox as eqx

    def is_layer(node: Any) -> bool:
        return isinstance(node, eqx.nn.Dropout | eqx.nn.Conv)

    layers = [node for node in jax.tree.leaves(module, is_leaf=is_layer) if is_layer(node)]
    convolves = any(isinstance(layer, eqx.nn.Conv) and layer.num_spatial_dims == 1 for layer in layers)

    def opened(node: Any) -> Any:
        is_dropout = isinstance(node, eqx.nn.Dropout) and float(node.p) > 0
        return _EquinoxPlace(float(node.p), convolves) if is_dropout else node

    return jax.tree.map(opened, module, is_leaf=is_layer)
