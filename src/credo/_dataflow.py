"""One pass over a traced program that follows the arrays of theta to the places where they are used.

The network is not asked to cooperate: a function of theta is traced to a jaxpr (`trace`), which is evaluated equation
by equation (`walk`). `DataFlow` does so with *leaves*: arrays of theta whose numbers may change their places on the
way, but are not computed with. Where data meet such weights in a matrix product or a convolution, s = aᵀW, and where a
bias is added to one, it calls a method: a subclass taps the product, notes it, or computes it another way.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, JaxprEqn, Literal
from jax.interpreters import partial_eval

from credo.typing import Array

# What computes the outputs of one equation from the values of its inputs.
Equation = Callable[[JaxprEqn, list[Any]], Sequence[Any]]

CONVOLUTION = "conv_general_dilated"
# Of the same parameters: see `credo.networks.convolution`.
OWN_CONVOLUTION = "credo_convolution"
CONVOLUTIONS = {CONVOLUTION, OWN_CONVOLUTION}
# Calls without derivatives of their own, and those with.
PLAIN_CALLS = {"jit", "pjit", "closed_call", "checkpoint", "remat", "remat2"}
CALLS = PLAIN_CALLS | {"custom_jvp_call", "custom_vjp_call"}
# Primitives that hand all numbers on, in the same order.
_RESHAPING = {"reshape", "squeeze", "expand_dims", "convert_element_type", "copy", "copy_p"}


def trace(function: Callable[[dict[str, Any]], Any], theta: dict[str, Any]) -> tuple[ClosedJaxpr, Any]:
    """The equations that the outputs need, with one input per leaf by sorted name; the tree of the outputs."""
    closed, shapes = jax.make_jaxpr(function, return_shape=True)(theta)
    alive, _ = partial_eval.dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars), instantiate=True)
    return ClosedJaxpr(alive, closed.consts), jax.tree.structure(shapes)


def dependencies(
    function: Callable[[dict[str, Any]], dict[str, Any]], arguments: dict[str, Any]
) -> dict[str, frozenset[str]]:
    """For each named output of a function, the named arrays that its value depends on.

    >>> arrays = {"x": np.ones(2), "y": np.ones(2)}
    >>> found = dependencies(lambda own: {"sum": own["x"] + own["y"], "ones": own["x"].shape[0]}, arrays)
    >>> sorted(found["sum"]), sorted(found["ones"])
    (['x', 'y'], [])
    """
    closed, shapes = jax.make_jaxpr(function, return_shape=True)(arguments)
    owners = [name for name in sorted(shapes) for _ in jax.tree.leaves(shapes[name])]

    def used(output: str) -> frozenset[str]:
        _, seen = partial_eval.dce_jaxpr(closed.jaxpr, [owner == output for owner in owners])
        return frozenset(name for name, is_used in zip(sorted(arguments), seen, strict=True) if is_used)

    return {name: used(name) for name in sorted(shapes)}


def walk(closed: Any, inputs: Iterable[Any], equation: Equation) -> list[Any]:
    """The outputs of a jaxpr, each of whose equations is computed by `equation`."""
    # The body of a `checkpoint` is not closed: it has no constants.
    jaxpr, constants = getattr(closed, "jaxpr", closed), getattr(closed, "consts", ())
    values = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*constants, *inputs), strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else values[atom]

    for eqn in jaxpr.eqns:
        with eqn.ctx.manager:
            values.update(zip(eqn.outvars, equation(eqn, [read(atom) for atom in eqn.invars]), strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def as_it_is(eqn: JaxprEqn, inputs: Sequence[Any]) -> list[Any]:
    """The outputs of an equation, computed as it says."""
    outputs = eqn.primitive.bind(*inputs, **eqn.primitive.get_bind_params(eqn.params))
    return list(outputs) if eqn.primitive.multiple_results else [outputs]


def body(eqn: JaxprEqn) -> Any:
    """The program that an equation calls."""
    return eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))


def rewritten(function: Callable[..., Any], names: Collection[str], replacement: Equation) -> Callable[..., Any]:
    """The same function, traced, with a replacement for equations of these names, in plain calls too.

    Arguments:
        names: of primitives. A function without any is called as it is.
        replacement: computes the outputs of such an equation.
    """

    def is_concerned(closed: Any) -> bool:
        return any(
            eqn.primitive.name in names or (eqn.primitive.name in PLAIN_CALLS and is_concerned(body(eqn)))
            for eqn in getattr(closed, "jaxpr", closed).eqns
        )

    def equation(eqn: JaxprEqn, inputs: list[Any]) -> Sequence[Any]:
        if eqn.primitive.name in PLAIN_CALLS and is_concerned(body(eqn)):
            return walk(body(eqn), inputs, equation)
        return replacement(eqn, inputs) if eqn.primitive.name in names else as_it_is(eqn, inputs)

    def replaced(*arguments: Any) -> Any:
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*arguments)
        if not is_concerned(closed):
            return function(*arguments)
        outputs = walk(closed, jax.tree.leaves(arguments), equation)
        return jax.tree.unflatten(jax.tree.structure(shape), outputs)

    return replaced


@dataclass(frozen=True)
class Known:
    """A value on its way through the program, of which something is known."""

    value: Any


@dataclass(frozen=True)
class Leaf(Known):
    """An array of theta in another order; its value may also be a tree of arrays that go the same way.

    Arguments:
        entries: for each number of the value, which entry of the array it is.
        shape: of the array in theta.
    """

    name: str
    entries: np.ndarray
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Output(Known):
    """What has left the product with a kernel, in another order; `entries` says of which feature each number is."""

    kernel: str
    entries: np.ndarray


class Product(NamedTuple):
    """A product of data with weights.

    Arguments:
        side: of the data, among the operands of the equation.
        contracted: axes of the data that are summed over; of a convolution, that of the channels.
        free: axes of the data alone: the rows, then the places at which a row meets the same weights.
        free_after: where those are in the output.
        order: the axes of the weights, first those that are summed over with the data.
    """

    eqn: JaxprEqn
    data: Any
    weights: Leaf
    side: int
    contracted: tuple[int, ...]
    free: tuple[int, ...]
    free_after: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def is_convolution(self) -> bool:
        return self.eqn.primitive.name in CONVOLUTIONS

    def times(self, data: Array, weights: Array) -> Array:
        """The same product of other operands."""
        operands = (data, weights) if self.side == 0 else (weights, data)
        return self.eqn.primitive.bind(*operands, **self.eqn.params)

    def output(self, value: Array) -> Output:
        sizes = [1 if axis in self.free_after else size for axis, size in enumerate(value.shape)]
        return Output(value, self.weights.name, np.broadcast_to(_numbers(sizes), value.shape))


def plain(value: Any) -> Any:
    return value.value if isinstance(value, Known) else value


def leaves(theta: dict[str, Any]) -> dict[str, Leaf]:
    """The arrays of theta, or trees of arrays of the same shape, to be followed."""
    shapes = {name: jax.tree.leaves(value)[0].shape for name, value in theta.items()}
    return {name: Leaf(theta[name], name, _numbers(shape), shape) for name, shape in shapes.items()}


@dataclass
class DataFlow:
    """Evaluates a program in which leaves are followed; notes by name what each is used by.

    Calls are entered where leaves enter them; elsewhere they stay whole, with their derivatives.
    """

    uses: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list), init=False)

    def product(self, product: Product) -> Array | None:
        """The output of a product; None if it counts as any other use."""
        return None

    def bias(self, leaf: Leaf, output: Output) -> None:
        """A vector is added to what left a product: one number for each feature."""

    def compute(self, eqn: JaxprEqn, inputs: list[Any]) -> list[Any]:
        """The outputs of any other equation."""
        return as_it_is(eqn, [plain(value) for value in inputs])

    def is_weights(self, value: Any) -> bool:
        return isinstance(value, Leaf)

    def run(self, closed: ClosedJaxpr, theta: dict[str, Any]) -> list[Any]:
        """The outputs of a traced function of theta, whose arrays are leaves or plain."""
        outputs = walk(closed, [theta[name] for name in sorted(theta)], self._equation)
        for output in outputs:
            if isinstance(output, Leaf):
                self.uses[output.name].append("`return`")
        return [plain(output) for output in outputs]

    def look(self, closed: ClosedJaxpr, theta: dict[str, Any]) -> None:
        """Follow all arrays of theta without computing anything."""
        jax.eval_shape(lambda theta: self.run(closed, leaves(theta)), theta)

    def _equation(self, eqn: JaxprEqn, inputs: list[Any]) -> Sequence[Any]:
        entering = [value for value in inputs if isinstance(value, Leaf)]
        if entering and eqn.primitive.name in CALLS:
            return walk(body(eqn), inputs, self._equation)
        if len(inputs) == 1 and isinstance(inputs[0], Leaf | Output):
            entries = _reindexed(eqn, inputs[0].entries)
            if entries is not None:
                value = jax.tree.map(lambda part: as_it_is(eqn, [part])[0], inputs[0].value)
                return [replace(inputs[0], value=value, entries=entries)]
        product = _product(eqn, inputs, self.is_weights)
        output = None if product is None else self.product(product)
        if product is not None and output is not None:
            self.uses[product.weights.name].append("a product")
            return [product.output(output)]
        for leaf in entering:
            self.uses[leaf.name].append(self._other_use(eqn, inputs, leaf))
        return self.compute(eqn, inputs)

    def _other_use(self, eqn: Any, inputs: list[Any], leaf: Leaf) -> str:
        if eqn.primitive.name == "add":
            outputs = [value for value in inputs if isinstance(value, Output) and _is_by_feature(leaf, value)]
            for output in outputs:
                self.bias(leaf, output)
            if outputs or leaf.entries.size < eqn.outvars[0].aval.size:
                return "a bias"
        return f"`{eqn.primitive.name}`"


def _numbers(shape: Sequence[int]) -> np.ndarray:
    return np.arange(math.prod(shape), dtype=np.int32).reshape(shape)


def _is_by_feature(leaf: Leaf, output: Output) -> bool:
    """Whether a leaf is a vector that has a number for each feature of an output."""
    # Along axes of stride 0 the features are the same, all rows and places of most outputs: one of each will do.
    features = output.entries[tuple(slice(None if stride else 1) for stride in output.entries.strides)]
    return leaf.shape == (leaf.entries.size,) and bool(np.all(leaf.entries == features))


def _reindexed(eqn: Any, entries: np.ndarray) -> np.ndarray | None:
    """The entries after a step that hands each number on as it is; None after any other step."""
    name = eqn.primitive.name
    if name == "transpose":
        return np.transpose(entries, eqn.params["permutation"])
    if name == "rev":
        return np.flip(entries, eqn.params["dimensions"])
    if name in _RESHAPING:
        return entries.reshape(eqn.outvars[0].aval.shape)
    if name == "broadcast_in_dim":
        shape, kept = eqn.params["shape"], eqn.params["broadcast_dimensions"]
        return np.broadcast_to(np.expand_dims(entries, [axis for axis in range(len(shape)) if axis not in kept]), shape)
    return None


def _product(eqn: Any, inputs: list[Any], is_weights: Callable[[Any], bool]) -> Product | None:
    """An equation as a product of data with weights, if it is one."""
    name = eqn.primitive.name
    if name not in {"dot_general", *CONVOLUTIONS} or not any(map(is_weights, inputs)):
        return None
    side = 1 if is_weights(inputs[0]) else 0
    operands = eqn, inputs[side], inputs[1 - side], side
    if name in CONVOLUTIONS:
        # Weights on the left slide over the data, and batch groups have weights for each group of rows.
        if side == 1 or eqn.params["batch_group_count"] > 1:
            return None
        (row, channels, *places), (out, into, *window), after = eqn.params["dimension_numbers"]
        return Product(*operands, (channels,), (row, *places), (after[0], *after[2:]), (into, *window, out))
    contracted, batch = eqn.params["dimension_numbers"]
    free, own = (
        tuple(axis for axis in range(eqn.invars[one].aval.ndim) if axis not in (*contracted[one], *batch[one]))
        for one in (side, 1 - side)
    )
    # The output has the batch axes, then the free ones of the left operand, then those of the right.
    start = len(batch[0]) + len(own) * side
    order = (*contracted[1 - side], *batch[1 - side], *own)
    return Product(*operands, tuple(contracted[side]), free, tuple(range(start, start + len(free))), order)
