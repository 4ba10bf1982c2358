"""Which axes of a program's arrays count the same units: one label per axis, carried through its equations.

An axis of n units may be reordered where every equation treats its entries alike. So each axis of each array gets a
label, and each equation either says that two axes are one (the two that a product sums over, those that an addition
lines up) or that the entries of an axis are told apart, which *fixes* its label: inputs that vary along it, outputs of
the program, places of an image, an operation that is not known here. What is left over is free: to reorder the entries
of a label wherever it occurs changes nothing.

An axis that was flattened, (H, W, C) → H·W·C, has several labels, outermost first: its *factors*.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr

from credo._dataflow import CALLS, CONVOLUTIONS, body, walk
from credo.networks.labels import Factors, Labels

# Primitives that compute each number of the output from the numbers in the same place of the inputs.
_ELEMENTWISE = re.findall(
    r"\w+",
    """
    abs acos acosh add add_any and asin asinh atan atan2 atanh cbrt ceil clamp convert_element_type copy copy_p
    cos cosh digamma div eq erf erf_inv erfc exp exp2 expm1 floor ge gt imag integer_pow is_finite le lgamma log
    log1p logistic lt max min mul ne neg nextafter not or pow real reduce_precision rem round rsqrt select_n sign
    sin sinh sqrt square stop_gradient sub tan tanh xor
    """,
)
# Primitives whose output does not depend on the order of what they reduce.
_REDUCTIONS = {f"reduce_{name}" for name in ("sum", "max", "min", "prod", "and", "or", "xor")}
_WINDOWS = {"reduce_window", "reduce_window_sum", "reduce_window_max", "reduce_window_min"}
_CUMULATIVE = {"cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"}


@dataclass(frozen=True)
class Labelled:
    """An array on its way through the program.

    Arguments:
        axes: the labels of each axis.
        path: of the parameter, if the array is one in another shape.
        sources: then, for each axis, the axes of the parameter that it runs along.
    """

    axes: tuple[Factors, ...]
    path: str | None = None
    sources: tuple[frozenset[int], ...] = ()


@dataclass
class AxisFlow:
    """Carries labels through a traced program of named parameters.

    Arguments:
        consumed: pairs (path, axis) that data are multiplied with and summed over: weights that *leave* a unit.
        used: the paths in the order in which the program uses them.
    """

    labels: Labels = field(default_factory=Labels)
    consumed: set[tuple[str, int]] = field(default_factory=set)
    used: list[str] = field(default_factory=list)

    def run(self, closed: ClosedJaxpr, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[Factors, ...]]:
        """The labels of the axes of each parameter, by path, after a walk through the program."""
        axes = {path: tuple(map(self.labels.new, shapes[path])) for path in sorted(shapes)}
        leaves = [Labelled(axes[path], path, tuple(frozenset([i]) for i in range(len(axes[path])))) for path in axes]
        for output in walk(closed, leaves, self._equation):
            self.labels.fix(*self._labelled(output).axes)
        return {path: tuple(tuple(self.labels.resolved(axis)) for axis in axes[path]) for path in self.used}

    def _labelled(self, value: Any) -> Labelled:
        """A constant tells units apart along the axes along which it varies."""
        if isinstance(value, Labelled):
            return value
        return Labelled(tuple(self.labels.new(size, fixed=_varies(value, i)) for i, size in enumerate(np.shape(value))))

    def _equation(self, eqn: Any, inputs: list[Any]) -> Sequence[Labelled]:
        name = eqn.primitive.name
        if name in CALLS:
            return walk(body(eqn), inputs, self._equation)
        values = [self._labelled(value) for value in inputs]
        self.used += [v.path for v in values if v.path is not None and v.path not in self.used]
        if name in _ELEMENTWISE:
            return [self._elementwise(eqn, values)]
        rule = _RULES.get(name)
        shapes = [output.aval.shape for output in eqn.outvars]
        axes = None if rule is None else rule(self, eqn.params, values, *shapes)
        if axes is None:
            self.labels.fix(*(axis for value in values for axis in value.axes))
            return [Labelled(tuple(self.labels.new(size, fixed=True) for size in shape)) for shape in shapes]
        path = values[0].path if name in _SOURCES else None
        sources = _SOURCES[name](eqn, values[0].sources) if path is not None else ()
        return [Labelled(tuple(axes), path, sources)]

    def _elementwise(self, eqn: Any, values: list[Labelled]) -> Labelled:
        # Scalars may stand beside arrays: literals, the bounds of `clamp`.
        full = [value for value in values if len(value.axes) == len(eqn.outvars[0].aval.shape)]
        axes = tuple(self.labels.unify(*together) for together in zip(*(value.axes for value in full), strict=True))
        is_cast = eqn.primitive.name in ("convert_element_type", "copy", "copy_p")
        return replace(full[0], axes=axes) if is_cast else Labelled(axes)

    def sums_over(self, value: Labelled, axes: Iterable[int]) -> None:
        if value.path is not None:
            self.consumed |= {(value.path, source) for axis in axes for source in value.sources[axis]}

    def kept_or_fixed(self, axes: Sequence[Factors], shape: Sequence[int], kept: Sequence[bool]) -> list[Factors]:
        """The axes of an output: those of the input, except where their entries are told apart."""
        self.labels.fix(*(axis for axis, keep in zip(axes, kept, strict=True) if not keep))
        return [
            axis if keep else self.labels.new(n, fixed=True) for axis, n, keep in zip(axes, shape, kept, strict=True)
        ]


def _varies(value: Any, axis: int) -> bool:
    """Whether a constant is not the same all along an axis; random keys are not."""
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        return True
    array = np.asarray(value)
    return not np.all(array == array.take([0], axis))


# -- one rule per primitive: the axes of its output; None if the case is not known -------------------------

Params = dict[str, Any]
Axes = Sequence[Factors]


def _dot(flow: AxisFlow, params: Params, values: list[Labelled], shape: Sequence[int]) -> Axes:
    contracted, batch = params["dimension_numbers"]
    free = []
    for value, summed, together in zip(values, contracted, batch, strict=True):
        flow.sums_over(value, summed)
        free += [axis for i, axis in enumerate(value.axes) if i not in (*summed, *together)]
    left, right = (value.axes for value in values)
    for i, j in zip(*contracted, strict=True):
        flow.labels.unify(left[i], right[j])
    return [*(flow.labels.unify(left[i], right[j]) for i, j in zip(*batch, strict=True)), *free]


def _convolution(flow: AxisFlow, params: Params, values: list[Labelled], shape: Sequence[int]) -> Axes | None:
    """Channels meet channels; each place of an image and of a window is a place of its own.

    In a convolution of G groups, the channels are (G, in) and the kernel's outputs (G, out).
    """
    if params["batch_group_count"] > 1:
        return None
    data, kernel = values
    (row, channel, *places), (out, into, *window), after = params["dimension_numbers"]
    flow.sums_over(kernel, [into])
    num_groups, labels = params["feature_group_count"], flow.labels
    groups = labels.new(num_groups)
    labels.unify(data.axes[channel], (*groups, *kernel.axes[into]))
    labels.unify(kernel.axes[out], (*groups, *labels.new(labels.size(kernel.axes[out]) // num_groups)))
    labels.fix(*(data.axes[i] for i in places), *(kernel.axes[i] for i in window))
    axes = [labels.new(size, fixed=True) for size in shape]
    axes[after[0]], axes[after[1]] = data.axes[row], kernel.axes[out]
    return axes


def _broadcast(flow: AxisFlow, params: Params, values: list[Labelled], shape: Sequence[int]) -> Axes:
    axes = [flow.labels.new(size) for size in shape]
    for axis, place in zip(values[0].axes, params["broadcast_dimensions"], strict=True):
        axes[place] = axis or axes[place]
    return axes


def _reshape(flow: AxisFlow, params: Params, values: list[Labelled], shape: Sequence[int]) -> Axes:
    return flow.labels.reshaped(values[0].axes, shape)


def _transpose(flow: AxisFlow, params: Params, values: list[Labelled], shape: Sequence[int]) -> Axes:
    return [values[0].axes[i] for i in params["permutation"]]


def _reduction(flow: AxisFlow, params: Params, values: list[Labelled], shape: Sequence[int]) -> Axes:
    return [axis for i, axis in enumerate(values[0].axes) if i not in params["axes"]]


def _window(flow: AxisFlow, params: Params, values: list[Labelled], *shapes: Sequence[int]) -> Axes | None:
    if len(shapes) > 1:
        return None
    kept = [size == len_ for size, len_ in zip(shapes[0], map(flow.labels.size, values[0].axes), strict=True)]
    kept = [keep and width == 1 for keep, width in zip(kept, params["window_dimensions"], strict=True)]
    return flow.kept_or_fixed(values[0].axes, shapes[0], kept)


def _cumulative(flow: AxisFlow, params: Params, values: list[Labelled], shape: Sequence[int]) -> Axes:
    return flow.kept_or_fixed(values[0].axes, shape, [i != params["axis"] for i in range(len(shape))])


def _reverse(flow: AxisFlow, params: Params, values: list[Labelled], shape: Sequence[int]) -> Axes:
    return flow.kept_or_fixed(values[0].axes, shape, [i not in params["dimensions"] for i in range(len(shape))])


def _slice(flow: AxisFlow, params: Params, values: list[Labelled], *shapes: Sequence[int]) -> Axes | None:
    """Slices and paddings keep the axes that stay whole."""
    if len(shapes) > 1:
        return None
    kept = [size == whole for size, whole in zip(shapes[0], map(flow.labels.size, values[0].axes), strict=True)]
    return flow.kept_or_fixed(values[0].axes, shapes[0], kept)


def _pad(flow: AxisFlow, params: Params, values: list[Labelled], shape: Sequence[int]) -> Axes:
    return flow.kept_or_fixed(values[0].axes, shape, [not any(widths) for widths in params["padding_config"]])


def _concatenate(flow: AxisFlow, params: Params, values: list[Labelled], shape: Sequence[int]) -> Axes | None:
    """k arrays of n numbers side by side are (k, n): the same unit of each goes to the same place, k is told apart."""
    along, labels = params["dimension"], flow.labels
    if len({labels.size(value.axes[along]) for value in values}) > 1:
        return None
    axes = [labels.unify(*together) for together in zip(*(value.axes for value in values), strict=True)]
    axes[along] = (*labels.new(len(values), fixed=True), *axes[along])
    return axes


def _gather(flow: AxisFlow, params: Params, values: list[Labelled], shape: Sequence[int]) -> Axes | None:
    """Rows of a table: the axes that are taken whole are kept."""
    numbers, table = params["dimension_numbers"], values[0]
    if numbers.operand_batching_dims:
        return None
    gone = set(numbers.collapsed_slice_dims)
    kept = [i for i in range(len(table.axes)) if i not in gone]
    whole = [params["slice_sizes"][i] == flow.labels.size(table.axes[i]) for i in kept]
    flow.labels.fix(*(table.axes[i] for i in gone), *values[1].axes)
    axes = [flow.labels.new(size, fixed=True) for size in shape]
    offsets = [shape[i] for i in numbers.offset_dims]
    for place, axis in zip(
        numbers.offset_dims, flow.kept_or_fixed([table.axes[i] for i in kept], offsets, whole), strict=True
    ):
        axes[place] = axis
    return axes


_RULES: dict[str, Callable[..., Axes | None]] = {
    "dot_general": _dot,
    **dict.fromkeys(CONVOLUTIONS, _convolution),
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "squeeze": _reshape,
    "expand_dims": _reshape,
    "transpose": _transpose,
    "rev": _reverse,
    "slice": _slice,
    "pad": _pad,
    "concatenate": _concatenate,
    "gather": _gather,
    **dict.fromkeys(_REDUCTIONS, _reduction),
    **dict.fromkeys(_WINDOWS, _window),
    **dict.fromkeys(_CUMULATIVE, _cumulative),
}


# -- a parameter in another shape --------------------------------------------------------------------------


def _reshaped_sources(eqn: Any, sources: tuple[frozenset[int], ...]) -> tuple[frozenset[int], ...]:
    """An axis of stride s and length n runs along those whose strides overlap with s … s·n."""
    before, after = (_spans(variable.aval.shape) for variable in (eqn.invars[0], eqn.outvars[0]))
    return tuple(
        frozenset().union(
            *(source for source, (a, b) in zip(sources, before, strict=True) if max(a, start) < min(b, stop))
        )
        for start, stop in after
    )


def _spans(shape: Sequence[int]) -> list[tuple[int, int]]:
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    return [(stride, stride * size) for stride, size in zip(strides, shape, strict=True)]


_SOURCES: dict[str, Callable[[Any, tuple[frozenset[int], ...]], tuple[frozenset[int], ...]]] = {
    "reshape": _reshaped_sources,
    "squeeze": _reshaped_sources,
    "expand_dims": _reshaped_sources,
    "transpose": lambda eqn, sources: tuple(sources[i] for i in eqn.params["permutation"]),
}
