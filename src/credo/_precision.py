"""The precision in which everything is computed: single, or double where JAX is set so.

There is one for all real numbers in compiled code: data, theta, noise, gradients, draws and predictions. Users choose
it as in any JAX program, by `jax.config.update("jax_enable_x64", True)`, the variable `JAX_ENABLE_X64=1`, or
`with jax.enable_x64(True)`. Whatever comes from outside, from a file or from a fit in the other precision, is brought
to it where it enters; nothing is mixed.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

from credo.typing import Tree

P = ParamSpec("P")
T = TypeVar("T")


def working_precision() -> np.dtype[Any]:
    """The type of real numbers in compiled code.

    >>> with jax.enable_x64(True):
    ...     working_precision()
    dtype('float64')
    """
    return np.dtype(jax.dtypes.canonicalize_dtype(float))


def in_working_precision(tree: Tree) -> Tree:
    """A tree whose arrays of single or double precision have the working one; whatever else it holds stays as it is.

    >>> in_working_precision({"w": np.zeros(2, np.float64), "number": np.arange(2)})["w"].dtype == working_precision()
    True
    """
    precision = working_precision()
    other = np.dtype(np.float32 if precision == np.float64 else np.float64)

    def cast(leaf: Any) -> Any:
        return leaf.astype(precision) if hasattr(leaf, "dtype") and leaf.dtype == other else leaf

    return jax.tree.map(cast, tree)


def for_threads(function: Callable[P, T]) -> Callable[P, T]:
    """A function for other threads, which compute it in the precision of this one.

    `with jax.enable_x64(True)` holds for the thread that says it; those that work for it do not know of it.
    """
    is_double = working_precision() == np.float64

    @wraps(function)
    def in_same_precision(*args: P.args, **kwargs: P.kwargs) -> T:
        with jax.enable_x64(is_double):
            return function(*args, **kwargs)

    return in_same_precision
