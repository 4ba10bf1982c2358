"""The table of operations: what each one that PyTorch exports is in JAX."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

OPS: dict[str, Callable[..., Any]] = {}


def torch_op(*names: str) -> Callable[[F], F]:
    """Register what computes an operation of PyTorch, in JAX.

    The function is called with the operation's own arguments: JAX arrays in the place of tensors, names such as
    "float32" in the place of dtypes; devices and layouts are left out. Operations with several outputs return a tuple.

    Arguments:
        names: of the operation, with its overload, as the error about it says.

    >>> import jax.numpy as jnp
    >>> @torch_op("aten.sinc.default")
    ... def sinc(x):
    ...     return jnp.sinc(x)
    """

    def register(function: F) -> F:
        OPS.update(dict.fromkeys(names, function))
        return function

    return register


def require_known(used: Iterable[tuple[str, str]]) -> None:
    """Refuse operations that the table does not have.

    Arguments:
        used: names, each with the path of the module that it comes from.
    """
    for op, module in used:
        if op not in OPS:
            raise ValueError(
                f"module uses {op} in {repr(module) if module else 'its forward'}, an operation that credo does not "
                f"know; say what it is in JAX: @credo.networks.torch_op({op!r}) above a function of its arguments"
            )
