"""How many inputs feed one unit of each layer: the scale of priors and initial values depends on it."""

import math
import re
from itertools import takewhile

from credo.typing import Theta

_BIAS_OR_SCALE = re.compile(r"(b|bias|beta|scale|gamma)[_\d]*")


def fan_ins(params: Theta, *, outputs_first: bool = False) -> dict[str, int]:
    """For each path the number of inputs that feed one unit.

    Weights of variance 1 / fan-in preserve the variance from a layer's inputs to its outputs. All axes of a
    kernel (..., in, out) but the last are inputs; a bias or scale has the fan-in of the kernel in its own layer,
    or 1 if there is none (normalisation).

    Arguments:
        params: arrays by dotted path.
        outputs_first: whether weights have shape (out, in, ...), as in equinox.

    >>> import jax.numpy as jnp
    >>> from credo.networks.fan_in import fan_ins
    >>> fan_ins({"conv.kernel": jnp.ones((5, 5, 16, 32)), "conv.bias": jnp.ones(32)})
    {'conv.kernel': 400, 'conv.bias': 400}
    """

    def fan_in(path: str) -> int:
        layer, _, name = path.rpartition(".")
        if name == "embedding":
            return 1  # a table look-up: one row feeds the units, however many rows there are
        if path not in kernels:
            own = [kernel for kernel in kernels if kernel.rpartition(".")[0] == layer]
            # If one level holds several layers, "b1" goes with "w1" and not with "w2".
            return fan_in(max(own, key=lambda kernel: _common_suffix(kernel, path))) if own else 1
        shape = params[path].shape
        if outputs_first:
            return math.prod(shape[1:])
        # The kernels of attention have shape (in, heads, size), as a bias of shape (heads, size) shows.
        bias_path = f"{path.removesuffix(name)}bias"
        bias = params[bias_path if bias_path in params else path]
        output_dims = bias.ndim if bias.ndim < len(shape) and bias.shape == shape[-bias.ndim :] else 1
        return math.prod(shape[:-output_dims])

    kernels = [
        path
        for path, value in params.items()
        if value.ndim > 1 and not _BIAS_OR_SCALE.fullmatch(path.rpartition(".")[2])
    ]
    return {path: fan_in(path) for path in params}


def _common_suffix(first: str, second: str) -> int:
    backwards = zip(reversed(first), reversed(second), strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], backwards)))
