"""PyTorch modules become networks: pure functions of named parameters."""

import warnings
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from credo._concurrency import require_own_jax
from credo.networks.functional import Network
from credo.networks.torch.exported import exported_network

# What was imported of modules that are still there, and their state then.
_IMPORTED: WeakKeyDictionary[Any, tuple[Any, Network]] = WeakKeyDictionary()


def from_torch(
    module: Any, example_inputs: Any, *, output: str | int | None = None, channels_last: bool = False
) -> Network:
    """A PyTorch module as a network: f_theta(x), theta its parameters by PyTorch's names.

    The module is exported once (`torch.export`, core ATen operations), and its graph is run in JAX from then on: under
    `jit`, `grad`, `vmap` over parameters, for any number of rows. It is left as it is, in its mode and bit for bit.

    What holds in evaluation holds here: batch normalisation takes its statistics as constants, dropout does nothing,
    but keeps its place for `credo.MCDropout`. Parameters that do not require a gradient are constants too. A posterior
    carries the graph, as data, and `credo.load` needs neither torch nor the module.

    Arguments:
        module: a `torch.nn.Module`, in any mode, on any device, in any precision.
        example_inputs: a batch like those to come, (n, ...), as a tensor or an array; whole numbers for tokens. Their
            number may change, the shape of a row may not.
        output: which of its outputs, by name or place, where it returns several.
        channels_last: whether images will come as (n, height, width, channels), as elsewhere in credo, and are to be
            turned for the module; the example inputs are in its own order in either case.

    >>> import torch                                                                        # doctest: +SKIP
    >>> net = from_torch(torch.nn.Linear(3, 1), torch.zeros(2, 3))                          # doctest: +SKIP
    >>> model = credo.models.regression(net)                                                # doctest: +SKIP
    """
    require_own_jax()
    export = _export()
    if not isinstance(module, export.nn.Module):
        raise ValueError(f"module is of type {type(module).__name__}; pass a torch.nn.Module")
    if isinstance(example_inputs, tuple | list):
        if len(example_inputs) != 1:
            raise ValueError(
                f"example_inputs holds {len(example_inputs)} arrays, and a network has one input x; wrap the module in "
                "one whose forward(x) calls it with all of them"
            )
        (example_inputs,) = example_inputs
    x = export.as_example(example_inputs)
    if x.ndim < 2:
        raise ValueError(f"example_inputs has the shape {tuple(x.shape)}; pass a batch of rows, (n, ...)")
    if channels_last and x.ndim != 4:
        raise ValueError(f"channels_last is for images, (n, channels, height, width), and x has {x.ndim} axes")
    own = export.evaluated(module)
    if export.statistics_are_initial(own):
        warnings.warn(
            f"the batch statistics of {type(module).__name__} still have their initial values (mean 0, variance 1). "
            "They are constants of the network, so its batch normalisation does nothing; call the module with data in "
            "training mode first",
            stacklevel=2,
        )
    return exported_network(*export.graph_of(own, x, output=output, channels_last=channels_last))


def imported(module: Any, x: Any) -> Network:
    """A module that a model was given as it is, for rows like those of x; imported again only if its weights changed.

    Of x, only the shape of a row is used: data are real numbers.
    """
    tensors = [*module.parameters(), *module.buffers()]
    state = (x.shape[1:], tuple((tensor.data_ptr(), tensor._version) for tensor in tensors))
    known = _IMPORTED.get(module)
    if known is None or known[0] != state:
        try:
            known = state, from_torch(module, np.zeros((2, *x.shape[1:]), np.float32))
        except ValueError as error:
            raise ValueError(
                f"{error}. The rows of the data are taken for real numbers: for tokens, or to choose an output, pass "
                "credo.networks.from_torch(module, example_inputs) in the place of the module"
            ) from error
        _IMPORTED[module] = known
    return known[1]


def _export() -> Any:
    try:
        from credo.networks.torch import export
    except ImportError as error:
        raise ImportError("from_torch needs PyTorch: pip install 'credo[torch]'") from error
    return export
