"""Types of numbers by PyTorch's names."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo._precision import working_precision


def dtype_of(name: str | None, default: Any = None) -> Any:
    """The type of that name here: all real numbers have the working precision, whole ones the width that JAX has.

    >>> dtype_of("float16") == working_precision()
    True
    """
    if name is None:
        return default
    dtype = jnp.dtype(name)
    return working_precision() if jnp.issubdtype(dtype, np.floating) else jax.dtypes.canonicalize_dtype(dtype)
