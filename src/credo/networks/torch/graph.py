"""A network as data: operations by name, in the order in which they run. What PyTorch exported, without PyTorch.

It is JSON, so a posterior carries its network along, and `credo.load` makes it again without running foreign code: all
that a graph can do is to call the operations of the table.
"""

import base64
import math
import zlib
from typing import Any, Literal

import msgspec
import numpy as np

from credo._schema import Count, Positive

DType = Literal["float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"]
# Of one constant: more are a mistake, or an attack on the memory.
_MAX_NUMBERS = 2**28


class Constant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An array that is no parameter (a buffer, a frozen weight), packed: masks and positions shrink to nothing."""

    shape: tuple[Count, ...]
    dtype: DType
    packed: str

    @classmethod
    def of(cls, array: np.ndarray) -> "Constant":
        whole = np.ascontiguousarray(array)
        return cls(array.shape, str(array.dtype), base64.b85encode(zlib.compress(whole.tobytes())).decode())  # type: ignore[arg-type]

    def array(self) -> np.ndarray:
        """The inverse of `of`; nothing larger than the shape says is unpacked."""
        if math.prod(self.shape) > _MAX_NUMBERS:
            raise ValueError(f"a constant of shape {self.shape} is too large")
        num_bytes = math.prod(self.shape) * np.dtype(self.dtype).itemsize
        try:
            found = zlib.decompressobj().decompress(base64.b85decode(self.packed), num_bytes + 1)
        except zlib.error as error:
            raise ValueError(f"a constant of shape {self.shape} cannot be unpacked: {error}") from error
        if len(found) != num_bytes:
            raise ValueError(f"a constant of shape {self.shape} does not hold as many numbers")
        return np.frombuffer(found, self.dtype).reshape(self.shape)


class Ref(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Stands in arguments for the value of that name."""

    ref: str


class Number(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number that JSON has no word for."""

    number: Literal["inf", "-inf", "nan"]


class Node(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One operation: value `name` = op(*args, **kwargs).

    Arguments:
        args: numbers, words, lists of them, and references to values.
        module: the path of the module that it comes from.
    """

    name: str
    op: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    module: str

    def __post_init__(self) -> None:
        # Of what is read, the arguments are still plain JSON.
        msgspec.structs.force_setattr(self, "args", _argument(self.args))
        msgspec.structs.force_setattr(self, "kwargs", {name: _argument(one) for name, one in self.kwargs.items()})


def _argument(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(map(_argument, value))
    if isinstance(value, dict):
        return msgspec.convert(value, Ref if "ref" in value else Number)
    return value


class Graph(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A function of parameters and rows.

    Arguments:
        row: the shape of one row of x, as the module has it.
        integers: whether x holds whole numbers, such as tokens.
        channels_last: whether rows come as (height, width, channels) and are turned for the module.
        parameters: the paths of the parameters, by the names of the values they are.
        shapes: of the parameters, by path.
        output: the name of the value that is the output.
    """

    row: tuple[Positive, ...]
    integers: bool
    channels_last: bool
    input: str
    parameters: dict[str, str]
    shapes: dict[str, tuple[Positive, ...]]
    constants: dict[str, Constant]
    nodes: tuple[Node, ...]
    output: str

    def to_config(self) -> dict[str, Any]:
        """As JSON."""
        return msgspec.to_builtins(self)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Graph":
        """The inverse of `to_config`."""
        return msgspec.convert(config, cls)

    @property
    def used(self) -> list[tuple[str, str]]:
        """The operations, each with the module that it comes from."""
        return [(node.op, node.module) for node in self.nodes]
