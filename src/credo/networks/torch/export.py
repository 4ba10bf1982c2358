"""A PyTorch module as a graph: `torch.export`, core ATen operations, and layers that are better kept whole.

The only file that imports torch; `from_torch` imports it when it is called.
"""

import copy
import inspect
import logging
import sysconfig
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.export import Dim, ExportedProgram, default_decompositions
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree

from credo._precision import working_precision
from credo.networks.torch.graph import Constant, Graph, Node, Number, Ref
from credo.typing import Theta

# Taken apart, a recurrent layer has nodes for each time, and attention loses its shape.
_KEPT_WHOLE = {
    "aten.gru.input",
    "aten.linear.default",
    "aten.lstm.input",
    "aten.rnn_relu.input",
    "aten.rnn_tanh.input",
    "aten.scaled_dot_product_attention.default",
}
# Where and how an array is kept is JAX's business.
_OF_STORAGE = {"device", "layout", "memory_format", "non_blocking", "pin_memory"}
# Dropout, and whether it drops whole channels.
_DROPOUT = {
    functional.dropout: False,
    functional.dropout1d: True,
    functional.dropout2d: True,
    functional.dropout3d: True,
}


@torch.library.custom_op("credo::dropout", mutates_args=())
def _dropout(x: torch.Tensor, rate: float, by_channel: bool) -> torch.Tensor:
    """Stands for dropout in the graph, which export would drop: in evaluation it does nothing."""
    return x.clone()


@_dropout.register_fake
def _(x: torch.Tensor, rate: float, by_channel: bool) -> torch.Tensor:
    return torch.empty_like(x)


class _DropoutSites(TorchFunctionMode):
    """While it lasts, calls of dropout become our own operation."""

    def __torch_function__(self, function: Callable, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function not in _DROPOUT:
            return function(*args, **kwargs)
        given = inspect.signature(function).bind(*args, **kwargs)
        given.apply_defaults()
        x, rate = given.arguments["input"], float(given.arguments["p"])
        return torch.ops.credo.dropout(x, rate, _DROPOUT[function]) if 0 < rate < 1 else x


def evaluated(module: nn.Module) -> nn.Module:
    """A copy in evaluation mode, on the CPU and in the working precision; the module itself is left as it is."""
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if tensor.is_meta:
            raise ValueError(f"module: {name!r} is on the device 'meta', where arrays have no values; load its weights")
    for name, layer in module.named_modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm) and layer.running_mean is None:
            raise ValueError(
                f"module: the batch normalisation {name!r} keeps no statistics (track_running_stats=False), so the "
                "rows of a batch depend on each other and the likelihood is no product; let it track them, or take "
                "group or layer normalisation"
            )
    return copy.deepcopy(module).to(device="cpu", dtype=_precision()).eval()


def _precision() -> torch.dtype:
    return torch.float64 if working_precision() == np.float64 else torch.float32


def as_example(x: Any) -> torch.Tensor:
    """Two rows like those of x: export takes an axis of one for a constant."""
    x = torch.as_tensor(x).detach().to("cpu")
    x = x.to(_precision()) if x.is_floating_point() else x
    return torch.cat([x, x])[:2].clone()


def graph_of(
    module: nn.Module, x: torch.Tensor, *, output: str | int | None, channels_last: bool
) -> tuple[Graph, Theta]:
    """The graph of a copy of a module, and the values of its parameters by path."""
    program = _program(module, x)
    names = {id(tensor): path for path, tensor in module.named_parameters()}
    signature = program.graph_signature
    tensors = {name: module.get_parameter(path) for name, path in signature.inputs_to_parameters.items()}
    nodes = {node.name: node for node in program.graph.nodes}
    (given,) = signature.user_inputs
    wanted = _output(program, output)
    used = _reached(nodes, wanted)
    params = {name: tensor for name, tensor in tensors.items() if tensor.requires_grad}
    buffers = {**signature.inputs_to_buffers, **signature.inputs_to_lifted_tensor_constants}
    constants = {name: program.state_dict.get(path, program.constants.get(path)) for name, path in buffers.items()}
    constants |= {name: tensor for name, tensor in tensors.items() if not tensor.requires_grad}
    values = {names[id(tensor)]: _array(tensor) for tensor in params.values()}
    graph = Graph(
        row=tuple(x.shape[1:]),
        integers=not x.is_floating_point(),
        channels_last=channels_last,
        input=given,
        parameters={name: names[id(tensor)] for name, tensor in params.items()},
        shapes={path: value.shape for path, value in values.items()},
        constants={name: Constant.of(_array(constants[name])) for name in constants if name in used},
        nodes=tuple(_node(node) for node in program.graph.nodes if node.name in used and node.op == "call_function"),
        output=wanted,
    )
    return graph, values


