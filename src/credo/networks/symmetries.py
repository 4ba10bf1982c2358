"""Symmetries of a network: units that may be reordered, rescaled or turned round without changing its function.

A hidden unit is the weights that enter it and those that leave it. To swap two units of a layer changes nothing; nor
does, for ReLU, to multiply what enters a unit by a > 0 and to divide what leaves it by a; nor, for tanh, to turn the
signs of both (paper, "Setting the priors", on unidentifiability). Candidates are read off the traced program (`axes`),
and each is then measured with random weights: what is declared here holds in numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo._dataflow import trace
from credo.networks.axes import AxisFlow
from credo.networks.functional import Network, functional
from credo.networks.units import Group, Member
from credo.networks.zoo import ZooNetwork
from credo.typing import Theta

# Outputs that should stay move by rounding alone, about 10⁻⁶ of their size; those that should not move about as far as
# when one array alone is reordered. A thousandth of that is far from either.
_TOLERANCE = 1e-3
# A power of two is exact in floating point; and so small that behind a normalisation x / √(mean x² + ε) with the usual
# ε ≥ 10⁻⁶ the ε counts, 2⁻²⁴ ≪ ε: a unit that can be rescaled nearly, not exactly, is found out.
_SMALL = 2.0**-12
# Rows at which a network is compared with itself: enough that a rectifier is on for some and off for others.
_NUM_ROWS = 8


@dataclass(frozen=True)
class Symmetries:
    """The groups of units that a function of named arrays does not tell apart; prints as a table."""

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
            (inputs of a network) must be random, or units that only these numbers do not tell apart are taken for equal.
        params: floating-point arrays by name. Their values say where to measure: the function is compared with itself
            near them.

    >>> pairs = symmetries_of(lambda p: jnp.sum(p["v"] * jnp.tanh(p["w"])), {"v": np.ones(3), "w": np.ones(3)})
    >>> [group.size for group in pairs.groups]
    [3]
    """
    params = {path: np.asarray(value) for path, value in params.items()}
    if not params:
        raise ValueError("params is empty: there is nothing to reorder; pass arrays by name")
    compiled, theta = jax.jit(lambda theta: jax.tree.leaves(function(theta))), _nearby(params)

    def outputs(theta: Theta) -> np.ndarray:
        with jax.default_matmul_precision("float32"):
            return np.concatenate([np.ravel(leaf).astype(np.float64) for leaf in compiled(theta)])

    if not np.all(np.isfinite(outputs(theta))):
        raise ValueError("function is not finite near params, so nothing can be measured; pass values that it is for")
    candidates = _candidates(function, theta)
    return Symmetries(tuple(filter(None, (measured(outputs, theta, group) for group in candidates))))


def measured(outputs: Callable[[Theta], np.ndarray], theta: Theta, group: Group) -> Group | None:
    """A candidate with the symmetries that hold in numbers at theta; None if its units may not even be reordered.

    Arguments:
        outputs: the function, its outputs flat.
        theta: random arrays, so that no two units are alike.
        group: its `rescalable` and `signed` are not looked at, and the "held" among its roles are chosen here.
    """
    before, order = outputs(theta), _cycle(np.random.default_rng(0).permutation(group.size))
    one_alone = replace(group, members=group.members[:1])
    # How far the outputs move when the arrays do not go together; a single array has nothing to go together with.
    far = before if len(group.members) == 1 else outputs(one_alone.permuted(theta, order)) - before

    def holds(changed: Theta) -> bool:
        return bool(np.max(np.abs(outputs(changed) - before)) <= _TOLERANCE * np.max(np.abs(far)))

    if not holds(group.permuted(theta, order)):
        return None
    signs = np.where(np.arange(group.size) % 2, -1.0, 1.0)
    for candidate in (group, _holding_kernels(group)):
        rescalable = all(holds(candidate.scaled(theta, factors)) for factors in (_SMALL**signs, _SMALL**-signs))
        signed = holds(candidate.scaled(theta, signs))
        if rescalable or signed:
            return replace(candidate, rescalable=rescalable, signed=signed)
    return group


def _cycle(units: np.ndarray) -> np.ndarray:
    """The order in which each of these units takes the place of the one before: none stays where it is."""
    order = np.empty_like(units)
    order[units] = np.roll(units, 1)
    return order


def _holding_kernels(group: Group) -> Group:
    """The same units, rescaled by the vectors that enter them alone: the scale and the bias behind a normalisation."""
    members = [replace(m, role="held") if m.role == "out" and m.ndim > 1 else m for m in group.members]
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


def _nearby(params: Theta) -> Theta:
    """Random values of the same sign and size as those given; standard normal ones, halved, for zeros."""
    rng = np.random.default_rng(0)
    nearby = {}
    for path, value in sorted(params.items()):
        noise = 0.5 * rng.standard_normal(value.shape)
        nearby[path] = np.where(value == 0, noise, value * np.exp(noise)).astype(value.dtype)
    return nearby


def _rows(net: Any, x: Any) -> Any:
    """Random inputs in the shape of an example batch, or of those that a network of the zoo was built for."""
    if x is None:
        config = net.config if isinstance(net, Network | ZooNetwork) else None
        inputs = None if config is None else config["inputs"]
        if inputs is None:
            name = type(net).__name__
            raise ValueError(f"x: {name} does not tell the shape of its inputs; pass an example batch (n, ...)")
        x = jax.ShapeDtypeStruct((1, *np.atleast_1d(inputs)), jnp.float32)
    elif not hasattr(x, "dtype"):
        x = np.asarray(x)
    if jnp.issubdtype(x.dtype, jnp.inexact):
        return np.random.default_rng(1).standard_normal((_NUM_ROWS, *x.shape[1:])).astype(x.dtype)
    if isinstance(x, jax.ShapeDtypeStruct):
        raise ValueError(f"x holds numbers of type {x.dtype}, so their values matter; pass an array of some rows")
    return x


def _yes(value: bool) -> str:
    return "yes" if value else "no"
