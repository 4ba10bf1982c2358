"""Symmetries of a network: units that may be reordered, rescaled or turned round without changing its function.

A hidden unit is the weights that enter it and those that leave it. To swap two units of a layer changes nothing; nor
does, for ReLU, to multiply what enters a unit by a > 0 and to divide what leaves it by a; nor, for tanh, to turn the
signs of both (paper, "Setting the priors", on unidentifiability). Candidates are read off the traced program (`axes`),
and each is then measured with random weights: what is declared here holds in numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo._dataflow import trace
from credo._precision import working_precision
from credo.networks.axes import AxisFlow
from credo.networks.functional import Network, functional
from credo.networks.units import Group, Member
from credo.networks.zoo import ZooNetwork
from credo.typing import Theta

# An output that should stay moves by rounding alone, some 10⁻⁶ of its size; one that should not moves about as far as
# when one array alone is reordered. What is allowed lies far from either.
_ROUNDING = 1e-5
_TOLERANCE = 1e-3
# Weights at which a function is compared with itself: at some, a layer may be dead.
_NUM_POINTS = 3
# A power of two is exact in floating point; and so small that behind a normalisation x / √(mean x² + ε) with the usual
# ε ≥ 10⁻⁶ the ε counts, 2⁻²⁴ ≪ ε: a unit that can be rescaled nearly, not exactly, is found out.
_SMALL = 2.0**-12
# Rows at which a network is compared with itself: enough that a rectifier is on for some and off for others.
_NUM_ROWS = 8


@dataclass(frozen=True)
class Symmetries:
    """The groups of units that a function of named arrays does not tell apart; prints as a table.

    >>> import credo
    >>> found = credo.networks.symmetries(credo.networks.MLP([20], out=1, inputs=3))
    >>> [group.size for group in found.groups]
    [20]
    """

    groups: tuple[Group, ...] = ()

    def __str__(self) -> str:
        if not self.groups:
            return "no symmetries: no units that could be reordered"
        header = ("units", "rescalable", "signed", "axes")
        rows = [
            (str(group.size), _yes(group.rescalable), _yes(group.signed), ", ".join(map(str, group.members)))
            for group in self.groups
        ]
        widths = [max(len(row[column]) for row in [header, *rows]) for column in range(3)]
        return "\n".join("  ".join([*map(str.ljust, row, widths), row[3]]) for row in [header, *rows])


def symmetries(net: Any, x: Any = None) -> Symmetries:
    """The units of a network that may be reordered, and which of them may be rescaled or turned round.

        f(P W₁, W₂ Pᵀ) = f(W₁, W₂),   f(A W₁, W₂ A⁻¹) = f(W₁, W₂)      P a permutation, A diagonal

    Found in any network that `functional` takes: dense layers, convolutions (whose channels are the units), behind a
    flattened image too, and residual networks, whose stream is one group per stage. Layers that tell their units apart
    (batch statistics, masks, operations that are not known) have none. Of normalised groups of channels, the groups
    are units, and so are the places within them. A layer of one unit is left out.

    Arguments:
        net: a network, as in `functional`.
        x: an example batch (n, ...), of which only shape and dtype are used; needed unless the network is one of the
            zoo that knows its inputs. Of a batch of integers, the values are used.

    >>> from credo.networks import MLP, symmetries
    >>> print(symmetries(MLP([20], 1, inputs=3)))
    units  rescalable  signed  axes
    20     no          yes     hidden.0.kernel[1] out, hidden.0.bias[0] out, head.kernel[0] in

    Reference: Hecht-Nielsen, On the algebraic structure of feedforward network weight spaces, 1990.
    """
    network, rows = functional(net, x), _rows(net, x)
    return symmetries_of(lambda theta: network.apply(theta, rows), network.params)


def symmetries_of(function: Callable[[Theta], Any], params: Theta) -> Symmetries:
    """The symmetries of any function of named arrays.

    Arguments:
        function: `function(params)` -> an array, or a tree of arrays; pure and traceable by JAX. What it reads besides
            (inputs of a network) must be random: units are not told apart by inputs that are all alike.
        params: floating-point arrays by name. Their values say where to measure: the function is compared with itself
            near them.

    >>> pairs = symmetries_of(lambda p: jnp.sum(p["v"] * jnp.tanh(p["w"])), {"v": np.ones(3), "w": np.ones(3)})
    >>> [group.size for group in pairs.groups]
    [3]
    """
    params = {path: np.asarray(value) for path, value in params.items()}
    if not params:
        raise ValueError("params is empty: there is nothing to reorder; pass arrays by name")
    compiled, points = jax.jit(lambda theta: jax.tree.leaves(function(theta))), _near(params)

    def outputs(theta: Theta) -> np.ndarray:
        with jax.default_matmul_precision("float32"):
            return np.concatenate([np.ravel(leaf).astype(np.float64) for leaf in compiled(theta)])

    if not any(np.all(np.isfinite(outputs(theta))) for theta in points):
        raise ValueError("function is not finite near params, so nothing can be measured; pass values that it is for")
    candidates = _candidates(function, params)
    return Symmetries(tuple(filter(None, (measured(outputs, points, group) for group in candidates))))


def measured(outputs: Callable[[Theta], np.ndarray], points: Sequence[Theta], group: Group) -> Group | None:
    """A candidate with the symmetries that hold in numbers; None if its units may not even be reordered.

    Arguments:
        outputs: the function, its outputs flat.
        points: random weights, so that no two units are alike.
        group: its `rescalable` and `signed` are not looked at, and the "held" among its roles are chosen here.
    """
    order = _cycle(np.random.default_rng(0).permutation(group.size))
    one_alone = replace(group, members=group.members[:1])
    allowed = []
    for theta in points:
        before = outputs(theta)
        # How far the outputs move when the arrays do not go together; a single array has nothing to go together with.
        far = before if len(group.members) == 1 else outputs(one_alone.permuted(theta, order)) - before
        if np.any(np.abs(far) > 100 * _ROUNDING * np.abs(before)):
            allowed.append((theta, before, _TOLERANCE * np.max(np.abs(far)) + _ROUNDING * np.abs(before)))

    def holds(change: Callable[[Theta, Any], Theta], by: Any) -> bool:
        """Whether it changes nothing; where units do not matter at any of the points, nothing can be said."""
        return bool(allowed) and all(
            np.all(np.abs(outputs(change(theta, by)) - before) <= limit) for theta, before, limit in allowed
        )

    if not holds(group.permuted, order):
        return None
    signs = np.where(np.arange(group.size) % 2, -1.0, 1.0)
    for candidate in (group, _holding(group, 0), _holding(group, 1)):
        rescalable = holds(candidate.scaled, _SMALL**signs) and holds(candidate.scaled, _SMALL**-signs)
        signed = holds(candidate.scaled, signs) and holds(candidate.scaled, -signs)
        if rescalable or signed:
            return replace(candidate, rescalable=rescalable, signed=signed)
    return replace(group, rescalable=False, signed=False)


def _cycle(units: np.ndarray) -> np.ndarray:
    """The order in which each of these units takes the place of the one before: none stays where it is."""
    order = np.empty_like(units)
    order[units] = np.roll(units, 1)
    return order


def _holding(group: Group, num: int) -> Group:
    """The same units, rescaled behind a normalisation alone: each kernel and `num` vectors that follow it are held.

    What follows a kernel is (its bias,) the scale of the normalisation, the bias of that.
    """
    members, num_since = [], num
    for member in group.members:
        num_since = 0 if member.ndim > 1 else num_since + 1
        is_held = member.role == "out" and num_since <= num
        members.append(replace(member, role="held") if is_held else member)
    return replace(group, members=tuple(members))


def _candidates(function: Callable[[Theta], Any], theta: Theta) -> list[Group]:
    """A group for each label that is free, in the order in which the program uses its arrays."""
    flow, found = AxisFlow(), dict[int, list[Member]]()
    axes = flow.run(trace(function, theta)[0], {path: value.shape for path, value in theta.items()})
    for path, labels_of_axes in axes.items():
        for axis, labels in enumerate(labels_of_axes):
            role = "in" if (path, axis) in flow.consumed else "out"
            for place, label in enumerate(labels):
                around = (flow.labels.size(labels[:place]), flow.labels.size(labels[place + 1 :]))
                member = Member(path, axis, theta[path].ndim, role, *around)  # type: ignore[arg-type]
                found.setdefault(label, []).append(member)
    return [
        Group(flow.labels.sizes[label], tuple(members))
        for label, members in found.items()
        if not flow.labels.is_fixed(label)
    ]


def _near(params: Theta) -> list[Theta]:
    """Random weights of the signs and sizes of those given, in another order; normal ones of half a unit for zeros."""
    rng = np.random.default_rng(0)

    def near(value: np.ndarray) -> np.ndarray:
        shuffled, noise = rng.permutation(value.ravel()).reshape(value.shape), 0.5 * rng.standard_normal(value.shape)
        return np.where(shuffled == 0, noise, shuffled * np.exp(noise)).astype(value.dtype)

    return [{path: near(value) for path, value in sorted(params.items())} for _ in range(_NUM_POINTS)]


def _rows(net: Any, x: Any) -> Any:
    """Random inputs in the shape of an example batch, or of those that a network of the zoo was built for."""
    if x is None:
        config = net.config if isinstance(net, Network | ZooNetwork) else None
        inputs = None if config is None else config["inputs"]
        if inputs is None:
            name = type(net).__name__
            raise ValueError(f"x: {name} does not tell the shape of its inputs; pass an example batch (n, ...)")
        x = jax.ShapeDtypeStruct((1, *np.atleast_1d(inputs)), working_precision())
    elif not hasattr(x, "dtype"):
        x = np.asarray(x)
    if jnp.issubdtype(x.dtype, jnp.inexact):
        return np.random.default_rng(1).standard_normal((_NUM_ROWS, *x.shape[1:])).astype(x.dtype)
    if isinstance(x, jax.ShapeDtypeStruct):
        raise ValueError(f"x holds numbers of type {x.dtype}, so their values matter; pass an array of some rows")
    return x


def _yes(value: bool) -> str:
    return "yes" if value else "no"
