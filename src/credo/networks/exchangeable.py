"""Which entries of its arrays a function does not tell apart, one by one.

Symmetries of the whole (`symmetries`) move several arrays at once; here it is asked of each entry which others of the
same array may come in its place, if the rest of the arrays moves along: the weights of one input into all hidden units,
their biases, all weights between two hidden layers.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from credo._dataflow import trace
from credo.networks.axes import AxisFlow


def exchangeable(function: Callable[[dict[str, Any]], Any], params: dict[str, Any]) -> dict[str, np.ndarray]:
    """For each array a number per entry: entries with the same number may be exchanged for each other.

    They are read off the traced program, not measured (`symmetries_of` does that): a guide, not a proof.

    Arguments:
        function: `function(params)` -> a tree of arrays; pure and traceable by JAX. What it reads besides must not be
            alike along an axis that counts.
        params: arrays by name, of which only shape and dtype are used.

    >>> net = lambda p: np.array([[1.0, 2.0]]) @ p["in"] @ p["out"]
    >>> exchangeable(net, {"in": np.ones((2, 3)), "out": np.ones((3, 1))})
    {'in': array([[0, 0, 0],
           [1, 1, 1]]), 'out': array([[0],
           [0],
           [0]])}
    """
    flow = AxisFlow()
    axes = flow.run(trace(function, params)[0], {path: np.shape(value) for path, value in params.items()})

    def numbered(path: str) -> np.ndarray:
        shape = np.shape(params[path])
        # An array that is not used tells nothing about its entries.
        factors = [label for axis in axes[path] for label in axis] if path in axes else None
        if factors is None:
            return np.arange(math.prod(shape)).reshape(shape)
        sizes = [flow.labels.sizes[label] for label in factors]
        own = [size if flow.labels.is_fixed(label) else 1 for label, size in zip(factors, sizes, strict=True)]
        return np.broadcast_to(np.arange(math.prod(own)).reshape(own), sizes).reshape(shape)

    return {path: numbered(path) for path in params}