def _program(module: nn.Module, x: torch.Tensor) -> ExportedProgram:
    rows = ({0: Dim.DYNAMIC},)
    kept = {op: rule for op, rule in default_decompositions().items() if str(op) not in _KEPT_WHOLE}
    try:
        with _quiet(), _DropoutSites():
            return torch.export.export(module, (x,), dynamic_shapes=rows, strict=False).run_decompositions(kept)
    except Exception as error:
        raise ValueError(_said(module, x, error)) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """While it lasts, torch does not print its graphs and guesses where it fails: the error says what there is."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


def _said(module: nn.Module, x: torch.Tensor, error: Exception) -> str:
    """What went wrong in the export, in one sentence, and where in the user's code."""
    lines = [line.strip(" -") for line in str(error).strip().splitlines()] or [type(error).__name__]
    first, name, shape = lines[0], type(module).__name__, tuple(x.shape)
    if "data-dependent" in first:
        why = "its forward decides by the values of x (an `if` or `for` on a tensor), and a graph has one way for all x"
        how = "; write it with torch.where, or take the decision out of the module"
    elif "onstraint" in first:
        why, how = "it works for one number of rows only", "; take sizes from x.shape in its forward"
        first = next((line for line in lines if line.startswith("You marked")), first).partition(". ")[0]
    else:
        why, how = "its forward fails", ""
    return f"module: {name} cannot be exported with x of shape {shape}{_where(error)}: {why} ({first}){how}"


def _where(error: Exception) -> str:
    """The last line of the user's code that ran."""
    foreign = (str(Path(torch.__file__).parent), str(Path(__file__).parent), sysconfig.get_path("stdlib"), "<")
    own = [one for one in traceback.extract_tb(error.__traceback__) if not one.filename.startswith(foreign)]
    return f", in {own[-1].name} at {Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""


def _output(program: ExportedProgram, output: str | int | None) -> str:
    """The name of the value that is the output."""
    values = program.graph_signature.user_outputs
    container = _pytree.tree_unflatten(list(range(len(values))), program.call_spec.out_spec)
    if output is None:
        if len(values) != 1:
            named = (
                [key for key, value in container.items() if value is not None] if hasattr(container, "items") else []
            )
            choices = ", ".join(map(repr, named)) or f"a place, 0 to {len(values) - 1}"
            raise ValueError(f"module returns {len(values)} arrays; say which of them, output= {choices}")
        return str(values[0])
    try:
        return str(values[container[output]])
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(f"output is {output!r}, and the module returns {container!r}, by place") from error


def _reached(nodes: dict[str, Any], output: str) -> set[str]:
    """The values that the output needs."""
    found: set[str] = set()
    open_names = [output]
    while open_names:
        name = open_names.pop()
        if name not in found:
            found.add(name)
            open_names += [one.name for one in nodes[name].all_input_nodes]
    return found


def _node(node: Any) -> Node:
    target = node.target
    op = str(target) if isinstance(target, torch._ops.OpOverload) else f"operator.{target.__name__}"
    stack = list((node.meta.get("nn_module_stack") or {"": ("",)}).values())
    kwargs = {name: _argument(value) for name, value in node.kwargs.items() if name not in _OF_STORAGE}
    return Node(node.name, op, tuple(map(_argument, node.args)), kwargs, stack[-1][0])


def _argument(value: Any) -> Any:
    if isinstance(value, torch.fx.Node):
        return Ref(value.name)
    if isinstance(value, list | tuple):
        return tuple(map(_argument, value))
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    if isinstance(value, torch.device | torch.layout | torch.memory_format):
        return None
    if isinstance(value, float) and not np.isfinite(value):
        return Number(str(value))  # type: ignore[arg-type]
    return value


def _array(tensor: torch.Tensor) -> np.ndarray:
    return (tensor.detach().to(_precision()) if tensor.is_floating_point() else tensor).numpy().copy()


def statistics_are_initial(module: nn.Module) -> bool:
    """Whether there are batch statistics, and all are those a module is made with."""
    layers = [layer for layer in module.modules() if isinstance(layer, nn.modules.batchnorm._BatchNorm)]
    return bool(layers) and all(
        bool((layer.running_mean == 0).all() and (layer.running_var == 1).all()) for layer in layers
    )
