"""The largest or the average number of each window, in one, two or three dimensions."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.networks.torch.ops.convolution import each
from credo.networks.torch.ops.resampling import weighted
from credo.networks.torch.table import torch_op
from credo.typing import Array


class _Windows(NamedTuple):
    """Windows over the last axes: for each its size, step, spread, margin, and what the last window reaches beyond."""

    size: tuple[int, ...]
    step: tuple[int, ...]
    spread: tuple[int, ...]
    margin: tuple[int, ...]
    beyond: tuple[int, ...]

    @property
    def are_tiles(self) -> bool:
        return self.size == self.step and set(self.spread) == {1} and not any(self.margin + self.beyond)

    def reduce(self, x: Array, start: Any, function: Callable[..., Array], pads: Sequence[tuple[int, int]]) -> Array:
        lead = x.ndim - len(self.size)
        before = (1,) * lead
        return jax.lax.reduce_window(
            x,
            np.asarray(start, x.dtype),  # known while it is traced, so that JAX sees which window sum it is
            function,
            before + self.size,
            before + self.step,
            [(0, 0)] * lead + list(pads),
            window_dilation=before + self.spread,
        )

    def tiles(self, x: Array) -> tuple[Array, tuple[int, ...]]:
        """x with an axis of places and one within the tile for each; the axes within. Cheaper than windows."""
        num = len(self.size)
        counts = [length // size for length, size in zip(x.shape[-num:], self.size, strict=True)]
        whole = x[(..., *(slice(count * size) for count, size in zip(counts, self.size, strict=True)))]
        pairs = [side for pair in zip(counts, self.size, strict=True) for side in pair]
        return whole.reshape(*x.shape[:-num], *pairs), tuple(range(-2 * num + 1, 0, 2))


def _windows(x: Array, num: int, size: Any, step: Any, margin: Any, spread: Any, ceil_mode: bool) -> _Windows:
    sizes, margins, spreads = each(size, num), each(margin, num), each(spread, num)
    steps = each(step, num) if step else sizes
    beyond = (0,) * num
    if ceil_mode:
        shape = x.shape[-num:]
        beyond = tuple(_beyond(*one) for one in zip(shape, sizes, steps, margins, spreads, strict=True))
    return _Windows(sizes, steps, spreads, margins, beyond)


def _beyond(length: int, size: int, step: int, margin: int, spread: int) -> int:
    """How far a last window that starts inside reaches beyond the margin."""
    free = length + 2 * margin - spread * (size - 1) - 1
    num = -(-free // step) + 1
    num -= (num - 1) * step >= length + margin
    return max((num - 1) * step - free, 0)


def _max_pool(num: int) -> Callable[..., Any]:
    def pool(x: Array, size: Any, step: Any = (), margin: Any = 0, spread: Any = 1, ceil_mode: bool = False) -> Any:
        windows = _windows(x, num, size, step, margin, spread, ceil_mode)
        if windows.are_tiles:
            apart, within = windows.tiles(x)
            return (jnp.max(apart, within),)
        pads = [(low, low + more) for low, more in zip(windows.margin, windows.beyond, strict=True)]
        return (windows.reduce(x, -np.inf, jax.lax.max, pads),)

    return pool


def _average_pool(num: int) -> Callable[..., Array]:
    def pool(
        x: Array,
        size: Any,
        step: Any = (),
        margin: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Array:
        windows = _windows(x, num, size, step, margin, 1, ceil_mode)
        if windows.are_tiles and divisor_override is None:
            apart, within = windows.tiles(x)
            return jnp.mean(apart, within)
        pads = [(low, low + more) for low, more in zip(windows.margin, windows.beyond, strict=True)]
        total = windows.reduce(x, 0, jax.lax.add, pads)
        if divisor_override is not None:
            return total / divisor_override
        counted = jnp.pad(
            jnp.ones(x.shape[-num:], x.dtype),
            [(low, low) for low in windows.margin],
            constant_values=float(count_include_pad),
        )
        return total / windows.reduce(counted, 0, jax.lax.add, [(0, more) for more in windows.beyond])

    return pool


def _adaptive_average(x: Array, sizes: Sequence[int]) -> Array:
    for axis, num in enumerate(reversed(sizes), start=1):
        x = weighted(x, -axis, _shares(x.shape[-axis], num))
    return x


def _shares(length: int, num: int) -> np.ndarray:
    """(num, length): the share of each place in each of `num` windows that cover them all."""
    starts = [place * length // num for place in range(num)]
    ends = [-(-(place + 1) * length // num) for place in range(num)]
    within = np.arange(length)
    rows = [((start <= within) & (within < end)) / (end - start) for start, end in zip(starts, ends, strict=True)]
    return np.stack(rows)


for _num in (1, 2, 3):
    torch_op(f"aten.max_pool{_num}d_with_indices.default")(_max_pool(_num))
    torch_op(f"aten.avg_pool{_num}d.default")(_average_pool(_num))
    torch_op(f"aten._adaptive_avg_pool{_num}d.default", f"aten.adaptive_avg_pool{_num}d.default")(_adaptive_average)
