"""Dropout as masks that all rows share: one mask is one function.

Paper, "Bayes via Dropout". A mask has one number for each unit of a dense layer, or for each channel of a convolution,
shared by all rows and by all positions of an image or a sequence. So a draw of masks is a function of x, as a draw of
weights is: it can be plotted, and compared between inputs. With rate p,

    bernoulli   z/(1 − p),  z ~ Bernoulli(1 − p)          gaussian   1 + √(p/(1 − p)) ε,  ε ~ N(0, 1)

both of mean 1 and variance p/(1 − p), so that weights need no rescaling afterwards.

`functional` opens the dropout layers of flax and equinox in its own copy of the network: there they ask for their mask,
and a `Masks` around the run answers. Without an answer they do nothing. Who asks in one thread is not heard in another.

Gal and Ghahramani, "Dropout as a Bayesian approximation" (2016); Srivastava et al., "Dropout" (2014).
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self, get_args

import jax
import jax.numpy as jnp
from flax import linen, nnx

from credo import random
from credo._precision import working_precision
from credo.networks.convolution import with_fast_convolutions
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


# Who answers, the innermost last; each thread has its own.
_ANSWERING: ContextVar[tuple["_Answers", ...]] = ContextVar("_ANSWERING", default=())


class _Answers:
    """Holds masks by name, and notes the dropout layers that ask; a mask that none asks for is refused at the end.

    A network asks for all of its masks before it runs, a layer inside it for its own. An answer of None leaves it to
    whoever is further out.
    """

    def __init__(self, masks: Theta) -> None:
        self.masks = masks
        self.layers: list[DropoutLayer] = []

    def __enter__(self) -> Self:
        self._outer = _ANSWERING.set((*_ANSWERING.get(), self))
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _ANSWERING.reset(self._outer)
        unused = self.masks.keys() - {layer.name for layer in self.layers}
        if unused and exc_type is None:
            raise ValueError(
                f"theta holds masks for {', '.join(sorted(unused))}, but x passed {len(self.layers)} dropout layer(s); "
                "masks cannot reach a layer inside a compiled part of the network (jit, scan): call that part directly"
            )

    def of_network(self, layers: Callable[[], list[DropoutLayer]]) -> Theta | None:
        """The masks of a network with these dropout layers, which are numbered within it."""
        raise NotImplementedError

    def of_layer(self, num_units: int, rate: float) -> tuple[Array | None] | None:
        """The mask of a layer, which may have none."""
        return None


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

    def of_network(self, layers: Callable[[], list[DropoutLayer]]) -> Theta | None:
        if not (self.masks or self.look):
            return None
        # Over all networks here they are numbered on.
        passed = len(self.layers)
        own = [layer._replace(name=f"{MASK}.{passed + number}") for number, layer in enumerate(layers())]
        self.layers += own
        given = enumerate(self.masks.get(layer.name) for layer in own)
        return {f"{MASK}.{number}": mask for number, mask in given if mask is not None} if self.masks else None


class _OfOneNetwork(_Answers):
    """Gives the dropout layers of one network their masks; nobody further out hears of them."""

    def of_network(self, layers: Callable[[], list[DropoutLayer]]) -> Theta | None:
        return {}  # a network inside another: what it would be given could outlive its trace

    def of_layer(self, num_units: int, rate: float) -> tuple[Array | None] | None:
        layer = DropoutLayer(f"{MASK}.{len(self.layers)}", num_units, rate)
        self.layers.append(layer)
        return (self.masks.get(layer.name),)


@contextmanager
def unmasked() -> Iterator[None]:
    """While it lasts, no network is given masks."""
    outer = _ANSWERING.set(())
    try:
        yield
    finally:
        _ANSWERING.reset(outer)


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

    patched = with_fast_convolutions(run)

    def asking(theta: Theta, x: Array) -> Array:
        return patched(theta, x, _masks_of_network(lambda: layers(theta, x)))

    return asking


def _masks_of_network(layers: Callable[[], list[DropoutLayer]]) -> Theta:
    answers = (one.of_network(layers) for one in reversed(_ANSWERING.get()))
    return next((masks for masks in answers if masks is not None), {})


def masked(x: Array, rate: float, *, axis: int = -1, shared: bool = False) -> Array:
    """x times the mask that is given here; x itself where there is none.

    Arguments:
        axis: of the units or channels, which have a number each.
        shared: whether they all share one number.
    """
    num_units = 1 if shared else x.shape[axis]
    answers = (one.of_layer(num_units, float(rate)) for one in reversed(_ANSWERING.get()))
    (mask,) = next((found for found in answers if found is not None), (None,))
    if mask is None:
        return x
    shape = [1] * x.ndim
    shape[axis] = num_units
    return x * jnp.reshape(mask, shape).astype(x.dtype)


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
